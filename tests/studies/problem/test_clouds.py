"""Clouds of points in space as observations: derivatives, twins, what does not fit."""

import json
from dataclasses import replace

import numba
import numpy as np
import pytest
import tomlkit

from studies.answer.certificate import check_point
from studies.problem.clouds import HUBER, CloudObserver, surface_samples
from studies.problem.making import make_problem
from studies.reports.preview.showing import preview
from studies.runs.errors import StudyError
from studies.runs.media import read_image
from studies.scene.reading import scene_from_dict
from tests.studies.command import adjsim
from tests.studies.fitting.test_running import read


ERROR = 2e-3


def tables(**scan):
    """Return the tables of a beam that swings, and of a cloud of its surface."""
    held = {"plane": {"point": [0.001, 0.0, 0.0], "normal": [1.0, 0.0, 0.0]}}
    beam = {
        "kind": "soft", "mesh": "box", "size": [0.3, 0.1, 0.1], "cells": [4, 1, 1],
        "position": [0.15, 0.0, 0.0], "E": 3e4, "nu": 0.3, "held": held,
    }  # fmt: skip
    simulate = {"frames": 6, "points": 150, "noise": ERROR, "duration": 0.15}
    return {
        "bodies": {"beam": beam},
        "observations": {"scan": {"kind": "cloud", "simulate": simulate, "error": ERROR, **scan}},
        "free": {"beam.E": {"start": 9e4, "bounds": [1e3, 1e6]}},
    }


def made(folder=".", **scan):
    return make_problem(scene_from_dict(tables(**scan), folder))


@pytest.fixture(scope="module")
def twin():
    return made()


def observer_of(problem) -> CloudObserver:
    (observer,) = problem.observers
    return observer


@pytest.mark.parametrize("two_sided", [False, True])
def test_tangent_and_cotangent_are_those_of_the_residuals(two_sided, rng):
    problem = made(two_sided=two_sided).problem
    free = {"beam.E": {}, "world.gravity": {}, "observations.scan.start": {"start": 0.003}}
    given = {**tables(two_sided=two_sided), "free": free}
    problem = make_problem(scene_from_dict(given, ".")).problem
    theta = problem.parameters.start + 0.3
    tan = rng.standard_normal(theta.size)
    pushed = problem.residuals_jvp(theta, tan)
    adj = rng.standard_normal(pushed.size)
    assert pushed @ adj == pytest.approx(tan @ problem.residuals_vjp(theta, adj), rel=1e-10)
    _, J = problem.residuals_and_jacobian(theta)
    np.testing.assert_allclose(J @ tan, pushed, atol=1e-9 * np.abs(pushed).max())
    h = 1e-5
    ahead, behind = (problem.residuals(theta + s * h * tan) for s in (1, -1))
    differences = (ahead - behind) / (2 * h)
    # a point whose nearest feature changes within h has a kink
    off = np.abs(differences - pushed) / np.abs(pushed).max()
    assert np.quantile(off, 0.98) < 1e-6


@pytest.mark.parametrize("two_sided", [False, True])
def test_rows_have_exact_slopes_by_the_vertices(two_sided, rng):
    observer = observer_of(made(two_sided=two_sided).problem)
    x = observer.begun["beam"]
    begun = np.broadcast_to(x, (6, *x.shape)) + 0.01 * rng.standard_normal((6, *x.shape))
    tan = {"beam": rng.standard_normal(begun.shape)}

    def at(h):
        rows = observer.shown({"beam": begun + h * tan["beam"]}, {}).rows
        return observer.residuals(rows)

    record = observer.shown({"beam": begun}, {})
    pushed = observer.residuals_jvp(record.jvp(tan, {}))
    h = 1e-6  # rounding is 1e-10 of a residual per error, and so is the third order
    slopes = [(at(k * h) - at(-k * h)) / (2 * k * h) for k in (1, 2)]
    off = np.abs((4 * slopes[0] - slopes[1]) / 3 - pushed) / np.abs(pushed).max()
    assert np.quantile(off, 0.97) < 1e-9  # the others change their feature, or turn Huber's corner
    adj = rng.standard_normal(pushed.size)
    back = record.vjp(observer.residuals_vjp(adj))[0]["beam"]
    assert np.sum(back * tan["beam"]) == pytest.approx(adj @ pushed, rel=1e-12)


