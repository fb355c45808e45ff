"""An equilibrium found by Newton's method.

A mass hangs on a spring that hardens: k x + c x^3 = f. However the root was found, it obeys the
equation, and that is what is differentiated (the implicit function theorem): the iterations of line
(1) are not undone.
"""


def equilibrium(k, c, f):
    """Return the root x of k x + c x^3 - f."""
    x = 0.0
    for _ in range(50):
        x = x - (k * x + c * x**3 - f) / (k + 3.0 * c * x**2)  # (1)
    return x


# --- solution ---


def equilibrium_vjp(k, c, f, adj_x):
    """Return adj_k, adj_c, adj_f."""
    x = equilibrium(k, c, f)
    # (1) k x + c x^3 = f
    adj_f = adj_x / (k + 3.0 * c * x**2)
    adj_k = -x * adj_f
    adj_c = -(x**3) * adj_f
    return adj_k, adj_c, adj_f


# --- grading ---


def inputs(rng):
    return {"k": rng.uniform(1.0, 2.0), "c": rng.uniform(0.5, 2.0), "f": rng.uniform(1.0, 9.0)}


MISTAKES = [
    ("sign", 1, "adj_k = -x", "adj_k = x", "A stiffer spring gives way less."),
    ("sign", 1, "adj_c = -(x", "adj_c = (x", "A stiffer spring gives way less."),
    ("dropped", 1, "(k + 3.0 * c * x**2)", "k", "Linearise at the root, not at 0."),
    ("factor", 1, "(k + 3.0 * c * x**2)", "(k + c * x**2)", "That is f / x, not the slope."),
    ("factor", 1, "adj_x / (k + 3.0 * c * x**2)", "adj_x * (k + 3.0 * c * x**2)", "Divide by it."),
    ("stale", 1, "x = equilibrium(k, c, f)", "x = f / k", "That is the first iterate."),
    ("factor", 1, "-(x**3) * adj_f", "-3.0 * x**2 * adj_f", "Differentiate by c, not by x."),
]
