"""How long is a pendulum, how strong is gravity, how was it let go, and how fast does it rest?

    adjsim run pendulum
    adjsim run double-pendulum

A correct run ends with all of them within 1e-7 of the hidden values and a certificate that
passed. The length shows twice in the video: in how the pendulum swings, and in how it is drawn.
The mass shows in the damping only: beside a free damping it leaves no trace of its own, and the
report says so.
"""

from functools import partial
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.reduced.double_pendulum import DoublePendulum
from adjsim.reduced.pendulum import Pendulum, PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from render.pendulum import RodsAndBobs
from render.scene import Material, Mesh
from studies.errors import StudyError
from studies.filming import MeshFilming, make_filming
from studies.fit import Fit
from studies.instances import Bar, make_job
from studies.motion import Motion
from studies.parameters import Block, Parameters, block
from studies.registry import Job, RunOptions
from studies.rods import HangingRods
from studies.search.local import make_loss, make_search
from studies.settings import bounds_of, draw, require_chosen, require_positive
from studies.synthetic import film
from studies.timeline import frame_steps
from studies.transforms import Identity, Log
from studies.truth import Truth
from studies.video_problem import VideoProblem
from studies.wires import Wire, Wires


POSITIVE = ("length", "gravity", "damping", "mass")  # searched for in their logarithm
SIGNED = ("angle", "rate")
NAMES = (*POSITIVE, *SIGNED)
UNITS = {
    "length": "m", "gravity": "m/s2", "damping": "kg/s", "mass": "kg", "angle": "rad",
    "rate": "rad/s",
}  # fmt: skip
WIRES = Wires((Wire("angle", "state.angle"), Wire("rate", "state.rate")))
SCALES = {"angle": 1.0, "rate": 1.0}  # they may be 0: errors are told in rad and rad/s
BAR = 1e-7
# One colour for each link, without shade: faces that change their order leave no trace.
COLORS = np.array([[0.85, 0.35, 0.2], [0.2, 0.5, 0.8]])


def prepare(settings: dict[str, Any], options: RunOptions) -> Job:
    """Check the settings and return the search, or the searches of all instances.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    check_settings(settings)
    bars = {name: Bar(BAR) for name in settings["free"]}
    return make_job(settings, options, partial(make_fit, settings, options), bars)


def count_links(settings: dict[str, Any]) -> int:
    """Return how many rods hang on each other: one or two."""
    return len(settings["hidden"]["angle"])


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    links = count_links(settings)
    if links not in {1, 2}:
        raise StudyError(f"`hidden.angle` must hold one pair [low, high] or two, got {links}.")
    require_positive(settings, "pendulum", "bob_radius", "rod_radius")
    free = settings["free"]
    require_chosen("free", free, NAMES)
    for table in ("hidden", "start", "bounds"):
        for name in set(POSITIVE) & set(free):
            hint = "Or take it out of `free`."
            checks.positive(f"{table}.{name}", settings[table][name], hint=hint)


def make_fit(settings: dict[str, Any], options: RunOptions, instance: int) -> Fit:
    """Draw an instance, render its video, and return the search for its values."""
    rng = np.random.default_rng([options.seed, instance])
    hidden, start = drawn(settings, "hidden", rng), drawn(settings, "start", rng)
    free, links = settings["free"], count_links(settings)
    parameters = Parameters([free_block(settings, name, start[name]) for name in free], WIRES)
    motion, filming = make_motion(settings, options, hidden), make_pictures(settings, options)
    truth = film(filming, motion, {})
    problem = VideoProblem(motion, filming, parameters, make_loss(settings["loss"]), truth)
    return Fit(
        problem,
        make_search(settings["optimizer"]),
        options,
        title=f"A {'double ' if links == 2 else ''}pendulum, identified from video",
        units=UNITS | ({"damping": "N m s"} if links == 2 else {}),
        what="two point masses on rods" if links == 2 else "a point mass on a rod",
        truth=Truth({name: hidden[name] for name in free}, truth, scales=SCALES),
        instance=instance,
    )


def drawn(settings: dict[str, Any], table: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return values drawn from a table: one gravity, of all else one for each link."""
    links = count_links(settings)
    out = {}
    for name in NAMES:
        key, given = f"{table}.{name}", settings[table][name]
        if name == "gravity":
            out[name] = np.array(draw(rng, key, given))
            continue
        rows = checks.array(key, given, (links, 2), hint="[low, high] for each link.")
        each = [draw(rng, key, row) for row in rows]
        out[name] = np.array(each if links == 2 else each[0])
    return out


def free_block(settings: dict[str, Any], name: str, start: np.ndarray) -> Block:
    """Return one free quantity, with its bounds."""
    bounds = bounds_of(settings, (name,))
    return block((name,), Log() if name in POSITIVE else Identity(), [start], bounds)


def make_motion(
    settings: dict[str, Any], options: RunOptions, values: dict[str, np.ndarray]
) -> Motion:
    """Return the pendulum let go."""
    kind: type[Pendulum] = SimplePendulum if count_links(settings) == 1 else DoublePendulum
    own = {name: values[name] for name in POSITIVE}
    system = kind(**own)  # pyright: ignore[reportCallIssue]
    dt, steps = frame_steps(settings["time"])
    state = PendulumState(values["angle"], values["rate"])
    return Motion(
        system, state, dt, steps, options.dtype,
        device=options.device, checkpoint=options.checkpoint,
    )  # fmt: skip


def make_pictures(settings: dict[str, Any], options: RunOptions) -> MeshFilming:
    """Return the camera on rods and bobs."""
    given = settings["pendulum"]
    shape = RodsAndBobs([given["bob_radius"]] * count_links(settings), given["rod_radius"])
    mesh = Mesh(shape.faces, vertex_colors=COLORS[shape.link], material=Material(1.0, 0.0))
    return make_filming(settings, {"pendulum": (mesh, HangingRods(shape))}, device=options.device)
