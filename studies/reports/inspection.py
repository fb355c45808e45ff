"""The page of an inspected adjoint: curves over time, arrows on the meshes, pixels of films."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjoint.inspector import Inspection, sizes
from adjsim.model import Model
from studies.reports.page import render
from studies.reports.space import EMPTY, make_view
from studies.runs import media


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
    inspection: Inspection,
    title: str = "The adjoint",
    meshes: Meshes | None = None,
    films: Sequence[Pixels] = (),
) -> str:
    """Return a page about an inspection, HTML in one file.

    `meshes` are drawn, by name: vertices at the pauses, (n_pauses, n_vertices, 3) [m], and faces,
    (n_faces, n_corners). `model_meshes` makes them from a model. The pixels of `films` are shown.
    """
    view = _view(inspection, meshes or {})
    data = {
        "times": inspection.times,
        "steps": inspection.steps,
        "end": inspection.frames[-1] * inspection.dt,
        "frames": inspection.frames * inspection.dt,
        "curves": _curves(inspection),
        "marks": _marks(inspection, films),
        "view": view,
        "films": [film.times[_chosen(film)] for film in films],
    }
    return render(
        "inspection",
        title=title,
        summary=inspection.summary(),
        facts=_facts(inspection),
        data=json.dumps(data, default=_plain, separators=(",", ":")).replace("<", "\\u003c"),
        films=[_film(film) for film in films],
        paths=_table(inspection),
        has_view=view is not None,
    )


def model_meshes(model: Model, trajectory: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the elements of a model's forces that join nodes, as meshes at a trajectory's frames.

    Rigid bodies have none here: of them the page has arrows alone.
    """
    return {
        name: (trajectory.x, np.asarray(force.nodes))
        for name, force in model.forces.items()
        if force.is_of_nodes and force.nodes.shape[1] in (2, 3, 4)
    }


def _chart(
    title: str, text: str, lines: Mapping[str, np.ndarray], *, is_log: bool = False
) -> dict[str, Any]:
    """Return a chart of the largest lines; those that are 0 are on no logarithmic axis."""
    lines = {name: line for name, line in lines.items() if np.any(line) or not is_log}
    largest = sorted(lines.items(), key=lambda item: -np.nanmax(np.abs(item[1])))
    return {"title": title, "text": text, "log": is_log, "lines": dict(largest[:MOST_CURVES])}


def _curves(inspection: Inspection) -> list[dict[str, Any]]:
    """Return the charts that have lines."""
    first = next(iter(inspection.adjoint))  # positions, if there are any
    added = {name: sizes[first] for name, sizes in inspection.added.items() if name != "motion"}
    shares = {}
    for path, contributions in inspection.contributions.items():
        gradient = inspection.gradient[path]
        size = np.linalg.norm(gradient)
        if size > 0.0:
            along = (contributions * gradient).reshape(len(contributions), -1).sum(axis=1)
            shares[path] = np.cumsum((along / size**2)[::-1])[::-1]
    slipping = {f"{name}, slipping": counts for name, counts in inspection.slipping.items()}
    contacts = {**inspection.touching, **slipping}
    charts = [
        _chart(
            "Size of the adjoint",
            "The derivative of the loss in the state at a time, by part of the state. Read it from "
            "right to left: the sweep begins at the last frame.",
            inspection.norms(), is_log=True,
        ),
        _chart(
            "What makes it grow",
            "The growth rate [1/s], back in time. A pause is a state at which the sweep was looked "
            f'at: "{MEAN}" is the mean rate from one pause to the next; the other curves are parts '
            'of the rate in the single step that begins at the pause, "motion" that without any '
            "force. Below 0 the adjoint becomes smaller.",
            {MEAN: inspection.mean_rates, **inspection.rates},
        ),
        _chart(
            "What each force adds in a step",
            f"The norm of what it adds to the adjoint of {first}.", added, is_log=True,
        ),
        _chart(
            "Where the gradient comes from",
            "The part of the gradient of each parameter that the steps from a time to the last "
            "frame make: 1 at the start.",
            shares,
        ),
        _chart(
            "Contact", "Points that touch, and those that slip: the most until the next pause.",
            {k: np.maximum.reduceat(count, inspection.steps) for k, count in contacts.items()},
        ),
    ]  # fmt: skip
    return [chart for chart in charts if chart["lines"]]


