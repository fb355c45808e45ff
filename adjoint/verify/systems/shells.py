"""Sheets of triangles that stretch, and in the wind, with every parameter.

In the wind every triangle is held away from the kink of its drag, n.v_r = 0: the sheet moves
in its plane, and the wind blows through it, from above or from below.
"""

import numpy as np

from adjoint.examples import Example
from adjoint.verify.problem import systems
from adjoint.verify.systems.solids import rollout_problem
from adjsim.courses import Signal
from adjsim.forces.lift_drag import LiftDrag
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State
from adjsim.rollout import rollout


CLOTH = sheet((3, 2), (0.3, 0.2))  # 12 triangles
N_TRIANGLES = len(CLOTH.faces)
DENSITY = 0.3  # kg/m2


def sheet_of(rng: np.random.Generator, **parameters: object) -> NeoHookeanTriangles:
    """Return the sheet, whose rest shape is not flat."""
    rest = CLOTH.points + 0.02 * rng.standard_normal(CLOTH.points.shape)
    return NeoHookeanTriangles(CLOTH.faces, rest, **parameters)  # pyright: ignore[reportArgumentType]


def moving(rng: np.random.Generator, cloth: NeoHookeanTriangles, size: float) -> State:
    """Return a state slightly out of rest, moving at about `size` [m/s]."""
    x = cloth.rest_positions + 0.008 * rng.standard_normal(cloth.rest_positions.shape)
    return State(x, size * rng.standard_normal(x.shape))


def elastic(n_steps: int) -> Example:
    """Moduli per triangle, an actuation for every step, two nodes pinned."""
    rng = np.random.default_rng(31)
    mu, lam = rng.uniform(0.8, 1.2, (2, N_TRIANGLES)) * [[60.0], [90.0]]
    phase = rng.uniform(0.0, 6.0, N_TRIANGLES)
    series = 0.1 * np.sin(np.arange(n_steps)[:, None] / 4.0 + phase)
    cloth = sheet_of(rng, mu=mu, lam=lam, actuation=series)
    pinned = np.isin(np.arange(len(CLOTH.points)), (0, 2))
    model = Model(cloth.lumped_mass(DENSITY), {"cloth": cloth}, pinned=pinned)
    return Example(model, moving(rng, cloth, 1.0), 5e-4, n_steps)


def viscous(n_steps: int) -> Example:
    """One pair of moduli, viscosity per triangle, an actuation that is a signal."""
    rng = np.random.default_rng(32)
    eta = 0.1 * rng.uniform(0.5, 1.5, N_TRIANGLES)
    signal = Signal([0.0, 9.5, 20.0], [0.02, -0.1, 0.1])
    cloth = sheet_of(rng, mu=60.0, lam=90.0, viscosity=eta, actuation=signal)
    model = Model(cloth.lumped_mass(DENSITY), {"cloth": cloth})
    return Example(model, moving(rng, cloth, 1.0), 5e-4, n_steps)


def wind(n_steps: int) -> Example:
    """Every triangle in a wind of its own that changes from step to step, from both sides."""
    rng = np.random.default_rng(33)
    lift, drag = rng.uniform(0.8, 1.2, (2, N_TRIANGLES))
    gusts = 0.5 * rng.standard_normal((n_steps, N_TRIANGLES, 3))
    gusts[..., 2] += 6.0 * np.where(np.arange(N_TRIANGLES) % 3, 1.0, -1.0)
    return _in_wind(rng, n_steps, lift, drag, gusts)


def breeze(n_steps: int) -> Example:
    """One wind for all triangles, rising: a signal."""
    rising = Signal([0.0, 20.0], [[1.0, 0.5, 5.0], [2.0, -0.5, 8.0]])
    return _in_wind(np.random.default_rng(34), n_steps, 0.9, 1.1, rising)


def _in_wind(
    rng: np.random.Generator, n_steps: int, lift: object, drag: object, blowing: object
) -> Example:
    cloth = sheet_of(rng, mu=60.0, lam=90.0)
    air = LiftDrag(CLOTH.faces, lift, drag, blowing)
    model = Model(cloth.lumped_mass(DENSITY), {"cloth": cloth, "air": air})
    return Example(model, moving(rng, cloth, 0.5), 5e-4, n_steps)


def normal_speeds(scene: Example) -> np.ndarray:
    """Return n.v_r [m/s] of all triangles in the wind and all steps."""
    run = rollout(scene.model, scene.state, scene.dt, scene.n_steps, frames=range(scene.n_steps))
    air = scene.model.forces["air"]
    corners, speeds = run.x[:, air.nodes], run.v[:, air.nodes]
    normal = np.cross(
        corners[..., 1, :] - corners[..., 0, :], corners[..., 2, :] - corners[..., 0, :]
    )
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    v_r = speeds.mean(axis=-2) - air.pack_series(scene.n_steps)
    return (normal * v_r).sum(axis=-1).ravel()


SYSTEMS = (
    *systems("shells", rollout_problem, {"shells/elastic": elastic, "shells/viscous": viscous}),
    *systems(
        "shells",
        rollout_problem,
        {"shells/wind": wind, "shells/breeze": breeze},
        margins=normal_speeds,
    ),
)
