"""Pictures of things at rest: light, camera, texture and shape, from simulations and from files."""

import numpy as np
import pytest

from adjsim.meshes.shapes import shape
from adjsim.meshes.triangle_mesh import TriangleMesh
from studies.fitting.pictures import DISTANCE, UNSEEN, chamfer, shown, surface_points
from studies.fitting.solve import solve
from studies.problem.films import FilmObserver
from studies.problem.forward import start_surfaces
from studies.problem.free import ShapeLosses
from studies.problem.making import make_problem
from studies.problem.texels import felt_by, texel_gain
from studies.runs.folder import RunFolder
from studies.runs.media import write_png
from studies.runs.progress import EvaluationProgress
from studies.scene.reading import scene_from_dict


SKY = [
    [2.0, 1.8, 1.6],
    [0.4, 0.1, -0.3],
    [0.2, 0.3, 0.1],
    [-0.3, 0.2, 0.4],
    *[[0.1, 0.0, -0.1]] * 5,
]
GREY = {"color": [0.1, 0.12, 0.15]}
FILM = {"simulate": {"height": 24, "width": 24, "frames": 1, "duration": 0.0}, "background": GREY}
SIDE = {"eye": [0.3, 0.0, 3.2], "target": [0.0, 0.0, 0.0], "fov_y": 42.0}


def scene(body=None, *, views=3, film=None, folder=".", **more):
    side = {**SIDE, "ring": {"views": views, "elevations": [25.0, -30.0]}}
    return scene_from_dict(
        {
            "bodies": {"thing": {"kind": "rigid", "mesh": "ball", "cells": [2], **(body or {})}},
            "cameras": {"side": side},
            "observations": {"photo": {**FILM, **(film or {})}},
            "search": {"loss": "mse", "tolerance": 1e-9},
            **more,
        },
        folder,
    )


def solved(file, folder):
    made = make_problem(file)
    with EvaluationProgress(file.search.max_evaluations) as progress:
        return made, solve(made, file.search, RunFolder(folder), progress)


@pytest.fixture(scope="module")
def mixed():
    """A problem with vertices, a sky, a pose and a camera free."""
    free = {
        "thing.vertices": {}, "thing.rotation": {}, "lights.sky.coefficients": {},
        "cameras.side1.pose": {},
    }  # fmt: skip
    file = scene(
        free=free, lights={"sky": {"coefficients": SKY}}, truth={"bodies.thing.mesh": "shape:cube"}
    )
    return make_problem(file).problem


def test_the_gradient_of_vertices_sky_pose_and_camera_is_that_of_differences(mixed):
    rng = np.random.default_rng(0)
    theta = mixed.parameters.start + 0.02 * rng.standard_normal(mixed.parameters.size)
    loss, gradient = mixed.loss_and_gradient(theta)
    assert loss == pytest.approx(mixed.loss_at(theta), rel=1e-12)
    for _ in range(6):
        way = rng.standard_normal(theta.size)
        ends = [mixed.loss_at(theta + step * way) for step in (1e-6, -1e-6)]
        assert gradient @ way == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=2e-5)


def test_tangent_and_cotangent_of_the_pictures_agree(mixed):
    rng = np.random.default_rng(1)
    theta = mixed.parameters.start + 0.02 * rng.standard_normal(mixed.parameters.size)
    tan = rng.standard_normal(theta.size)
    pushed = mixed.residuals_jvp(theta, tan)
    adj = rng.standard_normal(len(pushed))
    assert np.linalg.norm(pushed) > 0.0
    assert pushed @ adj == pytest.approx(tan @ mixed.residuals_vjp(theta, adj), rel=1e-10)


