"""The gallery: what it shows, what VTK draws of it, and what it leaves behind."""

import re
from dataclasses import replace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from benchmarks.gallery import __main__ as command
from benchmarks.gallery.entries import (
    ENTRIES,
    FRONT,
    OFF_MIDDLE,
    THREE,
    by_face,
    by_vertex,
    glossy,
    rasterizer,
    rounded,
    shot,
    textured,
)
from benchmarks.gallery.pictures import Exhibit, draw_all
from benchmarks.gallery.shots import draw_by_vtk
from render.blending import Hard
from render.scene import Material, Mesh
from render.textures import Wrap
from studies.reports.view import drawing_problem


SIZE = (24, 32)
NAMED = {entry.name: entry for entry in ENTRIES}
needs_vtk = pytest.mark.skipif(
    drawing_problem(on_screen=False) is not None, reason="VTK cannot draw here"
)


def test_names_are_those_of_files_and_occur_once():
    names = [entry.name for entry in ENTRIES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)


def test_every_entry_shows_something():
    for shown in draw_all(ENTRIES, SIZE):
        assert shown.ours.shape == (*SIZE, 3)
        assert np.isfinite(shown.ours).all()
        assert np.ptp(shown.ours) > 0.2, shown.entry.name


@needs_vtk
def test_the_command_leaves_pictures_and_one_self_contained_page(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "ENTRIES", (NAMED["hard"], NAMED["over"]))
    app = typer.Typer()
    app.command()(command.gallery)
    done = CliRunner().invoke(app, ["--out", str(tmp_path), "--height", "24"])
    assert done.exit_code == 0, done.output
    assert done.output.strip().endswith("index.html")
    assert {path.name for path in tmp_path.iterdir()} == {
        "index.html", "hard.png", "hard-vtk.png", "hard-difference.png", "over.png",
    }  # fmt: skip
    page = (tmp_path / "index.html").read_text()
    assert page.count("<figure>") == 4
    assert not re.search(r'(src|href)="(?!data:)', page)


@needs_vtk
@pytest.mark.parametrize("scene", [by_face, by_vertex])
@pytest.mark.parametrize("camera", [FRONT, OFF_MIDDLE])
def test_vtk_draws_the_same_pixels(scene, camera):
    size = (90, 120)
    view = shot(scene, lambda size: rasterizer(size, blend=Hard()), camera)(size)
    picture = Exhibit(NAMED["hard"], view.draw(), draw_by_vtk(view))
    # Edges that pass within 1/256 of a pixel of its centre fall to either side.
    assert picture.differing < 0.01
    assert np.median(picture.largest) < 0.5 / 255 + 1e-6


def faces_seen(view):
    """The number of the face that each pixel shows, from 1 on, 0 where there is none."""
    first, objects = 1, {}
    for name, mesh in view.scene.objects.items():
        number = np.arange(first, first + len(mesh.faces))
        first += len(number)
        colors = np.stack([number // 64, number % 64, 0 * number], axis=-1) / 64.0
        objects[name] = Mesh(mesh.faces, face_colors=colors, material=Material(1.0, 0.0))
    scene = replace(view.scene, objects=objects, lights={})
    black = replace(view.rasterizer, background=(0.0, 0.0, 0.0))
    image = replace(view, scene=scene, rasterizer=black).draw()
    return np.rint(64 * (64 * image[..., 0] + image[..., 1])).astype(int)


def away_from_edges(view):
    """Which pixels show the same face as all eight around them, none at the border."""
    seen = faces_seen(view)
    around = np.lib.stride_tricks.sliding_window_view(seen, (3, 3))
    same = (around == seen[1:-1, 1:-1, None, None]).all(axis=(2, 3)) & (seen[1:-1, 1:-1] > 0)
    return np.pad(same, 1)


def largest_difference_from_vtk(scene, lights):
    """Between two pictures by hard faces, away from their edges, [1/255]."""
    view = shot(scene, lambda size: rasterizer(size, blend=Hard()), lights=lights)((180, 240))
    inside = away_from_edges(view)
    assert inside.mean() > 0.2  # faces of the apple are five pixels wide
    return 255.0 * np.abs(view.draw().clip(0.0, 1.0) - draw_by_vtk(view))[inside].max(), view.scene


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
