"""`python -m benchmarks.implicit_steps`: what implicit steps cost beside semi-implicit ones.

A cantilever of soft tetrahedra, as in DiffPD (Du et al., ACM Trans. Graph. 41, 2021), that is let
go: seconds of processor time on one core, forward and for the gradient by every parameter of the
material.
"""

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import typer

from adjoint.rollout import record
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.steps.implicit import ImplicitEuler


CELL, DENSITY, NU = 0.01, 1000.0, 0.45  # [m], [kg/m^3]
FRAME, N_FRAMES = 0.01, 25  # [s]
PART_OF_STABLE = 0.95
WRT = ("beam.mu", "beam.lam", "state.v")


def cantilever(E: float, cells: Sequence[int]) -> tuple[Model, State]:
    """Return a beam of so many cells that is held at one end, at rest."""
    mesh = box_tets(tuple(cells), tuple(CELL * n for n in cells))
    mu, lam = E / (2.0 * (1.0 + NU)), E * NU / ((1.0 + NU) * (1.0 - 2.0 * NU))
    beam = NeoHookeanTets(mesh.tets, mesh.points, mu, lam, density=DENSITY)
    return Model(None, {"beam": beam}, pinned=mesh.points[:, 0] < 1e-9), State(mesh.points)


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work [s]."""
    start = time.process_time()
    work()
    return time.process_time() - start


def costs(model: Model, state: State, dt: float, n_steps: int, **how: Any) -> tuple[float, float]:
    """Return the seconds of a rollout and of its gradient, kernels compiled."""
    found, kept = [], record(model, state, dt, 1, threads=1, **how)
    kept.vjp(np.ones_like(kept.trajectory.x), wrt=WRT)

    def forward() -> None:
        found.append(record(model, state, dt, n_steps, threads=1, **how))

    ahead = seconds(forward)
    run = found[0]
    return ahead, seconds(lambda: run.vjp(np.ones_like(run.trajectory.x), wrt=WRT))


def compare(
    *,
    cells: Annotated[str, typer.Option(help="Cells along the three axes.")] = "32,8,8",
    moduli: Annotated[str, typer.Option(help="Young's moduli [Pa].")] = "1e6,1e9",
) -> None:
    """Print a table: a row for each stiffness."""
    typer.echo("Seconds forward / gradient.\n| E [Pa] | semi-implicit | implicit, a step a frame |")
    typer.echo("|---|---|---|")
    for E in map(float, moduli.split(",")):
        model, state = cantilever(E, [int(n) for n in cells.split(",")])
        per_frame = int(np.ceil(FRAME / (PART_OF_STABLE * model.stable_dt_of_nodes())))
        explicit = costs(model, state, FRAME / per_frame, per_frame * N_FRAMES, checkpoint="1GB")
        implicit = costs(model, state, FRAME, N_FRAMES, step=ImplicitEuler())
        both = [f"{ahead:.2g} / {back:.2g}" for ahead, back in (explicit, implicit)]
        typer.echo(f"| {E:g} | {both[0]}, {per_frame} steps a frame | {both[1]} |")


if __name__ == "__main__":
    typer.run(compare)
