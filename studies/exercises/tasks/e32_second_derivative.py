"""The adjoint of an adjoint.

A program that computes gradients can be differentiated like any other: second derivatives are what
comes out. This one undoes one step of a pendulum, v1 = v - dt p sin(x), x1 = x + dt v1. It takes
cotangents ax, av of x1 and v1, and returns cotangents bx, bv, bp of x, v and p (chapter 10). Here
these are inputs and outputs, each with a cotangent of its own.
"""

import numpy as np


DT = 0.3


def undo_step(x, p, ax, av):
    """Return the cotangents bx, bv and bp."""
    bv = av + DT * ax  # (1)
    af = DT * bv  # (2)
    bx = ax - p * np.cos(x) * af  # (3)
    bp = -np.sin(x) * af  # (4)
    return bx, bv, bp


# --- solution ---


def undo_step_vjp(x, p, ax, av, adj_bx, adj_bv, adj_bp):
    """Return adj_x, adj_p, adj_ax, adj_av."""
    bv = av + DT * ax
    af = DT * bv
    # (4) bp = -sin(x) af
    adj_af = -np.sin(x) * adj_bp
    adj_x = -np.cos(x) * af * adj_bp
    # (3) bx = ax - p cos(x) af
    adj_ax = adj_bx
    adj_af = adj_af - p * np.cos(x) * adj_bx
    adj_p = -np.cos(x) * af * adj_bx
    adj_x = adj_x + p * np.sin(x) * af * adj_bx
    # (2) af = dt bv
    adj_bv = adj_bv + DT * adj_af
    # (1) bv = av + dt ax
    adj_av = adj_bv
    adj_ax = adj_ax + DT * adj_bv
    return adj_x, adj_p, adj_ax, adj_av


# --- grading ---


def inputs(rng):
    x, ax, av = rng.normal(size=3)
    return {"x": x, "p": rng.uniform(1.0, 2.0), "ax": ax, "av": av}


MISTAKES = [
    ("sign", 4, "adj_af = -np.sin(x)", "adj_af = np.sin(x)"),
    ("sign", 3, "adj_x + p * np.sin", "adj_x - p * np.sin", "The derivative of cos is -sin."),
    ("overwritten", 3, "adj_af = adj_af - p", "adj_af = -p", "af is used in (4), too."),
    ("overwritten", 3, "adj_x = adj_x + p", "adj_x = p", "x is used in (4), too."),
    ("factor", 2, "adj_bv + DT * adj_af", "adj_bv + adj_af"),
    ("overwritten", 1, "adj_ax = adj_ax + DT", "adj_ax = DT", "ax is used in (3), too."),
]
