"""Three steps in a loop.

The same step as before, three times. The reverse sweep walks backwards through time, and each step
needs the state from which *it* started: keep the states, or compute them again (chapter 3). What
every step owes to k is added up.
"""

DT, N_STEPS = 0.3, 3


def euler_loop(x, v, k):
    """Return position xn and velocity vn after N_STEPS steps, (2,) each."""
    for _ in range(N_STEPS):
        f = -k * x**3  # (1)
        v = v + DT * f  # (2)
        x = x + DT * v  # (3)
    return x, v


# --- solution ---


def euler_loop_vjp(x, v, k, adj_xn, adj_vn):
    """Return adj_x, adj_v, adj_k."""
    xs = [x]
    for _ in range(N_STEPS):
        v = v - DT * k * xs[-1] ** 3
        xs.append(xs[-1] + DT * v)
    adj_x, adj_v, adj_k = adj_xn, adj_vn, 0.0
    for step in reversed(range(N_STEPS)):
        start = xs[step]
        # (3) x = x + dt v
        adj_v = adj_v + DT * adj_x
        # (2) v = v + dt f
        adj_f = DT * adj_v
        # (1) f = -k x^3
        adj_x = adj_x - 3.0 * k * start**2 * adj_f
        adj_k = adj_k - (start**3) @ adj_f
    return adj_x, adj_v, adj_k


# --- grading ---


def inputs(rng):
    x, v = rng.normal(size=(2, 2))
    return {"x": x, "v": v, "k": rng.uniform(0.5, 1.5)}


MISTAKES = [
    ("stale", 1, "start = xs[step]", "start = xs[step + 1]", "That is where the step ended."),
    ("stale", 1, "start = xs[step]", "start = xs[0]", "Each step started from a state of its own."),
    (
        "stale",
        1,
        "start = xs[step]",
        "start = xs[-1]",
        "Each step started from a state of its own.",
    ),
    ("overwritten", 1, "adj_k = adj_k - (start", "adj_k = -(start", "Every step depends on k."),
    ("stale", 3, "reversed(range(N_STEPS))", "range(N_STEPS)", "Undo the last step first."),
    ("dropped", 3, "adj_v = adj_v + DT * adj_x", "pass", "The position is moved by v."),
    ("overwritten", 1, "adj_x = adj_x - 3.0", "adj_x = -3.0", "x is carried on by (3), too."),
]
