"""Contact between surfaces: a corner that slides on a face, and two edges that cross and stick.

No feature comes near the border of another, so that nothing has a kink.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint.examples import Example
from adjoint.field import pull
from adjoint.verify.problem import Problem, System, Values, changed, systems
from adjoint.verify.systems.solids import rollout_problem
from adjsim.field import Field
from adjsim.forces.springs import Springs
from adjsim.model import Model, State
from adjsim.pairs.surface import surface_of
from adjsim.pairs.surface_contact import SurfaceContact


FLOOR = [[-0.5, -0.4, 0.0], [0.6, -0.4, 0.0], [0.0, 0.6, 0.0]]  # a large face
CORNER = [[0.02, 0.0, 0.026], [0.1, 0.03, 0.12], [-0.06, 0.09, 0.13], [-0.02, -0.08, 0.11]]
LOWER = [[-0.15, 0.01, 0.6], [0.17, -0.02, 0.6], [0.0, 0.0, 0.4]]  # a blade with its edge up
# One with its edge down, which crosses at 20 degrees and near its end: there weights have slopes.
UPPER = [[-0.068, -0.025, 0.627], [0.803, 0.202, 0.627], [0.35, 0.1, 0.83]]
FIRST = np.array([[0, 1, 2], [3, 4, 5]])
OTHER = np.array([[6, 7, 8], [6, 8, 9], [6, 9, 7], [10, 11, 12]])
LAW = {"stiffness": 80.0, "friction_stiffness": 0.4, "friction": 0.3}


def scene(n_steps: int, *, touches_itself: bool = False, **law: Any) -> Example:
    """Return two surfaces that are pressed together; or the same as one, which touches itself."""
    rng = np.random.default_rng(17)
    x = np.array([*FLOOR, *LOWER, *CORNER, *UPPER])
    x += 0.002 * rng.standard_normal(x.shape)
    v = 0.01 * rng.standard_normal(x.shape)
    v[6:10] += [0.5, 0.2, -0.3]  # slips
    v[10:] += [0.02, 0.01, -0.3]  # sticks
    triangles = np.concatenate([FIRST, OTHER])
    springs = Springs(surface_of(triangles).edges, 60.0, rest_positions=x, damping=0.05)
    if touches_itself:
        apart = x + np.repeat([0.0, 1.0, 2.0, 3.0], (3, 3, 4, 3))[:, None]
        touch = SurfaceContact(
            triangles=triangles, radius=0.0175, rest_positions=apart, **{**LAW, **law}
        )
    else:
        touch = SurfaceContact(
            triangles=FIRST,
            other_triangles=OTHER,
            radius=0.015,
            other_radius=0.02,
            **{**LAW, **law},
        )
    model = Model(np.full(len(x), 0.01), {"net": springs, "touch": touch}, (0.1, -0.2, -1.0))
    return Example(model, State(x, v), 1e-4, n_steps)


def two(n_steps: int) -> Example:
    """Return two surfaces with the law of contact without jumps."""
    return scene(n_steps, dissipation=0.4)


def damped(n_steps: int) -> Example:
    """Return two surfaces with the paper's law."""
    return scene(n_steps, damping=0.02)


def cubic(n_steps: int) -> Example:
    """Return two surfaces with the law whose restitution is the same at every speed."""
    return scene(n_steps, stiffness=None, cubic_stiffness=1.2e6, cubic_dissipation=5e-5)


def alone(n_steps: int) -> Example:
    """Return one surface that touches itself."""
    return scene(n_steps, touches_itself=True, dissipation=0.4)


def field_problem() -> Problem:
    """Return the forces of the two surfaces at one state, as a field has them."""
    example = two(1)
    longer = {"net.rest_length": 1.02 * example.parameters()["net.rest_length"]}  # the net is loose
    example = example.at({**example.parameters(), **longer})
    point, field = example.parameters(), Field(example.model, with_weight=True)
    scale = float(np.std(field.forces(example.state)))

    def forward(values: Values) -> np.ndarray:
        there = example.at(changed(values, point))
        return Field(there.model, with_weight=True).forces(there.state).ravel() / scale

    def jvp(tangents: Values) -> np.ndarray:
        return field.push(example.state, tangents).ravel() / scale

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        return pull(field, example.state, adj.reshape(example.state.x.shape) / scale, wrt)

    return Problem(point, example.owners(), forward, jvp, vjp)


SYSTEMS = (
    System("surfaces/field", field_problem, family="solids"),
    *systems(
        "solids",
        rollout_problem,
        {
            "surfaces/two": two,
            "surfaces/damping": damped,
            "surfaces/cubic": cubic,
            "surfaces/one": alone,
        },
    ),
)
