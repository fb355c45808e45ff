import dataclasses
import os
import re
import subprocess
import sys

import pytest

from studies.runs.errors import StudyError
from studies.scene.declared import (
    ASSETS,
    Box,
    Film,
    Free,
    Held,
    PlaneObstacle,
    Points,
    Soft,
    States,
)
from studies.scene.reading import read_scene, scene_from_dict, to_toml


GOOD = """
title = "a duck that falls"
[bodies.duck]
kind = "soft"
mesh = "duck.vtu"
scale = 0.03
E = 1.0e5
nu = 0.4
held = { box = { lower = [0, 0, 0], upper = [1, 0, 1] }, nodes = [3, 4] }
look = { color = [0.9, 0.7, 0.1], texture = "duck.png" }
[bodies.ball]
kind = "rigid"
mesh = "ball"
size = [0.1]
[obstacles.floor]
normal = [0, 1, 0]
bodies = ["duck"]
[obstacles.post]
center = [1, 0, 0]
radius = 0.1
[cameras.front]
eye = [0, 1, 3]
target = [0, 0, 0]
fov_y = 40
[observations.film]
video = "duck.mp4"
background = { picture = "duck.png" }
[observations.marks]
file = "marks.csv"
body = "duck"
at = { nose = [0.0, 0.1, 0.2] }
[observations.nodes]
file = "nodes.npz"
body = "duck"
[free]
"duck.E" = { start = 2e5, bounds = [1e4, 1e7], prior = { mean = 1e5, error = 1e4 } }
"observations.film.start" = {}
"cameras.front.position" = {}
[search]
basins = 2
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("duck.vtu", "duck.png", "duck.mp4", "marks.csv", "nodes.npz"):
        (tmp_path / name).touch()
    return tmp_path


def read(folder, text, *overrides):
    path = folder / "scene.toml"
    path.write_text(text, encoding="utf-8")
    return read_scene(path, overrides)


def test_a_scene_file_is_read(folder):
    scene = read(folder, GOOD)
    duck = scene.bodies["duck"]
    assert isinstance(duck, Soft)
    assert (duck.E, duck.nu, duck.density) == (1e5, 0.4, 1000.0)
    assert duck.mesh == str(folder / "duck.vtu")
    assert duck.look.texture == str(folder / "duck.png")
    assert duck.held == Held(box=Box(lower=(0, 0, 0), upper=(1, 0, 1)), nodes=(3, 4))
    assert scene.bodies["ball"].mesh == "ball"
    assert scene.free["observations.film.start"] == Free()
    assert scene.search.basins == 2


def test_kinds_are_inferred(folder):
    scene = read(folder, GOOD)
    assert isinstance(scene.obstacles["floor"], PlaneObstacle)
    assert scene.obstacles["post"].kind == "sphere"
    kinds = [type(scene.observations[name]) for name in ("film", "marks", "nodes")]
    assert kinds == [Film, Points, States]


@pytest.mark.parametrize("mesh", ["pyvista:hexbeam.vtk", "shape:gear", "sheet"])
def test_meshes_that_are_no_files_are_left_alone(folder, mesh):
    assert read(folder, GOOD, f"bodies.ball.mesh={mesh}").bodies["ball"].mesh == mesh


def test_a_bundled_file_is_found(folder):
    scene = read(folder, GOOD, "observations.film.video=adjsim:hexbeam.mp4")
    assert scene.observations["film"].video == str(ASSETS / "hexbeam.mp4")


def test_a_scene_written_and_read_is_equal(folder):
    scene = read(folder, GOOD)
    text = to_toml(scene)
    assert read_scene_text(folder / "other", text) == scene
    assert "viscosity" not in text


def read_scene_text(folder, text):
    folder.mkdir()
    return read(folder, text)


def test_all_kinds_come_back(folder):
    (folder / "push.csv").touch()
    text = """
        [bodies.flag]
        kind = "cloth"
        mesh = "sheet"
        E = "field:stiffness"
        [bodies.net]
        kind = "springs"
        mesh = "sheet"
        [bodies.arm]
        kind = "pendulum"
        length = [1.0, 0.5]
        angle = [10, 20]
        torque = "push.csv"
        [bodies.muscle]
        kind = "soft"
        mesh = "box"
        actuation = 0.3
        [obstacles.pole]
        ends = [[0, 0, 0], [0, 1, 0]]
        radius = 0.1
        [obstacles.crate]
        center = [1, 2, 3]
        size = [1, 1, 1]
        [cameras.left]
        K = [[100, 0, 32], [0, 100, 24], [0, 0, 1]]
        R = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
        t = [0, 0, 3]
        distortion = [-0.1, 0.01]
        [lights.lamp]
        color = [2, 1, 1]
        [free.muscle.actuation]
        tied_to = "arm.mass"
        [free.arm.mass]
        start = [1.0, 2.0]
        bounds = [0.5, 3.0]
    """
    scene = read(folder, text)
    assert scene.bodies["arm"].torque == str(folder / "push.csv")
    assert scene.obstacles["pole"].kind == "capsule"
    assert read_scene_text(folder / "other", to_toml(scene)) == scene


def test_overrides(folder):
    scene = read(
        folder,
        GOOD,
        "bodies.duck.E=2e5",
        "bodies.duck.held={nodes=[1]}",
        "cameras.front.eye=[0, 2, 4]",
        "title=another duck",
        'free."duck.E".bounds=[1e3, 1e6]',
        "free.duck.E.prior.error=2e4",
        "free.duck.nu={}",
        "free.observations.film.start.bounds=[0, 1]",
        "search.held_back=0",
    )
    assert scene.bodies["duck"].E == 2e5
    assert scene.bodies["duck"].held == Held(nodes=(1,))
    assert scene.cameras["front"].eye == (0, 2, 4)
    assert scene.title == "another duck"
    assert scene.free["duck.E"].bounds == (1e3, 1e6)
    assert scene.free["duck.E"].start == 2e5
    assert scene.free["duck.nu"] == Free()
    assert scene.free["observations.film.start"].bounds == (0, 1)
    assert scene.search.held_back == 0.0


def test_free_paths_may_stand_without_quotes(folder):
    before, _, after = GOOD.partition("[free]")
    text = f"{before}[free]\nduck.nu = {{ bounds = [0.1, 0.45] }}\nlights.sun.direction = {{}}\n"
    text += "[lights.sun]\n[search]" + after.partition("[search]")[2]
    assert list(read(folder, text).free) == ["duck.nu", "lights.sun.direction"]


FRONT = "eye = [0, 1, 3]\ntarget = [0, 0, 0]\nfov_y = 40"
K = "K = [[100, 0, 32], [0, 100, 24], [0, 0, 1]]\nt = [0, 0, 3]\nR = "
SECOND = "[cameras.side]\neye = [3, 1, 0]\ntarget = [0, 0, 0]\nfov_y = 40\n"
CASES = {
    "misspelt key": (
        "scale = 0.03",
        "scal = 0.03",
        ["`bodies.duck`: Unknown key `scal`", "`scale`?"],
    ),
    **{
        f"{other} for {name}": (
            f"{name} = ",
            f"{other} = ",
            [f"`bodies.duck`: Unknown key `{other}`. Did you mean `{name}`?"],
        )
        for name, others in {
            "E": ("youngs_modulus", "young_modulus", "Young", "elastic_modulus"),
            "nu": ("poisson", "poisson_ratio", "poissons_ratio"),
        }.items()
        for other in others
    },
    "misspelt table": ("[search]", "[serach]", ["Unknown key `serach`", "`search`?"]),
    "misspelt nested key": ("color =", "colour =", ["`bodies.duck.look`", "`color`?", "texture"]),
    "text for a number": ("1.0e5", '"stiff"', ["`bodies.duck.E`", "above 0", "'stiff'"]),
    "digits in quotes": ("nu = 0.4", 'nu = "0.4"', ["`bodies.duck.nu`", "a number", "'0.4'"]),
    "out of range": ("nu = 0.4", "nu = 0.5", ["`bodies.duck.nu`", "below 0.5", "got 0.5"]),
    "not finite": ("nu = 0.4", "nu = nan", ["`bodies.duck.nu`", "a number", "nan"]),
    "short vector": ("[0, 1, 3]", "[0, 1]", ["`cameras.front.eye`", "list of 3 numbers"]),
    "missing key": ('body = "duck"\nat', "at", ["`observations.marks.body` is missing"]),
    "body without a mesh": ('mesh = "duck.vtu"', "", ["`bodies.duck.mesh` is missing"]),
    "no such mesh": ("duck.vtu", "goose.vtu", ["`bodies.duck.mesh`", "no file", "goose.vtu"]),
    "wrong kind": ('"soft"', '"sof"', ["`bodies.duck.kind`", "`sof`", "`soft`?", "rigid", "smoke"]),
    "missing kind": ('kind = "soft"', "", ["`bodies.duck.kind` is missing", "soft, cloth"]),
    "one name twice": ("[bodies.ball]", "[bodies.duck]", ["two bodies with one name", "line"]),
    "one name in two tables": ("[obstacles.floor]", "[obstacles.duck]", ["'duck'", "bodies.duck"]),
    "reserved name": ("[bodies.ball]", "[bodies.world]", ["`bodies.world`", "meaning of its own"]),
    "no identifier": ("[bodies.ball]", "[bodies.9ball]", ["`bodies.9ball`", "letters"]),
    "free path of no body": ('"duck.E"', '"dukc.E"', ['free."dukc.E"', "Did you mean `duck`?"]),
    "free path of no camera": ("cameras.front.p", "cameras.back.p", ["`back`", "Known: front"]),
    "free path of no film": ("observations.film.start", "observations.fim.start", ["`film`?"]),
    "free path without a key": ('"duck.E" =', '"duck" =', ["must be a path"]),
    "tie by a factor of 0": (
        '"cameras.front.position" = {}',
        '"duck.nu" = { tied_to = "duck.E", factor = 0.0 }',
        ['`free."duck.nu".factor` must not be 0'],
    ),
    "bounds that are none": ("[1e4, 1e7]", "[1e7, 1e4]", ["bounds`", "low < high"]),
    "bounds without the start": ("start = 2e5", "start = 2e7", ["bounds`", "hold `start`, 2e+07"]),
    "bounds without the value": (
        "start = 2e5, bounds = [1e4,",
        "bounds = [1e6,",
        ["hold the scene's value, 100000"],
    ),
    "bounds of a logarithm": ("[1e4,", '[-1.0, 1e7], transform = "log", factor = 1 } #', ["posi"]),
    "tie to nothing": ("start = 2e5", 'tied_to = "ball.E"', ["tied_to`", "`ball.E`"]),
    "camera of a film": ('"duck.mp4"', '"duck.mp4"\ncamera = "fornt"', ["`fornt`", "`front`?"]),
    "several cameras": ("[observations.film]", SECOND + "[observations.film]", ["front, side"]),
    "camera of nothing": (FRONT, "", ["`cameras.front` needs eye and target and fov_y"]),
    "half a camera": ("fov_y = 40", "", ["`cameras.front` needs fov_y", "only eye, target"]),
    "camera of both ways": (
        "fov_y = 40",
        K + "[[1,0,0],[0,1,0],[0,0,1]]",
        ["eye and target as well as R and t"],
    ),
    "two lenses": ("fov_y = 40", "fov_y = 40\n" + K.split("\n", 1)[0], ["fov_y as well as K"]),
    "no rotation": (FRONT, K + "[[1,0,0],[0,1,0],[0,0,2]]", ["`cameras.front.R`", "rotation"]),
    "up along the view": ("[0, 1, 3]", "[0, 3, 0]", ["`cameras.front.up`", "along the view"]),
    "points of no body": ('"duck"\nat', '"goose"\nat', ["`observations.marks.body`", "`goose`"]),
    "obstacle of no body": ('bodies = ["duck"]', 'bodies = ["d"]', ["`obstacles.floor.bodies`"]),
    "held rigid body": ("size = [0.1]", "held = {nodes = [1]}", ["`bodies.ball.held`", "rigid"]),
    "held by nothing": ("box = {", "bxo = {", ["`bodies.duck.held`", "`box`?"]),
    "held by no box": ("lower = [0,", "lower = [2,", ["held.box.lower` must not be above upper"]),
    "held by no plane": (
        "box = { lower = [0, 0, 0], upper = [1, 0, 1] }",
        "plane = { point = [0, 0, 0], normal = [0, 0, 0] }",
        ["held.plane.normal` must not be zero"],
    ),
    "muscles in no box": (
        "held = {",
        "actuation = { frequency = 1, scale = 1, where = {} }\nheld = {",
        ["`bodies.duck.actuation.where` selects nothing"],
    ),
    "misspelt key of a policy": (
        "held = {",
        "actuation = { frequncy = 1, scale = 1 }\nheld = {",
        ["`bodies.duck.actuation`: Unknown key `frequncy`", "`frequency`?"],
    ),
    "frames": ('"duck.mp4"', '"duck.mp4"\nframes = [3, 3]', ["frames`", "first < end"]),
    "no number": ("nu = 0.4", "nu = " + "9" * 5000, ["not valid TOML", "thousands of digits"]),
    "lists in lists": ("[0, 1, 3]", "[" * 3000 + "]" * 3000, ["nested more than 50 deep"]),
    "tables in tables": ("nu = 0.4", "a." * 3000 + "b = 1", ["nested more than 50 deep"]),
    "too much text": ("[search]", "#" * 11_000_000 + "\n[search]", ["at most 10 MB, got 11"]),
    "too large": ("1.0e5", "1e300", ["`bodies.duck.E`", "to 1e+30 in size, got 1e+300"]),
    "too small": ("1.0e5", "1e-300", ["`bodies.duck.E`", "1e-100", "got 1e-300"]),
    "too many": ("[search]", "[search]\ncoarse = 1000000000", ["`search.coarse`", "up to 100000"]),
    "no stages": ("[search]", "[search]\nstages = []", ["`search.stages`", "a list with numbers"]),
    "no softness": ("[search]", "[search]\nsoftness = []", ["`search.softness`", "from 1 to 1000"]),
    "a unit": ("1.0e5", "1.0e5 Pa", ["The line is `E = 1.0e5 Pa`", "without their units"]),
    "no TOML": ("[bodies.duck]", "[bodies.duck", ["is not valid TOML", "line"]),
    "a table of numbers": ("[search]", "[[search]]", ["`search` must be a table"]),
}


@pytest.mark.parametrize(("old", "new", "parts"), CASES.values(), ids=CASES)
def test_bad_input_gives_one_clear_message(folder, old, new, parts):
    assert old in GOOD
    with pytest.raises(StudyError) as caught:
        read(folder, GOOD.replace(old, new, 1))
    message = str(caught.value)
    for phrase in parts:
        assert phrase in message
    assert message.count("\n") == 0


def test_all_mistakes_in_the_tables_are_told_at_once(folder):
    text = GOOD.replace("scale =", "scal =").replace("nu = 0.4", 'nu = "0.4"')
    text = text.replace('body = "duck"\nat', 'bdoy = "duck"\nat').replace("[0, 1, 3]", '[0, "a"]')
    with pytest.raises(StudyError) as caught:
        read(folder, text)
    first, *messages = str(caught.value).splitlines()
    assert first == f"4 mistakes in {folder / 'scene.toml'}:"
    starts = ["`bodies.duck`: Unknown key `scal`", "`observations.marks`: Unknown key `bdoy`"]
    starts += ["`bodies.duck.nu` must be a number", "`cameras.front.eye` must be a list"]
    assert all(message.startswith(start) for message, start in zip(messages, starts, strict=True))


def test_all_that_does_not_fit_together_is_told_at_once(folder):
    text = GOOD.replace("[cameras.front]\n" + FRONT, "").replace("[1e4, 1e7]", "[1e7, 1e4]")
    with pytest.raises(StudyError) as caught:
        read(folder, text.replace("lower = [0,", "lower = [2,"))
    first, *messages = str(caught.value).splitlines()
    assert first.startswith("4 mistakes in")
    starts = ["`bodies.duck.held.box.lower`", "`observations.film` needs a camera"]
    starts += ['`free."duck.E".bounds`', '`free."cameras.front.position"`: Unknown name']
    assert all(message.startswith(start) for message, start in zip(messages, starts, strict=True))


@pytest.mark.parametrize(
    ("override", "phrase"),
    [
        ("bodies.duck.E", "key=value"),
        ("=3", "key=value"),
        ("bodies.duck.e=3", "`E`"),
        ("title.x=3", "`title` is no table"),
        ("bodies.duck.position=[0, 1", "no TOML value"),
        ("bodies.duck.E=soft", "'soft'"),
        ("free=3", "`free` must be a table"),
        ("free.duck.E=3", "must be a table"),
        ("free.duck.E.bound=[1, 2]", "`bounds`?"),
        ("instances=" + "9" * 5000, "`instances` must be a whole number of at least 1 and up to"),
        ("instances=" + "9" * 400, "`instances` must be a whole number of at least 1 and up to"),
        ("a." * 3000 + "b=1", "A setting must read key=value"),
        ("free." + "a." * 3000 + "b=1", "A setting must read key=value"),
    ],
)
def test_bad_overrides(folder, override, phrase):
    with pytest.raises(StudyError, match=re.escape(phrase)):
        read(folder, GOOD, override)


@pytest.mark.parametrize("values", [{}, {"bodies": {}}, {"title": "nothing"}])
def test_a_scene_needs_bodies(values):
    with pytest.raises(StudyError, match="`bodies` must hold at least one"):
        scene_from_dict(values)


def test_a_pipe_is_refused_which_would_be_waited_for(folder):
    os.mkfifo(folder / "pipe.mp4")
    with pytest.raises(
        StudyError, match=r"`observations.film.video`: there is no file .*pipe\.mp4"
    ):
        read(folder, GOOD.replace('video = "duck.mp4"', 'video = "pipe.mp4"'))


def test_no_file():
    with pytest.raises(StudyError, match=r"no scene file nowhere\.toml"):
        read_scene("nowhere.toml")


def test_what_is_given_is_not_changed(folder):
    values = {"bodies": {"ball": {"kind": "rigid", "mesh": "ball"}}, "free": {"ball": {"mass": {}}}}
    scene = scene_from_dict(values, folder)
    assert values["free"] == {"ball": {"mass": {}}}
    assert list(scene.free) == ["ball.mass"]
    assert dataclasses.replace(scene, title="other") != scene


def test_reading_imports_nothing_slow():
    code = "import sys, studies.scene.reading; print([m for m in sys.modules])"
    names = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "'pydantic'" in names
    for slow in ("numba", "scipy", "pyvista", "matplotlib"):
        assert f"'{slow}'" not in names
