"""Blending by softmax.

Five faces with logits u and colours C: the weights are exp(u), divided by their sum. What the
largest logit is does not matter, since it cancels. A face matters as much as its colour differs
from the mix.
"""

import numpy as np


def softmax_blend(u, C):
    """Return the pixel I (3,) from logits (5,) and colours (5, 3)."""
    e = np.exp(u - u.max())  # (1)
    w = e / e.sum()  # (2)
    return w @ C  # (3)


# --- solution ---


def softmax_blend_vjp(u, C, adj_I):
    """Return adj_u, adj_C."""
    e = np.exp(u - u.max())
    w = e / e.sum()
    # (3) I = w . C
    adj_C = np.outer(w, adj_I)
    adj_w = C @ adj_I
    # (2), (1) w = softmax(u)
    adj_u = w * (adj_w - w @ adj_w)
    return adj_u, adj_C


# --- grading ---


def inputs(rng):
    return {"u": 2.0 * rng.normal(size=5), "C": rng.uniform(size=(5, 3))}


MISTAKES = [
    ("dropped", 2, "(adj_w - w @ adj_w)", "adj_w", "The sum in (2) depends on every logit."),
    ("dropped", 2, "w * (adj_w - w @ adj_w)", "w * (1.0 - w) * adj_w",
     "That is the diagonal: a logit changes the weights of the others, too."),
    ("factor", 1, "w * (adj_w - w @ adj_w)", "adj_w - w @ adj_w", "The slope of exp is exp."),
    ("factor", 2, "w * (adj_w - w @ adj_w)", "e * (adj_w - w @ adj_w)", "Divide by the sum."),
    ("sign", 2, "adj_w - w @ adj_w", "adj_w + w @ adj_w", "The sum divides."),
    ("stale", 3, "np.outer(w, adj_I)", "np.outer(e, adj_I)", "The weights are w."),
    ("factor", 2, "adj_w - w @ adj_w", "adj_w - adj_w.mean()", "Weight the mean by w."),
]  # fmt: skip
