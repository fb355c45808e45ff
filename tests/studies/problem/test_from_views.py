"""A scene whose body has no mesh: from its films to a body that is simulated."""

import numpy as np
import pytest
from PIL import Image

from adjsim.meshes.triangle_mesh import TriangleMesh
from studies.fitting.pictures import DISTANCE, shown
from studies.problem import from_views
from studies.problem.from_views import coverage, with_hulls
from studies.problem.making import make_problem
from studies.problem.observations.films import FilmData
from studies.reports.preview.showing import preview
from studies.runs.errors import StudyError
from studies.scene.declared import Scene, Soft
from studies.scene.mesh_source import read_source
from studies.scene.reading import scene_from_dict, to_toml
from tests.studies.problem.test_carving import AROUND, BODY, MIDDLE, RADIUS, looking, view


BACKGROUND, COLOR = np.array([0.9, 0.9, 0.95]), np.array([0.7, 0.3, 0.2])
CHOSEN = AROUND[::2]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """Keep meshes in a folder of the test."""
    monkeypatch.setattr(from_views, "CACHE_DIR", tmp_path / "cache" / "kernels")


@pytest.fixture(scope="module")
def masks():
    return [view(looking(*angles)).mask for angles in CHOSEN]


def scene(folder, masks, **body):
    """Write pictures in which the body has its colour, and return the tables of a scene."""
    cameras, films = {}, {}
    for k, (mask, angles) in enumerate(zip(masks, CHOSEN, strict=True)):
        picture = BACKGROUND + mask[..., None] * (COLOR - BACKGROUND)
        Image.fromarray(np.rint(255.0 * picture).astype(np.uint8)).save(folder / f"{k}.png")
        camera = looking(*angles)
        eye, target = (np.asarray(place).tolist() for place in (camera.eye, camera.target))
        cameras[f"view{k}"] = {"eye": eye, "target": target, "fov_y": 30.0, "fit": False}
        films[f"film{k}"] = {
            "video": f"{k}.png", "camera": f"view{k}", "compare": "silhouette",
            "background": {"color": BACKGROUND.tolist()},
        }  # fmt: skip
    return {
        "bodies": {"ring": {"kind": "rigid", "mesh": "from-views", "density": 1e3, **body}},
        "cameras": cameras,
        "observations": films,
        "free": {"ring.position": {}},
    }


def built(folder, tables):
    return scene_from_dict(tables, folder)


def test_hull_becomes_a_mesh_file_and_the_problem_has_it(tmp_path, masks):
    file = built(tmp_path, scene(tmp_path, masks, cells=[20]))
    notes = []
    resolved = with_hulls(file, say=notes.append)
    (note,) = notes
    mesh = read_source("bodies.ring", resolved.bodies["ring"]).mesh
    assert isinstance(mesh, TriangleMesh)
    mesh.require_closed()
    assert mesh.volume == pytest.approx(BODY.volume, rel=0.15)
    length = float(note.split(f"is built from {len(masks)} views: ")[1].split(" m long")[0])
    assert length == pytest.approx(2.0 * RADIUS, rel=0.05)
    assert f"{mesh.volume:.4g} m3" in note
    assert 0.0 < resolved.bodies["ring"].scale_error < 0.1
    assert 'mesh = "from-views"' in to_toml(file)
    said = []
    prepared = make_problem(file, say=said.append)
    assert note in said
    assert note not in prepared.notes
    assert np.array_equal(prepared.everything.built.meshes["ring"].faces, mesh.faces)
    again = with_hulls(file)
    assert again.bodies["ring"].mesh == resolved.bodies["ring"].mesh  # named by what is in it


@pytest.mark.parametrize("declared_error", [None, 0.0, 0.02])
def test_a_soft_hull_is_known_as_well_as_its_views_say(tmp_path, masks, declared_error):
    tables = scene(tmp_path, masks)
    tables["bodies"]["ring"] = {"kind": "soft", "mesh": "from-views", "cells": [12], "E": 1e4}
    if declared_error is not None:
        tables["bodies"]["ring"]["shape_error"] = declared_error
    notes = []
    resolved = with_hulls(built(tmp_path, tables), say=notes.append)
    error = resolved.bodies["ring"].shape_error
    assert resolved.bodies["ring"].scale_error == resolved.bodies["ring"].position_error == 0.0
    if declared_error is not None:
        assert error == declared_error
    else:
        assert error > 0.0
        assert f"about {error:.1g} m" in notes[0]


