"""A quotient.

A quotient keeps itself in its derivative: with q = a / b, the derivative by b is -q / b. Write it
that way, and nothing is squared.
"""


def quotient(a, b):
    """Return q = a / b."""
    return a / b  # (1)


# --- solution ---


def quotient_vjp(a, b, adj_q):
    """Return adj_a, adj_b."""
    q = a / b
    # (1) q = a / b
    adj_a = adj_q / b
    adj_b = -q * adj_q / b
    return adj_a, adj_b


# --- grading ---


def inputs(rng):
    return {"a": rng.normal(), "b": rng.uniform(0.5, 2.0)}


MISTAKES = [
    ("sign", 1, "-q * adj_q / b", "q * adj_q / b"),
    ("factor", 1, "-q * adj_q / b", "-q * adj_q", "The denominator counts twice: a / b^2."),
    ("factor", 1, "-q * adj_q / b", "-adj_q / b", "The numerator is missing."),
    ("factor", 1, "adj_a = adj_q / b", "adj_a = adj_q * b", "Divide, as the forward line does."),
    ("dropped", 1, "-q * adj_q / b", "0.0 * b", "The denominator acts, too."),
    ("swapped", 1, "adj_a, adj_b\n", "adj_b, adj_a\n"),
]