def test_losses_of_shape_do_not_depend_on_the_size_of_the_body():
    penalties = []
    for scale in (1.0, 0.01):
        camera = {"eye": [0.0, 0.0, 3.2 * scale], "target": [0.0, 0.0, 0.0], "fov_y": 42.0}
        file = scene_from_dict(
            {
                "bodies": {"thing": {"kind": "rigid", "mesh": "ball", "scale": scale}},
                "cameras": {"front": camera},
                "observations": {"photo": FILM},
                "free": {"thing.vertices": {}},
            }
        )
        problem = make_problem(file).problem
        (losses,) = problem.shapes
        assert isinstance(losses, ShapeLosses)
        assert problem.penalty(problem.parameters.start)[0] > 0.0
        penalties.append(problem.penalty(problem.parameters.start)[0])
    assert penalties[0] == pytest.approx(penalties[1], rel=1e-9)


def test_without_weights_there_are_no_losses_of_shape():
    off = {"thing.vertices": {"laplacian": 0.0, "edge_length": 0.0, "normals": 0.0}}
    problem = make_problem(scene(free=off)).problem
    assert problem.penalty(problem.parameters.start)[0] == 0.0


def test_light_is_found_exactly(tmp_path):
    file = scene(
        lights={"sky": {"kind": "sky"}},
        truth={"lights.sky.coefficients": SKY},
        free={"lights.sky.coefficients": {"bounds": [-10.0, 10.0]}},
    )
    made, answer = solved(file, tmp_path)
    assert answer.verdict.is_found
    off = answer.problem.parameters.values(answer.result.theta)["lights.sky.coefficients"] - SKY
    assert np.abs(off).max() < 1e-12
    assert made.problem.n_frames == 1


def test_a_camera_far_off_comes_home_by_wide_edges_and_other_starts(tmp_path):
    body = {"mesh": "shape:gear", "look": {"vertex_colors": "place", "smooth": False}}
    pose = "cameras.photo"
    file = scene_from_dict(
        {
            "bodies": {"thing": {"kind": "rigid", **body}},
            "cameras": {"photo": SIDE},
            "observations": {"photo": FILM},
            "truth": {f"{pose}.rotation": [0.3, -0.4, 0.2]},
            "free": {f"{pose}.rotation": {"bounds": [-1.0, 1.0]}},
            "search": {"softness": [3.0, 1.0], "tolerance": 1e-10},
        }
    )
    made, answer = solved(file, tmp_path)
    assert answer.search.coarse is not None
    assert len(answer.search.coarse.points.points) > 1
    off = answer.problem.parameters.values(answer.result.theta)[f"{pose}.rotation"]
    assert np.abs(off - [0.3, -0.4, 0.2]).max() < 1e-9
    assert made.problem.name_of_stage(3.0) == "edges 3 times as soft"


@pytest.fixture(scope="module")
def painted(tmp_path_factory):
    texels = np.random.default_rng(3).uniform(0.1, 0.9, (12, 18, 3))
    file = scene(
        {"look": {"texels": [12, 18], "color": [0.5, 0.5, 0.5]}},
        views=6,
        film={"softness": 0.0},
        free={"thing.look.texels": {}},
        truth={"thing.look.texels": texels.tolist()},
        search={"loss": "mse", "tolerance": 1e-13, "memory": 50},
    )
    return (texels, *solved(file, tmp_path_factory.mktemp("painted")))


def test_the_texels_that_pictures_determine_are_found(painted):
    _texels, made, answer = painted
    report = shown(made, scene(free={"thing.look.texels": {}}), answer.problem, answer.result.theta)
    assert report.measures["determined texels"]["max"] < 1e-8
    fitted = answer.problem.parameters.values(answer.result.theta)["thing.look.texels"]
    unseen = felt_by(answer.problem.observers, start_surfaces(answer.problem.built),
                     "thing.look.texels")  # fmt: skip
    is_seen = np.zeros(216, bool)
    is_seen[np.unique(unseen[0].indices)] = True
    assert 0 < is_seen.sum() < 216
    assert np.allclose(fitted.reshape(216, 3)[~is_seen], 0.5)
    assert answer.verdict.is_found
    assert "no intervals" in answer.verdict.reason
    assert {look["name"] for look in report.looks} == set(report.arrays)


