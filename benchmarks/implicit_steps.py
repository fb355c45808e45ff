"""`python -m benchmarks.implicit_steps`: what implicit steps cost beside semi-implicit ones.

A cantilever of soft tetrahedra, as in DiffPD (Du et al., ACM Trans. Graph. 41, 2021), that is let
go, and two bars in joints: seconds of processor time on one core, forward and for the gradient.
"""

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import typer

from adjoint.rollout import record
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.joints.joint import WeldJoint, frames_at
from adjsim.joints.pins import Pins
from adjsim.meshes.grid import box_tets
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.steps.implicit import ImplicitEuler


CELL, DENSITY, NU = 0.01, 1000.0, 0.45  # [m], [kg/m^3]
FRAME, N_FRAMES = 0.01, 25  # [s]
PART_OF_STABLE = 0.95
WRT = {"beam": ("beam.mu", "beam.lam", "state.v"), "wall": ("wall.stiffness", "bars.velocity")}


def cantilever(E: float, cells: Sequence[int]) -> tuple[Model, State]:
    """Return a beam of so many cells that is held at one end, at rest."""
    mesh = box_tets(tuple(cells), tuple(CELL * n for n in cells))
    mu, lam = E / (2.0 * (1.0 + NU)), E * NU / ((1.0 + NU) * (1.0 - 2.0 * NU))
    beam = NeoHookeanTets(mesh.tets, mesh.points, mu, lam, density=DENSITY)
    return Model(None, {"beam": beam}, pinned=mesh.points[:, 0] < 1e-9), State(mesh.points)


def bars(stiffness: float) -> tuple[Model, State]:
    """Return two bars that stick out from a wall in stiff joints [N/m], a weight at their end."""
    grid, k = box_tets((1, 1, 1), (0.2, 0.02, 0.02)), 1e-3 * stiffness
    pair = RigidBodies([TriangleMesh(grid.points, grid.surface().faces)] * 2, density=800.0)
    start, joints = BodyState([[0.1, 0.0, 0.0], [0.3, 0.0, 0.0]]), {}
    for name, between, at in (("wall", (None, "bars.0"), 0.0), ("weld", ("bars.0", "bars.1"), 0.2)):
        frames = frames_at([between], {"bars": start}, [[at, 0.0, 0.0]], [[0.0, 0.0, 1.0]])
        joints[name] = WeldJoint(
            [between], **frames, stiffness=stiffness, damping=k, angular_stiffness=k,
            angular_damping=2e-3 * k,
        )  # fmt: skip
    end = int(pair.point_ptr[1] + np.argmax(pair.arms[pair.point_ptr[1] :, 0]))
    pin = Pins([(0, 1 + end)], 10.0 * k, 0.1 * k, acts_on=("nodes", "bars"))
    weight = start.position[1:] + pair.arms[end]
    model = Model([0.05], joints | {"pin": pin}, bodies={"bars": pair})
    return model, State(weight, bodies={"bars": start})


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work [s]."""
    start = time.process_time()
    work()
    return time.process_time() - start


def costs(model: Model, state: State, dt: float, n_steps: int, **how: Any) -> tuple[float, float]:
    """Return the seconds of a rollout and of its gradient, kernels compiled."""
    wrt = WRT[next(iter(model.forces))]
    runs, kept = [], record(model, state, dt, 1, threads=1, **how)
    kept.vjp(np.ones_like(kept.trajectory.x), wrt=wrt)

    def forward() -> None:
        runs.append(record(model, state, dt, n_steps, threads=1, **how))

    ahead = seconds(forward)
    run = runs[0]
    return ahead, seconds(lambda: run.vjp(np.ones_like(run.trajectory.x), wrt=wrt))


def compare(
    *,
    cells: Annotated[str, typer.Option(help="Cells along the three axes.")] = "32,8,8",
    moduli: Annotated[str, typer.Option(help="Young's moduli [Pa].")] = "1e6,1e9",
    joints: Annotated[str, typer.Option(help="Stiffness of joints [N/m].")] = "2e4,2e6",
) -> None:
    """Print a table: a row for each stiffness."""
    typer.echo("Seconds forward / gradient.\n| | semi-implicit | implicit, a step a frame |")
    typer.echo("|---|---|---|")
    along = [int(n) for n in cells.split(",")]
    rows = [(f"E {E:g} Pa", cantilever(E, along)) for E in map(float, moduli.split(","))]
    rows += [(f"joints {k:g} N/m", bars(k)) for k in map(float, joints.split(","))]
    for name, (model, state) in rows:
        dt = model.stable_dt() if model.bodies else model.stable_dt_of_nodes()
        per_frame = int(np.ceil(FRAME / (PART_OF_STABLE * dt)))
        explicit = costs(model, state, FRAME / per_frame, per_frame * N_FRAMES, checkpoint="1GB")
        implicit = costs(model, state, FRAME, N_FRAMES, step=ImplicitEuler())
        both = [f"{ahead:.2g} / {back:.2g}" for ahead, back in (explicit, implicit)]
        typer.echo(f"| {name} | {both[0]}, {per_frame} steps a frame | {both[1]} |")


if __name__ == "__main__":
    typer.run(compare)
