r"""A cantilever under its weight, and how fast meshes and steps converge.

    u(L) = w L^4/(8 E I) + w L^2/(2 k G A),   I = t^4/12, A = t^2, k = 5/6, w = rho g A

Linear tetrahedra are too stiff in bending by a part that falls with the square of the edge, so the
stiffness 1/u is extrapolated from two meshes. With Poisson's ratio 0 the clamp hinders nothing.
"""

import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from adjoint.rollout import record
from adjoint.verify.differences import richardson
from adjsim.equilibrium import Equilibrium
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.springs import Springs
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from benchmarks.accuracy.resting import Resting, Slopes
from benchmarks.accuracy.rows import Row, measure


LENGTH, THICK, YOUNG, DENSITY, G = 0.5, 0.1, 1e6, 1000.0, 1.0  # [m], [Pa], [kg/m3], [m/s2]
THROUGH = (2, 4, 8)  # cells through the thickness


def timoshenko(t: float) -> float:
    """Return how far the tip of a beam of thickness t sinks [m]."""
    bending = 12.0 * DENSITY * G * LENGTH**4 / (8.0 * YOUNG * t**2)
    return bending + DENSITY * G * LENGTH**2 / (2.0 * 5.0 / 6.0 * YOUNG / 2.0)


def beam(t: float, through: int) -> tuple[Model, State, Slopes]:
    """Return a beam of thickness t that is held at x = 0."""
    mesh = box_tets((5 * through, through, through), (LENGTH, t, t))
    X = mesh.points
    body = NeoHookeanTets(mesh.tets, X, *NeoHookeanTets.moduli(YOUNG, 0.0), density=DENSITY)
    model = Model(None, {"beam": body}, gravity=(0.0, -G, 0.0), pinned=X[:, 0] == 0.0)
    thicker = X * [0.0, 1.0 / t, 1.0 / t]
    return model, State(X), {"beam.rest_positions": thicker, "state.x": thicker}


def tip(rest: Equilibrium) -> tuple[float, dict[str, np.ndarray]]:
    """Return how far the middle of the end sinks, as the mean of its nodes, and its gradient."""
    X = rest.field.model.forces["beam"].rest_positions
    adj = np.zeros_like(X)
    end = np.isclose(X[:, 0], LENGTH)
    adj[end, 1] = -1.0 / end.sum()
    sinks = X[end, 1].mean() - rest.state.x[end, 1].mean()
    return float(sinks), {"state.x": adj, "beam.rest_positions": -adj}


def extrapolated(tips: np.ndarray) -> float:
    """Return the tip of meshes without end, from the two finest: 1/u has an error of order 2."""
    return float(3.0 / (4.0 / tips[-1] - 1.0 / tips[-2]))


def order(values: np.ndarray, exact: float) -> float:
    """Return the order of convergence of the last two of values, each twice as fine."""
    off = np.abs(values / exact - 1.0)
    return float(np.log2(off[-2] / off[-1]))


def bending() -> Iterator[Row]:
    """Yield the cantilever, and the order in the edges of its tetrahedra."""
    scenes = [Resting(partial(beam, through=n), tip) for n in THROUGH]
    tips: list[tuple[float, float]] = []

    def value(t: float) -> float:
        return extrapolated(np.array([scene.value(t) for scene in scenes[-2:]]))

    def value_and_slope() -> tuple[float, float]:
        tips[:] = [scene.value_and_slope(THICK) for scene in scenes]
        u, slope = np.transpose(tips)
        limit = extrapolated(u)
        return limit, float(
            limit**2 / 3.0 * (4.0 * slope[-1] / u[-1] ** 2 - slope[-2] / u[-2] ** 2)
        )

    row = measure(
        "tip sinks by", "m", ("thickness", THICK), value_and_slope, value=value, exact=timoshenko
    )
    yield row
    u, slope = np.transpose(tips)
    stiffness, by_thickness = 1.0 / u, -slope / u**2
    orders = [
        order(stiffness, 1.0 / row.exact),
        order(by_thickness, -row.exact_slope / row.exact**2),
    ]
    yield Row(
        "order in the edges", "", "theory", orders[0], 2.0, "thickness", orders[1],
        row.slope_error, 2.0, row.seconds,
    )  # fmt: skip


MASS, STIFFNESS, PULLED, UNTIL, STEPS = 0.5, 40.0, 0.1, 1.0, (2000, 4000)


def swung(k: float) -> float:
    """Return where a mass on a spring is after a second [m]."""
    return PULLED * float(np.cos(np.sqrt(k / MASS) * UNTIL))


def swinging() -> Iterator[Row]:
    """Yield a mass on a spring, and the order in the steps of time."""
    slopes, errors, places = [], [], []
    start = time.process_time()
    for n_steps in STEPS:

        def run(k: float, n_steps: int = n_steps):
            spring = Springs([(0, 1)], k, 1.0)
            model = Model([1.0, MASS], {"spring": spring}, gravity=(0, 0, 0), pinned=[True, False])
            state = State([[0.0, 0.0, 0.0], [1.0 + PULLED, 0.0, 0.0]])
            return record(model, state, UNTIL / n_steps, n_steps)

        done = run(STIFFNESS)
        adj = np.zeros((1, 2, 3))
        adj[0, 1, 0] = 1.0
        slopes.append(float(done.vjp(adj, wrt=("spring.stiffness",))["spring.stiffness"]))
        places.append(float(done.trajectory.x[0, 1, 0]) - 1.0)
        differences = richardson(
            lambda d, run=run: float(run(STIFFNESS + d).trajectory.x[0, 1, 0]), 1e-3 * STIFFNESS
        )
        errors.append(abs(slopes[-1] / differences - 1.0))
    seconds, exact = time.process_time() - start, swung(STIFFNESS)
    exact_slope = richardson(lambda d: swung(STIFFNESS + d), 1e-3 * STIFFNESS)
    yield Row(
        "spring after 1 s", "m", "closed form", places[-1], exact, "stiffness", slopes[-1],
        errors[-1], exact_slope, seconds,
    )  # fmt: skip
    yield Row(
        "order in the steps", "", "theory", order(np.array(places), exact), 1.0, "stiffness",
        order(np.array(slopes), exact_slope), max(errors), 1.0, seconds,
    )  # fmt: skip
