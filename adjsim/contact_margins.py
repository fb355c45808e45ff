"""How far a rollout is from the events at which a contact force jumps or has a kink.

When a touch moves to another step, a loss of a rollout has a kink, and with a damping k_d a jump.
Its gradient knows nothing of it: a gradient describes the loss only as far as the nearest event.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from adjsim.engine.algebra.vec3 import axpy, dot, norm
from adjsim.engine.assembly import (
    TILE,
    make_read_rows,
    write_0,
)
from adjsim.engine.jit.backend import cpu_kernel, device_fn, specialise
from adjsim.engine.tiles import to_tiles
from adjsim.forces.contact import Contact
from adjsim.forces.contact_law import N_LAW
from adjsim.forces.gap import Geometry
from adjsim.model import Model, Trajectory
from adjsim.rigid.placing import point_states


@dataclass(frozen=True, eq=False)
class ContactMargins:
    """Numbers that change sign where the force of a contact jumps or has a kink.

    Attributes
    ----------
    steps : array
        The frames they are of, (n_frames,).
    nodes : array
        The nodes that may touch, or vertices of the force's `body`, (n_contacts,).
    touch : array
        Penetration c = r - s of the signed distance s, (n_frames, n_contacts) [m]; a node
        touches where it is positive; the slope of the force jumps at 0, and so does a damping k_d.
    leaving : array
        u_n, the speed at which a node leaves, (n_frames, n_contacts) [m/s].
    damping : array
        How much faster a node leaves than where damping ends (u_n = 0), or where a dissipation
        d ends the pressure (u_n = 1/d), (n_frames, n_contacts) [m/s].
    slip : array
        k_f |u_t| - mu p, (n_frames, n_contacts) [N]; a node slips where it is positive.
    shape : array
        Margins of the shape, (n_frames, n_contacts, n_kinks) [m], NaN for those that are none
        here: between face, edge and corner of a box, side and cap of a capsule.
    """

    steps: np.ndarray
    nodes: np.ndarray
    touch: np.ndarray
    leaving: np.ndarray
    damping: np.ndarray
    slip: np.ndarray
    shape: np.ndarray

    def least(self, distance: np.ndarray) -> tuple[tuple[int, int], int, int]:
        """Return where a distance of every frame and contact is least: index, node and step."""
        frame, contact = np.unravel_index(np.argmin(distance), distance.shape)
        at = int(frame), int(contact)
        return at, int(self.nodes[at[1]]), int(self.steps[at[0]])

    def all(self) -> np.ndarray:
        """Return all margins, flat; NaN for those that are no kink, as of nodes apart."""
        apart = self.touch <= 0.0
        inner = [np.where(apart, np.nan, self.damping), np.where(apart, np.nan, self.slip)]
        shape = np.where(apart[..., None], np.nan, self.shape)
        return np.concatenate([part.ravel() for part in (self.touch, *inner, shape)])


@dataclass(frozen=True)
class NearestTouch:
    """The node and frame nearest to beginning or ceasing to touch.

    Attributes
    ----------
    force : str
        Name of the contact.
    node, step : int
        Which node, or vertex of the force's `body`, and in which state.
    distance : float
        |c| [m]: every touch stays in its step while no contact changes its c by as much.
    speed : float
        |u_n| of the node there [m/s]; distance/(speed dt) is the part of a step that is left.
    """

    force: str
    node: int
    step: int
    distance: float
    speed: float

    def told(self, dt: float) -> str:
        """Return the event in a sentence; `dt` is the step [s]."""
        left = f", {self.distance / (self.speed * dt):.1g} steps at its speed" if self.speed else ""
        return (
            f"nearest touch: point {self.node} of `{self.force}` in state {self.step}, "
            f"{self.distance:.1e} m away{left}"
        )


def contact_margins(model: Model, trajectory: Trajectory) -> dict[str, ContactMargins]:
    """Return the margins of every contact of a model, by the name of the force.

    Parameters
    ----------
    model : Model
    trajectory : Trajectory
        States of a rollout of the model. Events between its frames are not seen: roll out
        with `frames=range(n_steps)` to look at every state that a force was computed for.

    Returns
    -------
    dict
        Empty for a model without contact.

    Raises
    ------
    ValueError
        If the trajectory does not have the model's nodes and bodies.
    """
    if trajectory.x.shape[1:] != (model.n_nodes, 3):
        raise ValueError(
            f"`trajectory` must have the model's {model.n_nodes} nodes, got x of shape "
            f"{trajectory.x.shape}."
        )
    if set(trajectory.bodies) != set(model.bodies):
        raise ValueError(
            f"`trajectory` must have the model's bodies, {', '.join(model.bodies) or 'none'}; got "
            f"{', '.join(trajectory.bodies) or 'none'}."
        )
    contacts = {n: f for n, f in model.forces.items() if isinstance(f, Contact)}
    points = [point_states(part, trajectory.bodies[name]) for name, part in model.bodies.items()]
    both = zip((trajectory.x, trajectory.v), *points, strict=True)  # rows as in the rollout
    x, v = (np.ascontiguousarray(np.concatenate(part, axis=1), np.float64) for part in both)
    return {name: _margins(force, trajectory.steps, x, v) for name, force in contacts.items()}


def nearest_touch(model: Model, trajectory: Trajectory) -> NearestTouch | None:
    """Return the event nearest to happening in another step; None without contact.

    Parameters and errors as of `contact_margins`.
    """
    return min(_nearest(contact_margins(model, trajectory)), key=lambda t: t.distance, default=None)


def _nearest(margins: dict[str, ContactMargins]) -> Iterator[NearestTouch]:
    for name, found in margins.items():
        if found.touch.size == 0:
            continue
        at, node, step = found.least(np.abs(found.touch))
        yield NearestTouch(
            force=name,
            node=node,
            step=step,
            distance=float(abs(found.touch[at])),
            speed=float(abs(found.leaving[at])),
        )


def _margins(force: Contact, steps: np.ndarray, x: np.ndarray, v: np.ndarray) -> ContactMargins:
    n_rows = min(force.series_steps().values(), default=None)
    if n_rows is not None:
        steps = steps[steps < n_rows]  # no force acts on the state after the last step
    n_steps = n_rows or int(steps[-1]) + 1
    series = force.pack_series(n_steps)
    rows = to_tiles(series, np.dtype(np.float64)).reshape(len(series), -1)
    nodes, n_frames, geometry = force.nodes[:, 0], len(steps), force.GEOMETRY
    touch, leaving, damping, slip = np.empty((4, n_frames, len(nodes)))
    shape = np.empty((n_frames, len(nodes), geometry.n_kinks))
    margins_kernel(geometry, force.kind.n_params, force.kind.n_series)(
        x[:n_frames], v[:n_frames], steps * (len(rows) > 1), nodes,
        to_tiles(force.pack_params(), rows.dtype), rows, touch, leaving, damping, slip, shape,
    )  # fmt: skip
    counted = np.asarray(force.contact_nodes)
    return ContactMargins(steps, counted, touch, leaving, damping, slip, shape)


# The globals in capitals that the loop reads are bound by `specialise`, once per shape.
GAP = KINKS = READ_P = READ_S = WRITE_K = write_0
NP = NS = 0


def margins_loop(x, v, rows, nodes, params, series, touch, leaving, damping, slip, shape):
    """Write the margins of every frame and contact."""
    for f in range(rows.size):
        for e in range(nodes.size):
            i, tile, lane = nodes[e], e // TILE * TILE, e % TILE
            at, by = (x[f, i, 0], x[f, i, 1], x[f, i, 2]), (v[f, i, 0], v[f, i, 1], v[f, i, 2])
            own = READ_P(params, np.uint64(tile * NP + lane))
            pose = READ_S(series[rows[f]], np.uint64(tile * NS + lane))
            n, c, u = GAP(at, by, own, pose)
            k_e, k_d, d, k_f, mu = own[0:N_LAW]
            u_n = dot(n, u)
            touch[f, e], leaving[f, e] = c, u_n
            damping[f, e] = u_n - 1.0 / d if d > 0.0 else u_n
            cone = mu * (k_e * c * max(0.0, 1.0 - d * u_n) + k_d * max(0.0, -u_n))
            slip[f, e] = k_f * norm(axpy(-u_n, n, u)) - cone
            WRITE_K(shape[f, e], 0, KINKS(at, own, pose))


@cache
def make_write_kinks(n: int) -> Callable:
    """Return the writer of n numbers from an offset on."""
    if n == 0:
        return write_0
    head, last = make_write_kinks(n - 1), n - 1

    @device_fn
    def write_kinks(a, o, values):
        head(a, o, values)
        a[o + last] = values[last]

    return write_kinks


@cache
def margins_kernel(geometry: Geometry, n_params: int, n_series: int) -> Callable:
    """Return the compiled `margins_loop` of a shape."""
    loop = specialise(
        margins_loop,
        f"margins_of_{geometry.gap.__name__}",
        GAP=geometry.gap,
        KINKS=geometry.kinks,
        READ_P=make_read_rows(n_params),
        READ_S=make_read_rows(n_series),
        WRITE_K=make_write_kinks(geometry.n_kinks),
        NP=n_params,
        NS=n_series,
    )
    return cpu_kernel(loop)
