"""Neo-Hookean energy density.

The energy of chapter 1's tetrahedra, without the constant. adj_F for adj_psi = 1 is the stress P:
a force is itself an adjoint. dI/dF = 2 F, and dJ/dF is the matrix of cofactors, J F^-T.
"""

import numpy as np


def neo_hookean(F, mu, lam):
    """Return the energy density psi [J/m^3]."""
    I = (F * F).sum()  # (1)
    J = np.linalg.det(F)  # (2)
    a = 1.0 + 0.75 * mu / lam  # (3)
    return 0.5 * mu * (I - np.log(I + 1.0)) + 0.5 * lam * (J - a) ** 2  # (4)


# --- solution ---


def neo_hookean_vjp(F, mu, lam, adj_psi):
    """Return adj_F, adj_mu, adj_lam."""
    I = (F * F).sum()
    J = np.linalg.det(F)
    a = 1.0 + 0.75 * mu / lam
    # (4) psi = mu (I - log(I + 1)) / 2 + lam (J - a)^2 / 2
    adj_I = 0.5 * mu * (1.0 - 1.0 / (I + 1.0)) * adj_psi
    adj_J = lam * (J - a) * adj_psi
    adj_a = -lam * (J - a) * adj_psi
    adj_mu = 0.5 * (I - np.log(I + 1.0)) * adj_psi
    adj_lam = 0.5 * (J - a) ** 2 * adj_psi
    # (3) a = 1 + 0.75 mu / lam
    adj_mu = adj_mu + 0.75 / lam * adj_a
    adj_lam = adj_lam - 0.75 * mu / lam**2 * adj_a
    # (2) J = det F
    adj_F = adj_J * J * np.linalg.inv(F).T
    # (1) I = F : F
    adj_F = adj_F + 2.0 * adj_I * F
    return adj_F, adj_mu, adj_lam


# --- grading ---


def inputs(rng):
    F = np.eye(3) + rng.normal(scale=0.2, size=(3, 3))
    return {"F": F, "mu": rng.uniform(1.0, 3.0), "lam": rng.uniform(4.0, 9.0)}


MISTAKES = [
    ("dropped", 3, "adj_mu = adj_mu + 0.75 / lam * adj_a", "pass", "a depends on mu."),
    ("dropped", 3, "adj_lam = adj_lam - 0.75 * mu / lam**2 * adj_a", "pass", "a depends on lam."),
    ("transpose", 2, "np.linalg.inv(F).T", "np.linalg.inv(F)", "Cofactors are J F^-T."),
    ("factor", 1, "2.0 * adj_I * F", "adj_I * F", "I is a sum of squares."),
    ("factor", 2, "adj_J * J * np", "adj_J * np", "Cofactors are J F^-T."),
    ("overwritten", 1, "adj_F + 2.0 * adj_I * F", "2.0 * adj_I * F", "F is used in (2), too."),
    ("dropped", 4, "(1.0 - 1.0 / (I + 1.0))", "1.0", "The logarithm has a slope, too."),
]
