"""A loss in a logarithmic parameter.

A stiffness must stay positive, so the search varies u = log k. The model is the displacement of a
spring under three loads; the loss is the mean square of the residuals. Chapter 6 searches with it.
"""

import numpy as np


LOADS = np.array([1.0, 2.0, 4.0])


def log_loss(u, measured):
    """Return the loss L for the logarithm u of a stiffness, and displacements measured (3,)."""
    k = np.exp(u)  # (1)
    x = LOADS / k  # (2)
    r = x - measured  # (3)
    return (r @ r) / 3.0  # (4)


# --- solution ---


def log_loss_vjp(u, measured, adj_L):
    """Return adj_u, adj_measured."""
    k = np.exp(u)
    x = LOADS / k
    r = x - measured
    # (4) L = r . r / 3
    adj_r = 2.0 / 3.0 * r * adj_L
    # (3) r = x - measured
    adj_x = adj_r
    adj_measured = -adj_r
    # (2) x = loads / k
    adj_k = -(x @ adj_x) / k
    # (1) k = exp(u)
    adj_u = k * adj_k
    return adj_u, adj_measured


# --- grading ---


def inputs(rng):
    return {"u": rng.normal(), "measured": rng.uniform(0.5, 3.0, 3)}


MISTAKES = [
    ("factor", 4, "2.0 / 3.0 * r", "1.0 / 3.0 * r", "A square brings down a 2."),
    ("factor", 4, "2.0 / 3.0 * r", "2.0 * r", "The loss is a mean."),
    ("sign", 2, "-(x @ adj_x) / k", "(x @ adj_x) / k", "A stiffer spring moves less."),
    ("dropped", 1, "adj_u = k * adj_k", "adj_u = adj_k", "The slope of exp is exp."),
    ("sign", 3, "adj_measured = -adj_r", "adj_measured = adj_r"),
    ("factor", 2, "-(x @ adj_x) / k", "-(x @ adj_x)", "A quotient keeps itself, over k."),
]
