"""A fit with a prior.

Weights of masses m stretch a spring by x, and its stiffness k is fitted: it makes
|k x - g m|^2 + w (k - prior)^2 least. The fit is solved in closed form. Its cotangents say how far
the answer moves with what was declared: each mass, each length, the prior and its weight w
(chapter 12).
"""

G = 9.81


def fitted_stiffness(x, m, prior, w):
    """Return the stiffness for lengths x (4,) and masses m (4,)."""
    s = G * (x @ m)  # (1)
    n = x @ x + w  # (2)
    return (s + w * prior) / n  # (3)


# --- solution ---


def fitted_stiffness_vjp(x, m, prior, w, adj_k):
    """Return adj_x, adj_m, adj_prior, adj_w."""
    s = G * (x @ m)
    n = x @ x + w
    k = (s + w * prior) / n
    # (3) k = (s + w prior) / n
    adj_s = adj_k / n
    adj_prior = w / n * adj_k
    adj_w = prior / n * adj_k
    adj_n = -k / n * adj_k
    # (2) n = x . x + w
    adj_x = 2.0 * adj_n * x
    adj_w = adj_w + adj_n
    # (1) s = g x . m
    adj_x = adj_x + G * adj_s * m
    adj_m = G * adj_s * x
    return adj_x, adj_m, adj_prior, adj_w


# --- grading ---


def inputs(rng):
    x = rng.uniform(0.5, 1.5, 4)
    m = rng.uniform(0.5, 1.5, 4)
    return {"x": x, "m": m, "prior": rng.uniform(5.0, 20.0), "w": rng.uniform(0.5, 2.0)}


MISTAKES = [
    ("factor", 3, "adj_prior = w / n", "adj_prior = 1.0 / n", "The prior has the weight w."),
    ("sign", 3, "adj_n = -k / n * adj_k", "adj_n = k / n * adj_k", "A larger n divides more."),
    ("factor", 3, "adj_n = -k / n * adj_k", "adj_n = -k * adj_k", "Divide by n twice."),
    ("factor", 2, "2.0 * adj_n * x", "adj_n * x", "A square brings down a 2."),
    ("overwritten", 2, "adj_w = adj_w + adj_n", "adj_w = adj_n", "w is used in (3), too."),
    ("overwritten", 1, "adj_x = adj_x + G", "adj_x = G", "x is used in (2), too."),
    ("swapped", 1, "adj_m = G * adj_s * x", "adj_m = G * adj_s * m"),
    ("factor", 1, "adj_m = G * adj_s * x", "adj_m = adj_s * x"),
]
