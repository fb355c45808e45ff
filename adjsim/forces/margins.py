"""How far a state is from the events at which the force of a contact jumps or has a kink.

`adjsim/contact_margins.py` says it of a rollout. Tests: `tests/test_contact_margins.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from adjsim.algebra.vec3 import add, axpy, cross, dot, norm, scale
from adjsim.forces.contact_law import N_LAW, RADIUS, cubic_parts
from adjsim.forces.gap import Geometry
from adjsim.jit.backend import cpu_kernel, device_fn, specialise
from adjsim.tiles.assembly import TILE, make_read_rows, write_0
from adjsim.tiles.by_tiles import to_tiles


@dataclass(frozen=True, eq=False)
class ContactMargins:
    """Numbers that change sign where the force of a contact jumps or has a kink.

    Contacts are with obstacles, or between surfaces (`adjsim/pairs/pair_margins.py`), where the
    numbers of a node are the least of all its pairs. A joint has two of each: its limits, which it
    touches, and its dry friction, which acts without a touch. NaN stands for no margin.

    Attributes
    ----------
    steps : array
        The frames they are of, (n_frames,).
    nodes : array
        The nodes that may touch, or vertices of the bodies in `acts_on`, or joints, (n_contacts,).
    touch : array
        Penetration c = r - s of the signed distance s, (n_frames, n_contacts) [m]; a node
        touches where it is positive; the slope of the force jumps at 0, and so does a damping k_d.
        NaN for surfaces farther apart than two thicknesses.
    leaving : array
        u_n, the speed at which a node leaves, (n_frames, n_contacts) [m/s].
    damping : array
        How much faster a node leaves than where damping ends (u_n = 0), or where a dissipation
        d ends the pressure (u_n = 1/d), (n_frames, n_contacts) [m/s]. NaN by the cubic law.
    slip : array
        k_f |u_t| - mu p, (n_frames, n_contacts) [N]; a node slips where it is positive. Of dry
        friction by how much the speed is beyond its width.
    shape : array
        Margins of the shape, (n_frames, n_contacts, n_kinks) [m]: between face, edge and corner of
        a box or of a surface, side and cap of a capsule. Of surfaces also of `touch` [m] and
        `slip` [N], with signs that change with those of any one pair.
    """

    steps: np.ndarray
    nodes: np.ndarray
    touch: np.ndarray
    leaving: np.ndarray
    damping: np.ndarray
    slip: np.ndarray
    shape: np.ndarray

    @property
    def acts(self) -> np.ndarray:
        """Whether a contact has a force, or may have one without a touch."""
        return ~(self.touch <= 0.0)

    def least(self, distance: np.ndarray) -> tuple[tuple[int, int], int, int]:
        """Return where a distance of every frame and contact is least: index, node and step.

        Only those with a `touch` count, of which there must be one.
        """
        touching = np.where(np.isnan(self.touch), np.nan, distance)
        frame, contact = np.unravel_index(np.nanargmin(touching), touching.shape)
        at = int(frame), int(contact)
        return at, int(self.nodes[at[1]]), int(self.steps[at[0]])

    def all(self) -> np.ndarray:
        """Return all margins, flat; NaN for those that are no kink, as of nodes apart."""
        acts = self.acts
        inner = [np.where(acts, self.damping, np.nan), np.where(acts, self.slip, np.nan)]
        shape = np.where(acts[..., None], self.shape, np.nan)
        return np.concatenate([margins.ravel() for margins in (self.touch, *inner, shape)])


def obstacle_margins(force: Any, steps: np.ndarray, x: np.ndarray, v: np.ndarray) -> ContactMargins:
    """Return the margins of a `Contact`; `x` and `v` have all rows of X, (n_frames, n_rows, 3)."""
    n_rows = min(force.series_steps().values(), default=None)
    if n_rows is not None:
        steps = steps[steps < n_rows]  # no force acts on the state after the last step
    n_steps = n_rows or int(steps[-1]) + 1
    series = force.pack_series(n_steps)
    rows = to_tiles(series, np.dtype(np.float64)).reshape(len(series), -1)
    n_frames, n, geometry = len(steps), len(force.nodes), force.GEOMETRY
    spin = np.zeros((n_frames, n, 3))
    x, v = x[:n_frames, force.nodes], v[:n_frames, force.nodes]
    if force.fixed_to is not None:
        x, v = seen_from_body(x, v)
    if force.balls:
        spin = spins_of(x, v)
    x, v = (np.ascontiguousarray(points[:, :, 0]) for points in (x, v))
    touch, leaving, damping, slip = np.empty((4, n_frames, n))
    shape = np.empty((n_frames, n, geometry.n_kinks))
    margins_kernel(geometry, force.kind.n_params, force.kind.n_series)(
        x, v, spin, steps * (len(rows) > 1),
        to_tiles(force.pack_params(), rows.dtype), rows, touch, leaving, damping, slip, shape,
    )  # fmt: skip
    counted = np.arange(n) if force.balls else np.asarray(force.contact_nodes)
    return ContactMargins(steps, counted, touch, leaving, damping, slip, shape)


def seen_from_body(x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return y and w of `adjsim/forces/carried.py` of points, (n_frames, n, k, 3).

    `x` and `v` are those of the points and of the frame points behind, (n_frames, n, k + 4, 3).
    """
    E, D = (at[:, :, -3:] - at[:, :, -4:-3] for at in (x, v))
    y = np.einsum("fnij,fnkj->fnki", E, x[:, :, :-4] - x[:, :, -4:-3])
    s = v[:, :, :-4] - v[:, :, -4:-3] - np.einsum("fnij,fnki->fnkj", D, y)
    return y, np.einsum("fnij,fnkj->fnki", E, s)


