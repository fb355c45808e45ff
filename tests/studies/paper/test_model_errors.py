"""Masses by wrong models: what differs between film and fit, and what the numbers mean."""

import numpy as np
import pytest

from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from adjsim.rollout import rollout
from studies.paper import model_errors
from studies.paper.model_errors import (
    BOUNDS,
    PHOTOGRAPHERS,
    PUBLISHED,
    SOLIDS,
    Kind,
    film_of,
    loss_at,
    make_case,
    run_kind,
    scanned,
    searched,
    solid,
    table,
)
from studies.runs.folder import RunFolder
from tests.studies.undrawn import undrawn


def model_of(case, problem):
    return problem.motion_at(case.theta(case.mass)).system


@pytest.mark.parametrize("kind", [Kind.PERFECT, Kind.PERFECT_DEFORMABLE])
def test_a_perfect_model_shows_the_film_at_the_truth_and_finds_it(kind):
    case = make_case(kind, 0, 0)
    assert case.problem.loss_at(case.theta(case.mass)) <= 1e-24  # rounding of log and exp
    assert case.problem.loss_at(case.theta(case.start)) > 1e-3
    assert searched(case) == pytest.approx(case.mass, rel=1e-6)


def test_kinds_of_a_rigid_body_are_one_scene_that_differs_in_the_contact_alone():
    perfect = make_case(Kind.PERFECT, 0, 0)
    for kind, key, value in (
        (Kind.NO_FRICTION, "friction", 0.0),
        (Kind.NO_ELASTICITY, "damping", 150.0),
    ):
        case = make_case(kind, 0, 0)
        assert np.array_equal(film_of(case.problem).frames, film_of(perfect.problem).frames)
        ours = model_of(case, case.problem).parameters()
        theirs = model_of(perfect, perfect.problem).parameters()
        (path,) = (path for path in ours if not np.array_equal(ours[path], theirs[path]))
        assert path.endswith(key)
        assert (np.asarray(ours[path]) == value).all()
        assert case.problem.loss_at(case.theta(case.mass)) > 1e-3
        assert case.exact.loss_at(case.theta(case.mass)) <= 1e-24


@pytest.mark.parametrize("k", range(4))
def test_the_soft_body_is_the_rigid_one_at_first(k):
    case = make_case(Kind.RIGID_AS_DEFORMABLE, 0, k)
    theta = case.theta(case.mass)
    soft, rigid = (problem.motion_at(theta) for problem in (case.problem, case.exact))
    assert soft.system.mass.sum() == pytest.approx(case.mass, rel=1e-12)
    assert rigid.system.bodies["body"].masses[0] == pytest.approx(case.mass, rel=1e-12)
    surfaces = []
    for problem in (case.problem, case.exact):
        motion = problem.motion_at(theta).at(np.array([0, 1]))
        surfaces.append(problem.built.subjects["body"].vertices(motion, motion.run())[0])
    np.testing.assert_allclose(surfaces[0], surfaces[1], atol=1e-12)
    assert surfaces[1][:, 1].min() == pytest.approx(0.3, abs=1e-12)
    for path in ("stiffness", "damping", "friction"):
        values = []
        for motion in (soft, rigid):
            parameters = motion.system.parameters()
            values.append({float(np.ravel(v)[0]) for k, v in parameters.items()
                           if k.endswith(f".{path}") and "floor" in k})  # fmt: skip
        assert values[0] == values[1]
        assert len(values[0]) == 1


@pytest.mark.parametrize("name", SOLIDS)
def test_a_solid_is_about_its_centre(name):
    tets = solid(name)
    corners = tets.points[tets.tets].mean(axis=1)
    np.testing.assert_allclose(tets.volumes @ corners / tets.volumes.sum(), 0.0, atol=1e-12)


@pytest.mark.parametrize("kind", [Kind.RIGID_AS_DEFORMABLE, Kind.NO_ELASTICITY])
def test_the_gradient_of_a_wrong_model_is_that_of_its_loss(kind):
    problem = make_case(kind, 0, 0).problem
    theta, h = problem.parameters.start, 1e-6
    slope = (problem.loss_at(theta + h) - problem.loss_at(theta - h)) / (2.0 * h)
    assert problem.loss_and_gradient(theta)[1][0] == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize("ratio", [3.0, 6.0])
