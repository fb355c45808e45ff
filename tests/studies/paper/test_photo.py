"""What VTK is given: the light as an image, and the normals of corners."""

import numpy as np
import pytest

from adjsim.meshes.shapes import shape
from studies.paper import photo, traced
from studies.paper.model_errors import Kind, main
from studies.runs.errors import StudyError


def test_the_light_comes_from_the_sun_and_from_above():
    light = photo.environment(64)
    assert light.shape == (64, 128, 3)
    assert (light > 0.0).all()
    row, column = np.unravel_index(light.sum(axis=-1).argmax(), light.shape[:2])
    polar, around = np.pi * (row + 0.5) / 64, np.pi * (column + 0.5) / 64
    towards = [np.sin(polar) * np.cos(around), np.cos(polar), np.sin(polar) * np.sin(around)]
    sun = np.array(photo.SUN) / np.linalg.norm(photo.SUN)
    assert towards @ sun > np.cos(photo.LAMPS[0][1])
    assert light[:32].mean() > light[32:].mean()


def test_edges_are_sharp_and_curves_are_smooth():
    cube, ball = shape("cube"), shape("sphere")
    for mesh, is_sharp in ((cube, True), (ball, False)):
        smoothing = photo.corner_faces(mesh.faces, mesh.points)
        normals = photo.corner_normals(smoothing, mesh.faces, mesh.points)
        a, b, c = np.moveaxis(mesh.points[mesh.faces], 1, 0)
        of_faces = np.cross(b - a, c - a)
        of_faces /= np.linalg.norm(of_faces, axis=1, keepdims=True)
        if is_sharp:
            np.testing.assert_allclose(normals, np.repeat(of_faces, 3, axis=0), atol=1e-12)
            continue
        out = mesh.points[mesh.faces.ravel()] / np.linalg.norm(
            mesh.points[mesh.faces.ravel()], axis=1, keepdims=True
        )
        # a fine ball: the mean of the faces around a vertex is nearly radial
        assert (normals * out).sum(axis=1).min() > 0.99


@pytest.mark.parametrize(
    ("kind", "draws", "message"),
    [
        (Kind.PHOTOREALISTIC, photo, r"`photorealistic` is drawn by VTK. It needs something"),
        (Kind.PATH_TRACED, traced, r"`path-traced` is drawn by Mitsuba. It needs something"),
    ],
)
def test_where_nothing_can_draw_the_kind_says_so(kind, draws, message, monkeypatch, tmp_path):
    monkeypatch.setattr(draws, "missing", lambda: "It needs something.")
    with pytest.raises(StudyError, match=message):
        main([kind], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_mitsuba_needs_is_told(monkeypatch):
    monkeypatch.setattr(traced, "find_spec", lambda name: None)
    assert traced.missing() == (
        "It needs Mitsuba 3, the extra `photo`: pip install -e '.[photo]' in your clone of adjsim."
    )


def test_mitsuba_is_given_the_same_light():
    light = traced.environment(64)
    row, column = np.unravel_index(light.sum(axis=-1).argmax(), light.shape[:2])
    polar, around = np.pi * (row + 0.5) / 64, np.pi * (column + 0.5) / 64
    towards = [np.sin(polar) * np.sin(around), np.cos(polar), -np.sin(polar) * np.cos(around)]
    assert towards @ np.array(photo.SUN) / np.linalg.norm(photo.SUN) > np.cos(photo.LAMPS[0][1])
    # the same image but for where its longitude begins and which way it runs
    assert light.mean() == pytest.approx(photo.environment(64).mean(), rel=1e-12)
