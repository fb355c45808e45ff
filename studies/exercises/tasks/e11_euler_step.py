"""One step of semi-implicit Euler.

A mass on a spring that hardens, f = -k x^3. The new velocity comes first and moves the position.
Chapter 1 has the same three lines; chapter 3 asks what a thousand of them cost to undo.
"""

DT = 0.1


def euler_step(x, v, k, m):
    """Return the position x1 and velocity v1 after one step, (3,) each."""
    f = -k * x**3  # (1)
    v1 = v + DT * f / m  # (2)
    x1 = x + DT * v1  # (3)
    return x1, v1


# --- solution ---


def euler_step_vjp(x, v, k, m, adj_x1, adj_v1):
    """Return adj_x, adj_v, adj_k, adj_m."""
    f = -k * x**3
    # (3) x1 = x + dt v1
    adj_x = adj_x1
    adj_v1 = adj_v1 + DT * adj_x1
    # (2) v1 = v + dt f / m
    adj_v = adj_v1
    adj_f = DT / m * adj_v1
    adj_m = -DT * (f @ adj_v1) / m**2
    # (1) f = -k x^3
    adj_x = adj_x - 3.0 * k * x**2 * adj_f
    adj_k = -((x**3) @ adj_f)
    return adj_x, adj_v, adj_k, adj_m


# --- grading ---


def inputs(rng):
    x, v = rng.normal(size=(2, 3))
    return {"x": x, "v": v, "k": rng.uniform(5.0, 9.0), "m": rng.uniform(0.5, 2.0)}


MISTAKES = [
    ("dropped", 3, "adj_v1 = adj_v1 + DT * adj_x1", "pass", "x1 is moved by v1."),
    ("overwritten", 3, "adj_v1 + DT * adj_x1", "DT * adj_x1", "v1 is a result, too."),
    ("overwritten", 1, "adj_x - 3.0 * k", "-3.0 * k", "x is used in (3), too."),
    ("sign", 1, "adj_x - 3.0 * k", "adj_x + 3.0 * k", "The force pulls back."),
    ("sign", 2, "adj_m = -DT", "adj_m = DT", "A larger mass moves less."),
    ("factor", 2, "adj_f = DT / m", "adj_f = DT"),
    ("factor", 1, "3.0 * k * x**2", "k * x**2", "The exponent comes down."),
]
