"""The bundled beam, balls, links, cradle, cloth and pendula: the truth is found to rounding."""

from dataclasses import replace

import numpy as np
import pytest

from studies.answer.verdict import Kind
from studies.fitting.solve import solve
from studies.problem.making import make_problem
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.declared import Free
from studies.scene.drawing import instance_of
from studies.scene.files import BUNDLED
from studies.scene.reading import read_scene


SMALL = ("observations.film.simulate.height=24", "search.levels=3")
NARROW = "observations.film.simulate.width=32"
TOYS = {
    "beam": (*SMALL, NARROW, "bodies.beam.cells=[4, 1, 1]", "search.coarse=4"),
    "bounce": (*SMALL, "observations.film.simulate.width=48", "world.dt=1e-3", "search.coarse=16"),
    "pendulum": (*SMALL, NARROW, "world.dt=0.02", "search.coarse=16"),
    "double-pendulum": (*SMALL, NARROW, "world.dt=5e-3", "search.coarse=16"),
    "links": (*SMALL, NARROW, "search.coarse=0"),
    "cradle": (
        *SMALL,
        NARROW,
        "observations.film.simulate.duration=0.6",
        "observations.film.simulate.frames=12",
    ),
    "draped-cloth": (*SMALL, NARROW, "bodies.cloth.cells=[8, 8]", "search.coarse=0"),
    "two-balls": (
        *SMALL,
        NARROW,
        "bodies.left.cells=[2]",
        "bodies.right.cells=[2]",
        "search.coarse=0",
    ),
}


def made(name, *overrides, instance=0, **options):
    """The problem of an instance of a bundled scene."""
    file = instance_of(read_scene(BUNDLED / f"{name}.toml", overrides), 0, instance)
    return make_problem(file, **options)


SLOW = pytest.param("draped-cloth", 0, marks=pytest.mark.nightly)
FAST = [(name, 0) for name in TOYS if name != "draped-cloth"]


@pytest.mark.parametrize(("name", "instance"), [*FAST, ("bounce", 3), SLOW])
def test_the_truth_is_found_to_rounding(tmp_path, name, instance):
    twin = made(name, *TOYS[name], instance=instance)
    how = read_scene(BUNDLED / f"{name}.toml", TOYS[name]).search
    with EvaluationProgress(how.max_evaluations) as progress:
        solved = solve(twin, how, RunFolder(tmp_path), progress)
    parameters = solved.problem.parameters
    errors = twin.truth.errors(parameters.paths, parameters.natural(solved.result.theta))
    assert errors.max() < 1e-11
    assert twin.truth.errors(parameters.paths, parameters.natural(parameters.start)).min() > 0.01
    assert solved.verdict.kind is Kind.FOUND


def test_single_precision_ends_where_rounding_begins(tmp_path):
    twin = made("beam", *TOYS["beam"], dtype="float32")
    how = read_scene(BUNDLED / "beam.toml", TOYS["beam"]).search
    with EvaluationProgress(how.max_evaluations) as progress:
        solved = solve(twin, how, RunFolder(tmp_path), progress)
    parameters = solved.problem.parameters
    errors = twin.truth.errors(parameters.paths, parameters.natural(solved.result.theta))
    assert 1e-9 < errors.max() < 1e-4  # of the states by 600 steps, and of the pixels


def at_truth(twin):
    """Theta of the hidden values."""
    parameters = twin.problem.parameters
    return parameters.theta(twin.truth.flat(parameters.paths))


@pytest.mark.parametrize(
    ("name", "freed"),
    [
        # b/(m l^2) and g/l are all that the equation of motion has, and the drawing shows l
        ("pendulum", ("rod.damping", "rod.mass")),
        # M and tau are linear in the masses
        ("double-pendulum", ("rods.mass",)),
    ],
)
def test_a_ratio_is_all_that_shows(name, freed):
    twin = only(name, freed)
    _, jacobian = twin.problem.residuals_and_jacobian(at_truth(twin))
    slopes = np.asarray(jacobian)[: -jacobian.shape[1]]
    _, values, directions = np.linalg.svd(slopes, full_matrices=False)
    assert values[-1] < 1e-12 * values[0]  # rounding of 150 steps and of an image
    np.testing.assert_allclose(np.abs(directions[-1]), np.sqrt([0.5, 0.5]), rtol=1e-9)


def test_length_and_gravity_are_both_seen():
    # the swing alone shows their ratio, the drawing the length itself
    twin = only("pendulum", ("rod.length", "world.gravity"))
    _, jacobian = twin.problem.residuals_and_jacobian(at_truth(twin))
    values = np.linalg.svd(jacobian, compute_uv=False)
    assert values[-1] > 1e-2 * values[0]


def only(name, freed):
    """The problem of a bundled scene where only these paths are free, near the truth."""
    file = read_scene(BUNDLED / f"{name}.toml", TOYS[name])
    return make_problem(instance_of(replace(file, free={path: Free() for path in freed}), 0))