def spins_of(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the angular velocities of bodies from their frame points (n_frames, n, 4, 3)."""
    E, D = (at[:, :, 1:] - at[:, :, :1] for at in (x, v))
    return 0.5 * np.cross(E, D).sum(axis=2)


# The globals in capitals that the loop reads are bound by `specialise`, once per shape.
GAP = KINKS = READ_P = READ_S = WRITE_K = write_0
NP = NS = 0


def margins_loop(x, v, spin, rows, params, series, touch, leaving, damping, slip, shape):
    """Write the margins of every frame and contact."""
    for f in range(rows.size):
        for e in range(x.shape[1]):
            tile, lane = e // TILE * TILE, e % TILE
            at, by = (x[f, e, 0], x[f, e, 1], x[f, e, 2]), (v[f, e, 0], v[f, e, 1], v[f, e, 2])
            element_params = READ_P(params, np.uint64(tile * NP + lane))
            pose = READ_S(series[rows[f]], np.uint64(tile * NS + lane))
            n, c, u = GAP(at, by, element_params, pose)
            w = (spin[f, e, 0], spin[f, e, 1], spin[f, e, 2])
            u = add(u, cross(w, scale(-element_params[RADIUS], n)))  # where a ball touches
            touch[f, e] = c
            leaving[f, e], damping[f, e], slip[f, e] = law_margins(n, c, u, element_params[0:N_LAW])
            WRITE_K(shape[f, e], 0, KINKS(at, element_params, pose))


@device_fn
def law_margins(n, c, u, law):
    """Return the speed at which a point leaves, and the margins of damping and of slip."""
    k_e, k_d, d, k, gamma, k_f, mu = law
    u_n = dot(n, u)
    damping = u_n - 1.0 / d if d > 0.0 else (u_n if k_d > 0.0 else np.nan)
    cubic = k * c * c * c * (1.0 - cubic_parts(c, u_n, gamma)[1])
    cone = mu * (k_e * c * max(0.0, 1.0 - d * u_n) + k_d * max(0.0, -u_n) + cubic)
    return u_n, damping, k_f * norm(axpy(-u_n, n, u)) - cone


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
