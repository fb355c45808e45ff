"""The gallery: what it shows, whom it asks, and what it leaves behind."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from render.annealing import softness
from render.blending import Hard, Softmax
from render.lenses import Intrinsics
from render.scene import Material, Mesh
from render.textures import Wrap
from studies import cli
from studies.errors import StudyError
from studies.gallery import making, pytorch3d_pictures, vtk_pictures
from studies.gallery.entries import (
    ENTRIES,
    THREE,
    by_face,
    by_vertex,
    calibrated,
    glossy,
    rasterizer,
    rounded,
    shot,
    textured,
)
from studies.gallery.making import draw_all, make_gallery
from studies.gallery.others import OTHERS, Other
from studies.gallery.shots import Shot
from tests.studies import pytorch3d_stand_in as stand_in


SIZE = (24, 32)
NAMED = {entry.name: entry for entry in ENTRIES}
needs_vtk = pytest.mark.skipif(vtk_pictures.missing() is not None, reason="VTK cannot draw here")


class Absent:
    """A package that is not installed."""

    name = "Nobody"

    @staticmethod
    def load():
        return Absent

    @staticmethod
    def missing():
        return "not installed: pip install nobody"


class Echo:
    """A package that draws what we draw, a little brighter."""

    name = "Echo"

    @staticmethod
    def load():
        return Echo

    @staticmethod
    def missing():
        return None

    @staticmethod
    def draw(shot):
        return None if isinstance(shot.camera.lens, Intrinsics) else shot.draw() + 0.1


def test_names_are_those_of_files_and_occur_once():
    names = [entry.name for entry in ENTRIES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)


def test_every_entry_shows_something():
    exhibits, _ = draw_all(ENTRIES, SIZE, (), lambda _: None)
    for shown in exhibits:
        assert shown.ours.shape == (*SIZE, 3)
        assert np.isfinite(shown.ours).all()
        assert np.ptp(shown.ours) > 0.2, shown.entry.name


def test_the_command_leaves_pictures_and_one_self_contained_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(making, "ENTRIES", ENTRIES[:2])
    monkeypatch.setattr(making, "OTHERS", (Absent, Echo))
    monkeypatch.setattr(
        sys, "argv", ["adjsim", "gallery", "--out", f"{tmp_path}", "--height", "24"]
    )
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 0
    said = capsys.readouterr().out
    assert "Nobody does not draw: not installed: pip install nobody" in said
    assert said.strip().endswith("index.html")
    first = ENTRIES[0].name
    assert {path.name for path in tmp_path.iterdir()} >= {
        "index.html", f"{first}.png", f"{first}-echo.png", f"{first}-echo-difference.png",
    }  # fmt: skip
    page = (tmp_path / "index.html").read_text()
    assert page.count("<figure>") == 6
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert "Nobody does not draw here" in page


def test_what_another_cannot_draw_is_left_out():
    exhibits, _ = draw_all([NAMED["intrinsics"], ENTRIES[0]], SIZE, (Echo,), lambda _: None)
    assert exhibits[0].theirs == {}
    assert exhibits[1].theirs["Echo"].differing > 0.5


def test_alpha_of_dibr_fades_around_outlines_and_nobody_else_draws_it():
    (shown,), _ = draw_all([NAMED["dibr-alpha"]], (48, 64), (Echo,), lambda _: None)
    assert shown.theirs == {}
    fading = (shown.ours > 0.05) & (shown.ours < 0.95)
    assert 0.02 < fading.mean() < 0.5  # a rim of 4 pixels, of 48
    hard = Shot(**{**vars(ENTRIES[0].make((48, 64))), "alpha": True}).draw()
    assert set(np.unique(hard)) == {0.0, 1.0}
    assert (shown.ours[hard == 1.0] == 1.0).all()


def test_a_page_too_small_to_see_is_refused(tmp_path):
    with pytest.raises(StudyError, match=r"`--height` must be at least 16 pixels, got 3"):
        make_gallery(tmp_path, 3)


@pytest.mark.filterwarnings("ignore")  # theirs
@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.name)
def test_others_draw_or_say_what_is_missing(other: Other):
    module = other.load()
    if problem := module.missing():
        assert "install" in problem or "trial" in problem
        return
    drawn = Shot(*vars(ENTRIES[1].make((48, 64))).values())
    picture = making.compare(drawn.draw(), module.draw(drawn))
    assert picture.image.shape == (48, 64, 3)
    assert picture.median < making.ROUNDING


@needs_vtk
@pytest.mark.parametrize("scene", [by_face, by_vertex])
@pytest.mark.parametrize("camera", [None, calibrated])
def test_vtk_draws_the_same_pixels(scene, camera):
    size = (90, 120)
    view = {} if camera is None else {"camera": camera}
    one = shot(scene, lambda size: rasterizer(size, blend=Hard()), **view)(size)
    picture = making.compare(one.draw(), vtk_pictures.draw(one))
    # Edges that pass within 1/256 of a pixel of its centre fall to either side.
    assert picture.differing < 0.01
    assert picture.median < 0.5 / 255 + 1e-6


def faces_seen(one):
    """The number of the face that each pixel shows, from 1 on, 0 where there is none."""
    first, objects = 1, {}
    for name, mesh in one.scene.objects.items():
        number = np.arange(first, first + len(mesh.faces))
        first += len(number)
        colors = np.stack([number // 64, number % 64, 0 * number], axis=-1) / 64.0
        objects[name] = Mesh(mesh.faces, face_colors=colors, material=Material(1.0, 0.0))
    scene = replace(one.scene, objects=objects, lights={})
    black = replace(one.rasterizer, background=(0.0, 0.0, 0.0))
    image = replace(one, scene=scene, rasterizer=black).draw()
    return np.rint(64 * (64 * image[..., 0] + image[..., 1])).astype(int)


def away_from_edges(one):
    """Which pixels show the same face as all eight around them, none at the border."""
    seen = faces_seen(one)
    around = np.lib.stride_tricks.sliding_window_view(seen, (3, 3))
    same = (around == seen[1:-1, 1:-1, None, None]).all(axis=(2, 3)) & (seen[1:-1, 1:-1] > 0)
    return np.pad(same, 1)


def largest_difference_from_vtk(scene, lights):
    """Between two pictures by hard faces, away from their edges, [1/255]."""
    one = shot(scene, lambda size: rasterizer(size, blend=Hard()), lights=lights)((180, 240))
    inside = away_from_edges(one)
    assert inside.mean() > 0.2  # faces of the apple are five pixels wide
    return 255.0 * np.abs(one.draw().clip(0.0, 1.0) - vtk_pictures.draw(one))[
        inside
    ].max(), one.scene


@needs_vtk
@pytest.mark.parametrize("lights", [None, THREE], ids=["sun", "three"])
@pytest.mark.parametrize("scene", [by_face, rounded, glossy])
def test_away_from_edges_vtk_lights_a_scene_to_half_a_step_of_8_bits(scene, lights):
    largest, _ = largest_difference_from_vtk(scene, lights)
    # VTK rounds to 8 bits: half a step. It computes in float32: 100 operations of 6e-8, and a
    # power of 20 makes 20 times that of its base, 1e-6 each: 2e-5 [1], 5e-3 of a step.
    assert largest < 0.5 + 5e-3


@needs_vtk
@pytest.mark.parametrize("lights", [None, THREE], ids=["sun", "three"])
@pytest.mark.parametrize("wrap", Wrap)
def test_away_from_edges_vtk_draws_the_same_textures_as_far_as_8_bits_go(wrap, lights):
    largest, scene = largest_difference_from_vtk(lambda: textured(wrap), lights)
    texels = [mesh.texture.texels for mesh in scene.objects.values() if mesh.texture is not None]
    step = max(np.abs(t - np.roll(t, 1, axis)).max() for t in texels for axis in (0, 1))
    # Beside half a step for the result: OpenGL weighs texels by 8 bits, off by 1/256 of their
    # difference along rows and along columns, and rounds texels after either, half a step each.
    # Light and material make no more of it: ambient and diffuse are 1 together.
    assert largest < 0.5 + 2 * 255.0 * step / 256.0 + 2 * 0.5


@pytest.fixture
def pytorch3d(monkeypatch):
    """The stand-in under the names of the package; gives the list of the blends asked for."""
    for name, module in stand_in.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(stand_in, "ASKED", [])
    return stand_in


def test_pytorch3d_is_asked_for_our_views_in_its_own_terms(pytorch3d):
    names = ("hard", "supersampled", "culled", "vertex-colors", "normals", "mask", "orbit", "posed")
    for name in (*names, "intrinsics", "orthographic"):
        for size in ((48, 64), (64, 48)):
            if name == "intrinsics" and size != (48, 64):
                continue  # that camera has an aspect
            one = NAMED[name].make(size)
            picture = making.compare(one.draw(), pytorch3d_pictures.draw(one))
            # a centre of a pixel on an edge falls to either side
            assert picture.differing < 0.01, (name, size)
            assert picture.median < 1e-6


def test_pytorch3d_is_asked_for_the_soft_blend_at_our_softness(pytorch3d):
    for size in ((48, 64), (64, 48)):
        one = NAMED["softmax"].make(size)
        pytorch3d_pictures.draw(one)
        unit = size[0] / min(size)  # its shorter side is 2 long, our height
        sigma = softness(1.0, size[0]) * unit**2
        asked = pytorch3d.ASKED.pop()
        assert asked["sigma"] == pytest.approx(sigma, rel=1e-12)
        lowest = 1.0 / (1.0 + np.exp(asked["blur_radius"] / sigma))
        assert lowest == pytest.approx(1e-4, rel=1e-9)
        assert (asked["gamma"], asked["znear"], asked["zfar"]) == (1e-4, 1.0, 20.0)
        assert asked["background_color"] == (1.0, 1.0, 1.0)
        assert asked["faces_per_pixel"] > 1
        assert isinstance(one.rasterizer.blend, Softmax)


@pytest.mark.parametrize("name", ["textures", "highlights-softmax", "depth", "over-an-image"])
def test_pytorch3d_is_not_asked_for_what_corners_cannot_show(pytorch3d, name):
    assert pytorch3d_pictures.draw(NAMED[name].make(SIZE)) is None
