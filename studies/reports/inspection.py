"""The page of an inspected adjoint: curves over time, arrows on the meshes, pixels of films."""

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjoint.inspector import Inspection, sizes
from adjsim.model import Model
from studies.reports.page import render


MOST_POINTS = 1200  # of a mesh on the page
MOST_FILM_FRAMES = 24
MOST_CURVES = 8
MOST_DOTS = 400  # of one kind of event
MEAN = "all, to the next pause"
BRIGHTEST = 20  # pixels that are marked in a frame
Meshes = Mapping[str, tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Pixels:
    """A film and the cotangent of its pixels: both (n_frames, height, width, 3)."""

    name: str
    times: np.ndarray  # (n_frames,) [s]
    images: np.ndarray
    cotangents: np.ndarray
    swaps: np.ndarray | None = None  # (n_frames,): in how many pixels objects traded places


def inspection_page(
    found: Inspection,
    title: str = "The adjoint",
    meshes: Meshes | None = None,
    films: Sequence[Pixels] = (),
) -> str:
    """Return a page about an inspection, HTML in one file.

    Parameters
    ----------
    found : Inspection
    title : str
    meshes : mapping of str to (array, array), optional
        What is drawn, by name: vertices at the pauses, (n_pauses, n_vertices, 3) [m], and faces,
        (n_faces, n_corners). `model_meshes` gives those of a model.
    films : sequence of Pixels
        Films whose pixels are shown.
    """
    data = {
        "times": found.times,
        "steps": found.steps,
        "end": found.frames[-1] * found.dt,
        "frames": found.frames * found.dt,
        "curves": _curves(found),
        "marks": _marks(found, films),
        "view": _view(found, meshes or {}),
    }
    return render(
        "inspection",
        title=title,
        summary=found.summary(),
        facts=_facts(found),
        data=json.dumps(data, default=_plain, separators=(",", ":")).replace("<", "\\u003c"),
        films=[_film(one) for one in films],
        paths=_table(found),
        has_view=data["view"] is not None,
    )


def model_meshes(model: Model, trajectory: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the elements of a model's forces that join nodes, as meshes at a trajectory's frames.

    Rigid bodies have none here: of them the page has arrows alone.
    """
    found = {}
    for name, force in model.forces.items():
        if force.is_of_nodes and force.nodes.shape[1] in (2, 3, 4):
            found[name] = (trajectory.x, np.asarray(force.nodes))
    return found


def _curves(found: Inspection) -> list[dict[str, Any]]:
    """Return the charts: a title, whether its axis is logarithmic, and lines by name."""
    charts = [
        {
            "title": "Size of the adjoint",
            "text": "The derivative of the loss in the state at a time, by part of the state. "
            "Read it from right to left: the sweep begins at the last frame.",
            "log": True,
            "lines": found.norms(),
        },
        {
            "title": "What makes it grow",
            "text": "The growth rate [1/s], back in time: its mean to the next pause, and the part "
            "of each force in the one step that begins at the pause. Below 0 a force "
            "makes the adjoint smaller.",
            "log": False,
            "lines": {MEAN: found.mean_rates, **found.rates},
        },
        {
            "title": "What each force adds in a step",
            "text": f"The norm of what it adds to the adjoint of {_first(found)}.",
            "log": True,
            "lines": {k: own[_first(found)] for k, own in found.added.items() if k != "motion"},
        },
    ]
    shares = {}
    for path, parts in found.contributions.items():
        gradient = found.gradient[path]
        size = np.linalg.norm(gradient)
        if size > 0.0:
            along = (parts * gradient).reshape(len(parts), -1).sum(axis=1) / size**2
            shares[path] = np.cumsum(along[::-1])[::-1]
    charts.append(
        {
            "title": "Where the gradient comes from",
            "text": "The part of the gradient of each parameter that the steps from a time to the "
            "last frame make: 1 at the start.",
            "log": False,
            "lines": shares,
        }
    )
    if found.gap.size:
        charts.append(
            {
                "title": "float32 beside float64",
                "text": "Distance of the two motions, over the largest distance moved.",
                "log": True,
                "lines": {"gap": np.where(np.isfinite(found.gap), found.gap, np.nan)},
            }
        )
    most = {name: np.maximum.reduceat(own, found.steps) for name, own in found.touching.items()}
    for name, own in found.slipping.items():
        most[f"{name}, slipping"] = np.maximum.reduceat(own, found.steps)
    if most:
        charts.append(
            {
                "title": "Contact",
                "text": "Points that touch, and those that slip: the most until the next pause.",
                "log": False,
                "lines": most,
            }
        )
    for chart in charts:
        if chart["log"]:
            chart["lines"] = {k: line for k, line in chart["lines"].items() if np.any(line)}
        largest = sorted(chart["lines"].items(), key=lambda one: -np.nanmax(np.abs(one[1])))
        chart["lines"] = dict(largest[:MOST_CURVES])
    return [chart for chart in charts if chart["lines"]]


def _first(found: Inspection) -> str:
    """Return the part of a state that a force's curve is about: positions, if there are any."""
    return next(iter(found.adjoint))


def _marks(found: Inspection, films: Sequence[Pixels]) -> dict[str, Any]:
    """Return what is marked on the axis of time."""
    events = {
        name: np.flatnonzero(counts)[:: -(-np.count_nonzero(counts) // MOST_DOTS)] * found.dt
        for name, counts in found.events.items()
        if counts.any()
    }
    for one in films:
        if one.swaps is not None and one.swaps.any():
            events[f"{one.name}: depth swap"] = one.times[one.swaps > 0]
    matters = found.precision_matters_from
    return {
        "events": events,
        "horizon": None if found.horizon is None else found.horizon * found.dt,
        "precision_matters_from": None if matters is None else matters * found.dt,
    }


def _view(found: Inspection, meshes: Meshes) -> dict[str, Any] | None:
    """Return what is drawn in space: edges, and arrows at nodes and bodies."""
    points, edges, first = [], [], 0
    for x, faces in meshes.values():
        corners = np.asarray(faces)
        pairs = [corners[:, [a, b]] for a in range(corners.shape[1]) for b in range(a)]
        own = np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0)
        keep = own[:: -(-len(own) // (3 * MOST_POINTS))]
        used = np.unique(keep)
        points.append(x[:, used])
        edges.append(np.searchsorted(used, keep) + first)
        first += len(used)
    at, arrows = [], []
    for part, adj in found.adjoint.items():
        name, _, key = part.rpartition(".")
        if key == "x":
            every = slice(None, None, max(1, -(-adj.shape[1] // MOST_POINTS)))
            at.append(found.trajectory.x[:, every])
            arrows.append(adj[:, every])
        elif key == "position":
            at.append(found.trajectory.bodies[name].position)
            arrows.append(adj)
    if not at:
        return None
    where = np.concatenate(at, axis=1)
    return {
        "points": _packed(np.concatenate(points, axis=1) if points else where[:, :0]),
        "edges": np.concatenate(edges).ravel() if edges else [],
        "at": _packed(where),
        "arrows": _packed(np.concatenate(arrows, axis=1)),
    }


def _packed(values: np.ndarray) -> dict[str, Any]:
    """Return an array as float32 in base 64, scaled so that none overflows."""
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    flat = np.ascontiguousarray(values / largest, "<f4")
    return {
        "data": base64.b64encode(flat.tobytes()).decode(),
        "count": values.shape[1],
        "scale": largest,
    }


def _plain(value: Any) -> Any:
    """Return an array as a list for JSON, in five digits; what is not finite is null."""
    if isinstance(value, np.generic):
        return value.item()
    if value.dtype.kind != "f":
        return value.tolist()
    flat = [float(f"{x:.5g}") if np.isfinite(x) else None for x in value.ravel()]
    return np.array(flat, object).reshape(value.shape).tolist()


def _facts(found: Inspection) -> dict[str, str]:
    """Return the numbers above the charts."""
    facts = {
        "steps": f"{int(found.frames[-1])} of {found.dt:.3g} s, paused at {len(found.steps)}",
        "frames": str(len(found.frames)),
        "mean growth of the adjoint, back in time": f"{found.exponent:.4g}/s",
    }
    if found.lyapunov:
        tangent, adjoint = found.lyapunov
        facts["largest growth (Lyapunov exponent)"] = (
            f"{tangent:.4g}/s by the tangent, {adjoint:.4g}/s by the adjoint"
        )
        apart = found.precision_matters_from
        together = "stay together" if found.gap.size else "one of them leaves the finite numbers"
        facts["float32 and float64"] = (
            together if apart is None else f"apart from {apart * found.dt:.4g} s on"
        )
    facts["horizon"] = (
        "none: rounding errors stay small over the whole motion"
        if found.horizon is None
        else f"{found.horizon * found.dt:.4g} s: nothing before it informs the gradient"
    )
    return facts


def _table(found: Inspection) -> list[dict[str, Any]]:
    """Return for each parameter its gradient and the frames that make most of it."""
    rows = []
    for path, gradient in found.gradient.items():
        size, shares = float(np.linalg.norm(gradient)), found.shares.get(path)
        most = ""
        if shares is not None:
            order = np.argsort(-np.abs(shares))[:3]
            most = ", ".join(
                f"{found.frames[k] * found.dt:.3g} s ({shares[k] / size:.0%})" for k in order
            )
        rows.append({"path": path, "size": f"{size:.4g}", "frames": most})
    return rows


def _film(one: Pixels) -> dict[str, Any]:
    """Return frames of a film in grey with the cotangent of its pixels in red and blue."""
    by_frame = sizes(one.cotangents)
    shown = np.unique(np.linspace(0, len(one.times) - 1, MOST_FILM_FRAMES).round().astype(int))
    signed = one.cotangents.sum(axis=-1)
    largest = float(np.abs(signed).max()) or 1.0
    frames = []
    for k in shown:
        grey = one.images[k].mean(axis=-1, keepdims=True).clip(0.0, 1.0) * 0.6 + 0.25
        share = np.sqrt(np.abs(signed[k]) / largest)[..., None]
        color = np.where(signed[k][..., None] > 0.0, (0.85, 0.1, 0.1), (0.1, 0.25, 0.9))
        image = (1.0 - share) * grey + share * color
        size = np.abs(signed[k])
        top = np.argsort(-size, axis=None)[:BRIGHTEST]
        part = float(size.ravel()[top].sum() / (size.sum() or 1.0))
        frames.append(
            {
                "src": _png(image),
                "caption": f"{one.times[k]:.3g} s: {by_frame[k]:.3g}; the {len(top)} strongest "
                f"pixels are {part:.0%} of it",
            }
        )
    return {"name": one.name, "frames": frames}


def _png(image: np.ndarray) -> str:
    from PIL import Image

    height, width = image.shape[:2]
    factor = max(1, round(220 / width))
    pixels = (255.0 * image.clip(0.0, 1.0)).round().astype(np.uint8)
    made = Image.fromarray(pixels).resize(
        (width * factor, height * factor), Image.Resampling.NEAREST
    )
    out = io.BytesIO()
    made.save(out, "PNG")
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"
