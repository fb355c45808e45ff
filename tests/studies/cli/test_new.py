"""What `adjsim new` writes can be read, drawn and run; what it cannot use is one message."""

import csv
import json
import re
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft7Validator
from PIL import Image

from adjsim.joints.urdf import read_urdf
from adjsim.meshes.ball import ball_tets
from adjsim.meshes.files import poly_data, write_tet_mesh
from adjsim.meshes.grid import box_tets
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State
from adjsim.rollout import rollout
from studies.problem.joint_marks import seen_by
from studies.problem.observations.outlines import foreground, overlap
from studies.reports.preview.showing import inspect
from studies.runs.folder import RunFolder
from studies.runs.media import write_png
from studies.scene.building import build
from studies.scene.cameras import make_camera
from studies.scene.files import BUNDLED, SCHEMA, bundled_scenes
from studies.scene.reading import plain, read_scene
from tests.joints.test_urdf import PENDULUM, inertial, joint, link, origin
from tests.studies.command import adjsim
from tests.studies.scene.test_exif import write_picture
from tests.studies.undrawn import undrawn


PAGE = (Path(__file__).resolve().parents[3] / "docs" / "questions.md").read_text("utf-8")
RADIUS, PIXELS, FPS = 0.1, 20.0, 30.0  # of the ball that is filmed: [m], [pixels], frames a second
SIZE = (120, 160)


