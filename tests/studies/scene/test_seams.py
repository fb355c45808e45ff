"""Films are drawn with seams where a body may turn and its colours jump between faces."""

import numpy as np
import pytest
import pyvista

from adjsim.meshes.shapes import shape
from render.scene import Mesh
from render.textures import Texture
from studies.answer.trial import Trial
from studies.fitting.judging import _film_without_seams
from studies.problem.making import make_problem
from studies.scene.reading import read_scene
from studies.scene.seams import has_color_edges


COLORS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [0.4, 0.4, 0.4]])
SCENE = """
[bodies.box]
kind = "rigid"
mesh = "box.vtp"
mass = 1.0
look = { vertex_colors = "RGB" }
[cameras.front]
eye = [2, 1, 3]
target = [0, 0, 0]
fov_y = 40
[observations.film]
simulate = { height = 24, width = 32, frames = 3, duration = 0.1 }
[free]
"box.velocity" = { bounds = [-2.0, 2.0] }
"""
EVEN = "bodies.box.look={ color = [1.0, 0.2, 0.2] }"
FACETED = "bodies.box.look={ color = [1.0, 0.2, 0.2], smooth = false }"
UNLIT = "bodies.box.look={ color = [1.0, 0.2, 0.2], smooth = false, ambient = 1.0, diffuse = 0.0 }"
SOFT = (
    'bodies.box={ kind = "soft", mesh = "box", cells = [1, 1, 1], E = 1e5, nu = 0.3, density = 1.0,'
)
HELD = "held = { box = { lower = [-9, -9, -9], upper = [-0.49, 9, 9] } },"


@pytest.fixture
def scene(tmp_path):
    box = pyvista.Cube(clean=False).triangulate()
    box.point_data["RGB"] = np.repeat(COLORS, 4, axis=0)
    box.save(tmp_path / "box.vtp")
    path = tmp_path / "scene.toml"
    path.write_text(SCENE, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], True),
        (["observations.film.seams=false"], False),
        (['observations.film.compare="silhouette"'], False),
        ([EVEN], False),
        ([EVEN, "observations.film.seams=true"], True),
        ([FACETED], True),
        ([UNLIT], False),
        ([SOFT + "look = { smooth = false } }"], True),
        ([SOFT + HELD + "look = { smooth = false } }"], False),
    ],
)
def test_seams_are_drawn_where_a_body_may_turn_and_its_colours_jump(scene, overrides, expected):
    file = read_scene(scene, overrides)
    (observer,) = make_problem(file, fits_first=False).problem.observers
    assert observer.rasterizer.seamless is not expected


def test_a_choice_is_noted(scene):
    made = make_problem(read_scene(scene), fits_first=False)
    (note,) = [note for note in made.notes if "seams" in note]
    assert "`observations.film.seams` = true is taken: `bodies.box` may turn" in note
    for override in ("seams=true", "seams=false"):
        made = make_problem(read_scene(scene, [f"observations.film.{override}"]), fits_first=False)
        assert not [note for note in made.notes if "seams" in note]


def textured(colors, noise=0.0):
    """A cube whose six sides lie in six squares of a texture, each in its colour."""
    rng = np.random.default_rng(3)
    cube = shape("cube")
    normals = np.cross(
        *(cube.points[cube.faces[:, k]] - cube.points[cube.faces[:, 0]] for k in (1, 2))
    )
    axis = np.abs(normals).argmax(axis=1)
    side = 2 * axis + (np.take_along_axis(normals, axis[:, None], axis=1)[:, 0] > 0)
    texels = np.repeat(np.repeat(np.reshape(colors, (1, 6, 3)), 8, axis=0), 8, axis=1)
    texels = np.clip(texels + noise * rng.standard_normal(texels.shape), 0.0, 1.0)
    corner = np.array([[0.1, 0.1], [0.9, 0.1], [0.1, 0.9]])
    uv = (corner + np.stack([side, 0 * side], axis=1)[:, None]) / [6.0, 1.0]
    uv_faces = np.arange(3 * len(side)).reshape(-1, 3)
    return Mesh(cube.faces, texture=Texture(texels), uv=uv.reshape(-1, 2), uv_faces=uv_faces)


def test_a_texture_of_flat_colours_has_edges_and_a_photograph_has_none():
    assert has_color_edges(textured(COLORS))
    assert not has_color_edges(textured(np.tile(COLORS[:1], (6, 1))))
    assert not has_color_edges(textured(COLORS, noise=0.2))


def test_colours_of_faces_may_jump():
    cube = shape("cube")
    faces = np.tile([0.2, 0.4, 0.6], (len(cube.faces), 1))
    assert not has_color_edges(Mesh(cube.faces, face_colors=faces))
    faces[0] = 1.0
    assert has_color_edges(Mesh(cube.faces, face_colors=faces))
    assert not has_color_edges(Mesh(cube.faces, vertex_colors=np.eye(8)[:, :3]))


@pytest.mark.parametrize(
    ("overrides", "widening", "expected"),
    [
        ([], 1e3, "film"),
        ([], 1.5, ""),  # the trial did not fail
        (["obstacles.floor={ point = [0, -0.4, 0] }"], 1e3, ""),
        (["obstacles.floor={ point = [0, -5, 0] }"], 1e3, "film"),
        (["observations.film.seams=true"], 1e3, ""),
    ],
)
def test_missing_seams_are_named_where_nothing_touches(scene, overrides, widening, expected):
    file = read_scene(scene, ["observations.film.seams=false", *overrides])
    problem = make_problem(file, fits_first=False).problem
    theta = problem.parameters.start
    trial = Trial(np.zeros((1, 3)), np.array([widening]), None, 0.0, 9)
    assert _film_without_seams(problem, theta, trial) == expected
