import numpy as np
import pytest

from studies.parameters import Parameters, block, positive_block
from studies.transforms import Identity
from studies.wires import Outer, Rows, Wire, Wires


MASS = np.array([0.1, 0.2, 0.3])
LIFT = np.array([[0.0, 1.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]])


def wires():
    return Wires(
        (
            Wire("density", "mass", Outer(MASS)),
            Wire("speed", "state.v", Outer(LIFT)),
            Wire("moving", "state.v", Rows(np.array([0, 2]), 3)),
            Wire("beam.mu", "beam.mu"),
            Wire("beam.mu", "beam.lam", Outer(2.0)),
        ),
        {"state.v": np.ones((3, 3))},
    )


def parameters():
    return Parameters(
        [
            positive_block("density", 4.0),
            positive_block("beam.mu", 5.0),
            positive_block("floor.friction", 0.5),
            block(("speed",), Identity(), [3.0]),
            block(("moving",), Identity(), [np.full((2, 3), 0.5)]),
        ],
        wires(),
    )


def test_values_are_led_where_the_wires_say():
    free = parameters()
    values = free.rollout_values(free.start)
    assert set(values) == {"mass", "beam.mu", "beam.lam", "floor.friction", "state.v"}
    assert set(values) == set(free.targets)
    np.testing.assert_allclose(values["mass"], 4.0 * MASS, rtol=1e-15)
    assert values["beam.lam"] == pytest.approx(10.0, rel=1e-15)
    expected = 1.0 + 3.0 * LIFT
    expected[[0, 2]] += 0.5
    np.testing.assert_allclose(values["state.v"], expected, rtol=1e-15)


def test_the_gradient_is_the_transpose_of_the_tangents(rng):
    free = parameters()
    theta, tan = free.start + 0.1 * rng.normal(size=free.size), rng.normal(size=free.size)
    tangents = free.tangents(theta, tan)
    adjoints = {path: rng.normal(size=np.shape(value)) for path, value in tangents.items()}
    left = sum(np.vdot(adjoints[path], tangents[path]) for path in free.targets)
    assert left == pytest.approx(free.gradient(theta, adjoints) @ tan, rel=1e-12)


def test_the_tangents_are_those_of_the_values(rng):
    free = parameters()
    theta, tan = free.start, rng.normal(size=free.size)
    h = 1e-6
    ahead, behind = (free.rollout_values(theta + s * h * tan) for s in (1.0, -1.0))
    for path, tangent in free.tangents(theta, tan).items():
        # the third derivative of exp, h^2, and rounding over h
        difference = (np.asarray(ahead[path]) - behind[path]) / (2.0 * h)
        np.testing.assert_allclose(difference, tangent, rtol=1e-8, atol=1e-9)


def test_natural_values_stay_what_the_study_speaks_of():
    free = parameters()
    assert free.paths == ("density", "beam.mu", "floor.friction", "speed", "moving")
    assert free.natural_jacobian(free.start).shape == (10, 10)


def test_rows_may_be_cells_of_a_grid(rng):
    chosen = np.array([[True, False, True], [False, True, False]])
    cells = Rows(np.nonzero(chosen), chosen.shape)
    value, adj = rng.normal(size=(3, 4)), rng.normal(size=(2, 3, 4))
    spread = cells.apply(value)
    np.testing.assert_array_equal(spread[0, 2], value[1])
    assert not spread[~chosen].any()
    assert np.vdot(adj, spread) == pytest.approx(np.vdot(cells.transpose(adj), value), rel=1e-14)
