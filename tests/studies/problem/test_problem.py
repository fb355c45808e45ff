import warnings
from fractions import Fraction

import numpy as np
import pytest

from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from studies.problem.clusters import clusters_of_rows
from studies.problem.frame_squares import residual_squares
from studies.problem.many_thetas import residuals_at, samples
from studies.problem.steps import TimeSteps, sample_steps, shortest_interval
from studies.problem.worlds import Failure, Sample
from studies.runs.errors import NotFiniteError, StudyError
from studies.scene.motion import Motion
from tests.studies.problem import scenes
from tests.studies.problem.observations.stamped import write_stamped


MANY_FREE = {
    "cube.E": {"start": 1.5e4, "bounds": [1e3, 1e6]},
    "cube.nu": {"start": 0.25},
    "cube.density": {"tied_to": "cube.E", "factor": 0.06},
    "cube.velocity": {"start": [0.1, -0.4, 0.1], "prior": {"mean": 0.0, "error": 1.0}},
    "cube.spin": {"start": [0.5, 0.1, 0.2]},
    "cube.rotation": {},
    "floor.friction": {"start": 0.2, "bounds": [0.01, 2.0]},
    "world.gravity": {"start": [0.1, -9.0, 0.0]},
    "observations.film.start": {"start": 0.013, "bounds": [-0.1, 0.1]},
    "cube.look.diffuse": {},
    "lights.sun.direction": {},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("scene")
    scenes.write_film(path)
    return path


@pytest.fixture(scope="module")
def many(folder):
    (table,) = scenes.tables()["observations"].values()
    film = {"film": {**table, "start": 0.013}}
    # without damping a touch is a kink, not a jump: differences still show every slope
    floor = {"floor": {"kind": "plane", "friction": 0.3, "damping": 0.0}}
    return scenes.problem_of(folder, free=MANY_FREE, observations=film, obstacles=floor)


def test_jacobian_agrees_with_the_gradient_and_the_transpose(many):
    rng = np.random.default_rng(1)
    theta = scenes.shifted(many, rng)
    r, jacobian = many.residuals_and_jacobian(theta)
    loss, gradient = many.loss_and_gradient(theta)
    assert loss == pytest.approx(r @ r, rel=1e-12)
    assert np.abs(2.0 * (jacobian.T @ r) - gradient).max() <= 1e-12 * np.abs(gradient).max()
    adj, tan = rng.standard_normal(len(r)), rng.standard_normal(len(theta))
    pushed = many.residuals_jvp(theta, tan)
    assert pushed @ adj == pytest.approx(tan @ many.residuals_vjp(theta, adj), rel=1e-11)
    assert np.abs(pushed - jacobian @ tan).max() <= 1e-12 * np.abs(pushed).max()


def test_every_column_of_the_jacobian_is_a_difference(many):
    theta = scenes.shifted(many, np.random.default_rng(3))  # no pixel changes sides beside it
    early = many.first_frames(4)
    _, jacobian = early.residuals_and_jacobian(theta)
    jacobian = np.asarray(jacobian)
    assert np.linalg.norm(jacobian, axis=0).min() > 0.0
    for i, label in enumerate(early.parameters.theta_labels):
        step = np.zeros_like(theta)
        step[i] = 1e-5
        difference = (early.residuals(theta + step) - early.residuals(theta - step)) / 2e-5
        off = np.linalg.norm(difference - jacobian[:, i]) / np.linalg.norm(jacobian[:, i])
        assert off < 1e-3, label


def test_an_answer_to_the_first_frames_is_shown_beside_the_start_of_all(many):
    early, start = many.first_frames(4), many.parameters.start
    (film,), (every_frame,) = early.observers, many.observers
    begun = many.predicted_rows(start)
    shown = film.frames_compared(early.predicted_rows(start), begun)
    assert len(shown["target"]) == len(film.times) < len(every_frame.times)
    first = every_frame.as_images(begun)[: len(film.times)].astype(np.float32)
    np.testing.assert_array_equal(shown["start"], first)


def test_a_prior_has_one_mean_or_one_for_each_number(folder):
    free = {"cube.velocity": {"prior": {"mean": [0.0, 1.0], "error": 1.0}}}
    with pytest.raises(StudyError, match=r"velocity\".prior.mean` must be one number or 3, got 2"):
        scenes.problem_of(folder, free=free)


def test_a_tied_path_follows(many):
    values = many.parameters.scene_values(many.parameters.start)
    assert values["cube.density"] == pytest.approx(0.06 * values["cube.E"])
    assert "cube.density" not in many.parameters.paths


def test_losses_by_frame_are_those_of_one_at_a_time(folder):
    problem = scenes.problem_of(folder)
    thetas = [problem.parameters.start, problem.parameters.start + 0.5]
    losses = problem.losses_by_frame(thetas)
    assert losses.shape == (2, scenes.FRAMES)
    for row, theta in zip(losses, thetas, strict=True):
        stepped = problem.with_steps_for(theta)
        alone = scenes.replace(stepped, steps=stepped.steps.rounded())
        assert np.array_equal(row, alone.frame_losses(alone.predicted_rows(theta)))
        assert row.mean() == pytest.approx(alone.loss_of(alone.predicted_rows(theta)), rel=1e-12)


def test_frames_of_rows_add_up_to_the_losses(folder):
    problem = scenes.problem_of(folder)
    theta = problem.parameters.start
    r, frames = problem.residuals(theta), clusters_of_rows(problem)
    of_frames = frames >= 0
    by_frame = np.bincount(frames[of_frames], r[of_frames] ** 2) * scenes.FRAMES
    assert by_frame == pytest.approx(problem.frame_losses(problem.predicted_rows(theta)), rel=1e-12)


def test_a_camera_that_is_off_is_found_in_the_first_frame(folder):
    off = {"front": {"eye": [0.31, 0.295, 0.9], "target": [0.01, 0.11, 0.0], "fov_y": 30.2}}
    problem = scenes.problem_of(folder, cameras=off)
    left = residual_squares(problem, problem.parameters.start)[0]
    exact = scenes.problem_of(folder)
    assert left < 3.0 * residual_squares(exact, exact.parameters.start)[0] + 1e-3


def test_what_is_known_exactly_of_a_camera_is_not_fitted(folder):
    front = scenes.tables()["cameras"]["front"]

    def fitted(**errors):
        problem = scenes.problem_of(folder, cameras={"front": {**front, **errors}})
        return {path for path in problem.parameters.paths if path.startswith("cameras.")}

    lens, pose = {"cameras.front.fov_y"}, {"cameras.front.rotation", "cameras.front.translation"}
    assert fitted() == lens | pose
    assert fitted(fov_error=0) == pose
    assert fitted(position_error=0, angle_error=0) == lens
    assert fitted(angle_error=0) == lens | pose
    with pytest.raises(StudyError, match=r"`cameras\.front\.position_error` must be above 0"):
        fitted(position_error=0)


def test_free_fall_is_exact_at_every_step(folder):
    bodies = scenes.tables()["bodies"]
    bodies["cube"] |= {"position": [0.0, 5.0, 0.0], "velocity": [0.3, 0.1, 0.0], "mesh": "box"}
    camera = {"front": {"eye": [0.3, 5.0, 2.9], "target": [0.0, 4.9, 0.0], "fov_y": 60.0}}
    problem = scenes.problem_of(folder, bodies=bodies, cameras=camera)
    motion = problem.motion_at(problem.parameters.start)
    run = motion.run()
    weights = motion.system.mass / motion.system.mass.sum()
    center = np.einsum("n,tnc->tc", weights, run.x)
    t = run.times[:, None]
    expected = center[0] + t * [0.3, 0.1, 0.0] + 0.5 * t**2 * [0.0, -9.81, 0.0]
    assert np.abs(center - expected).max() < 1e-12


def test_only_a_step_that_the_user_chose_is_warned_of():
    model = Model(np.full(2, 4.0), {"floor": HalfSpaceContact(stiffness=100.0)})
    long = 1.4 * model.stable_dt()
    start, frames = State(np.ones((2, 3))), np.array([500])
    with pytest.warns(UserWarning, match="is above the estimated stable step"):
        Motion(model, start, TimeSteps(long, 1, is_given=True).dt, frames).run()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Motion(model, start, TimeSteps(long, 1).dt, frames).run()
        Motion(model, start, TimeSteps(long, 1).dt, frames).record()


def test_instants_between_steps_are_interpolated():
    steps, (at,) = sample_steps([np.array([0.0, 0.25, 1.0])], 0.1, moves=[False])
    assert steps.tolist() == [0, 2, 3, 10]
    rows = np.array([[0.0], [2.0], [3.0], [10.0]])
    assert at.at(rows).ravel() == pytest.approx([0.0, 2.5, 10.0])
    adj = np.array([[1.0], [2.0], [3.0]])
    assert np.sum(at.at(rows) * adj) == pytest.approx(np.sum(rows * at.spread(adj, 4)))


def test_a_time_stamp_close_to_the_last_asks_for_no_more_steps():
    even = np.arange(20) / 30.0
    assert shortest_interval(even) == np.diff(even).min()
    assert shortest_interval(np.array([0.0, 0.033, 0.034, 0.067, 0.09])) == pytest.approx(0.023)


def test_a_film_is_compared_at_its_time_stamps(tmp_path):
    """Frames 3 and 4 of seven are missing, and the last stamp is off the grid of steps."""
    images = scenes.write_film(tmp_path)[..., :3].clip(0.0, 1.0)
    kept = [0, 1, 2, 5, 6]
    write_stamped(tmp_path / "film.mkv", images[kept], [0, 50, 100, 250, 301], Fraction(1, 1000))
    free = {"cube.E": {"start": 2e4, "bounds": [1e3, 1e6]}}
    film = {"video": "film.mkv", "downsample": 1, "seams": False}
    film["background"] = {"color": [0.2, 0.3, 0.4]}
    by_stamps, by_rate = (
        scenes.problem_of(tmp_path, free=free, observations={"film": {**film, **more}})
        for more in ({}, {"fps": scenes.FPS})
    )
    assert by_stamps.observers[0].times == pytest.approx([0.0, 0.05, 0.1, 0.25, 0.301])
    theta = by_stamps.parameters.start
    loss, _ = by_stamps.loss_and_gradient(theta)
    assert loss < 0.1 * by_rate.loss_and_gradient(by_rate.parameters.start)[0]
    along = np.eye(len(theta))[0]  # E
    _, gradient = by_stamps.loss_and_gradient(theta + 0.1 * along)
    ahead, back = (by_stamps.loss_and_gradient(theta + e * along)[0] for e in (0.10001, 0.09999))
    assert gradient[0] == pytest.approx((ahead - back) / 2e-5, rel=1e-4)


@pytest.mark.parametrize(
    ("free", "words"),
    [
        ({"cube.Q": {}}, ["cube.Q", "cube.E"]),
        ({"cube.E": {"start": 10.0, "bounds": [1e3, 1e6]}}, ["start", "bounds"]),
        ({"cube.E": {"tied_to": "cube.nu"}}, ["tied_to", "cube.nu"]),
        ({}, ["free", "at least one"]),
    ],
)
def test_what_cannot_be_free_is_refused(folder, free, words):
    with pytest.raises(ValueError, match=words[0].replace(".", r"\.")) as caught:
        scenes.problem_of(folder, free=free)
    assert all(word in str(caught.value) for word in words)


def test_a_free_start_time_is_searched_near_the_start(tmp_path):
    scenes.write_film(tmp_path)
    parameters = scenes.problem_of(tmp_path, free={"observations.film.start": {}}).parameters
    start = parameters.free[0]
    quarter = 0.25 * (scenes.FRAMES - 1) / scenes.FPS
    assert start.bounds == pytest.approx((-quarter, quarter))
    assert start.is_answer


def test_a_start_time_beside_other_numbers_is_fitted_but_not_asked_for(tmp_path):
    scenes.write_film(tmp_path)
    free = {"cube.E": {}, "observations.film.start": {}}
    parameters = scenes.problem_of(tmp_path, free=free).parameters
    assert [parameter.path for parameter in parameters.free if parameter.is_answer] == ["cube.E"]
    assert (parameters.answers, parameters.first_answers) == ((0,), (0, 1))


def test_samples_side_by_side_have_the_bits_of_one_alone(folder):
    problem = scenes.problem_of(folder)
    start = problem.parameters.start
    of_e = np.eye(len(start))[0]
    thetas = [start + d * of_e for d in (-0.1, 0.0, 0.02, 7.0)]
    together = samples(problem, thetas)
    steps = {problem.with_rounded_steps(theta).steps.dt for theta in thetas}
    assert 1 < len(steps) < len(thetas)
    for theta, sample in zip(thetas, together, strict=True):
        assert isinstance(sample, Sample)
        loss, gradient = problem.with_rounded_steps(theta).loss_and_gradient(theta)
        assert sample.loss == loss
        assert np.array_equal(sample.gradient, gradient)
        (alone,) = samples(problem, [theta])
        assert isinstance(alone, Sample)
        assert (alone.loss, *alone.gradient) == (sample.loss, *sample.gradient)
        assert np.array_equal(alone.frame_loss, sample.frame_loss)
        (plain,) = samples(problem, [theta], with_gradient=False)
        assert isinstance(plain, Sample)
        assert plain.loss == pytest.approx(loss, rel=1e-12)


def test_a_sample_that_blows_up_leaves_the_others_alone(folder):
    problem = scenes.problem_of(folder)
    start = problem.parameters.start
    fixed = [problem.steps] * 3
    stiff = start + np.array([9.0] + [0.0] * (len(start) - 1))
    outcomes = samples(problem, [start, stiff, start], steps=fixed)
    assert isinstance(outcomes[1], Failure)
    assert "leaves the finite numbers in step" in outcomes[1].reason
    assert isinstance(outcomes[0], Sample)
    assert isinstance(outcomes[2], Sample)
    assert outcomes[0].loss == outcomes[2].loss == problem.loss_and_gradient(start)[0]


def test_a_step_that_leaves_no_camera_counts_as_a_motion_that_blows_up(tmp_path):
    scenes.write_film(tmp_path)
    (observer,) = scenes.problem_of(tmp_path).observers
    with pytest.raises(NotFiniteError, match="fov_y"):
        observer.camera_at({f"{observer.camera_path}.fov_y": np.array(-8e15)})


def test_points_without_a_camera_have_no_residuals_and_the_others_have(tmp_path):
    scenes.write_film(tmp_path)
    problem = scenes.problem_of(tmp_path)
    theta = problem.parameters.start
    (index,) = [k for k, label in enumerate(problem.parameters.labels) if label.endswith("fov_y")]
    beyond = theta.copy()
    beyond[index] = -1e6
    residuals = list(residuals_at(problem, [theta, beyond]))
    np.testing.assert_array_equal(residuals[0], problem.residuals(theta))
    assert residuals[1] is None


def test_steps_are_short_where_two_thirds_of_them_would_do(monkeypatch):
    monkeypatch.setattr(Model, "stable_dt", lambda _model: 1e-3)
    system = Model(np.ones(1))
    suited = TimeSteps(0.06, 4).suited_to(system)
    assert suited.count == 100
    assert not suited.are_short(system)
    assert not TimeSteps(0.06, 149).are_short(system)
    assert TimeSteps(0.06, 150).are_short(system)
    assert not TimeSteps(0.06, 1000, is_given=True).are_short(system)
