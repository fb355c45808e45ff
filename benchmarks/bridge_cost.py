"""`python -m benchmarks.bridge_cost torch|jax`: what a bridge adds to a rollout and a gradient.

1 000 tetrahedra, 1 000 steps; the same with `adjsim.rollout`, `adjoint.record` and `vjp` in the
same rounds. Ratios of the least processor times.
"""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, Literal

import numpy as np
import typer

from adjoint.rollout import record
from adjsim.rollout import rollout
from benchmarks.timing.scenes import make_block


N_STEPS, EVERY = 1000, 50
MU = 1e4  # [Pa]


def calls(which: str) -> dict[str, tuple[Callable[[float], object], Callable[[float], object]]]:
    """Return rollout and gradient as functions of mu, each plain and through the bridge."""
    block = make_block(1000, has_floor=False)
    path, dt = "block.mu", 0.3 * block.model.stable_dt()
    how: dict[str, Any] = {"frames": range(0, N_STEPS + 1, EVERY)}
    bridge = import_module(f"adjoint.bridges.{which}")
    through = bridge.rollout(block.model, block.state, dt, N_STEPS, **how)

    def plain(mu: float) -> object:
        return rollout(*block.model.with_values(block.state, {path: mu}), dt, N_STEPS, **how)

    def plain_gradient(mu: float) -> object:
        run = record(*block.model.with_values(block.state, {path: mu}), dt, N_STEPS, **how)
        return run.vjp(run.trajectory.x, wrt=[path])

    def loss(values: Any) -> Any:
        return 0.5 * (through(values)["x"] ** 2).sum()

    if which == "torch":
        torch = import_module("torch")
        torch.set_num_threads(1)

        def tensor(mu: float, *, wants_gradient: bool) -> Any:
            return torch.tensor(mu, dtype=torch.float64, requires_grad=wants_gradient)

        def forward(mu: float) -> object:
            return through({path: tensor(mu, wants_gradient=False)})["x"]

        def gradient(mu: float) -> object:
            values = tensor(mu, wants_gradient=True)
            return torch.autograd.grad(loss({path: values}), values)
    else:
        jax = import_module("jax")
        jax.config.update("jax_enable_x64", True)
        run, slope = jax.jit(lambda values: through(values)["x"]), jax.jit(jax.grad(loss))

        def forward(mu: float) -> object:
            return jax.block_until_ready(run({path: jax.numpy.asarray(mu)}))

        def gradient(mu: float) -> object:
            return jax.block_until_ready(slope({path: jax.numpy.asarray(mu)}))

    return {"rollout": (plain, forward), "gradient": (plain_gradient, gradient)}


def compare(
    which: Annotated[Literal["torch", "jax"], typer.Argument(help="The bridge.")],
    *,
    rounds: Annotated[int, typer.Option(min=2, help="How often each is timed.")] = 80,
) -> None:
    """Print a line each for rollout and gradient."""
    for name, pair in calls(which).items():
        times: tuple[list[float], list[float]] = ([], [])
        for k in range(rounds + 1):  # in turns; another value each time, the first one compiles
            for i in (0, 1) if k % 2 else (1, 0):
                start = time.process_time()
                pair[i](MU + k)
                times[i].append(time.process_time() - start)
        alone, bridged = (1e3 * float(np.min(seconds[1:])) for seconds in times)
        typer.echo(f"{name}: {alone:.2f} ms, with {which} {bridged:.2f} ms, {bridged / alone:.3f}")


if __name__ == "__main__":
    typer.run(compare)
