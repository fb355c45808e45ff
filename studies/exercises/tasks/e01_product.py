"""A product of two numbers.

The rule of the whole course: where y = g(x) is a line of the program, the cotangent of x is

    adj_x += (dg/dx)^T adj_y .

Here y = a b. What does y change by when a changes by 1? And when b does?
"""


def product(a, b):
    """Return y = a b."""
    return a * b  # (1)


# --- solution ---


def product_vjp(a, b, adj_y):
    """Return adj_a, adj_b."""
    # (1) y = a b
    adj_a = b * adj_y
    adj_b = a * adj_y
    return adj_a, adj_b


# --- grading ---


def inputs(rng):
    return {"a": rng.normal(), "b": rng.normal()}


MISTAKES = [
    ("sign", 1, "adj_a = b", "adj_a = -b"),
    ("sign", 1, "adj_b = a", "adj_b = -a"),
    ("swapped", 1, "adj_a, adj_b\n", "adj_b, adj_a\n", "The factor of adj_a is the other number."),
    ("factor", 1, "b * adj_y", "b", "A vjp is linear: it multiplies by the cotangent."),
    ("factor", 1, "a * adj_y", "a * adj_y / 2"),
    ("dropped", 1, "adj_b = a * adj_y", "adj_b = 0.0", "b is a factor, too."),
]