def _marks(inspection: Inspection, films: Sequence[Pixels]) -> dict[str, Any]:
    """Return what is marked on the axis of time."""
    dt = inspection.dt
    events = {
        name: np.flatnonzero(counts)[:: -(-np.count_nonzero(counts) // MOST_DOTS)] * dt
        for name, counts in inspection.events.items()
        if counts.any()
    }
    for film in films:
        if film.swaps is not None and film.swaps.any():
            events[f"{film.name}: depth swap"] = film.times[film.swaps > 0]
    horizon = inspection.horizon
    return {
        "events": events,
        "horizon": None if horizon is None else horizon * dt,
    }


def _view(inspection: Inspection, meshes: Meshes) -> dict[str, Any] | None:
    """Return what is drawn in space: edges, and arrows at nodes and bodies."""
    points, edges, first = [], [], 0
    for x, faces in meshes.values():
        corners = np.asarray(faces)
        pairs = [corners[:, [a, b]] for a in range(corners.shape[1]) for b in range(a)]
        every = np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0)
        keep = every[:: -(-len(every) // (3 * MOST_POINTS))]
        used = np.unique(keep)
        points.append(x[:, used])
        edges.append(np.searchsorted(used, keep) + first)
        first += len(used)
    at, arrows = [], []
    for path, adj in inspection.adjoint.items():
        name, _, key = path.rpartition(".")
        if key == "x":
            nodes = slice(None, None, max(1, -(-adj.shape[1] // MOST_POINTS)))
            at.append(inspection.trajectory.x[:, nodes])
            arrows.append(adj[:, nodes])
        elif key == "position":
            at.append(inspection.trajectory.bodies[name].position)
            arrows.append(adj)
    if not at:
        return None
    return make_view(
        points=np.concatenate(points, axis=1) if points else EMPTY,
        edges=np.concatenate(edges) if edges else None,
        at=np.concatenate(at, axis=1),
        arrows=np.concatenate(arrows, axis=1),
    )


def _plain(value: Any) -> Any:
    """Return an array as a list for JSON, in five digits; what is not finite is null."""
    if isinstance(value, np.generic):
        return value.item()
    if value.dtype.kind != "f":
        return value.tolist()
    flat = [float(f"{x:.5g}") if np.isfinite(x) else None for x in value.ravel()]
    return np.array(flat, object).reshape(value.shape).tolist()


def _facts(inspection: Inspection) -> dict[str, str]:
    """Return the numbers above the charts."""
    dt, frames, n_pauses = inspection.dt, inspection.frames, len(inspection.steps)
    facts = {
        "steps": f"{int(frames[-1])} of {dt:.3g} s, paused at {n_pauses}",
        "frames": str(len(frames)),
        "mean growth of the adjoint, back in time": f"{inspection.exponent:.4g}/s",
        "horizon": "none: rounding errors stay small over the whole motion",
    }
    if inspection.horizon is not None:
        begin = inspection.horizon * dt
        facts["horizon"] = f"{begin:.4g} s: nothing before it informs the gradient"
    return facts


def _table(inspection: Inspection) -> list[dict[str, Any]]:
    """Return for each parameter its gradient and the frames that make most of it."""
    rows, times = [], inspection.frames * inspection.dt
    for path, gradient in inspection.gradient.items():
        size, shares = float(np.linalg.norm(gradient)), inspection.shares.get(path)
        most = ""
        if shares is not None:
            order = np.argsort(-np.abs(shares))[:3]
            most = ", ".join(f"{times[k]:.3g} s ({shares[k] / size:.0%})" for k in order)
        rows.append({"path": path, "size": f"{size:.4g}", "frames": most})
    return rows


def _chosen(film: Pixels) -> np.ndarray:
    """Return which frames of a film are on the page."""
    return np.unique(np.linspace(0, len(film.times) - 1, MOST_FILM_FRAMES).round().astype(int))


def _film(film: Pixels) -> dict[str, Any]:
    """Return frames of a film in grey with the cotangent of its pixels in red and blue."""
    by_frame = sizes(film.cotangents)
    signed = film.cotangents.sum(axis=-1)
    largest = float(np.abs(signed).max()) or 1.0
    frames = []
    for k in _chosen(film):
        grey = film.images[k].mean(axis=-1, keepdims=True).clip(0.0, 1.0) * 0.6 + 0.25
        share = np.sqrt(np.abs(signed[k]) / largest)[..., None]
        color = np.where(signed[k][..., None] > 0.0, (0.85, 0.1, 0.1), (0.1, 0.25, 0.9))
        image = (1.0 - share) * grey + share * color
        factor = max(1, round(220 / image.shape[1]))
        pixels = media.as_uint8(image).repeat(factor, axis=0).repeat(factor, axis=1)
        size = np.abs(signed[k])
        top = np.argsort(-size, axis=None)[:BRIGHTEST]
        of_all = float(size.ravel()[top].sum() / (size.sum() or 1.0))
        caption = (
            f"{film.times[k]:.3g} s: {by_frame[k]:.3g}; the {len(top)} strongest pixels are "
            f"{of_all:.0%} of it"
        )
        src = f"data:image/png;base64,{base64.b64encode(media.png_bytes(pixels)).decode()}"
        frames.append({"src": src, "caption": caption})
    return {"name": film.name, "frames": frames}
