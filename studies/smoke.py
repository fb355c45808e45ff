"""How must smoke be stirred at first, so that it drifts into the shape of a picture?

    adjsim run smoke

A correct run ends with smoke that shows the picture, blurred by what the grid diffuses, and a
certificate that passed. Many flows lead to one picture: the Gauss-Newton spectrum in the report
falls by orders of magnitude, and names what the picture does not determine.
"""

from functools import partial
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.reduced.smoke import Smoke, SmokeState
from render.smoke import smoke_images
from studies.errors import StudyError
from studies.fit import Fit
from studies.flows import Everywhere, Waves, picture
from studies.instances import make_job
from studies.motion import Motion
from studies.parameters import Parameters, block
from studies.registry import Job, RunOptions
from studies.search.local import make_loss, make_search
from studies.settings import draw, require_positive
from studies.smoke_filming import SmokeFilming
from studies.synthetic import film
from studies.timeline import frame_steps
from studies.transforms import Identity
from studies.truth import Truth
from studies.video_problem import VideoProblem
from studies.wires import Wire, Wires


HIDDEN = "hidden"
NAMES = ("wind", "waves")
UNITS: dict[str, str] = dict.fromkeys(NAMES, "cells/step")
PLAYED = 26  # frames of the video on the way to a picture
SAME_AMOUNT = 0.02  # of the smoke in the picture


def prepare(settings: dict[str, Any], options: RunOptions) -> Job:
    """Check the settings and return the search, or the searches of all instances.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    check_settings(settings)
    return make_job(settings, options, partial(make_fit, settings, options))


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    area = settings["smoke"]["area"]
    if not 0.0 < area < 1.0:
        raise StudyError(f"`smoke.area` must be between 0 and 1, a part of the grid, got {area:g}.")
    checks.positive("start.speed", settings["start"]["speed"], hint="At rest there is a kink.")
    require_positive(settings, "hidden", "speed")
    require_positive(settings, "flow", "bound")
    if settings["instances"] > 1 and settings["target"]["picture"] != HIDDEN:
        raise StudyError(
            "`instances` above 1 needs `target.picture=hidden`: with a given picture there is no "
            "hidden flow to be held against."
        )


def make_fit(settings: dict[str, Any], options: RunOptions, instance: int) -> Fit:
    """Make the target, from a picture or a hidden flow, and return the search for the flow."""
    rng = np.random.default_rng([options.seed, instance])
    motion, waves = make_motion(settings, options), make_waves(settings)
    wires = make_wires(waves)
    filming = make_filming(settings)
    hidden = drawn_flow(settings, HIDDEN, waves, rng)
    start = drawn_flow(settings, "start", waves, rng)
    bound = settings["flow"]["bound"]
    free = [block((name,), Identity(), [start[name]], {name: (-bound, bound)}) for name in NAMES]
    loss, search = make_loss(settings["loss"]), make_search(settings["optimizer"])
    steps, truth, findings = motion.frames, None, None
    if settings["target"]["picture"] == HIDDEN:
        targets = film(filming, motion, wires.values(hidden))
        speed = float(np.std(wires.values(hidden)["state.velocity"]))
        truth = Truth(hidden, targets, scales=dict.fromkeys(NAMES, speed))
    else:
        motion = motion.at(steps[-1:])
        density = make_picture(settings, "target")
        targets = smoke_images(density, filming.color, filming.background)[None]
        steps = np.unique(np.rint(np.linspace(0, motion.n_steps, PLAYED)).astype(int))
    problem = VideoProblem(motion, filming, Parameters(free, wires), loss, targets)
    if truth is None:
        findings = partial(told, problem)
    return Fit(
        problem,
        search,
        options,
        title="Smoke, stirred to show a picture" if truth is None else "Smoke, its flow from video",
        units=UNITS,
        what=f"smoke on a periodic grid of {filming.size[0]} x {filming.size[1]} cells",
        truth=truth,
        findings=findings,
        instance=instance,
        played=steps,
    )


def make_motion(settings: dict[str, Any], options: RunOptions) -> Motion:
    """Return the smoke at rest; its flow comes by wire."""
    density = make_picture(settings, "smoke")
    dt, steps = frame_steps(settings["time"])
    state = SmokeState(np.zeros((*density.shape, 2)), density)
    return Motion(
        Smoke(density.shape), state, dt, steps, options.dtype,
        device=options.device, checkpoint=options.checkpoint,
    )  # fmt: skip


def make_waves(settings: dict[str, Any]) -> Waves:
    """Return the waves that the flow is made of."""
    grid = settings["smoke"]
    return Waves((grid["rows"], grid["columns"]), settings["flow"]["waves"])


def make_wires(waves: Waves) -> Wires:
    """Lead wind and waves to the velocity of every cell."""
    maps = (Everywhere(waves.shape), waves)
    return Wires(
        tuple(Wire(name, "state.velocity", lead) for name, lead in zip(NAMES, maps, strict=True))
    )


def make_picture(settings: dict[str, Any], table: str) -> np.ndarray:
    """Return the density of the picture that a table names."""
    grid = settings["smoke"]
    for key in ("rows", "columns"):
        checks.positive(f"smoke.{key}", grid[key])
    shape = grid["rows"], grid["columns"]
    return picture(f"{table}.picture", settings[table]["picture"], shape, grid["area"])


def make_filming(settings: dict[str, Any]) -> SmokeFilming:
    """Return the colours of the smoke and behind it."""
    image, grid = settings["image"], settings["smoke"]
    color, background = (
        checks.array(f"image.{key}", image[key], (3,)) for key in ("color", "background")
    )
    return SmokeFilming(color, background, (grid["rows"], grid["columns"]))


def drawn_flow(
    settings: dict[str, Any], table: str, waves: Waves, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return a random wind and waves, short ones weaker, of the speed that a table says."""
    lengths = np.linalg.norm(waves.numbers, axis=1, keepdims=True)
    flow = {
        "wind": rng.standard_normal(2),
        "waves": rng.standard_normal((len(lengths), 2)) / lengths,
    }
    velocity = make_wires(waves).values(flow)["state.velocity"]
    speed = draw(rng, f"{table}.speed", settings[table]["speed"])
    scale = speed / np.sqrt(np.square(velocity).sum(axis=-1).mean())
    return {name: scale * value for name, value in flow.items()}


def told(problem: VideoProblem, theta: np.ndarray) -> list[str]:
    """Return how well the picture is met, in sentences."""
    target = problem.targets[..., 3]
    end, first = (
        float(np.square(problem.images(at)[..., 3] - target).mean())
        for at in (theta, problem.parameters.start)
    )
    sentences = [
        f"The density differs from the picture by {end:.2e} in the mean square, {first:.2e} at "
        "the start of the search."
    ]
    ratio = float(target.sum() / problem.motion.state.density.sum())
    if abs(ratio - 1.0) > SAME_AMOUNT:
        sentences.append(
            f"The picture holds {ratio:.3g} times the smoke that there is, and a flow without "
            "divergence nearly keeps its amount: it cannot be met everywhere."
        )
    sentences.append(
        "A picture is no measurement: intervals and spectrum say how sharply it singles out a "
        "flow, which is little where a singular value is small."
    )
    return sentences
