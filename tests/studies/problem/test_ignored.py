"""What `ignore` covers counts nowhere: not in residuals, gradient, noise, motion or masks."""

import numpy as np
import pytest

from studies.fitting.spread import pixel_covariance, pixel_noise
from studies.problem.body_tracks import tracked_problem
from studies.problem.frame_squares import residual_squares, still_squares, variation_squares
from studies.problem.making import make_problem
from studies.problem.observations.films import plate_of, read_film
from studies.problem.observations.outlines import foreground
from studies.problem.observers import SEEN
from studies.problem.problem import SceneProblem
from studies.reports.preview.showing import preview
from studies.runs import media
from studies.runs.errors import StudyError
from studies.scene.declared import Film
from studies.scene.reading import read_scene


SCENE = """
[bodies.ball]
kind = "rigid"
mesh = "ball"
size = [0.2]
cells = [2]
density = 500.0
velocity = [0.5, 0.3, 0.0]
look = { color = [0.9, 0.3, 0.1], fit = false }
[cameras.front]
eye = [0, 0, 2]
target = [0, 0, 0]
fov_y = 40
fit = false
[observations.film]
video = "clean"
fps = 20
[free]
"ball.velocity" = { start = [0.4, 0.35, 0.05], bounds = [-2.0, 2.0] }
"""
SIZE = 30, 40
HAND = (slice(0, 12), slice(26, 40))  # where a hand moves in one of the films
RECTANGLE = "observations.film.ignore=[26, 0, 39, 11]"
HAND_FILM = 'observations.film.video="hand"'


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A scene, its film, the same with a hand that moves in a corner, and masks, in one folder."""
    folder = tmp_path_factory.mktemp("films")
    path = folder / "scene.toml"
    simulate = "simulate = { height = 30, width = 40, frames = 6, duration = 0.3 }"
    text = SCENE.replace('video = "clean"\nfps = 20', simulate)
    path.write_text(text + "[observations.film.background]\ncolor = [0.5, 0.6, 0.7]\n")
    problem = make_problem(read_scene(path)).problem
    (observer,) = problem.observers
    frames = observer.as_images(problem.predicted_rows(problem.parameters.start))[..., :3]
    rng = np.random.default_rng(4)
    frames = frames + 0.01 * rng.standard_normal(frames.shape)
    for name in ("clean", "hand"):
        (folder / name).mkdir()
        for k, frame in enumerate(frames):
            if name == "hand":
                frame[HAND] = rng.random(frame[HAND].shape)
            media.write_png(folder / name / f"{k}.png", frame)
    for name, value in (("mask", 1.0), ("black", 0.0)):
        mask = np.zeros((*SIZE, 3))
        mask[HAND] = value
        media.write_png(folder / f"{name}.png", mask)
    media.write_png(folder / "small.png", np.ones((3, 4, 3)))
    path.write_text(SCENE)
    return path


def problem_of(scene, *overrides) -> SceneProblem:
    return make_problem(read_scene(scene, overrides)).problem


def test_what_is_ignored_changes_nothing_that_is_compared(scene):
    clean, hand = (problem_of(scene, RECTANGLE, *overrides) for overrides in ((), (HAND_FILM,)))
    theta = clean.parameters.start
    assert (hand.observers[0].frames == clean.observers[0].frames).all()
    for compute in (
        SceneProblem.loss_at,
        residual_squares,
        pixel_noise,
        lambda problem, _: still_squares(problem),
        lambda problem, _: variation_squares(problem),
        lambda problem, at: problem.loss_and_gradient(at)[1],
        lambda problem, at: problem.residuals_and_jacobian(at)[1],
        lambda problem, at: tracked_problem(problem).residuals(at),
    ):
        np.testing.assert_array_equal(compute(hand, theta), compute(clean, theta))
    assert problem_of(scene, HAND_FILM).loss_at(theta) > 3.0 * hand.loss_at(theta)


def test_residuals_have_the_scale_of_what_is_compared(scene):
    problem = problem_of(scene, HAND_FILM, RECTANGLE)
    theta, (observer,) = problem.parameters.start, problem.observers
    off = observer.as_images(problem.predicted_rows(theta))[..., :3] - observer.frames
    keep = np.ones(SIZE, bool)
    keep[HAND] = False
    noise = np.sqrt(np.square(off[:, keep]).mean())
    assert pixel_noise(problem, theta) == pytest.approx(noise, rel=1e-9)
    assert observer.part_compared == pytest.approx(keep.mean())
    flat = problem_of(scene, HAND_FILM, RECTANGLE, 'search.loss="mse"')
    assert flat.loss_at(theta) == pytest.approx((noise / SEEN) ** 2, rel=1e-6)
    mean = observer.frames[:, keep].mean(axis=(0, 1))
    np.testing.assert_allclose(observer.mean(), np.broadcast_to(mean, observer.targets().shape))


def test_gradient_and_jacobian_are_those_of_the_loss(scene):
    problem = problem_of(scene, HAND_FILM, RECTANGLE)
    theta = problem.parameters.start + np.array([0.03, -0.02, 0.01])
    r, J = problem.residuals_and_jacobian(theta)
    loss, gradient = problem.loss_and_gradient(theta)
    assert loss == pytest.approx(r @ r, rel=1e-12)
    np.testing.assert_allclose(gradient, 2.0 * (J.T @ r), rtol=1e-9)
    rng = np.random.default_rng(0)
    adj, tan = rng.standard_normal(len(r)), rng.standard_normal(3)
    back = problem.residuals_vjp(theta, adj)
    assert adj @ problem.residuals_jvp(theta, tan) == pytest.approx(back @ tan, rel=1e-10)
    assert np.linalg.eigvalsh(pixel_covariance(problem, theta, r, J)).min() > 0.0


def test_the_noise_that_gives_the_interval_counts_what_is_compared(scene):
    theta = problem_of(scene).parameters.start
    wide, narrow = (
        problem_of(scene, *overrides, 'search.loss="mse"') for overrides in ((RECTANGLE,), ())
    )
    ratios = []
    for problem in (wide, narrow):
        r, J = problem.residuals_and_jacobian(theta)
        ratios.append(np.sqrt(np.diag(pixel_covariance(problem, theta, r, J))))
    # the ball is not in the corner, so that all of its information is left, and the noise is even
    np.testing.assert_allclose(ratios[0], ratios[1], rtol=0.1)


@pytest.mark.parametrize(
    "ignore", ["[26, 0, 39, 11]", "[[26, 0, 32, 11], [30, 0, 39, 11]]", '"mask.png"']
)
def test_rectangles_and_pictures_say_what_is_ignored(scene, ignore):
    film = read_scene(scene, [f"observations.film.ignore={ignore}"]).observations["film"]
    expected = np.zeros(SIZE, bool)
    expected[HAND] = True
    np.testing.assert_array_equal(read_film(film, None).ignored, expected)


def test_blocks_that_are_ignored_in_part_are_ignored(scene):
    overrides = ["observations.film.ignore=[27, 1, 27, 1]", "observations.film.downsample=5"]
    film = read_scene(scene, overrides).observations["film"]
    assert np.argwhere(read_film(film, None).ignored).tolist() == [[0, 5]]


def test_masks_and_backgrounds_do_not_see_what_is_ignored(scene):
    film = Film(video=str(scene.parent / "hand"), fps=20.0)
    free = read_film(film, None)
    assert foreground(free) is None or foreground(free)[(slice(None), *HAND)].any()
    ignored = read_film(Film(video=film.video, fps=20.0, ignore=((26, 0, 39, 11),)), None)
    assert foreground(ignored).any()
    assert not foreground(ignored)[(slice(None), *HAND)].any()
    plate = plate_of(ignored, foreground(ignored)[0])
    np.testing.assert_array_equal(plate[HAND], ignored.frames[0][HAND])
    assert np.abs(plate[HAND] - (0.5, 0.6, 0.7)).max() < 0.05
    masks = Film(video=film.video, fps=20.0, masks=film.video, ignore=((26, 0, 39, 11),))
    assert (read_film(masks, None).masks[(slice(None), *HAND)] == 0.0).all()


@pytest.mark.parametrize(
    ("ignore", "said"),
    [
        ("[26, 0, 40, 11]", r"within 0 to 39 and 0 to 29, got \[26, 0, 40, 11\]"),
        ("[26, 12, 39, 11]", r"from the first to the last column and row"),
        ("[-1, 0, 3, 3]", r"within 0 to 39"),
        ("[]", r"`observations.film.ignore` covers no pixel of the film. Leave it out"),
        ("[0, 0, 39, 29]", r"covers the whole film: nothing is left to compare"),
        ('"black.png"', r"covers no pixel of the film"),
        ('"small.png"', r"must be as large as the film, 30 x 40 .* got 3 x 4"),
        ("[1, 2, 3]", r"`observations.film.ignore` .*rectangle \[x0, y0, x1, y1\]"),
        ("3", r"rectangle \[x0, y0, x1, y1\], a list of them, or a picture"),
        ('"none.png"', r"there is no file .*none.png"),
    ],
)
def test_what_cannot_be_ignored_is_refused(scene, ignore, said):
    with pytest.raises(StudyError, match=said):
        problem_of(scene, f"observations.film.ignore={ignore}")


def test_a_simulated_film_may_ignore_too(scene):
    text = SCENE.replace(
        'video = "clean"\nfps = 20',
        "simulate = { height = 30, width = 40, frames = 3, duration = 0.3 }",
    )
    path = scene.parent / "twin.toml"
    path.write_text(text + '[truth]\n"ball.velocity" = [0.5, 0.3, 0.0]\n')
    problem = problem_of(path, RECTANGLE)
    theta = problem.parameters.start
    keep = ~problem.observers[0].ignored
    assert keep.mean() == pytest.approx(1.0 - 12 * 14 / 1200)
    assert problem.loss_at(theta) > 0.0


def test_only_a_hand_that_moves_is_no_motion(scene):
    film = "observations.film.ignore=[[0, 0, 39, 11], [0, 12, 39, 29]]"
    with pytest.raises(StudyError, match="covers the whole film"):
        problem_of(scene, HAND_FILM, film)
    with pytest.raises(StudyError, match="nothing moves"):
        problem_of(scene, HAND_FILM, "observations.film.ignore=[1, 0, 39, 29]")


def test_what_is_ignored_is_hatched(scene, tmp_path):
    assert preview(read_scene(scene, [HAND_FILM, RECTANGLE]), tmp_path / "a.png") == []
    picture = media.read_image(tmp_path / "a.png")[:360]
    stripes = np.abs(np.ptp(picture, axis=-1)) < 0.004
    stripes &= np.isclose(picture[..., 0], 0.45, atol=3e-3) | np.isclose(
        picture[..., 0], 0.7, atol=3e-3
    )
    corner = np.zeros((360, 480), bool)
    corner[:144, 312:] = True
    assert stripes[30:, :480][corner[30:]].mean() > 0.95
    assert stripes[30:, 972:][corner[30:]].mean() > 0.9  # an outline may lie over it
    assert not stripes[30:, :480][~corner[30:]].any()
    assert not stripes[30:, 486:966].any()  # the scene
    assert media.hatched(picture, None) is picture