def test_a_damped_contact_gives_back_what_the_module_says(ratio):
    m, k_e, speed, dt = 2.0, 300.0, 1.5, 1e-5
    k_d = 2.0 * ratio * np.sqrt(k_e * m)
    floor = HalfSpaceContact(stiffness=k_e, damping=k_d)
    state = State(np.array([[0.0, 1e-9, 0.0]]), np.array([[0.0, -speed, 0.0]]))
    steps = 60_000
    run = rollout(
        Model([m], {"floor": floor}, gravity=(0.0, 0.0, 0.0)), state, dt, steps, frames=[steps]
    )
    assert run.x[0, 0, 1] > 0.0
    back = run.v[0, 0, 1] / speed
    # On the way in c'' + 2 z w c' + w^2 c = 0; the deepest point, times w, is the speed of return.
    root = np.sqrt(ratio**2 - 1.0)
    t = np.log((ratio + root) / (ratio - root)) / (2.0 * root)
    deepest = (np.exp(-(ratio - root) * t) - np.exp(-(ratio + root) * t)) / (2.0 * root)
    assert back == pytest.approx(deepest, rel=1e-3)
    assert back == pytest.approx(1.0 / (2.0 * ratio), rel=0.1)


@pytest.mark.parametrize("kind", list(PHOTOGRAPHERS))
def test_a_photorealistic_film_shows_the_same_body_at_the_same_place(kind):
    if problem := PHOTOGRAPHERS[kind].missing():
        pytest.skip(problem)
    case = make_case(kind, 0, 0)
    film, drawn = film_of(case.problem), film_of(case.exact)
    assert film.frames.shape == drawn.frames.shape
    empty = film.rasterizer.background
    covered = drawn.as_images(case.exact.predicted_rows(case.theta(case.mass)))[..., 3] > 0.5
    # where it is redder than the empty scene is the body: its shadow is grey
    red = film.frames[..., 0] - film.frames[..., 2] - (empty[..., 0] - empty[..., 2])
    changed = red > 0.1
    assert (covered & changed).sum() > 0.8 * (covered | changed).sum()


def test_the_scan_is_not_above_the_search_and_marks_what_diverges(monkeypatch):
    case = make_case(Kind.NO_FRICTION, 0, 0)
    mass, grid, losses = scanned(case)
    assert (grid[0], grid[-1]) == pytest.approx(BOUNDS)
    assert case.problem.loss_at(case.theta(mass)) <= np.nanmin(losses) + 1e-12

    class Diverges:
        def loss_at(self, theta):
            raise FloatingPointError

    assert np.isnan(loss_at(Diverges(), np.zeros(1)))


def test_errors_are_summed_up_by_body_and_shown_beside_the_paper(tmp_path):
    result = run_kind(Kind.NO_ELASTICITY, 0, 3, say=lambda line: None)
    errors = np.abs([row["found"] / row["hidden"] - 1.0 for row in result["bodies"]])
    assert result["mean"] == pytest.approx(errors.mean(), rel=1e-12)
    assert result["worst"] == errors.max()
    assert errors[result["median_body"]] == result["median"]
    assert result["published"] == 0.2281
    assert table([result]).splitlines()[2].startswith("| no-elasticity | 0.23 |")
    assert set(PUBLISHED) == {*map(str, Kind)} - {"perfect-deformable"}


def test_the_command_leaves_numbers_a_table_and_a_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(model_errors, "POINTS", 3)
    monkeypatch.setattr(model_errors, "BUDGET", 2)
    with undrawn():
        model_errors.main([Kind.PERFECT], count=1, out=tmp_path / "out")
    folder = RunFolder(tmp_path / "out")
    assert folder.read_json("result.json")["kinds"][0]["kind"] == "perfect"
    assert "| perfect | 0.11 |" in folder.file("table.md").read_text()
    assert folder.has("figures/landscapes.svg")
