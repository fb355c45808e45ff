"""The verifiers pass what is right and refuse what is wrong, noisy or empty."""

import json
import math

import numpy as np
import pytest

import adjoint
from adjoint import dot_test, gradcheck, jacobian_fd, taylor_test


# A smooth function of two blocks with very different scales, and its derivatives by hand:
# f = |sin(A x)|^2 / 2 + x . x log(k) with k about 1e5.
A = np.random.default_rng(7).standard_normal((5, 6))


def point(rng):
    return {"x": rng.standard_normal((2, 3)), "k": np.array(3.0e5)}


def f(p):
    x = np.ravel(p["x"])
    return float(0.5 * np.sum(np.sin(A @ x) ** 2) + x @ x * np.log(p["k"]))


def gradient(p):
    x = np.ravel(p["x"])
    s = A @ x
    adj_x = A.T @ (np.sin(s) * np.cos(s)) + 2.0 * x * np.log(p["k"])
    return {"x": adj_x.reshape(2, 3), "k": np.array(x @ x / p["k"])}


def no_change(g):
    return g


def wrong_sign(g):
    return {**g, "x": -g["x"]}


def wrong_factor(g):
    return {**g, "k": 1.001 * g["k"]}


def dropped_component(g):
    x = g["x"].copy()
    x[1, 2] = 0.0
    return {**g, "x": x}


def wrong_index(g):
    return {**g, "x": np.roll(g["x"], 1, axis=0)}


CORRUPTIONS = [wrong_sign, wrong_factor, dropped_component, wrong_index]


def test_gradcheck_passes_a_right_gradient(rng):
    x = point(rng)
    check = gradcheck(f, gradient(x), x)
    assert check.passed, check.table()
    assert check.errors.shape == (7,)
    assert check.is_complete
    # Noise eps |f| and steps about 1e-2 leave 1e-13 or so; the estimate is no smaller.
    assert check.max_error < 1e-11
    assert check.rounding < 1e-11


@pytest.mark.parametrize("corrupt", CORRUPTIONS)
def test_gradcheck_refuses_a_wrong_gradient(rng, corrupt):
    x = point(rng)
    check = gradcheck(f, corrupt(gradient(x)), x)
    assert not check.passed
    assert "directions disagree" in check.reason


def test_taylor_test_passes_a_right_gradient_and_sees_both_orders(rng):
    test = taylor_test(f, gradient, point(rng))
    assert test.passed, test.table()
    assert test.halvings >= 4
    assert test.slope1 > 1.95
    assert 0.9 < test.slope0 < 1.1


@pytest.mark.parametrize("corrupt", CORRUPTIONS)
def test_taylor_test_refuses_a_wrong_gradient(rng, corrupt):
    x = point(rng)
    test = taylor_test(f, corrupt(gradient(x)), x)
    assert not test.passed
    assert test.slope1 < 1.5


def vector_function(x):
    return np.sin(A @ x)


def jvp_at(x):
    return lambda t: np.cos(A @ x) * (A @ t)


def vjp_at(x):
    return lambda c: A.T @ (np.cos(A @ x) * c)


def test_dot_test_passes_transposes(rng):
    x = rng.standard_normal(6)
    test = dot_test(jvp_at(x), vjp_at(x), x)
    assert test.passed, test.table()
    assert test.residual < 1e-15 * 30  # eps times the products in the two sums


@pytest.mark.parametrize(
    "corrupt", [lambda g: -g, lambda g: g * (1 + 1e-8), lambda g: g * (np.arange(6) != 2), np.flip]
)
def test_dot_test_refuses_what_is_no_transpose(rng, corrupt):
    x = rng.standard_normal(6)
    vjp = vjp_at(x)
    test = dot_test(jvp_at(x), lambda c: corrupt(vjp(c)), x)
    assert not test.passed
    assert "above" in test.reason


def test_dot_test_reads_mappings_on_both_sides(rng):
    x = {"a": rng.standard_normal(3), "b": 1e6 * rng.standard_normal((3, 1))}

    def jvp(t):
        return {"out": A[:, :3] @ t["a"], "tiny": 1e-9 * (A[:3, 3:] @ t["b"])}

    def vjp(c):
        return {"b": 1e-9 * (A[:3, 3:].T @ c["tiny"]), "a": A[:, :3].T @ c["out"]}

    assert dot_test(jvp, vjp, x).passed
    wrong = dot_test(jvp, lambda c: {**vjp(c), "b": 1e-9 * (A[:3, 3:] @ c["tiny"])}, x)
    assert not wrong.passed, "the small output must count as much as the large one"


