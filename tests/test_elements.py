"""How element functions are called by loops, and which are refused."""

import numba
import numpy as np
import pytest
from numba.core.compiler import Flags
from numba.core.errors import UnsupportedError

from adjsim.jit import backend, kernel_cache, numba_private
from adjsim.jit.backend import JIT_DISABLED, cpu_kernel, device_fn
from tests.cuda.processes import run


@device_fn
def mixed(parts, nothing, flag, scale):
    (low, arrays), _ = parts, nothing
    rows, weights = arrays
    value = rows[np.uint64(1), low] * weights[low] * scale
    return (value, -value), flag, ()


def mix(out, rows, weights):
    for i in range(out.size):
        pair, flag, _ = mixed((i, (rows, weights)), None, i > 0, 2)
        out[i] = pair[0] if flag else pair[1]


def test_tuples_arrays_and_nothing_are_passed_to_what_is_inlined():
    rows, weights, out = np.arange(6.0).reshape(2, 3), np.array([0.5, 1.0, 3.0]), np.empty(3)
    cpu_kernel(mix, cached=False)(out, rows, weights)
    assert out.tolist() == [-3.0, 8.0, 30.0]


@device_fn
def refuse_negative(x):
    if x < 0:
        raise ValueError("negative")
    return x


def refuse_all(x):
    for i in range(x.size):
        x[i] = refuse_negative(x[i])


@pytest.mark.skipif(JIT_DISABLED, reason="asks the compiler")
def test_what_is_inlined_cannot_raise():
    with pytest.raises(UnsupportedError, match="element function can neither raise nor assert"):
        cpu_kernel(refuse_all, cached=False)(np.ones(2))


@device_fn
def half_or_nothing(x):
    return None if x < 0 else x


@device_fn
def sum_of(*parts):
    return parts[0] + parts[1]


@device_fn
def halved_down(x):
    if x < 1.0:
        return x
    return halved_down(0.5 * x)


def call_half_or_nothing(x):
    y = half_or_nothing(x[0])
    if y is not None:
        x[0] = y


def call_sum_of(x):
    x[0] = sum_of(x[0], x[1])


def call_halved_down(x):
    x[0] = halved_down(x[0])


@pytest.mark.skipif(JIT_DISABLED, reason="asks the compiler")
@pytest.mark.parametrize(
    ("caller", "message"),
    [
        (call_half_or_nothing, "half_or_nothing returns float64 on one way and None"),
        (call_sum_of, "sum_of has .args. Take one tuple"),
        (call_halved_down, "cannot call itself"),
    ],
)
def test_what_is_not_passed_whole_is_refused(caller, message):
    with pytest.raises(UnsupportedError, match=message):
        cpu_kernel(caller, cached=False)(np.ones(2))


@device_fn
def read(x, i):
    return x[i]


def read_beyond(x):
    x[0] = read(x, x.size)


@pytest.mark.skipif(JIT_DISABLED, reason="asks the compiler")
def test_indices_are_checked_where_numba_is_asked_to(monkeypatch):
    monkeypatch.setattr(numba.core.config, "BOUNDSCHECK", 1)
    with pytest.raises(IndexError):
        cpu_kernel(read_beyond, cached=False)(np.ones(2))


@pytest.mark.parametrize(
    "what",
    [
        "rollout",
        *(pytest.param(name, marks=pytest.mark.nightly) for name in ("gradient", "images")),
    ],
)
def test_plain_numba_gives_the_same_numbers_without_private_parts_of_it(what):
    usual, plain = (run("tests.plain_numba", what, ADJSIM_PLAIN_NUMBA=mode) for mode in "01")
    assert usual["private"]
    assert not plain["private"]
    for name, value in usual["numbers"].items():
        # Another inlining may contract otherwise: a few hundred roundings.
        scale = np.abs(value).max()
        np.testing.assert_allclose(plain["numbers"][name], value, rtol=0, atol=1e-12 * scale)


def test_options_of_compilations_are_equal_if_all_are_whether_set_or_not():
    first, other = Flags(), Flags()
    other.nrt = first.nrt
    assert first == other
    assert hash(first) == hash(other)
    other.nrt = not first.nrt
    assert first != other


def test_another_numba_is_told_and_done_without(monkeypatch, caplog):
    monkeypatch.setattr(kernel_cache, "_warned", [])
    monkeypatch.setattr(numba_private, "LAST_TRIED", (0, 1))
    assert backend.private_parts() is None
    assert (
        "newer than what adjsim was tried with: kernels are compiled in its own way" in caplog.text
    )