def test_a_hull_is_of_frames_at_full_size(tmp_path, masks):
    tables = scene(tmp_path, masks)
    first = with_hulls(built(tmp_path, tables))
    for film in tables["observations"].values():
        film["downsample"] = 4
    assert with_hulls(built(tmp_path, tables)).bodies["ring"].mesh == first.bodies["ring"].mesh


def test_colours_at_an_edge_say_how_far_a_pixel_is_covered(masks):
    mask = masks[0]
    frames = (BACKGROUND + mask[..., None] * (COLOR - BACKGROUND))[None]
    plate = np.broadcast_to(BACKGROUND, (*mask.shape, 3))
    covered = coverage(FilmData(frames, None, np.zeros(1), None, 1, mask.shape, plate))
    assert np.abs(covered - mask).max() < 0.06
    assert covered.sum() == pytest.approx(mask.sum(), rel=0.01)


def test_given_masks_are_taken_as_they_are(tmp_path, masks):
    tables = scene(tmp_path, masks)
    for k, mask in enumerate(masks):
        moved = np.roll(mask, 3, axis=1)
        Image.fromarray(np.rint(255.0 * moved).astype(np.uint8)).save(tmp_path / f"mask{k}.png")
        tables["observations"][f"film{k}"]["masks"] = f"mask{k}.png"
    first, second = (
        with_hulls(built(tmp_path, scene_tables)).bodies["ring"].mesh
        for scene_tables in (tables, scene(tmp_path, masks))
    )
    assert first != second


def test_report_compares_it_with_a_mesh_that_is_given(tmp_path, masks):
    import pyvista

    true = pyvista.PolyData.from_regular_faces(BODY.points + MIDDLE, BODY.faces)
    true.save(tmp_path / "true.ply")
    tables = scene(tmp_path, masks)
    file = built(tmp_path, {**tables, "truth": {"bodies.ring.mesh": "true.ply"}})
    prepared = make_problem(file)
    problem = prepared.problem
    report = shown(prepared, file, problem, problem.parameters.start)
    assert report.measures[DISTANCE]["mean"] < 0.05
    assert "more than the true mesh" in report.findings[0]
    assert report.arrays["hull-ring"].shape[0] == 2
    alone = built(tmp_path, tables)
    assert shown(prepared, alone, problem, problem.parameters.start).findings == []


def test_preview_draws_it(tmp_path, masks):
    file = built(tmp_path, scene(tmp_path, masks, cells=[12]))
    said = []
    notes = preview(file, tmp_path / "preview.png", say=said.append)
    assert any("is built from" in line for line in said)
    assert not any("hull" in note for note in notes)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"position": [0.0, 1.0, 0.0]}, "`bodies.ring.position` must be left out"),
        ({"scale": 0.5}, "`bodies.ring.scale` must be left out"),
        ({"size": [0.5]}, "`bodies.ring.size` must be left out"),
        ({"cells": [4]}, "`bodies.ring.cells` must be one whole number"),
        ({"cells": [8, 8, 8]}, "`bodies.ring.cells` must be one whole number"),
        ({"kind": "soft", "E": 1e4, "take": "toss"}, "must not be .* where there are takes"),
    ],
)
def test_refuses_keys_that_the_views_decide(tmp_path, masks, body, message):
    with pytest.raises(StudyError, match=message):
        built(tmp_path, scene(tmp_path, masks, **body))


@pytest.mark.parametrize(("key", "setting"), [("start", 0.1), ("validate", True)])
def test_films_that_begin_later_or_are_held_back_do_not_count(tmp_path, masks, key, setting):
    tables = scene(tmp_path, masks)
    for film in tables["observations"].values():
        film[key] = setting
    with pytest.raises(
        StudyError, match=r"`bodies.ring.mesh` needs films from two views .* got none"
    ):
        with_hulls(built(tmp_path, tables))


def test_masks_of_another_size_are_refused(tmp_path, masks):
    tables = scene(tmp_path, masks)
    Image.fromarray(np.zeros((30, 30), np.uint8)).save(tmp_path / "small.png")
    tables["observations"]["film0"]["masks"] = "small.png"
    with pytest.raises(StudyError, match=r"`observations.film0.masks` must have frames as large"):
        with_hulls(built(tmp_path, tables))


def test_a_scene_without_films_has_no_views():
    body = Soft(mesh="from-views", E=1e5, nu=0.3)
    with pytest.raises(StudyError, match="must be a mesh where there are no films"):
        read_source("bodies.ring", Scene(bodies={"ring": body}).bodies["ring"])
