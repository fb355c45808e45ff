"""Vectors of three numbers as tuples: what element functions are written in."""

import math

from adjsim.jit.backend import device_fn


@device_fn
def add(a, b):
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@device_fn
def sub(a, b):
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@device_fn
def neg(a):
    return (-a[0], -a[1], -a[2])


@device_fn
def scale(s, a):
    return (s * a[0], s * a[1], s * a[2])


@device_fn
def axpy(s, a, b):
    """Return s a + b."""
    return (s * a[0] + b[0], s * a[1] + b[1], s * a[2] + b[2])


@device_fn
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@device_fn
def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@device_fn
def norm(a):
    return math.sqrt(dot(a, a))
