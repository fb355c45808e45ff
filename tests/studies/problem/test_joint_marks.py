"""Joints are marked where they are, in pictures of bodies that are drawn."""

import numpy as np

from render.camera import Camera
from studies.fitting.fit import what_moves
from studies.problem.forward import start_surfaces
from studies.problem.joint_marks import marked, seen_by
from studies.reports.preview import showing
from studies.reports.preview.showing import preview
from studies.runs import media
from studies.scene.building import build
from studies.scene.drawing import instance_of
from studies.scene.files import find_scene
from studies.scene.reading import read_scene


GREY = np.full((200, 300, 3), 128, np.uint8)


def links():
    built = build(instance_of(read_scene(find_scene("links")), seed=0))
    return built, start_surfaces(built)


def changed(image):
    return (image != 128).any(axis=2)


def test_a_disc_is_at_the_anchor_and_a_line_along_the_axis():
    built, places = links()
    camera = Camera(eye=(0.9, 0.1, 1.2), target=(0.3, 0.0, 0.0), fov_y=40.0)
    seen_at = seen_by(camera, (200, 300))
    image = marked(GREY, {"elbow": built.joints["elbow"]}, places, seen_at)
    (at, end), _ = seen_at(np.array([[0.3, 0.0, 0.035], [0.3, 0.0, 0.095]]))
    column, row = np.rint(at).astype(int)
    assert image[row, column].min() > 240
    column, row = np.rint(end).astype(int)
    assert image[row, column].max() < 125
    rows, columns = np.nonzero(changed(image))
    assert np.hypot(columns - at[0], rows - at[1]).max() < 40


def test_an_axis_along_the_view_is_a_disc_alone():
    built, places = links()
    camera = Camera(eye=(0.3, 0.0, 2.0), target=(0.3, 0.0, 0.0), fov_y=40.0)
    elbow = {"elbow": built.joints["elbow"]}
    image = marked(GREY, elbow, places, seen_by(camera, (200, 300)))
    assert 10 < changed(image).sum() < 100


def test_nothing_is_marked_on_bodies_that_are_not_drawn():
    built, places = links()
    camera = Camera(eye=(0.3, 0.0, 2.0), target=(0.3, 0.0, 0.0), fov_y=40.0)
    upper = {"upper": places["upper"]}
    image = marked(GREY, built.joints, upper, seen_by(camera, (200, 300)))
    both = marked(GREY, built.joints, places, seen_by(camera, (200, 300)))
    assert 0 < changed(image).sum() < changed(both).sum()
    assert marked(GREY, built.joints, {}, seen_by(camera, (200, 300))) is GREY


def test_a_preview_marks_joints(tmp_path, monkeypatch):
    scene = find_scene("links")
    preview(scene, tmp_path / "with.png")
    monkeypatch.setattr(showing, "marked", lambda image, *_: image)
    preview(scene, tmp_path / "without.png")
    pictures = [media.read_image(tmp_path / f"{name}.png") for name in ("with", "without")]
    n = (pictures[0] != pictures[1]).any(axis=2).sum()
    assert 3 * 2 * 30 < n < 3 * 2 * 400  # two discs in each of three pictures


def test_contacts_and_joints_are_named():
    built, _ = links()
    assert what_moves(built).endswith(
        "root: hinge of world and upper, elbow: hinge of upper and lower"
    )
    balls = build(instance_of(read_scene(find_scene("two-balls")), seed=0))
    assert what_moves(balls).endswith(", touch: contact of left and right")
