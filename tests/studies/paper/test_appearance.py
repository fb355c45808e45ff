"""The study of the paper's figure 7 on toy sizes: equal terms, raw curves, the same numbers."""

import json
import re

import numpy as np
import pytest

from adjsim.system import RolloutError
from studies import config, running
from studies.optimizers.evaluations import read_log
from studies.painting import Kind
from studies.paper.appearance import appearance, results
from studies.paper.appearance.results import held, is_falling, settled
from studies.registry import RunOptions
from tests.studies.runs.items import Elsewhere
from tests.studies.stopping import stop_after
from tests.studies.toys import TOYS
from tests.studies.undrawn import undrawn


TOY = (
    "instances=2",
    'body.shapes=["cube", "star"]',
    "time.dt=5e-3",
    "time.steps=60",
    "time.frames=2",
    "image.height=20",
    "image.width=16",
    "optimizer.max_evaluations=30",
    "landscape.points=5",
)
KINDS = [str(kind) for kind in Kind]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run, and what it said."""
    path = tmp_path_factory.mktemp("appearance") / "run"
    folder, job = running.start("appearance", TOY, path, {})
    return folder, job.run(folder)


def make_case(*overrides):
    """Return the first body of a toy run."""
    job = appearance.prepare(config.resolve("appearance", [*TOY, *overrides]).values, RunOptions())
    assert isinstance(job, appearance.Appearance)
    return job.make(0)


def test_gauss_newton_finds_the_mass_with_every_kind_and_all_are_certified(finished):
    folder, text = finished
    result = folder.read_json("result.json")
    precise = [row for row in result["table"] if row["method"] == "gauss-newton"]
    assert [row["kind"] for row in precise] == KINDS
    assert max(row["worst_error"] for row in precise) <= 1e-9
    certified = folder.read_json("certificate.json")
    assert list(certified["kinds"]) == KINDS
    assert certified["passed"]
    assert all(one["passed"] for one in certified["kinds"].values())
    assert "gradient certificates: passed" in text


def test_kinds_and_methods_search_on_equal_terms(finished):
    folder, _ = finished
    result = folder.read_json("result.json")
    for record in result["records"]:
        assert record["start"] > 1.1 * record["mass"]
        assert len(record["searches"]) == len(KINDS) * len(result["methods"])
        for one in record["searches"]:
            assert one["masses"][0] == pytest.approx(record["start"], rel=1e-15)
            assert one["spent"][-1] <= result["evaluations"]
    spent = {
        one["spent"][-1]
        for record in result["records"]
        for one in record["searches"]
        if one["status"] == "MAX_EVALUATIONS" and one["method"] == "adam"
    }
    assert spent == {result["evaluations"]}


def test_the_curves_are_those_of_the_logs(finished):
    folder, _ = finished
    lines = folder.file("curves.csv").read_text().splitlines()[1:]
    table = [line.split(",") for line in lines]
    mine = [row for row in table if row[:3] == ["1", "texture", "adam"]]
    log = read_log(folder.file("instances/001/texture/adam/iterations.jsonl"))
    assert [float(row[6]) for row in mine] == [one.loss for one in log]
    mass = folder.read_json("instances/001/result.json")["mass"]
    errors = [abs(float(row[4]) / mass - 1.0) for row in mine]
    np.testing.assert_allclose([float(row[5]) for row in mine], errors, rtol=1e-9)


def test_the_kinds_differ_in_looks_alone():
    case = make_case()
    color, shading, texture = (case.problems[kind] for kind in KINDS)
    for other in (shading, texture):
        np.testing.assert_array_equal(other.targets[..., 3], color.targets[..., 3])
        assert np.abs(other.targets - color.targets).max() > 0.05
        theta = color.parameters.start
        ours, theirs = color.trajectory(theta), other.trajectory(theta)
        assert np.array_equal(ours.bodies["body"].position, theirs.bodies["body"].position)


def test_one_colour_feels_the_mass_at_the_outline_alone():
    case = make_case('body.shapes=["sphere"]', "image.height=40", "image.width=32")
    parts = {}
    for kind, problem in case.problems.items():
        assert appearance.inside(problem).any()
        parts[kind] = appearance.looked_at(problem, case, np.array([0.9, 1.1]))["inside"]
    # the outline reaches in with a coverage of 2e-3, squared, and so do seams of its fringe
    assert parts["color"] <= 1e-3
    assert parts["shading"] > 3.0 * parts["color"]
    assert parts["texture"] > parts["shading"]


def test_the_curvature_is_that_of_the_loss():
    case = make_case()
    problem = case.problems["texture"]
    found = appearance.looked_at(problem, case, np.array([0.9, 1.1]))["curvature"]
    h, theta = 1e-4, np.log([case.mass])
    ahead, behind = (problem.loss_and_gradient(theta + step)[1][0] for step in (h, -h))
    # central differences of the gradient; few pixels have a kink of the texture within the step
    assert found == pytest.approx((ahead - behind) / (2.0 * h), rel=2e-2)


def test_a_body_that_fails_is_told_apart_and_others_may_be_spread(finished, tmp_path, monkeypatch):
    error = RolloutError("The truth left the finite numbers in step 7.")
    draw = appearance.rigid.draw_thrown

    def drawn(settings, options, instance, rng):
        if instance == 0:
            raise error
        return draw(settings, options, instance, rng)

    monkeypatch.setattr(appearance.rigid, "draw_thrown", drawn)
    folder, job = running.start("appearance", TOY, tmp_path / "run", {}, spread=Elsewhere())
    with undrawn():
        text = job.run(folder)
    assert "medians over 1 bodies" in text
    assert "1 of 2 instances failed, and are not in these:" in text
    result = folder.read_json("result.json")
    assert [(one["instance"], one["reason"]) for one in result["failed"]] == [(0, str(error))]
    assert [one["instance"] for one in result["records"]] == [1]
    assert "1 of 2 instances failed" in folder.file("report.html").read_text()
    whole = finished[0].file("curves.csv").read_text().splitlines()
    assert folder.file("curves.csv").read_text().splitlines() == [
        whole[0], *(line for line in whole if line.startswith("1,")),
    ]  # fmt: skip


def test_a_run_that_was_stopped_ends_with_the_same_numbers(finished, tmp_path, monkeypatch):
    folder, job = running.start("appearance", TOY, tmp_path / "run", {})
    stop_after(40, job, folder, monkeypatch)
    assert not folder.has("instances/000/result.json")
    folder, job = running.resume("appearance", TOY, tmp_path / "run", {})
    with undrawn():
        job.run(folder)
    whole = finished[0]
    for name in ("result.json", "curves.csv", "instances/001/result.json"):
        assert folder.file(name).read_text() == whole.file(name).read_text()
    for name in ("frames.npz", "trajectory.npz"):
        ours, theirs = folder.read_npz(name), whole.read_npz(name)
        assert all(np.array_equal(ours[key], theirs[key]) for key in theirs)


def test_the_report_shows_curves_and_looks_side_by_side(finished):
    folder, _ = finished
    text = folder.file("report.html").read_text()
    for part in ("How fast the mass is found", "What the videos show", "Why the curves differ"):
        assert part in text
    assert text.count("<summary>Gradient certificate of ") == len(KINDS)
    assert not re.search(r'(src|href)="(?!data:)', text)
    names = {path.stem for path in (folder.path / "figures").iterdir()}
    assert {"felt", "landscape", "convergence_adam", "taylor-texture-1"} <= names


def test_the_motion_can_be_viewed(finished):
    arrays = finished[0].read_npz("trajectory.npz")
    assert arrays["objects"].tolist() == ["body"]
    assert len(arrays["vertices.body"]) == 2


def test_fewer_kinds_and_methods_are_run_alone(tmp_path):
    fewer = ("instances=1", 'kinds=["texture"]', 'methods=["l-bfgs-b"]')
    folder, job = running.start("appearance", [*TOY, *fewer], tmp_path / "run", {})
    job.run(folder)
    result = folder.read_json("result.json")
    assert [(row["method"], row["kind"]) for row in result["table"]] == [("l-bfgs-b", "texture")]
    assert "error after a step" not in folder.file("report.html").read_text()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("instances=0",), "`instances` must be positive"),
        (("kinds=[]",), "`kinds` must name at least one of color, shading, texture"),
        (('kinds=["colour"]',), "Unknown name in `kinds` `colour`. Did you mean `color`"),
        (('methods=["adam", "adam"]',), "`methods` must name at least one of gradient-descent"),
        (('methods=["newton"]',), "Unknown name in `methods` `newton`"),
        (("paint.color=[1.0]",), r"`paint.color` must have shape \(3,\)"),
        (("paint.color=[-0.1, 0.5, 0.5]",), "`paint.color` must not be negative"),
        (("shading.diffuse=-1.0",), "`shading.diffuse` must not be negative"),
        (("shading.shininess=0.0",), "`shading.shininess` must be positive"),
        (("texture.tiles=[4]",), r"`texture.tiles` must have shape \(2,\)"),
        (("texture.tiles=[0, 8]",), "`texture.tiles` must be positive"),
        (("texture.contrast=1.0",), "`texture.contrast` must be at least 0 and below 1, got 1"),
        (("gradient-descent.learning_rate=0.0",), "`gradient-descent.learning_rate` must be pos"),
        (("adam.learning_rate=-1.0",), "`adam.learning_rate` must be positive"),
        (("gradient-descent.momentum=1.0",), "`gradient-descent.momentum` must be in"),
        (("optimizer.max_evaluations=0",), "`optimizer.max_evaluations` must be positive"),
        (("landscape.between=[1.1, 2.0]",), "`landscape.between` must be parts of the hidden"),
        (("landscape.points=2",), "`landscape.points` must be a whole number of at least 3"),
        (("hidden.mass=[0.0, 1.0]",), "`hidden.mass` must be positive"),
        (("hidden.mass=[3.0, 3.0]",), "hidden `body.mass` must lie inside its bounds too"),
        (("start.mass=[3.0, 3.0]",), "start of `body.mass` must lie inside its bounds"),
        (("camera.target=[0.0, 90.0, 0.0]",), "`camera` sees nothing of the motion"),
    ],
)
def test_a_bad_setting_is_named(overrides, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        running.start("appearance", (*TOY, *overrides), tmp_path / "run", {})
    assert not list(tmp_path.iterdir())


def test_mistakes_of_the_body_are_those_of_rigid_mass(tmp_path):
    for overrides, message in TOYS["rigid-mass"].mistakes:
        if overrides[0].startswith("free"):
            continue  # the mass is what is looked for
        with pytest.raises(ValueError, match=message):
            running.start("appearance", (*TOY, *overrides), tmp_path / "run", {})


def test_an_error_is_reached_where_it_is_not_exceeded_any_more():
    spent = np.array([1, 2, 4, 6, 7])
    swinging = np.array([0.5, 1e-3, 0.2, 1e-2, 1e-5])
    assert settled(spent, swinging, 1e-2) == 6.0
    assert settled(spent, swinging, 1e-4) == 7.0
    assert settled(spent, swinging, 1.0) == 1.0
    assert settled(spent, swinging[::-1], 1e-2) == np.inf


def test_a_median_of_some_that_never_come_is_not_reached():
    assert results._reached(1e-2, [3.0, np.inf, np.inf])["median"] is None
    found = results._reached(1e-2, [9.0, np.inf, 3.0])
    assert (found["median"], found["count"]) == (9, 2)


def test_a_search_that_ended_keeps_its_last_error():
    error = held(np.array([1, 2, 4]), np.array([0.5, 0.3, 0.1]), 6)
    assert error.tolist() == [0.5, 0.3, 0.3, 0.1, 0.1, 0.1]


def test_a_loss_falls_from_either_side_or_has_a_wrong_optimum():
    masses = np.array([0.5, 0.8, 1.0, 1.3, 1.6, 2.0])
    well = np.array([3.0, 1.0, 0.0, 1.0, 2.0, 1.5])
    assert is_falling(masses, well, 1.7)
    assert is_falling(masses, well, 0.5)
    assert not is_falling(masses, well, 2.0)


def test_the_record_is_json_without_numbers_that_are_none(finished):
    folder, _ = finished
    text = folder.file("result.json").read_text()
    assert json.loads(text)["records"][0]["kinds"]["color"]["landscape"]
    assert "NaN" not in text