def test_residuals_are_distances_in_errors_and_far_ones_count_less(twin):
    observer = replace(observer_of(twin.problem).between(np.arange(6) == 0), error=0.01)
    x = observer.begun["beam"]
    top = x[:, 1].max()
    points = np.array([[0.1, top + d, 0.01] for d in (0.02, -0.015, 0.2)] + [[np.nan] * 3])
    observer = replace(observer, clouds=points[None])
    rows = observer.shown({"beam": x[None]}, {}).rows
    r = observer.residuals(rows) * np.sqrt(3)
    np.testing.assert_allclose(r, [2.0, -1.5, np.sqrt(2 * HUBER * 20 - HUBER**2), 0.0], rtol=1e-9)
    np.testing.assert_allclose(observer.squares(rows, observer.targets()), [r @ r / 3])
    np.testing.assert_allclose(observer.expected_noise(rows), np.array([1, 1, 1, 0]) / 3)
    assert observer.noise(rows, r, 1) == pytest.approx(r @ r / 2)
    assert observer.mean()[3].tolist() == [0.0, 0.0, 0.0]


def test_vertices_have_the_error_alone_beside_single_points():
    observer = replace(observer_of(made(two_sided=True).problem), error=0.01)
    clouds = np.full((6, 2, 3), np.nan)
    clouds[:, 0] = [0.1, 0.0, 0.0]
    assert replace(observer, clouds=clouds)._error_of_vertices == 0.01
    clouds[:3, 1] = [0.1, 0.03, 0.0]  # 6 of 9 points have another one 0.03 m away
    expected = np.sqrt(0.01**2 + 6 / 9 * 0.03**2)
    assert replace(observer, clouds=clouds)._error_of_vertices == pytest.approx(expected)


def test_the_bits_are_the_same_on_one_and_two_threads(twin):
    observer = observer_of(twin.problem)
    observer = replace(observer, clouds=np.repeat(observer.clouds, 10, axis=1))
    x = observer.begun["beam"][None] + np.zeros((6, 1, 1))
    rows, threads = [], numba.get_num_threads()
    for n in (1, 2):
        numba.set_num_threads(min(n, numba.config.NUMBA_NUM_THREADS))
        rows.append(observer.shown({"beam": x}, {}).rows)
    numba.set_num_threads(threads)
    np.testing.assert_array_equal(*rows)


def test_a_twin_simulates_points_of_the_surface_at_the_truth(twin):
    observer = observer_of(twin.problem)
    truth = np.log([3e4])
    rows = twin.problem.predicted_rows(truth)
    assert observer.clouds.shape == (6, 150, 3)
    distances = rows[:, 0]
    assert distances.std() == pytest.approx(ERROR, rel=0.1)  # the noise, and nothing else
    assert (
        np.abs(twin.problem.predicted_rows(twin.problem.parameters.start)[:, 0]).max() > 5 * ERROR
    )


def test_both_sides_of_a_whole_cloud_count_alike_at_the_truth():
    problem = made(two_sided=True).problem
    assert problem.loss_at(np.log([3e4])) == pytest.approx(2.0, rel=0.25)
    assert problem.loss_at(np.log([2e4])) > 1.1 * problem.loss_at(np.log([3e4]))


def test_samples_lie_evenly_on_a_surface():
    x = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [3, 0, 0]], float)
    faces = np.array([[0, 1, 2], [1, 3, 2]])
    points = surface_samples(x, faces, 4000, seed=0) @ x
    assert (points[:, :2] >= 0.0).all()
    assert not points[:, 2].any()
    # three triangles of one size side by side; the standard error is 0.7 %
    assert np.mean(points[:, 0] + points[:, 1] < 1.0) == pytest.approx(1 / 3, abs=0.03)
    np.testing.assert_allclose(points.mean(axis=0), [1.0, 1 / 3, 0.0], atol=0.03)


