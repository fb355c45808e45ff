"""Shadows and light beside a body are no motion that a fit must explain; a wrong motion shows."""

import numpy as np
import pytest

from studies.answer.verdict import UNEXPLAINED
from studies.fitting.judging import explained_motion, unexplained_pictures
from studies.problem.frame_squares import (
    counted_rows,
    look_squares,
    residual_squares,
    still_squares,
)
from studies.problem.making import make_problem
from studies.problem.problem import on_one_timeline
from studies.runs import media
from studies.scene.reading import scene_from_dict


SIZE, FRAMES = (48, 64), 12
WALL, ORANGE, BLUE, GREY = (0.7, 0.66, 0.6), (0.8, 0.35, 0.15), (0.2, 0.3, 0.8), (0.4, 0.38, 0.35)
RIGHT = (0.6, 0.1, 0.0)
WRONG = {
    "slow": (0.48, 0.08, 0.0),
    "still": (0.0, 0.0, 0.0),
    "out of the picture": (4.8, 0.8, 0.0),
    "backwards": (-0.6, -0.1, 0.0),
    "up": (0.0, 0.6, 0.0),
    "far away": (0.0, 0.0, -8.9),
}


def problem_of(folder, *, color=ORANGE, scale=1.0, **film):
    """Return the problem of a brick that is thrown across a wall, without gravity."""
    brick = {
        "kind": "rigid",
        "mesh": "box",
        "size": [0.22, 0.16, 0.16],
        "scale": scale,
        "density": 500.0,
        "position": [-0.25, 0.05, 0.0],
        "rotation": [20.0, 30.0, 0.0],
        "velocity": list(RIGHT),
        "spin": [0.0, 0.0, 200.0],
        "look": {"color": list(color), "fit": not film},
    }
    camera = {"eye": [0.0, 0.0, 1.2], "target": [0.0, 0.0, 0.0], "fov_y": 35.0, "fit": False}
    tables = {
        "bodies": {"brick": brick},
        "world": {"gravity": [0.0, 0.0, 0.0]},
        "cameras": {"front": camera},
        "lights": {"sun": {"direction": [1.0, 2.0, 1.5]}},
        "observations": {"film": {"video": "film", "fps": 16.0, "downsample": 1, **film}},
        "free": {"brick.velocity": {"bounds": [-9.0, 9.0]}},
    }
    return make_problem(scene_from_dict(tables, folder)).problem


def write(folder, images):
    (folder / "film").mkdir(exist_ok=True)
    for k, image in enumerate(images):
        media.write_png(folder / "film" / f"{k:02d}.png", np.clip(image, 0.0, 1.0))


def drawn(folder, color):
    """Return the brick in motion before the wall, (n, H, W, 4)."""
    write(folder, np.random.default_rng(0).uniform(size=(FRAMES, *SIZE, 3)))
    problem = problem_of(folder, color=color, background={"color": list(WALL)})
    (film,) = problem.observers
    return film.as_images(problem.predicted_rows(problem.parameters.start))


def with_shadow(images):
    """Return the film with a shadow on the wall that grows dark and moves beside the brick."""
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    out = images[..., :3].copy()
    for k, image in enumerate(images):
        y, x = np.argwhere(image[..., 3] > 0.5).mean(axis=0)
        off = ((rows - y - 13.0) / 3.0) ** 2 + ((columns - x - 9.0) / 8.0) ** 2
        inside = np.clip(1.5 - off, 0.0, 1.0)
        dark = 0.45 * np.clip((k - 1) / 3.0, 0.0, 1.0) * inside[..., None]
        out[k] -= (1.0 - image[..., 3:]) * dark * WALL
    return out


def with_light(images):
    """Return the film under light that grows by a quarter."""
    return images[..., :3] * (1.0 + 0.15 * np.linspace(-0.5, 1.0, FRAMES))[:, None, None, None]


def half_blue(images):
    """Return the brick with its left half in another colour."""
    out = images.copy()
    for image in out:
        columns = np.nonzero(image[..., 3] > 0.02)[1]
        left = image[..., 3:] * (np.arange(SIZE[1]) <= np.median(columns))[None, :, None]
        image[..., :3] = (1.0 - left) * image[..., :3] + left * BLUE
    return out


FILMS = {
    "plain": lambda images: images[..., :3],
    "shadow": with_shadow,
    "light": with_light,
    "two colours": lambda images: half_blue(images)[..., :3],
    "two colours and a shadow": lambda images: with_shadow(half_blue(images)),
}


def unexplained(problem, velocity, *, counts_all=False):
    theta = problem.parameters.theta(np.asarray(velocity))
    if counts_all:
        every = np.ones(len(problem.targets), bool)
        left, still = residual_squares(problem, theta), still_squares(problem)
        look = look_squares(problem, theta, every)
        return max(float((left - look)[1:].mean()), 0.0) / float(still[1:].mean())
    explained = explained_motion(problem, theta, looks=[theta])[1]
    assert explained is not None
    return explained.unexplained


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    """Return a function that gives the problem of a film by name."""
    folders, made = {}, {}

    def problem(name, color=ORANGE, scale=1.0):
        if (name, color) not in folders:
            folders[name, color] = tmp_path_factory.mktemp("film")
            write(folders[name, color], FILMS[name](drawn(folders[name, color], color)))
        if (name, color, scale) not in made:
            made[name, color, scale] = problem_of(folders[name, color], color=color, scale=scale)
        return made[name, color, scale]

    return problem


@pytest.mark.parametrize("name", FILMS)
def test_the_right_motion_explains_a_film(problem, name):
    assert unexplained(problem(name), RIGHT) < 0.6 * UNEXPLAINED


@pytest.mark.parametrize("name", ["shadow", "light", "two colours and a shadow"])
def test_with_all_pixels_the_right_motion_would_not_do(problem, name):
    assert unexplained(problem(name), RIGHT, counts_all=True) > 0.9 * UNEXPLAINED


@pytest.mark.parametrize("name", FILMS)
def test_a_wrong_motion_does_not_explain_a_film(problem, name):
    left = {wrong: unexplained(problem(name), velocity) for wrong, velocity in WRONG.items()}
    assert all(share > 2.5 * UNEXPLAINED for share in left.values()), left


@pytest.mark.parametrize("name", ["plain", "shadow", "light"])
def test_a_body_that_is_drawn_far_too_small_gains_nothing(problem, name):
    for velocity in (RIGHT, WRONG["still"]):
        expected = unexplained(problem("plain", scale=0.3), velocity, counts_all=True)
        assert unexplained(problem(name, scale=0.3), velocity) > 0.8 * expected


@pytest.mark.parametrize("name", ["shadow", "light"])
def test_every_pixel_counts_where_the_body_itself_looks_like_a_shadow(problem, name):
    grey = problem(name, GREY)
    assert counted_rows(grey, grey.predicted_rows(grey.parameters.start)).all()


def test_a_shadow_beside_a_body_counts_as_little_in_a_picture_as_in_a_film(problem):
    def left(name, position):
        film = problem(name)
        (observer,) = film.observers
        still = on_one_timeline(film, [observer.between(np.arange(FRAMES) == 5)])
        return unexplained_pictures(still, film.parameters.theta(np.asarray(position)))

    assert left("shadow", RIGHT) < 0.01 + left("plain", RIGHT)
    assert left("shadow", WRONG["still"]) > 0.5
