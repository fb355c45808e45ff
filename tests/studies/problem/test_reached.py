"""A film's Jacobian stores the rows that bodies reach, and these are all that have a slope."""

from dataclasses import replace

import numpy as np
import pytest

from studies.fitting.spread import pixel_covariance
from studies.problem import films
from tests.studies.problem import scenes


FREE = {"cube.E": {"bounds": [1e3, 1e6]}, "cube.velocity": {}}
LOOKS = {  # angle of the camera, how far it is moved up, and the part of the rows that is stored
    "covers nothing": (30.0, 9.0, (0.0, 0.0)),
    "covers a part": (60.0, 0.0, (0.02, 0.4)),
    "covers everything": (1.0, 0.0, (1.0, 1.0)),
}


@pytest.fixture(params=LOOKS.values(), ids=LOOKS)
def look(request, tmp_path):
    """Return the problem of a film, and the least and the largest part of rows that is stored."""
    angle, up, stored = request.param
    scenes.write_film(tmp_path)
    front = {"eye": [0.3, 0.3, 0.9], "target": [0.0, 0.08, 0.0], "fov_y": angle, "fit": False}
    problem = scenes.problem_of(tmp_path, free=FREE, cameras={"front": front})
    (film,) = problem.observers
    moved = replace(film, center=film.center + np.array([0.0, up, 0.0]))
    return replace(problem, observers=(moved,)), stored


def test_rows_that_are_stored_are_all_that_have_a_slope(look):
    problem, (least, largest) = look
    theta, p = problem.parameters.start, problem.parameters.size
    r, J = problem.residuals_and_jacobian(theta)
    np.testing.assert_array_equal(r, problem.residuals(theta))
    columns = [problem.residuals_jvp(theta, axis) for axis in np.eye(p)]
    np.testing.assert_array_equal(np.asarray(J), np.stack(columns, axis=1))
    assert J.shape == (len(r), p)
    assert least <= (len(J.rows) - p) / (len(r) - p) <= largest
    assert (J.rows[-p:] == len(r) - p + np.arange(p)).all()


@pytest.mark.parametrize("ignored", [False, True], ids=["all", "ignored"])
@pytest.mark.parametrize("most", [0.0, 1.0], ids=["frames", "boxes"])
def test_residuals_are_those_of_whole_frames(look, most, ignored, monkeypatch):
    """To the bit, whether they are computed in boxes or not; those that are not finite are said."""
    monkeypatch.setattr(films, "MOST_IN_BOXES", most)
    problem, _ = look
    (film,) = problem.observers
    if ignored:
        mask = np.zeros(film.size, bool)
        mask[: film.size[0] // 2, ::3] = True
        film = replace(film, ignored=mask)
    rows = problem.predicted_rows(problem.parameters.start)
    whole = films.PictureObserver.residuals(film, rows)
    np.testing.assert_array_equal(film.residuals(rows), whole)
    rows[-1, 0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        film.residuals(rows)


def test_the_same_rows_have_the_same_bits_again(look):
    problem, _ = look
    theta = problem.parameters.start
    first, again = (problem.residuals_and_jacobian(theta)[1] for _ in range(2))
    np.testing.assert_array_equal(first.rows, again.rows)
    np.testing.assert_array_equal(first.values, again.values)


def test_noise_of_pixels_is_that_of_whole_frames(look):
    problem, _ = look
    theta, (film,), p = problem.parameters.start, problem.observers, problem.parameters.size
    r, J = problem.residuals_and_jacobian(theta)
    covariance = pixel_covariance(problem, theta, r, J)
    if len(J.rows) == p:  # no row but those of the priors
        assert covariance is None
        return
    pulled = np.stack([film.residuals_vjp(each)[:, :3].ravel() for each in np.asarray(J).T[:, :-p]])
    off = (problem.predicted_rows(theta)[:, :3] - film.targets()).ravel()
    half = np.linalg.solve(J.T @ J, pulled)
    expected = off @ off / (off.size - p) * half @ half.T
    np.testing.assert_allclose(covariance, expected, rtol=1e-6)