def test_E_is_found_from_a_cloud_in_a_file_and_the_page_shows_it(tmp_path):
    observer = observer_of(made().problem)
    (tmp_path / "scans").mkdir()
    for k, points in enumerate(observer.clouds):
        lines = ["x,y,z", *(",".join(map(str, point)) for point in points[: 150 - k])]
        (tmp_path / "scans" / f"{k}.csv").write_text("\n".join(lines))
    (tmp_path / "times.csv").write_text("\n".join(["time", *map(str, observer.times)]))
    given = tables()
    given["observations"]["scan"] = {"kind": "cloud", "file": "scans", "times": "times.csv"}
    path, run = tmp_path / "beam.toml", tmp_path / "run"
    path.write_text(tomlkit.dumps(given))
    assert preview(path, tmp_path / "preview.png") == []
    assert read_image(tmp_path / "preview.png").ndim == 3
    adjsim.done("run", path, "--out", run, "search.coarse=0")
    result = read(run)
    (E,) = result["parameters"]
    assert result["verdict"]["kind"] == "found"
    low, high = E["interval"]
    assert low < 3e4 < high < 1.5 * low
    assert (run / "figures" / "cloud-scan.svg").is_file()
    assert "Cloud and answer: scan" in (run / "report.html").read_text()
    # the budget counts what is declared: no rate of frames, since the file has times
    assert "density" in json.dumps(result)
    assert "frame rate" not in json.dumps(result)


def test_the_gradient_certificate_passes(twin):
    point = check_point(twin.problem, twin.problem.parameters.start, seed=0)
    assert point["verdict"] == "passed"


def real(folder, change=lambda points: points, **more):
    """Return the problem whose cloud is in a file, changed."""
    observer = observer_of(made().problem)
    np.savez(folder / "scan.npz", times=observer.times, points=change(observer.clouds))
    given = tables()
    given["observations"]["scan"] = {"kind": "cloud", "file": "scan.npz", **more}
    return make_problem(scene_from_dict(given, folder))


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        (lambda points: 1e3 * points, {}, r"seem to be in mm. Give `observations.scan.units = "),
        (lambda points: 1e2 * points, {}, "seem to be in cm"),
        (lambda points: points + 1.0, {}, r"half of the points of its first frame are more than"),
        (lambda points: points, {"bodies": ["bean"]}, "`observations.scan.bodies`"),
    ],
)
def test_a_cloud_that_does_not_fit_its_body_is_refused(change, more, message, tmp_path):
    with pytest.raises(StudyError, match=message):
        real(tmp_path, change, **more)


def test_a_cloud_in_millimetres_is_read_with_its_unit(tmp_path):
    rows = real(tmp_path, lambda points: 1e3 * points, units="mm").problem.predicted_rows(
        np.log([3e4])
    )
    assert rows[:, 0].std() == pytest.approx(ERROR, rel=0.1)


def test_times_in_milliseconds_are_refused(tmp_path):
    observer = observer_of(made().problem)
    np.savez(tmp_path / "scan.npz", times=1e3 * observer.times, points=observer.clouds)
    given = tables()
    given["observations"]["scan"] = {"kind": "cloud", "file": "scan.npz"}
    with pytest.raises(StudyError, match="times must be in seconds, but rows are 25 s apart"):
        make_problem(scene_from_dict(given, tmp_path))


def test_what_says_how_a_file_is_read_is_refused_of_what_is_simulated():
    for key, value in {"fps": 30.0, "most_points": 10, "units": "mm"}.items():
        with pytest.raises(StudyError, match=f"`observations.scan.{key}` must be left out of what"):
            made(**{key: value})
