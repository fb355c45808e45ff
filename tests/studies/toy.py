"""A problem with a known answer: three exponentials sampled in time."""

import numpy as np

from studies.runs.errors import NotFiniteError


TRUTH = np.array([0.7, -0.4, 0.2])
TIMES = np.linspace(0.0, 2.0, 40)


class Decay:
    """r(theta) = (model(theta) - model(truth)) / sqrt(m), loss = r @ r."""

    dtype = "float64"

    def __init__(self, noise=0.0, wall=np.inf, box=(-np.inf, np.inf)):
        rng = np.random.default_rng(5)
        self.wall = wall
        self.bounds = np.full(3, box[0]), np.full(3, box[1])
        self.target = self.model(TRUTH) + noise * rng.normal(size=TIMES.size)

    def model(self, theta):
        a, b, c = theta
        return np.exp(a) * np.exp(-np.exp(b) * TIMES) + c * TIMES

    def residuals(self, theta):
        if np.abs(theta).max() > self.wall:
            raise NotFiniteError("blew up")
        return (self.model(theta) - self.target) / np.sqrt(TIMES.size)

    def residuals_and_jacobian(self, theta):
        a, b, _ = theta
        decay = np.exp(a) * np.exp(-np.exp(b) * TIMES)
        jacobian = np.stack([decay, -np.exp(b) * TIMES * decay, TIMES], axis=1)
        return self.residuals(theta), jacobian / np.sqrt(TIMES.size)

    def loss_and_gradient(self, theta):
        r, jacobian = self.residuals_and_jacobian(theta)
        return float(r @ r), 2.0 * jacobian.T @ r

    def values(self, theta):
        return {"toy.a": np.exp(theta[0]), "toy.bc": theta[1:]}