def test_gradcheck_takes_the_vjp_of_a_function_that_returns_an_array(rng):
    x = rng.standard_normal(6)
    assert gradcheck(vector_function, vjp_at(x), x).passed
    assert not gradcheck(vector_function, lambda c: vjp_at(x)(np.flip(c)), x).passed


def test_the_jacobian_by_differences_is_the_jacobian(rng):
    x = rng.standard_normal(6)
    exact = np.cos(A @ x)[:, None] * A
    # Rounding eps |f| / h with h = 7e-4, a few times: 1e-12; truncation h^4 = 3e-13.
    assert np.allclose(jacobian_fd(vector_function, x), exact, rtol=0, atol=2e-11)


def test_the_jacobian_of_a_mapping_is_a_mapping_in_the_right_shapes(rng):
    x = point(rng)
    blocks = jacobian_fd(f, x)
    assert isinstance(blocks, dict)
    for name, exact in gradient(x).items():
        assert blocks[name].shape == np.shape(exact)
        assert np.allclose(blocks[name], exact, rtol=1e-9, atol=1e-12)


def test_a_zero_gradient_is_refused(rng):
    x = point(rng)
    g = {**gradient(x), "k": np.array(0.0)}
    for check in (gradcheck(f, g, x), taylor_test(f, g, x)):
        assert not check.passed
        assert check.reason == "`gradient['k']` is zero: a comparison would pass on nothing"
    zero = dot_test(lambda t: 0.0 * t, lambda c: c, np.ones(3))
    assert "`jvp` returned zero" in zero.reason
    zero = dot_test(lambda t: t, lambda c: 0.0 * c, np.ones(3))
    assert "`vjp` returned zero" in zero.reason


def test_a_gradient_that_is_not_finite_is_refused(rng):
    x = point(rng)
    g = {**gradient(x), "k": np.array(np.nan)}
    assert gradcheck(f, g, x).reason == "the gradient is not finite"
    assert taylor_test(f, g, x).reason == "the gradient is not finite"
    assert not dot_test(lambda t: np.nan * t, lambda c: c, np.ones(3)).passed
    assert gradcheck(lambda p: math.nan, gradient(x), x).reason == "`f` is not finite at x"


def test_rounding_noise_is_measured_and_nothing_is_claimed_below_it():
    # A function with noise 1e-6: differences cannot confirm seven digits of the slope.
    def noisy(x):
        return float(np.sin(x) + 1e-6 * np.sin(1e12 * x))

    check = gradcheck(noisy, np.cos(0.3), 0.3)
    assert not check.passed
    assert "hides" in check.reason
    test = taylor_test(noisy, np.cos(0.3), 0.3, eps0=1e-3)
    assert not test.passed
    assert "above the noise" in test.reason
    assert 1e-7 < test.noise < 1e-5
    check = gradcheck(noisy, np.cos(0.3), 0.3, step=1e-3, noise=test.noise)
    assert check.rounding == pytest.approx(3.0 * test.noise / 1e-3 / (0.3 * np.cos(0.3)))
    assert "hides" in check.reason


def test_a_noise_that_is_known_is_not_measured_again():
    seen = []

    def counted(x):
        seen.append(float(x))
        return float(np.sin(x))

    noise = taylor_test(counted, np.cos(0.3), 0.3).noise
    assert len(seen) == 9 + 17 + 1  # for the noise, the steps and at x
    seen.clear()
    assert gradcheck(counted, np.cos(0.3), 0.3, step=1e-3, noise=noise).passed
    assert len(seen) == 1 + 4


def test_a_linear_function_passes_only_with_its_own_gradient():
    slope = np.array([2.0, -1.0, 0.5])

    def linear(x):
        return float(slope @ x)

    x = np.array([1.0, 2.0, 3.0])
    right = taylor_test(linear, slope, x)
    assert right.passed
    assert right.is_linear
    assert not taylor_test(linear, slope * (1 + 1e-6), x).passed


