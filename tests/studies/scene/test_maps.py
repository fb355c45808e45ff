import numpy as np
import pytest
import scipy.sparse

from studies.scene.bodies.materials import SOLID_LAWS, sheet_curves, solid_curves
from studies.scene.maps import Moduli, Placed, Scaled, Weighed, Widened, add_up, sum_to


RNG = np.random.default_rng(1)


def matrix(*shape):
    return scipy.sparse.csr_array(RNG.uniform(size=shape))


def moduli(E, averages=()):
    return Moduli(
        "m", {**solid_curves("a", SOLID_LAWS["stable"]), **sheet_curves("b", 0.1)}, dict(averages)
    ), {"m.E": np.asarray(E, float), "m.nu": np.array(0.3)}


CASES = {
    "anchor": (
        Widened(
            "j.anchor",
            {"j.anchor_a": 1.0, "j.anchor_b": 1.0},
            {"j.anchor_a": np.zeros(3), "j.anchor_b": np.arange(3.0)},
        ),
        {"j.anchor": np.array([1.0, 2.0, 4.0])},
    ),
    "factor": (Scaled("a", {"x": 2.0, "y": -1.0}), {"a": np.array(3.0)}),
    "vector": (Scaled("a", {"x": 2.0}), {"a": np.arange(3.0)}),
    "broadcast": (Scaled("a", {"x": np.arange(4.0), "y": 2.0}), {"a": np.array(3.0)}),
    "spread": (Placed("a", "mass", slice(2, 5), 6, weights=np.arange(3.0)), {"a": np.array(2.0)}),
    "weighed": (
        Weighed("b", matrix(3, 4), slice(2, 5), 6),
        {"b.density": np.array(2.0), "b.mass_factors": np.arange(1.0, 4.0)},
    ),
    "weighed fields": (
        Weighed("b", matrix(3, 4), slice(2, 5), 6),
        {"b.density": np.arange(4.0), "b.mass_factors": np.arange(1.0, 4.0)},
    ),
    "moduli": moduli(1e3),
    "fields": moduli([1e3, 2e3, 4e3], {"b.mu": matrix(5, 3)}),
}


def tangents_of(arrays):
    return {key: RNG.standard_normal(np.shape(value)) for key, value in arrays.items()}


def dot(a, b):
    return sum(float(np.sum(a[key] * b[key])) for key in a)


def check_map(parameter_map, sources, step=1e-20):
    """Check jvp against complex steps, and vjp against jvp."""
    tangents = tangents_of(sources)
    jvp = parameter_map.jvp(sources, tangents)
    moved = {key: value + 1j * step * tangents[key] for key, value in sources.items()}
    for target, value in parameter_map.values(moved).items():
        np.testing.assert_allclose(jvp[target], value.imag / step, rtol=1e-12)
    check_dot(parameter_map, sources)


def check_dot(parameter_map, sources):
    tangents, adjoints = tangents_of(sources), tangents_of(parameter_map.values(sources))
    pulled, pushed = parameter_map.vjp(sources, adjoints), parameter_map.jvp(sources, tangents)
    scale = sum(np.abs(pushed[key] * adjoints[key]).sum() for key in pushed)
    assert abs(dot(pulled, tangents) - dot(adjoints, pushed)) <= 1e-12 * scale
    for key, value in sources.items():
        assert np.shape(pulled[key]) == np.shape(value)
        alone = parameter_map.jvp(sources, {key: tangents[key]})
        zeros = {k: np.zeros_like(v) for k, v in tangents.items()}
        for target, full in parameter_map.jvp(sources, zeros | {key: tangents[key]}).items():
            np.testing.assert_array_equal(alone[target], full)


@pytest.mark.parametrize("case", [name for name in CASES if name != "spread"])
def test_tangents_are_derivatives_and_cotangents_their_transpose(case):
    check_map(*CASES[case])


def test_spread_is_linear_and_has_its_transpose():
    spread, sources = CASES["spread"]
    doubled = spread.values({key: 2.0 * value for key, value in sources.items()})
    np.testing.assert_allclose(doubled["mass"], 2.0 * spread.values(sources)["mass"])
    np.testing.assert_array_equal(
        spread.jvp(sources, sources)["mass"], spread.values(sources)["mass"]
    )
    check_dot(spread, sources)


def test_cotangents_that_are_missing_count_as_zero():
    for parameter_map, sources in CASES.values():
        pulled = parameter_map.vjp(sources, {})
        assert all(not np.any(pulled[key]) for key in sources)


def test_maps_with_one_target_add_up():
    total = add_up([{"a": np.ones(2)}, {"a": np.arange(2.0), "b": np.ones(1)}])
    np.testing.assert_array_equal(total["a"], [1.0, 2.0])
    assert set(total) == {"a", "b"}


def test_a_sum_to_a_shape_is_the_transpose_of_broadcasting():
    array = RNG.standard_normal((4, 3))
    np.testing.assert_allclose(sum_to((), array), array.sum())
    np.testing.assert_allclose(sum_to((3,), array), array.sum(axis=0))
    np.testing.assert_allclose(sum_to((4, 1), array), array.sum(axis=1, keepdims=True))
