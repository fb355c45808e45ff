"""Gradient descent with momentum, and Adam: one gradient a step."""

from collections.abc import Callable

import numpy as np

from studies.search.optimizers.evaluations import Evaluator
from studies.search.optimizers.problem import Options, Status


Step = Callable[[np.ndarray], np.ndarray]


def descend(
    evaluator: Evaluator,
    theta: np.ndarray,
    step: Step,
    *,
    tolerance: float,
    bounds: tuple[np.ndarray, np.ndarray],
) -> Status:
    """Add steps to theta, clipped to the bounds, until the gradient has fallen enough.

    Converged once the norm of the gradient is at most `tolerance` times the first one.
    """
    target = None
    while True:
        evaluation = evaluator.gradient(theta)
        if evaluation.gradient is None:
            return Status.NOT_FINITE
        norm = float(np.linalg.norm(evaluation.gradient))
        target = tolerance * norm if target is None else target
        if norm <= target:
            return Status.CONVERGED
        theta = np.clip(theta + step(evaluation.gradient), *bounds)


def momentum_step(options: Options) -> Step:
    """Return the step of gradient descent with (heavy-ball) momentum.

    velocity <- momentum velocity - learning_rate gradient
    """
    velocity, rate = 0.0, options.learning_rate

    def step(gradient: np.ndarray) -> np.ndarray:
        nonlocal velocity, rate
        velocity = options.momentum * velocity - rate * gradient
        rate *= options.decay
        return velocity

    return step


def adam_step(options: Options) -> Step:
    """Return the step of Adam.

    Source: Kingma & Ba, ICLR 2015, algorithm 1, with its bias corrections.
    """
    mean, square, t = 0.0, 0.0, 0
    rate = options.learning_rate

    def step(gradient: np.ndarray) -> np.ndarray:
        nonlocal mean, square, t, rate
        t += 1
        mean = options.beta1 * mean + (1.0 - options.beta1) * gradient
        square = options.beta2 * square + (1.0 - options.beta2) * gradient**2
        mean_hat = mean / (1.0 - options.beta1**t)
        square_hat = square / (1.0 - options.beta2**t)
        move = -rate * mean_hat / (np.sqrt(square_hat) + options.epsilon)
        rate *= options.decay
        return move

    return step
