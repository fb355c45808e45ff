"""Checks that every element function of the renderer and its twins pass."""

import numpy as np

from render.raster.fragments import Fragments


def flat(nested):
    """Numbers of nested tuples, in order, as a vector."""
    if isinstance(nested, tuple):
        return np.concatenate([flat(inner) for inner in nested]) if nested else np.empty(0)
    return np.atleast_1d(np.asarray(nested, dtype=np.float64))


def nest(like, vector):
    """The numbers of a vector as nested tuples, shaped like another."""
    numbers = iter(vector)

    def build(branch):
        if isinstance(branch, tuple):
            return tuple(build(inner) for inner in branch)
        return float(next(numbers))

    return build(like)


def check_element(rng, function, jvp, vjp, args, *, step=1e-5, rtol=1e-8):
    """The tangent agrees with central differences, and the adjoint with the tangent.

    The difference of fourth order has the error O(step^4) + eps/step = 1e-20 + 1e-11 times
    a constant of the function, far below `rtol`.
    """
    start, tangent = flat(args), rng.normal(size=flat(args).size)
    tangents = nest(args, tangent)

    def at(t):
        return flat(function(*nest(args, start + t * tangent)))

    near, wide = (at(step) - at(-step)) / (2 * step), (at(2 * step) - at(-2 * step)) / (4 * step)
    pushed = flat(jvp(args, tangents))
    np.testing.assert_allclose(
        pushed, (4 * near - wide) / 3, rtol=rtol, atol=rtol * abs(near).max()
    )

    out = function(*args)
    cotangent = rng.normal(size=pushed.size)
    pulled = flat(vjp(args, nest(out, cotangent)))
    assert pulled.size == tangent.size
    scale = np.abs(pushed) @ np.abs(cotangent) + np.abs(pulled) @ np.abs(tangent)
    assert np.linalg.norm(pulled) > 0
    assert abs(pushed @ cotangent - pulled @ tangent) <= 1e-12 * scale


def check_twins(rng, function, jvp, vjp, args, **options):
    """`check_element` of twins that take all arguments, and then the tangents or a cotangent."""
    check_element(
        rng, function, lambda a, t: jvp(*a, *t), lambda a, c: vjp(*a, c), args, **options
    )  # fmt: skip


def empty_list(n, dtype=np.float64):
    """Room for n fragments of one pixel, with NaN where a number has to be written first."""
    parts: dict[str, np.ndarray] = {"rgb": np.full((n, 3), np.nan, dtype)}
    parts |= {name: np.full(n, np.nan, dtype) for name in Fragments._fields if name != "rgb"}
    parts |= {name: np.zeros(n, np.int32) for name in ("pixel", "face", "order", "spare")}
    parts |= {"start": np.array([0, n], np.int32), "pair": np.array([0, n])}
    return Fragments(**parts)
