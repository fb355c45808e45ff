"""Bodies in space for a page, in few bytes: what `templates/space.js` draws and turns."""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np


MOST_FACES = 6000  # of all bodies
MOST_BYTES = 240_000  # of all places
CELLS = (96, 64, 48, 32, 24, 16, 12, 8)  # along the longest side, into which vertices are merged
TYPES = {"Int16Array": "<i2", "Float32Array": "<f4"}
EMPTY = np.zeros((1, 0, 3))


def make_view(
    *,
    points: np.ndarray = EMPTY, edges: np.ndarray | None = None, faces: np.ndarray | None = None,
    bodies: tuple[int, ...] = (), wires: np.ndarray = EMPTY,
    at: np.ndarray = EMPTY, arrows: np.ndarray = EMPTY,
) -> dict[str, Any]:  # fmt: skip
    """Return what a page draws, as plain values.

    Places are (n_frames, n, 3) [m], or (1, n, 3) if they do not move, and have 16 bits each.
    `edges` (n, 2) and `faces` (n, 3) are pairs and triples of `points`; `bodies` says how many of
    the faces each body has, in their order: bodies differ in colour. `wires` are the ends of lines
    around the bodies, two after two. Arrows begin `at` places; `arrows` are their directions with
    their sizes.
    """
    both = np.concatenate([points.reshape(-1, 3), at.reshape(-1, 3)])
    middle = 0.5 * (both.min(axis=0) + both.max(axis=0))
    places = {"points": points - middle, "at": at - middle, "wires": wires - middle}
    indices = {"edges": edges, "faces": faces}
    return {
        "frames": max(len(points), len(at)),
        "bodies": list(bodies),
        **{name: _packed(values, "Int16Array") for name, values in places.items()},
        "arrows": _packed(arrows, "Float32Array"),  # of very different sizes
        **{
            name: [] if array is None else array.ravel().tolist() for name, array in indices.items()
        },
    }


def motion_view(arrays: Mapping[str, np.ndarray]) -> dict[str, Any] | None:
    """Return the bodies of `trajectory.npz` over time; None where no mesh was written.

    What stands still beside what moves is not among them. Frames are left out, and vertices that
    lie close together merged, until there are no more than `MOST_BYTES` and `MOST_FACES`.
    """
    names = [str(name) for name in arrays["objects"]]
    moving = [name for name in names if np.ptp(arrays[f"vertices.{name}"], axis=0).any()] or names
    if not moving:
        return None
    total = sum(len(arrays[f"faces.{name}"]) for name in moving)
    points, faces, first = [], [], 0
    for name in moving:
        x, corners = arrays[f"vertices.{name}"], arrays[f"faces.{name}"]
        used, corners = coarsened(x[0], corners, MOST_FACES * len(corners) // max(total, 1))
        points.append(x[:, used])
        faces.append(corners + first)
        first += len(used)
    x = np.concatenate(points, axis=1)
    count = max(min(len(x), MOST_BYTES // max(6 * x.shape[1], 1)), 2)
    frames = np.unique(np.rint(np.linspace(0, len(x) - 1, count)).astype(int))
    wires = arrays.get("wires", EMPTY)
    return {
        **make_view(
            points=x[frames],
            faces=np.concatenate(faces),
            bodies=tuple(map(len, faces)),
            wires=wires[frames] if len(wires) > 1 else wires,
        ),
        "times": [float(f"{time:.5g}") for time in arrays["times"][frames]],
    }


def coarsened(x: np.ndarray, faces: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which vertices (n, 3) are left and their faces, about `most` of these.

    Vertices in one cell of a grid become the first of them, faces without area go.
    """
    used, kept = np.arange(len(x)), faces
    for cells in CELLS:
        if len(kept) <= most:
            break
        size = np.ptp(x, axis=0).max() / cells
        _, used, merged = np.unique(
            np.floor(x / size), axis=0, return_index=True, return_inverse=True
        )
        kept = merged.ravel()[faces]
        kept = kept[(np.diff(np.sort(kept, axis=1), axis=1) > 0).all(axis=1)]
        kept = kept[np.sort(np.unique(np.sort(kept, axis=1), axis=0, return_index=True)[1])]
    return used, kept


def _packed(values: np.ndarray, kind: str) -> dict[str, Any]:
    """Return an array as integers or short floats in base 64, scaled so that none overflows."""
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    scale = largest / np.iinfo(np.int16).max if kind == "Int16Array" else largest
    scaled = np.rint(values / scale) if kind == "Int16Array" else values / scale
    data = base64.b64encode(np.ascontiguousarray(scaled, TYPES[kind]).tobytes()).decode()
    return {"data": data, "count": values.shape[1], "scale": scale, "type": kind}
