"""What is wrong with a scene is one message, before anything is compiled or written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
import tomlkit
from numba.core import event
from PIL import Image

from studies.fitting.running import start_scene
from tests.studies.problem import scenes


def write_film(folder, n_frames=6, size=(40, 48), step=2):
    """Write pictures of a square that moves to the right."""
    folder.mkdir()
    for k in range(n_frames):
        pixels = np.full((*size, 3), 128, np.uint8)
        pixels[14:26, 14 + step * k : 26 + step * k] = (220, 90, 40)
        Image.fromarray(pixels).save(folder / f"{k:03d}.png")


def misspelt(scene_tables, folder):
    scene_tables["bodies"]["cube"]["densty"] = 1e3


def no_mesh(scene_tables, folder):
    del scene_tables["bodies"]["cube"]["mesh"]


def one_name_twice(scene_tables, folder):
    return '\n[bodies.cube]\nkind = "soft"\n'


def one_name_for_two_things(scene_tables, folder):
    scene_tables["obstacles"]["cube"] = {"kind": "plane"}


def unknown_path(scene_tables, folder):
    scene_tables["free"] = {"cube.Young": {}}


def small_masks(scene_tables, folder):
    write_film(folder / "masks", size=(20, 24))
    scene_tables["observations"]["film"]["masks"] = "masks"


def points_of_nothing(scene_tables, folder):
    (folder / "marks.csv").write_text("time,point,x,y,z\n0,a,0,0.23,0\n0.1,a,0,0.2,0\n")
    scene_tables["observations"]["marks"] = {"file": "marks.csv"}


def points_off_the_body(scene_tables, folder):
    points_of_nothing(scene_tables, folder)
    scene_tables["observations"]["marks"] |= {"body": "cube", "at": {"a": [0.0, 5.0, 0.0]}}


def camera_inside(scene_tables, folder):
    scene_tables["cameras"]["front"]["eye"] = [0.05, 0.13, 0.05]


def camera_elsewhere(scene_tables, folder):
    scene_tables["cameras"]["front"]["target"] = [0.3, 0.3, 2.0]


def mesh_in_millimetres(scene_tables, folder):
    scene_tables["bodies"]["cube"]["scale"] = 1e-3


def nothing_moves(scene_tables, folder):
    write_film(folder / "still", step=0)
    scene_tables["observations"]["film"]["video"] = "still"


def start_out_of_bounds(scene_tables, folder):
    scene_tables["free"] = {"cube.E": {"start": 5e6, "bounds": [1e3, 1e6]}}


def own_value_out_of_bounds(scene_tables, folder):
    scene_tables["free"] = {"cube.E": {"bounds": [1e5, 1e6]}}


def other_length(scene_tables, folder):
    write_film(folder / "short", n_frames=3)
    scene_tables["observations"]["side"] = {"video": "short", "fps": scenes.FPS}


def nothing_to_fit(scene_tables, folder):
    scene_tables["observations"]["film"]["validate"] = True


def lost_materials(scene_tables, folder):
    corners = [f"v {x} {y} {z}" for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    quads = ["1 2 4 3", "5 7 8 6", "1 5 6 2", "3 4 8 7", "1 3 7 5", "2 6 8 4"]
    lines = ["mtllib paint.mtl", *corners, "vt 0 0"]
    lines += [f"f {' '.join(f'{i}/1' for i in quad.split())}" for quad in quads]
    (folder / "box.obj").write_text("\n".join(lines) + "\n")
    Image.new("RGB", (4, 4)).save(folder / "paint.png")
    look = {"texture": "paint.png"}
    scene_tables["bodies"] = {
        "cube": {"kind": "rigid", "mesh": "box.obj", "scale": 0.2, "mass": 1.0, "look": look}
    }
    scene_tables["free"] = {"cube.mass": {}}


BAD = {  # what is wrong: the key, and the way out
    misspelt: ("`bodies.cube`: Unknown key `densty`", "`density`"),
    no_mesh: ("bodies.cube.mesh", "give a file"),
    one_name_twice: ("[bodies.cube]", "Rename one of them"),
    one_name_for_two_things: ("obstacles.cube", "Rename one of the two"),
    unknown_path: ("cube.Young", "cube.E"),
    small_masks: ("observations.film.masks", "20 x 24"),
    points_of_nothing: ("observations.marks.body", "missing"),
    points_off_the_body: ("observations.marks", "Check units and pose"),
    camera_inside: ("cameras.front", "move the camera"),
    camera_elsewhere: ("cameras.front", "Check eye and target"),
    mesh_in_millimetres: ("cameras.front", "`scale`"),
    nothing_moves: ("observations.film.video", "Give a film"),
    start_out_of_bounds: ('free."cube.E".bounds', "Widen them"),
    own_value_out_of_bounds: ('free."cube.E".bounds', "Widen them"),
    other_length: ("observations.side", "Cut one with `frames`"),
    nothing_to_fit: ("observations", "without `validate`"),
    lost_materials: ("bodies.cube.look.texture", "remove the line `mtllib`"),
}


class Compiled(event.Listener):
    """Counts what Numba compiles."""

    count = 0

    def on_start(self, event):
        self.count += 1

    def on_end(self, event):
        pass


def refusals(folder):
    """Start every bad scene; write the messages, and how much was compiled on the way to each."""
    folder, compiled, outcomes = Path(folder), Compiled(), {}
    for change in BAD:
        place = folder / change.__name__
        place.mkdir()
        write_film(place / "film")
        scene_tables = scenes.tables()
        more = change(scene_tables, place) or ""
        (place / "scene.toml").write_text(tomlkit.dumps(scene_tables) + more)
        kept = compiled.count
        message = "was accepted"
        with event.install_listener("numba:compile", compiled):
            try:
                start_scene(place / "scene.toml", [], place / "run", {})
            except (ValueError, OSError) as error:
                message = str(error)
        outcomes[change.__name__] = (message, compiled.count - kept, (place / "run").exists())
    with event.install_listener("numba:compile", compiled):
        numba.njit(lambda x: x + 1)(1)
    outcomes["a kernel"] = ("", compiled.count, False)
    (folder / "refusals.json").write_text(json.dumps(outcomes))


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """What was said of every bad scene, by a process whose cache holds no kernel yet."""
    folder = tmp_path_factory.mktemp("bad")
    code = f"from {__name__} import refusals; refusals({str(folder)!r})"
    cache = {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **cache}, check=True)
    return json.loads((folder / "refusals.json").read_text())


@pytest.mark.parametrize("change", BAD, ids=lambda change: change.__name__)
def test_a_bad_scene_is_refused_at_once(refused, change):
    message, compiled, is_written = refused[change.__name__]
    key, way_out = BAD[change]
    assert key in message
    assert way_out in message
    assert "\n" not in message
    assert compiled == 0
    assert not is_written


def test_what_is_compiled_is_counted(refused):
    assert refused["a kernel"][1] > 0
