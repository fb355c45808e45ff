"""The unit of work of a data set: some scenes drawn, simulated side by side, and rendered.

    settings, seed, range of scenes -> arrays by name, one mapping for each scene

A pure function of plain values: it can run anywhere, and what it gives for a scene is the same to
the bit whichever scenes are made beside it and however many threads there are.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numba
import numpy as np

from adjsim.rollout import rollout
from render.soft_raster import rasterize
from studies.datasets.registry import find_dataset
from studies.datasets.scene import Scene
from studies.media import as_uint8
from studies.motion import Motion
from studies.registry import RunOptions
from studies.scans.evaluation import run_worlds


FINER = 4  # times as many steps where the energy rises


def make_scenes(
    dataset: str, settings: dict[str, Any], options: RunOptions, numbers: Sequence[int]
) -> list[dict[str, np.ndarray]]:
    """Return what is kept of scenes, by name, one mapping for each.

    Parameters
    ----------
    dataset : str
        As `studies.datasets.registry` names it.
    settings : dict
        Checked.
    options : RunOptions
    numbers : sequence of int
        Which scenes.
    """
    kind = find_dataset(dataset)
    scenes = [kind.draw_scene(settings, options, number) for number in numbers]
    runs = simulate(scenes, kind.seen(settings)["time"])
    threads = 1 if options.device == "cuda" else numba.get_num_threads()
    with ThreadPoolExecutor(threads) as pool:  # a scene is drawn by one thread: less is waited for
        filmed = pool.map(film, scenes, runs)
        return [
            {
                "scene": np.array(number),
                "split": np.array(split(number, settings["split"]["test"])),
                **scene.values,
                **own,
            }
            for number, scene, own in zip(numbers, scenes, filmed, strict=True)
        ]


def split(number: int, test: float) -> str:
    """Return "test" for this part of the scenes, spread evenly over their numbers, or "train"."""
    return "test" if int((number + 1) * test + 1e-9) > int(number * test + 1e-9) else "train"


@dataclass(frozen=True, eq=False)
class Run:
    """A scene that was simulated.

    Attributes
    ----------
    motion : Motion
    trajectory
    steps : int
        From frame to frame.
    gain : float
        As `Scene.gain` says; NaN where it is not watched.
    """

    motion: Motion
    trajectory: Any
    steps: int
    gain: float


def simulate(scenes: Sequence[Scene], time: Mapping[str, Any]) -> list[Run]:
    """Simulate scenes with as many steps as they need: their energy must not rise.

    A contact that is too hard for the step kicks the body up. Such a scene, or one that
    diverges, is simulated again with finer steps, up to `most_steps` a frame.
    """
    found: dict[int, Run] = {}
    left, steps = list(range(len(scenes))), time["steps"]
    while left:
        found |= _simulated([(k, scenes[k]) for k in left], steps)
        is_last = steps * FINER > time["most_steps"]
        left = [] if is_last else [k for k in left if not _is_good(found[k], time["tolerance"])]
        steps *= FINER
    return [found[k] for k in range(len(scenes))]


def _is_good(run: Run, tolerance: float) -> bool:
    return run.trajectory.diverged is None and not run.gain > tolerance


def _simulated(scenes: Sequence[tuple[int, Scene]], steps: int) -> dict[int, Run]:
    """Simulate scenes with so many steps a frame; those of one layout are worlds of a batch."""
    motions = [(k, scene, scene.make_motion(steps)) for k, scene in scenes]
    motions.sort(key=lambda one: _layout(one[2]))
    found = {}
    for _, group in groupby(motions, key=lambda one: _layout(one[2])):
        some = list(group)
        runs = run_worlds([motion for _, _, motion in some], rollout)
        for (k, scene, motion), run in zip(some, runs, strict=True):
            is_watched = scene.gain is not None and run.diverged is None
            gain = scene.gain(motion, run) if is_watched and scene.gain else np.nan
            found[k] = Run(motion, run, steps, gain)
    return found


def _layout(motion: Motion) -> tuple[str, ...]:
    """Return what models of one batch have in common."""
    return tuple(sorted(motion.system.parameters()))


def film(scene: Scene, run: Run) -> dict[str, np.ndarray]:
    """Return video, states and quality of a scene; frames after it diverged are 0."""
    filming, motion = scene.filming, run.motion
    seen = {name: own.vertices(motion, run.trajectory) for name, own in filming.subjects.items()}
    count = _finite(list(seen.values()))
    shape = (len(motion.frames), *filming.size, 4)
    images, coverage = np.zeros(shape, np.uint8), np.zeros(shape[0])
    if count:
        shot = rasterize(
            filming.scene, filming.camera, filming.rasterizer,
            {name: x[:count] for name, x in seen.items()}, filming.size,
            threads=1, device=filming.device,
        )  # fmt: skip
        images[:count] = as_uint8(shot)
        coverage[:count] = shot[..., 3].mean(axis=(1, 2))
    diverged = run.trajectory.diverged
    return {
        "images": images,
        **scene.states(motion, run.trajectory),
        "quality/steps": np.array(run.steps),
        "quality/energy_gain": np.array(run.gain),
        "quality/diverged": np.array(-1 if diverged is None else diverged),
        "quality/coverage": coverage,
    }


def _finite(seen: Sequence[np.ndarray]) -> int:
    """Return how many frames come before the first that is not finite."""
    good = np.all([np.isfinite(x).all(axis=(1, 2)) for x in seen], axis=0)
    return int(np.argmin(good)) if not good.all() else len(good)
