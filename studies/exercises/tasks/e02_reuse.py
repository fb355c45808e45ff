"""A value that is used twice.

u is used in line (2) and again in line (3), and so are x and y. Every use sends a cotangent back,
and they are added: that is what += stands for in adj_x += (dg/dx)^T adj_y.
"""


def reuse(x, y):
    """Return z = u v."""
    u = x * y  # (1)
    v = u + x  # (2)
    return u * v  # (3)


# --- solution ---


def reuse_vjp(x, y, adj_z):
    """Return adj_x, adj_y."""
    u = x * y
    v = u + x
    # (3) z = u v
    adj_u = v * adj_z
    adj_v = u * adj_z
    # (2) v = u + x
    adj_u = adj_u + adj_v
    adj_x = adj_v
    # (1) u = x y
    adj_x = adj_x + y * adj_u
    adj_y = x * adj_u
    return adj_x, adj_y


# --- grading ---


def inputs(rng):
    return {"x": rng.normal(), "y": rng.normal()}


MISTAKES = [
    ("overwritten", 2, "adj_u = adj_u + adj_v", "adj_u = adj_v", "u also acts through (3)."),
    ("dropped", 2, "adj_u = adj_u + adj_v", "adj_u = adj_u", "u also acts through v."),
    ("overwritten", 1, "adj_x + y * adj_u", "y * adj_u", "x also acts through (2)."),
    ("swapped", 3, "adj_u = v * adj_z", "adj_u = u * adj_z"),
    ("swapped", 3, "adj_v = u * adj_z", "adj_v = v * adj_z"),
    ("sign", 1, "adj_y = x", "adj_y = -x"),
]
