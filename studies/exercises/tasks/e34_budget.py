"""The standard deviation of an answer.

Weights of masses m stretch a spring by x, and its stiffness k is fitted without a prior. The scale
of the lengths and that of the masses are known up to relative errors: 1 % of either changes k by
1 %. With the noise of the forces their variances add to that of k. The cotangents of noise,
scale_error and mass_error say what to measure better (chapter 12).
"""

import numpy as np


G = 9.81


def deviation(x, m, noise, scale_error, mass_error):
    """Return the standard deviation of the stiffness, for lengths x (4,) and masses m (4,)."""
    n = x @ x  # (1)
    k = G * (x @ m) / n  # (2)
    a = noise / np.sqrt(n)  # (3)
    b = k * scale_error  # (4)
    c = k * mass_error  # (5)
    return np.sqrt(a * a + b * b + c * c)  # (6)


# --- solution ---


def deviation_vjp(x, m, noise, scale_error, mass_error, adj_sd):
    """Return adj_x, adj_m, adj_noise, adj_scale_error, adj_mass_error."""
    n = x @ x
    k = G * (x @ m) / n
    a = noise / np.sqrt(n)
    b = k * scale_error
    c = k * mass_error
    sd = np.sqrt(a * a + b * b + c * c)
    # (6) sd = sqrt(a^2 + b^2 + c^2)
    adj_a = a / sd * adj_sd
    adj_b = b / sd * adj_sd
    adj_c = c / sd * adj_sd
    # (5) c = k mass_error
    adj_k = mass_error * adj_c
    adj_mass_error = k * adj_c
    # (4) b = k scale_error
    adj_k = adj_k + scale_error * adj_b
    adj_scale_error = k * adj_b
    # (3) a = noise / sqrt(n)
    adj_noise = adj_a / np.sqrt(n)
    adj_n = -0.5 * a / n * adj_a
    # (2) k = g x . m / n
    adj_x = G / n * adj_k * m
    adj_m = G / n * adj_k * x
    adj_n = adj_n - k / n * adj_k
    # (1) n = x . x
    adj_x = adj_x + 2.0 * adj_n * x
    return adj_x, adj_m, adj_noise, adj_scale_error, adj_mass_error


# --- grading ---


def inputs(rng):
    x = rng.uniform(0.5, 1.5, 4)
    m = rng.uniform(0.5, 1.5, 4)
    errors = rng.uniform(0.05, 0.2, 2)
    noise = rng.uniform(1.0, 3.0)
    return {"x": x, "m": m, "noise": noise, "scale_error": errors[0], "mass_error": errors[1]}


MISTAKES = [
    ("factor", 6, "adj_a = a / sd * adj_sd", "adj_a = 2.0 * a * adj_sd", "Undo the root, too."),
    ("factor", 6, "adj_b = b / sd * adj_sd", "adj_b = adj_sd", "Variances add, deviations do not."),
    ("overwritten", 4, "adj_k = adj_k + scale", "adj_k = scale", "k is used in (5), too."),
    ("factor", 3, "-0.5 * a / n", "-a / n", "The slope of a root is a half."),
    ("sign", 3, "-0.5 * a / n", "0.5 * a / n", "More lengths make less noise."),
    ("overwritten", 2, "adj_n = adj_n - k", "adj_n = -k", "n is used in (3), too."),
    ("swapped", 2, "adj_x = G / n * adj_k * m", "adj_x = G / n * adj_k * x"),
    ("factor", 1, "adj_x + 2.0 * adj_n * x", "adj_x + adj_n * x", "A square brings down a 2."),
    ("overwritten", 1, "adj_x = adj_x + 2.0", "adj_x = 2.0", "x is used in (2), too."),
]
