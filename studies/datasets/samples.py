"""The unit of work of a data set: some scenes drawn, simulated and filmed.

    scene file, seed, numbers of scenes -> arrays by name, one mapping for each scene

A pure function of plain values: it can run anywhere, and what it gives for a scene is the same to
the bit whatever is made beside it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from studies.datasets.spec import Spec, simulated_films, split
from studies.optimizers.problem import NOT_FINITE
from studies.problem.films import films_of
from studies.problem.making import make_problem
from studies.problem.observers import surfaces
from studies.problem.twin import hidden_scene
from studies.runs.errors import StudyError
from studies.runs.media import as_uint8
from studies.runs.options import RunOptions
from studies.scene.building import build
from studies.scene.components import split_component
from studies.scene.declared import Free, SceneFile
from studies.scene.drawing import instance_of
from studies.scene.reading import to_toml


BODIES = "bodies."  # what paths of [truth] begin with that replace data of a body
TRIED = 3  # first scenes, of which one must be simulated
EACH = "each/"  # of arrays whose size differs from scene to scene
Sample = dict[str, np.ndarray]


class Field(NamedTuple):
    """Unit and meaning of an array."""

    unit: str
    text: str


FIELDS = {
    "scene": Field("-", "number of the scene"),
    "split": Field("-", "train or test"),
    "toml": Field("-", "the scene as it was drawn: a scene file that `adjsim run` runs"),
    "images": Field("-", "frames, RGBA: RGB lies over the background, A is what bodies cover"),
    "times": Field("s", "of the frames"),
    "problem": Field("-", "why it could not be simulated: its films are black; empty if it could"),
    "coverage": Field("-", "part of each frame that bodies cover"),
    "vertices": Field("m", "of the surface that is drawn, frames first; float32"),
    "faces": Field("-", "vertices of each triangle of it"),
}


def make_samples(file: SceneFile, options: RunOptions, numbers: Sequence[int]) -> list[Sample]:
    """Return what is kept of scenes by number, one mapping for each; nothing of `file` is drawn."""
    samples = []
    for number in numbers:
        scene = instance_of(file, options.seed, number)
        sample: Sample = {
            "scene": np.array(number),
            "split": np.array(split(number)),
            "toml": np.array(to_toml(scene)),
            **{f"parameters/{path}": value for path, value in _parameters_of(scene).items()},
        }
        try:
            sample |= {"problem": np.array(""), **_simulated(scene, options)}
        except (StudyError, *NOT_FINITE) as error:
            sample |= {"problem": np.array(str(error)), **_nothing(scene)}
        samples.append(sample)
    return samples


def require_simulated(file: SceneFile, options: RunOptions) -> None:
    """Raise what is wrong with the first scene, if none of the first ones can be simulated."""
    samples = (make_samples(file, options, [number])[0] for number in range(TRIED))
    problems = (str(sample["problem"]) for sample in samples)
    first = next(problems)
    if first and all(problems):
        raise StudyError(first)


def _parameters_of(file: SceneFile) -> dict[str, np.ndarray]:
    """Return the numbers of `truth` of a scene that is drawn, by path."""
    return {
        path: np.asarray(value, np.float64)
        for path, value in file.truth.items()
        if not path.startswith(BODIES)
    }


def _simulated(file: SceneFile, options: RunOptions) -> Sample:
    """Return films, and surfaces at the times of the first of them."""
    truth = {path: file.truth[path] for path in _parameters_of(file)}
    free = file.free or dict.fromkeys(list(truth)[:1] or ["world.gravity"], Free())  # none is asked
    file = replace(hidden_scene(file), truth=truth, free=free)
    prepared = make_problem(file, dtype=options.dtype, device=options.device, fits_first=False)
    problem = prepared.everything
    values = {**problem.fixed, **(prepared.true_values or {})}
    moved, samplings = problem.moved(values)
    arrays: Sample = {}
    at = {
        observer.name: sampling
        for observer, sampling in zip(problem.observers, samplings, strict=True)
    }
    films = [film for film in films_of(problem.observers) if film.name in simulated_films(file)]
    for film in films:
        rgba = film.as_images(film.predict(moved, at[film.name], values)).copy()
        rgba[..., :3] = film.frames  # with noise
        arrays[f"images/{film.name}"] = as_uint8(rgba)
        arrays[f"coverage/{film.name}"] = rgba[..., 3].mean(axis=(1, 2))
    for name, vertices in surfaces(moved).items():
        arrays[f"{EACH}{name}/vertices"] = at[films[0].name].at(vertices).astype(np.float32)
        arrays[f"{EACH}{name}/faces"] = problem.built.meshes[name].faces
    return arrays


def _nothing(file: SceneFile) -> Sample:
    """Return black films of a scene that could not be simulated."""
    films = simulated_films(file).items()
    return {
        **{f"images/{k}": np.zeros((f.frames, f.height, f.width, 4), np.uint8) for k, f in films},
        **{f"coverage/{k}": np.zeros(f.frames) for k, f in films},
    }


def fields_of(spec: Spec) -> dict[str, Field]:
    """Return unit and meaning of the parameters of a data set, by the name of their array."""
    first = instance_of(spec.file, spec.options.seed)
    values = build(first).values
    return {
        f"parameters/{path}": Field(values[split_component(path)[0]].unit, "hidden value")
        for path in _parameters_of(first)
    }


def field_of(name: str, fields: dict[str, Field]) -> Field:
    """Return unit and meaning of an array."""
    first, _, rest = name.partition("/")
    key = rest.rpartition("/")[2] if name.startswith(EACH) else first
    return fields.get(name) or FIELDS[key]