def test_a_single_number_has_one_direction():
    check = gradcheck(math.sin, math.cos(0.7), 0.7)
    assert check.passed
    assert check.errors.shape == (1,)


def test_few_entries_are_checked_in_a_basis_and_many_in_the_directions_asked_for(rng):
    x = rng.standard_normal(40)
    basis = gradcheck(np.sum, np.ones(40), x)
    assert basis.errors.shape == (40,)
    assert basis.is_complete
    assert basis.max_error == np.linalg.norm(basis.errors)
    some = gradcheck(np.sum, np.ones(40), x, n_directions=39)
    assert some.errors.shape == (39,)
    assert not some.is_complete
    assert some.max_error == some.errors.max()


def test_a_basis_shows_the_whole_error_wherever_it_points(rng):
    x, G = rng.standard_normal(30), rng.standard_normal(30)
    wrong = rng.standard_normal(30)
    wrong *= 1.1e-7 * np.linalg.norm(G) / np.linalg.norm(wrong)
    check = gradcheck(lambda x: float(G @ x), G + wrong, x, scale=np.ones(30))
    assert check.max_error == pytest.approx(1.1e-7, rel=1e-4)
    assert check.errors.max() < 1e-7, "no direction of the basis alone shows it"
    assert check.reason == "the errors of all directions add up to 1.1e-07"


def test_the_rounding_of_a_basis_is_that_of_all_its_directions(rng):
    slope, ones = np.full(64, 3.0), np.ones(64)

    def noisy(x):
        return float(slope @ x + 1e-9 * rng.standard_normal())

    def rounding(n_directions):  # the noise is estimated from nine values: the median of many
        checks = [
            gradcheck(noisy, slope, ones, n_directions=n_directions, step=1e-2, tolerance=1e-9)
            for _ in range(25)
        ]
        assert all("hides" in check.reason for check in checks)
        return np.median([check.rounding for check in checks])

    assert rounding(64) / rounding(63) == pytest.approx(8.0, rel=0.4)


@pytest.mark.parametrize("make", ["gradcheck", "taylor_test", "dot_test"])
def test_outcomes_are_plain_json_and_readable_text(rng, make):
    x = point(rng)
    outcomes = {
        "gradcheck": lambda g: gradcheck(f, g, x),
        "taylor_test": lambda g: taylor_test(f, g, x),
        "dot_test": lambda g: dot_test(lambda t: t, lambda c: {**c, "k": 0 * g["k"] + c["k"]}, x),
    }
    right = outcomes[make](gradient(x))
    wrong = outcomes[make]({**gradient(x), "k": np.array(np.nan)})
    assert "passed" in right.table()
    assert "FAILED" in wrong.table()
    for outcome in (right, wrong):
        plain = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
        assert plain["passed"] == outcome.passed


def test_a_gradient_laid_out_otherwise_is_refused_by_name(rng):
    x = point(rng)
    g = gradient(x)
    with pytest.raises(ValueError, match=r"`gradient` must have the entries 'x', 'k', got 'x'"):
        gradcheck(f, {"x": g["x"]}, x)
    with pytest.raises(ValueError, match=r"`gradient\['x'\]` must have shape \(2, 3\), got \(6,\)"):
        gradcheck(f, {**g, "x": g["x"].ravel()}, x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gradcheck(f, {}, {}), "`x` must not be empty"),
        (lambda: gradcheck(np.sum, np.ones(2), [1.0, np.nan]), "`x` must be finite"),
        (lambda: gradcheck(np.sum, np.ones(2), np.ones(2), scale=np.zeros(2)), "`scale` must be"),
        (
            lambda: taylor_test(np.sum, np.ones(2), np.ones(2), np.zeros(2)),
            "`direction` must be finite and not zero",
        ),
        (
            lambda: gradcheck(np.sum, np.ones(2), np.ones(2), noise=-1.0),
            "`noise` must not be negative",
        ),
    ],
)
def test_a_point_or_direction_that_makes_no_sense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_public_names_are_found_and_others_are_not():
    assert adjoint.gradcheck is gradcheck
    assert set(dir(adjoint)) >= {"gradcheck", "dot_test", "taylor_test", "jacobian_fd"}
    assert all(getattr(adjoint, name) is not None for name in dir(adjoint))
    with pytest.raises(AttributeError, match="no attribute 'gradchek'"):
        adjoint.gradchek  # noqa: B018
