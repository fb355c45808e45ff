"""Bundled controls at sizes at which they run in a second or two."""

from studies.problem.making import make_problem
from studies.scene.drawing import instance_of
from studies.scene.files import BUNDLED
from studies.scene.reading import read_scene


SMALL = "observations.target.simulate={ height = 24, width = 32, frames = 1 }"
TOYS = {
    "control-walker": (
        SMALL,
        "bodies.walker.actuation.sines=3",
        "world.duration=0.25",
        "truth.walker.position=[0.1, -0.00931, 0.0]",
        "free.walker.policy.start={ normal = 0.005, shape = [108, 3] }",
        "search.levels=3",
    ),
    "control-fem": (
        SMALL,
        SMALL.replace("target", "outline"),
        "bodies.gear.actuation.sines=2",
        "world.duration=0.1",
        "truth.gear.position=[-3.7, 2.5, 0.0]",
        "free.gear.policy.start={ normal = 0.01, shape = [1152, 2] }",
        "search.levels=4",
    ),
    "control-cloth": (
        SMALL,
        "bodies.cloth.cells=[3, 3]",
        "world.duration=0.5",
        "cameras.front.eye=[-4.0, 1.5, 5.0]",
        "cameras.front.target=[-4.0, 1.5, 0.0]",
        "search.levels=5",
    ),
    "control-arm": (
        SMALL,
        SMALL.replace("target", "view"),
        "world.duration=0.3",
        "free.root.motor.start=3.0",
        "search.levels=4",
    ),
    "control-jellyfish": (
        SMALL,
        "bodies.jellyfish.bending_actuation.sines=3",
        "world.dt=4e-3",
        "world.duration=0.4",
        "free.jellyfish.bending_policy.start={ normal = 0.1, shape = [240, 3] }",
        "search.levels=4",
    ),
}


def toy(name, *overrides):
    """Return the scene file of a toy, with numbers that are still to be drawn."""
    return read_scene(BUNDLED / f"{name}.toml", (*TOYS[name], *overrides))


def made(name, *overrides, seed=0):
    """Return an instance of a toy and its problem."""
    file = instance_of(toy(name, *overrides), seed)
    return file, make_problem(file)
