"""The stiffness of the chain by optax."""

import jax
import numpy as np
import optax
from chain import RUN, X, measured, model

from adjoint.bridges.jax import rollout
from adjsim import State


jax.config.update("jax_enable_x64", True)
swing = rollout(model, State(X), **RUN)


def loss(log_stiffness):
    """Return the mean square distance to where the chain was."""
    return (
        (swing({"springs.stiffness": jax.numpy.exp(log_stiffness)})["x"] - measured) ** 2
    ).mean()


def found(n_steps):
    """Return the stiffness after some steps of Adam [N/m]."""
    adam, theta = optax.adam(0.05), jax.numpy.asarray(np.log(100.0))
    state, slope = adam.init(theta), jax.jit(jax.grad(loss))
    for _ in range(n_steps):
        step, state = adam.update(slope(theta), state)
        theta = optax.apply_updates(theta, step)
    return float(jax.numpy.exp(theta))


if __name__ == "__main__":
    print(f"{found(100):.2f} N/m (true: 60)")
