r"""Adjoint of `adjsim/courses.py`: from rows back to what is differentiated.

A signal is linear in its values:

    rows[k] = (1 - t_k) values[i_k] + t_k values[i_k + 1]

A policy is not, in its weights; with s = sin(rate k + phases) and y = tanh z,

    (3) a = scale y                 adj_y = scale adj_a
    (2) y = tanh z                  adj_z = (1 - y^2) adj_y
    (1) z_e = sum_j W_ej s_j        adj_W_ej = sum_k adj_z_ke s_kj

NumPy's sums of fixed arrays have a fixed order, so the bits do not depend on threads.
"""

from functools import singledispatch

import numpy as np

from adjsim.courses import Policy, Signal, TimeCourse, slope


@singledispatch
def course_vjp(course: TimeCourse, adj_rows: np.ndarray) -> np.ndarray:
    """Pull cotangents of the rows back to a course's values."""
    raise TypeError(f"{type(course).__name__} has no twin: register `course_vjp` for it.")


@course_vjp.register
def _(course: Signal, adj_rows: np.ndarray) -> np.ndarray:
    left, t = course.weights(len(adj_rows))
    t = t.reshape(-1, *[1] * (adj_rows.ndim - 1))
    out = np.zeros(course.values.shape)
    np.add.at(out, left, (1.0 - t) * adj_rows)
    np.add.at(out, np.minimum(left + 1, len(course.knots) - 1), t * adj_rows)
    return out


@course_vjp.register
def _(course: Policy, adj_rows: np.ndarray) -> np.ndarray:
    n_steps = len(adj_rows)
    adj_z = slope(course, n_steps)  # (2)
    adj_z *= course.scale  # (3)
    adj_z *= adj_rows
    return np.einsum("k...,kj->...j", adj_z, course.sines(n_steps))  # (1)