def test_the_matrix_of_texels_gives_the_pictures(painted):
    texels, _made, answer = painted
    problem = answer.problem
    surfaces = start_surfaces(problem.built)
    matrices = felt_by(problem.observers, surfaces, "thing.look.texels")
    theta = problem.parameters.theta(texels.ravel())
    dark = problem.parameters.theta(np.full(texels.size, 1e-6))
    difference = (problem.predicted_rows(theta) - problem.predicted_rows(dark))[:, :3]
    for c, matrix in enumerate(matrices):
        shades = matrix @ (texels[..., c].ravel() - 1e-6)
        assert np.abs(shades - difference[:, c]).max() < 1e-12
    gain = texel_gain(matrices[0], (12, 18))
    assert np.isnan(gain).any()
    assert np.nanmin(gain) > 0.0


def test_a_ball_becomes_a_hidden_shape_and_predicts_another_view(tmp_path):
    film = {"simulate": {"height": 32, "width": 32, "frames": 1, "duration": 0.0}}
    tables = {
        "bodies": {"thing": {"kind": "rigid", "mesh": "ball", "size": [0.8], "cells": [3]}},
        "cameras": {
            "side": {**SIDE, "ring": {"views": 8, "elevations": [-35.0, 0.0, 35.0]}},
            "other": {"eye": [-2.4, 1.3, 1.6], "target": [0.0, 0.0, 0.0], "fov_y": 42.0},
        },
        "observations": {
            "side": {**film, "camera": "side", "background": GREY},
            "kept": {**film, "camera": "other", "background": GREY, "validate": True},
        },
        "truth": {"bodies.thing.mesh": "shape:cylinder"},
        "free": {"thing.vertices": {}},
        "search": {"loss": "mse", "softness": [2.0, 1.0], "tolerance": 0.01},
    }
    file = scene_from_dict(tables)
    made, answer = solved(file, tmp_path)
    assert answer.verdict.is_found
    assert "kept" in answer.verdict.reason
    report = shown(made, file, answer.problem, answer.result.theta)
    assert report.measures[UNSEEN]["mean"] < 0.07  # faces are as large as a pixel or two
    assert report.measures[DISTANCE]["mean"] < 0.07
    assert made.truth is None  # it has other vertices


def photographs(folder, file):
    """Write the simulated pictures of a scene as files, as photographs are."""
    for k, observer in enumerate(make_problem(file).problem.observers):
        assert isinstance(observer, FilmObserver)
        write_png(folder / f"p{k}.png", observer.frames[0])


def test_a_shape_is_found_from_photographs_with_colour_and_light_guessed(tmp_path):
    look = {"color": [0.8, 0.4, 0.2], "smooth": False}
    size = {"height": 32, "width": 32, "frames": 1, "duration": 0.0}
    body = {"kind": "rigid", "mesh": "shape:cube", "look": look}
    tables = {
        "bodies": {"thing": body},
        "cameras": {"side": {**SIDE, "ring": {"views": 8, "elevations": [-35.0, 0.0, 35.0]}}},
        "observations": {"side": {"simulate": size, "background": GREY}},
        "lights": {"sun": {"direction": [0.5, 1.0, 0.8]}},
        "search": {"softness": [2.0, 1.0], "tolerance": 0.01, "max_evaluations": 80},
    }
    photographs(tmp_path, scene_from_dict({**tables, "free": {"thing.vertices": {}}}))
    tables["bodies"] = {"thing": {**body, "mesh": "ball", "size": [0.7], "cells": [3]}}
    tables["bodies"]["thing"]["look"] = {"color": [0.6, 0.6, 0.6], "smooth": False}
    tables["observations"] = {"side": {"video": ".", "downsample": 1}}
    tables["lights"] = {"sun": {"direction": [1.0, 1.0, 1.0]}}
    run = tmp_path / "run"
    run.mkdir()
    file = scene_from_dict({**tables, "free": {"thing.vertices": {}}}, tmp_path)
    _, answer = solved(file, run)
    assert answer.verdict.is_found
    x = answer.problem.all_values(answer.result.theta)["thing.vertices"]
    mesh = TriangleMesh(x, np.asarray(answer.problem.built.meshes["thing"].faces))
    assert chamfer(*[surface_points(each) for each in (mesh, shape("cube"))]) < 0.06