def write_track(path, columns, places):
    """Write a table of one point, with a row for each thirtieth of a second."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "point", *columns])
        writer.writerows([k / FPS, "tip", *place] for k, place in enumerate(places))


def write_robot(path, *parts):
    path.write_text(f'<robot name="r">{"".join(parts)}</robot>')


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    """A folder with what a user may have."""
    folder = tmp_path_factory.mktemp("things")
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    (folder / "film").mkdir()
    for k in range(7):
        fallen = 0.5 * 9.81 * (k / FPS) ** 2 * PIXELS / RADIUS
        is_ball = np.hypot(rows - 30.0 - fallen, columns - 50.0) < PIXELS
        frame = np.where(is_ball[..., None], (0.8, 0.3, 0.1), (0.6, 0.7, 0.8))
        write_png(folder / "film" / f"{k}.png", frame)
    shutil.copytree(folder / "film", folder / "cam-2")
    write_tet_mesh(folder / "ball.vtu", ball_tets(3, RADIUS))
    poly_data(sheet((4, 4), (0.3, 0.3))).save(folder / "sheet.stl")
    box = box_tets((2, 2, 6), (20.0, 20.0, 60.0))
    write_tet_mesh(folder / "bar.vtu", box)
    surface = box.surface()
    poly_data(type(sheet((1, 1)))(box.points[surface.nodes], surface.local_faces)).save(
        folder / "bar.stl"
    )
    write_picture(folder, size=(160, 120))
    write_track(folder / "pixels.csv", "uv", [(200.0 + k, 100.0 + k * k) for k in range(9)])
    write_track(folder / "far.csv", "uv", [(700.0, 100.0 + k) for k in range(9)])
    write_track(folder / "space.csv", "xyz", [(200.0, 1000.0 - 30.0 * k, 10.0) for k in range(9)])
    write_track(folder / "metres.csv", "xyz", [(0.2, 1.0 - 0.03 * k, 0.0) for k in range(9)])
    (folder / "depth").mkdir()
    for k in range(3):
        z = np.full(SIZE, 700 + k, np.uint16)
        Image.fromarray(z).save(folder / "depth" / f"{k}.png")
    points = 30.0 + 20.0 * np.random.default_rng(0).random((3, 50, 3))
    np.savez(folder / "cloud.npz", times=[0.0, 0.1, 0.2], points=points)
    write_robot(folder / "arm.urdf", *PENDULUM)
    turned = list(PENDULUM)
    turned[-1] = turned[-1].replace('rpy="0 0 0"', 'rpy="0.3 -0.5 0.7"')
    write_robot(folder / "turned.urdf", *turned)
    write_robot(
        folder / "free.urdf", link("a b", inertial()), link("tip", inertial()),
        joint("tip", "prismatic", "a b", "tip", origin("0.1 0 0")),
    )  # fmt: skip
    for name in ("empty.mp4", "noise.stl", "noise.csv", "noise.urdf"):
        (folder / name).write_text("abc")
    return folder


@pytest.fixture
def new(things, tmp_path, monkeypatch):
    """Call the command among these things; return the path of its file and what it said."""
    monkeypatch.chdir(things)

    def call(options):
        path = tmp_path / "my.toml"
        out = adjsim.done("new", path, *options.split())
        return path, out

    return call


@pytest.mark.parametrize("name", sorted(bundled_scenes()))
def test_a_copy_of_a_bundled_scene_is_that_scene(new, name):
    path, _ = new(f"--from {name}")
    assert plain(read_scene(path)) == plain(read_scene(BUNDLED / f"{name}.toml"))
    first, text = path.read_text("utf-8").split("\n", 1)
    assert first == f"#:schema {SCHEMA.as_uri()}"
    assert (BUNDLED / f"{name}.toml").read_text("utf-8").endswith(text)


def test_of_a_film_and_a_mesh_the_first_frame_fits_and_a_search_begins(new, tmp_path):
    path, out = new("--film film --mesh ball.vtu --kind soft")
    guesses = re.findall(r"# guess: (.*)", path.read_text("utf-8"))
    assert f"{len(guesses)} guesses" in out
    assert "the file does not say it" in guesses
    file = read_scene(path)
    assert file.observations["film"].fps == FPS
    (shot,), _ = inspect(file, build(file))
    assert shot.size == SIZE
    assert overlap(shot.drawn[0], foreground(shot.data)[0]) > 0.9
    code, out, err = adjsim("preview", path, "--out", tmp_path / "a.png")
    assert code == 0, err
    with undrawn():
        few = ["search.coarse=2", "search.max_evaluations=3", "search.basins=1"]
        code, _, err = adjsim("run", path, *few, "--no-certificate", "--out", tmp_path / "run")
    assert code == 0, err
    assert RunFolder.open(tmp_path / "run").has("result.json")


@pytest.mark.parametrize("kind", ["soft", "rigid"])
def test_of_films_from_all_around_each_has_a_camera_that_is_to_be_filled_in(new, kind):
    path, out = new(f"--mesh from-views --kind {kind} --film film --film film --film film")
    text = path.read_text("utf-8")
    assert f"{text.count('# guess')} guesses" in out
    file = read_scene(path)
    assert file.bodies["thing"].mesh == "from-views"
    assert list(file.cameras) == list(file.films) == ["view1", "view2", "view3"]
    assert not any(camera.fit for camera in file.cameras.values())
    assert file.films["view2"].background.color == pytest.approx((0.6, 0.7, 0.8), abs=0.01)
    assert {path for path in file.free if path != "thing.velocity"} == {
        "soft": {"thing.E", "thing.nu", "thing.shape"}, "rigid": set()
    }[kind]  # fmt: skip


def test_views_are_named_as_their_films(new):
    file = read_scene(new("--mesh from-views --film film --film cam-2")[0])
    assert list(file.cameras) == list(file.films) == ["film", "cam_2"]


@pytest.mark.parametrize(
    ("options", "excerpts"),
    [
        ("--mesh ball.vtu", ['kind = "soft" ', "guess: by the mesh", " tetrahedra"]),
        ("--mesh sheet.stl", ['kind = "cloth" ', "guess: by the mesh", "32 triangles"]),
        ("--mesh bar.vtu --kind soft", ["scale = 0.001 ", "60 long, so it must be in millimetres"]),
        ("--mesh bar.stl --kind rigid", ['mesh = "../', "scale = 0.001 "]),
        ("--mesh box --kind soft", ["size = [0.1, 0.1, 0.1] ", "cells = [8, 8, 8] "]),
        ("--mesh shape:gear --kind rigid", ["[bodies.gear]", "size = [0.1] "]),
        ("--mesh chain --kind springs", ["cells = [10] ", "11 points"]),
        (
            "--film film --mesh ball --kind rigid",
            ["7 frames", "160 x 120", "color = [0.8, 0.3, 0.1]"],
        ),
        ("--film film --kind pendulum", ["length = [0.5]", '"rod.length" = {}']),
        ("--film a.jpg --mesh ball.vtu --kind soft", ["# fov_y = 53.0", 'motion = "equilibrium"']),
        ("--film a.jpg --mesh box --kind rigid", ['"box.position" = {}']),
        ("--points pixels.csv --mesh ball --kind rigid", ["size = [480, 640] "]),
        ("--points far.csv --mesh ball --kind rigid", ["size = [720, 1280] "]),
        ("--points far.csv --film film --mesh ball --kind rigid", ["video = ", "at = "]),
        ("--points space.csv --mesh ball --kind rigid", ['units = "mm"', "= [0.2, 1.0, 0.01] "]),
        (
            "--cloud cloud.npz --mesh ball.vtu --kind soft",
            ["3 frames until 0.2 s, 50 points", 'units = "mm"', "position = [0.04"],
        ),
        (
            "--depth depth --mesh box --kind soft",
            ["K = [[144.0, 0.0, 79.5]", "160 x 120 pixels, 3 frames", "fps = 30.0"],
        ),
        ("--points metres.csv --kind pendulum", ["pivot = [0.0289899, 1.46985, 0.0]"]),
        ("--urdf arm.urdf", ["[bodies.lower]", "gravity = [0.0, 0.0, -9.81] ", "upper = 14.3239 "]),
        ("--urdf free.urdf --film film", ["[joints.a_b_to_world]", '"tip_joint.viscous_friction"']),
    ],
)
def test_the_file_says_what_there_is_and_can_be_drawn(new, options, excerpts):
    path, _ = new(options)
    text = path.read_text("utf-8")
    for excerpt in excerpts:
        assert excerpt in text
    schema = Draft7Validator(json.loads(SCHEMA.read_text("utf-8")))
    assert [error.message for error in schema.iter_errors(tomllib.loads(text))] == []
    file = read_scene(path)
    built = build(file)
    if "film" not in file.observations:
        (shot,), _ = inspect(file, built)
        rows, columns = np.nonzero(shot.drawn[0])
        height, width = shot.size
        assert 0.15 < max(np.ptp(rows) / height, np.ptp(columns) / width) < 0.9
        if "points" not in file.observations:
            assert abs(rows.mean() - height / 2) < 0.1 * height
            assert abs(columns.mean() - width / 2) < 0.1 * width


@pytest.mark.parametrize("body", ["--mesh ball --kind rigid", "--kind pendulum"])
def test_points_in_pixels_are_seen_where_their_table_begins(new, body):
    path, _ = new(f"--points pixels.csv {body}")
    file = read_scene(path)
    camera = make_camera("front", file.cameras["front"], file.cameras["front"].size)
    (place,) = file.observations["points"].at.values()
    pixels, _ = seen_by(camera, file.cameras["front"].size)(np.array([place]))
    np.testing.assert_allclose(pixels, [[200.0, 100.0]], atol=1e-2)  # six digits are written


def test_a_robot_moves_as_that_of_its_file(new, things):
    """Stiffnesses are chosen otherwise, so joints give way by other parts of a millimetre."""
    path, _ = new("--urdf turned.urdf")
    robot, built = read_urdf(things / "turned.urdf"), build(read_scene(path))
    gravity = built.system.gravity
    of_file = Model(forces=robot.forces, bodies={"robot": robot.bodies}, gravity=gravity)
    state = State(bodies={"robot": robot.state})
    dt = min(of_file.stable_dt(), built.system.stable_dt())
    steps = int(0.15 / dt)
    places = rollout(of_file, state, dt, steps, frames=[0, steps]).bodies["robot"].position
    moved = rollout(built.system, built.state, dt, steps, frames=[0, steps]).bodies
    assert np.abs(places[1] - places[0]).max() > 0.05
    for k, name in enumerate(("upper", "lower")):
        np.testing.assert_allclose(moved[name].position[:, 0], places[:, k], atol=2e-3)


def test_a_robot_has_the_masses_and_places_of_its_file(new, things):
    path, _ = new("--urdf arm.urdf")
    robot, built = read_urdf(things / "arm.urdf"), build(read_scene(path))
    state = built.state
    for k, name in enumerate(("upper", "lower")):
        body = built.system.bodies[name]
        np.testing.assert_allclose(body.masses, robot.bodies.masses[k])
        np.testing.assert_allclose(body.inertias[0], robot.bodies.inertias[k], atol=1e-12)
        np.testing.assert_allclose(state.bodies[name].position[0], robot.state.position[k])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "Say what there is"),
        ("--from identfy", "Did you mean `identify`"),
        ("--from identify --film film", "`--from` must come alone, got `--film`"),
        ("--film film", "`--mesh` is missing, the body"),
        ("--points pixels.csv --kind soft", "`--mesh` is missing, the body"),
        ("--film none.mp4 --mesh ball", "`--film`: there is no file"),
        ("--film empty.mp4 --mesh ball", "empty.mp4 cannot be read as a video"),
        ("--mesh none.stl", "`--mesh`: there is no file"),
        ("--mesh noise.stl", "`--mesh`: "),
        ("--mesh shape:sphere2", "`--mesh`: Unknown shape `sphere2`. Did you mean `sphere`"),
        ("--mesh ball --kind sof", "`--kind`: Unknown kind `sof`. Did you mean `soft`"),
        ("--mesh ball.vtu --kind cloth", "`--kind` cloth does not fit ball.vtu, which is a closed"),
        (
            "--mesh sheet.stl --kind soft",
            "`--kind` soft does not fit sheet.stl, which is no closed",
        ),
        ("--mesh sheet.stl --kind rigid", "Or give `--kind cloth`"),
        ("--mesh chain --kind soft", "`--mesh` must have faces, got a chain"),
        ("--mesh ball --kind pendulum", "`--mesh` must be left out of a pendulum"),
        ("--points noise.csv --mesh ball", "`--points`: line 1 of"),
        ("--mesh from-views --film film", "`--film` must be given once for each view, from two"),
        ("--mesh from-views --points pixels.csv", "`--points` must be left out beside `--mesh fr"),
        ("--mesh from-views --kind cloth --film film --film film", "`--kind`: Unknown kind `clo"),
        ("--urdf noise.urdf", "`--urdf`: "),
        ("--urdf arm.urdf --mesh ball", "`--mesh` must be left out beside `--urdf`"),
    ],
)
def test_what_cannot_be_used_is_one_message_and_nothing_is_written(
    things, tmp_path, monkeypatch, options, message
):
    monkeypatch.chdir(things)
    code, out, err = adjsim("new", tmp_path / "my.toml", *options.split())
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("there.toml", "is there already"),
        ("a.txt", "must end in .toml"),
        ("no/a.toml", "no folder"),
    ],
)
@pytest.mark.parametrize("options", ["--from identify", "--mesh ball"])
def test_a_file_is_new_and_a_toml_file_in_a_folder(tmp_path, name, message, options):
    (tmp_path / "there.toml").write_text("mine")
    err = adjsim.refused("new", tmp_path / name, *options.split())
    assert "`FILE`" in err
    assert message in err
    assert {path.name for path in tmp_path.iterdir()} == {"there.toml"}
    assert (tmp_path / "there.toml").read_text() == "mine"


def test_a_folder_that_is_there_is_no_place_for_meshes(things, tmp_path):
    (tmp_path / "my-meshes").mkdir()
    err = adjsim.refused("new", tmp_path / "my.toml", "--urdf", things / "arm.urdf")
    assert "my-meshes is there already" in err
    assert not (tmp_path / "my.toml").exists()
    assert adjsim("new", tmp_path / "my.toml", "--from", "identify")[0] == 0


def test_meshes_of_a_robot_that_cannot_be_built_are_not_left(things, tmp_path, monkeypatch):
    def broken(*_):
        raise ValueError("cannot be built")

    monkeypatch.setattr("studies.cli.new_scene.command.build", broken)
    err = adjsim.refused("new", tmp_path / "my.toml", "--urdf", things / "arm.urdf")
    assert "cannot be built" in err
    assert list(tmp_path.iterdir()) == []


def test_the_help_has_the_ways_of_the_page_of_questions():
    out = adjsim.done("new", "--help")
    ways = {
        way
        for line in PAGE.splitlines()
        for way in re.findall(r"`adjsim new my\.toml (--(?:from|film|points|urdf) [^`]+)`", line)
    }
    assert len(ways) > 10
    help_lines = out[out.index("you have") : out.index("Arguments:")]
    listed = re.findall(r"(--(?:from|film|points|urdf) .*?)(?:,|$)", help_lines, re.MULTILINE)
    assert set(listed) == ways


def test_several_films_are_refused(tmp_path):
    films = ("--film", "a.mp4", "--film", "b.mp4", "--mesh", "box", "--kind", "soft")
    message = adjsim.refused("new", str(tmp_path / "a.toml"), *films)
    assert "`--film` must be given once, got 2 films" in message
    assert not (tmp_path / "a.toml").exists()
