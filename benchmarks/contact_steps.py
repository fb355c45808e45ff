"""How long steps are where bodies touch: `python -m benchmarks.contact_steps [--data docs/data]`.

Each scene moves in the step that is chosen, and in steps 8 times as short, which its vertices are
compared with. Stable is what the tangent of the forces asks for at 33 instants
(`adjsim/measured_rate.py`), the estimate what bounds of everything that might touch ask for. Boxes
move in MuJoCo as well, where it is installed, in its own step of 2 ms: one step there solves for
all contact forces at once, and it has no gradient by parameters of contact.
"""

import importlib
import importlib.util
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer

from adjsim.model import Model
from benchmarks.publish import in_markdown, record
from studies.problem.contact_steps import stable_step
from studies.problem.forward import motion_through
from studies.scene.building import BuiltScene, build
from studies.scene.declared import Cloth, Contact, Held, PlaneObstacle, Rigid, Scene
from studies.scene.files import find_scene
from studies.scene.reading import read_scene


N_TIMES, FINER = 33, 8
HEADER = [
    "scene", "estimate [s]", "chosen [s]", "stable [s]", "steps", "CPU [s]", "µs a step",
    "error [mm]", "at the end [mm]", "MuJoCo, CPU [s]",
]  # fmt: skip


def stack() -> Scene:
    """Return five boxes of 1 kg on each other."""
    places = ((0.0, 0.0), (4e-3, -2e-3), (-3e-3, 3e-3), (2e-3, -4e-3), (-5e-3, 1e-3))
    boxes = {
        f"box_{i}": Rigid(
            mesh="box", size=(0.1, 0.1, 0.1), position=(x, 0.052 + 0.1015 * i, z), density=1000.0
        )
        for i, (x, z) in enumerate(places)
    }
    touch = {
        f"touch_{i}": Contact(between=(f"box_{i}", f"box_{i + 1}"), friction=0.5)
        for i in range(len(places) - 1)
    }
    return Scene(bodies={**boxes}, obstacles={"floor": PlaneObstacle(friction=0.5)}, contacts=touch)


def plank(cells: tuple[int, int, int]) -> Scene:
    """Return a plank that falls on two bars."""
    bars = {
        name: Rigid(mesh="box", size=(0.04, 0.04, 0.2), position=(x, 0.022, 0.0), density=1000.0)
        for name, x in (("left", -0.2), ("right", 0.2))
    }
    board = Rigid(
        mesh="box", size=(0.6, 0.02, 0.1), cells=cells, position=(0.03, 0.06, 0.01), density=600.0
    )
    touch = {f"on_{name}": Contact(between=(name, "plank"), friction=0.5) for name in bars}
    return Scene(
        bodies={**bars, "plank": board},
        obstacles={"floor": PlaneObstacle(friction=0.5)},
        contacts=touch,
    )


def ball_on_cloth() -> Scene:
    """Return a rigid ball that falls on a cloth, which two of its sides hold."""
    cloth = Cloth(
        mesh="sheet", size=(0.4, 0.4), cells=(12, 12), rotation=(-90.0, 0.0, 0.0), E=5e4,
        thickness=2e-3, density=300.0, viscosity=10.0, held=Held(nodes=EDGES),
    )  # fmt: skip
    ball = Rigid(mesh="ball", size=(0.05,), cells=(3,), position=(0.01, 0.09, 0.005), density=300.0)
    touch = Contact(between=("cloth", "ball"), friction=0.3)
    return Scene(bodies={"cloth": cloth, "ball": ball}, contacts={"touch": touch})


EDGES = tuple(range(13)) + tuple(range(156, 169))  # rows of nodes
SCENES: dict[str, tuple[Callable[[], Scene], float]] = {  # and until when [s]
    "five boxes in a stack": (stack, 2.0),
    "plank on two bars": (lambda: plank((4, 1, 1)), 1.0),
    "the same, 20 × 1 × 2 cells": (lambda: plank((20, 1, 2)), 1.0),
    "ball on a held cloth": (ball_on_cloth, 0.5),
    "draped-cloth": (lambda: read_scene(find_scene("draped-cloth")), 0.45),
}


def moved(
    built: BuiltScene, end: float, dt: float | None
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Return the vertices of a motion, and numbers of it."""
    times = np.linspace(0.0, end, N_TIMES)
    motion, at = motion_through(built, times, dt, {})
    motion = replace(motion, threads=1)
    start = time.process_time()
    run = motion.run()
    spent = time.process_time() - start
    surfaces = {k: at.at(subject.vertices(motion, run)) for k, subject in built.subjects.items()}
    stable = stable_step(motion, run)
    return surfaces, {"dt": motion.dt, "n": motion.n_steps, "cpu": spent, "stable": stable}


def mujoco_seconds(scene: Scene, end: float) -> str:
    """Return the processor seconds of the same boxes in MuJoCo, a dash where it has no such body.

    The shortest of three motions, after one that is not counted.
    """
    boxes = {
        name: body
        for name, body in scene.bodies.items()
        if isinstance(body, Rigid) and body.mesh == "box"
    }
    if importlib.util.find_spec("mujoco") is None or len(boxes) < len(scene.bodies):
        return "–"
    mujoco: Any = importlib.import_module("mujoco")
    spec = mujoco.MjSpec()
    spec.option.gravity = scene.world.gravity
    floor = {"type": mujoco.mjtGeom.mjGEOM_PLANE, "size": [0, 0, 1], "quat": [1, -1, 0, 0]}
    friction = next(iter(scene.contacts.values())).friction
    spec.worldbody.add_geom(friction=[friction, 0.0, 0.0], **floor)
    for name, box in boxes.items():
        body = spec.worldbody.add_body(name=name, pos=box.position)
        body.add_freejoint()
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX, size=0.5 * np.array(box.size), density=box.density,
            friction=[friction, 0.0, 0.0],
        )  # fmt: skip
    model, spent = spec.compile(), []
    for _ in range(4):
        data, start = mujoco.MjData(model), time.process_time()
        while data.time < end:
            mujoco.mj_step(model, data)
        spent.append(time.process_time() - start)
    return f"{min(spent[1:]):.2g}"


def row_of(name: str) -> list[str]:
    """Return what a scene comes to, in words."""
    make, end = SCENES[name]
    scene = make()
    built = build(scene)
    estimate = cast("Model", built.system).stable_dt()
    surfaces, numbers = moved(built, end, None)
    finer, _ = moved(built, end, numbers["dt"] / FINER)
    apart = np.max(
        [np.linalg.norm(x - finer[key], axis=2).max(axis=1) for key, x in surfaces.items()], axis=0
    )
    return [
        name,
        *(f"{v:.2g}" for v in (estimate, numbers["dt"], numbers["stable"])),
        f"{numbers['n']}", f"{numbers['cpu']:.2g}", f"{1e6 * numbers['cpu'] / numbers['n']:.1f}",
        f"{1e3 * apart.max():.2g}", f"{1e3 * apart[-1]:.2g}",
        mujoco_seconds(scene, end),
    ]  # fmt: skip


def main(
    scenes: Annotated[list[str] | None, typer.Argument(help=", ".join(SCENES))] = None,
    data: Annotated[Path | None, typer.Option(help="Write contact-steps.json there.")] = None,
) -> None:
    """Print the steps of scenes whose bodies touch."""
    table = [HEADER, *(row_of(name) for name in scenes or SCENES)]
    typer.echo(in_markdown(table))
    if data is not None:
        command = "python -m benchmarks.contact_steps --data docs/data"
        record(data, "contact-steps", {"table": table}, command)


if __name__ == "__main__":
    typer.run(main)
