"""The page of a preview: what is changed by looking, and its server."""

import json
import threading
from dataclasses import replace
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

from studies.reports.preview.editing import Editor, solved_camera
from studies.reports.preview.page import PageServer
from studies.runs import media
from studies.runs.errors import StudyError
from studies.scene.cameras import make_camera
from studies.scene.declared import Camera
from studies.scene.files import find_scene
from studies.scene.reading import read_scene


SCENE = """
# a beam above a floor
[bodies.beam]
kind = "soft"
mesh = "box"
size = [0.6, 0.15, 0.15]  # [m]
cells = [6, 2, 2]
E = 2e5
nu = 0.3
look = { color = [0.9, 0.3, 0.1] }

[obstacles.floor]
kind = "plane"
point = [0, -0.3, 0]

[cameras.front]
eye = [0.2, 0.3, 2]
target = [0, 0, 0]
fov_y = 40
size = [90, 120]
"""


@pytest.fixture
def editor(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(SCENE, encoding="utf-8")
    return Editor(path)


PLACES = np.array([[-0.3, 0, 0], [0.3, 0, 0.1], [0.3, 0.2, -0.1], [-0.3, 0.2, 0], [0, 0.1, 0.2]])


@pytest.mark.parametrize("lens", ["fov_y", "K", "R"])
def test_known_points_give_the_camera_from_afar(editor, lens):
    spec = Camera(eye=(1.2, 0.8, -1.1), target=(0.0, 0.1, 0.0), fov_y=55.0)
    if lens == "K":
        K = ((130.0, 0.0, 60.0), (0.0, 130.0, 44.0), (0.0, 0.0, 1.0))
        spec = replace(spec, fov_y=None, K=K)
    (shot,) = editor.shots
    pixels, _ = replace(shot, camera=make_camera("true", spec, shot.size)).seen_at(PLACES)
    start = Camera(eye=(0.2, 0.3, 2.0), target=(0.0, 0.0, 0.0), fov_y=40.0)
    start = replace(start, fov_y=None, K=spec.K) if lens == "K" else start
    shot = replace(shot, camera=make_camera("start", start, shot.size))
    start = replace(start, eye=None, target=None) if lens == "R" else start
    settings, off = solved_camera(start, shot, pixels, PLACES)
    assert off < 1e-6
    values = {key: json.loads(value) for key, value in settings.items()}
    eye = -np.array(values["R"]).T @ values["t"] if lens == "R" else values["eye"]
    np.testing.assert_allclose(eye, spec.eye, atol=1e-6)
    if lens != "K":
        assert values["fov_y"] == pytest.approx(55.0, rel=1e-5)


def test_too_few_points_and_points_on_a_line_give_no_camera(editor):
    line = [([k, k], [k, 0.0, 0.0]) for k in range(5)]
    for points in (line, line[:1], [*line[:2], ([3, 4], [0, 1, 0])]):
        with pytest.raises(StudyError, match="needs 4 known points or more"):
            editor.solve(editor.shots[0], points)
    with pytest.raises(StudyError, match="needs three numbers"):
        editor.solve(editor.shots[0], [*line, ([1, 1], [None, 0.0, 0.0])])


def test_a_floor_goes_where_it_is_dragged(editor):
    (shot,) = editor.shots
    below = shot.center * (1.0, 0.0, 1.0) + (0.0, -0.15, 0.0)
    (pixel,), _ = shot.seen_at(below[None])
    assert "moved by" in editor.drag_floor(shot, "floor", pixel)
    assert editor.file.obstacles["floor"].point[1] == pytest.approx(-0.15, abs=1e-6)
    with pytest.raises(StudyError, match="must be a plane"):
        editor.drag_floor(shot, "wall", pixel)


def test_nodes_in_a_rectangle_are_held(editor):
    (shot,) = editor.shots
    x = shot.nodes[0]
    pixels, _ = shot.seen_at(x[x[:, 0] < -0.299])
    corners = [pixels.min(axis=0) - 0.1, pixels.max(axis=0) + 0.1]
    assert editor.hold(shot, "beam", corners) == "9 of 63 nodes of beam are held."
    assert editor.built.held_counts() == {"beam": "9 of 63 nodes held"}
    with pytest.raises(StudyError, match=r"No node of `bodies[.]beam`"):
        editor.hold(editor.shots[0], "beam", [[0, 0], [1, 1]])


def test_held_nodes_with_a_path_are_not_held_otherwise(editor):
    path = "{ times = [0.0, 1.0], positions = [[0, 0, 0], [0.1, 0, 0]] }"
    editor.change({"bodies.beam.held": f"{{ nodes = [0], path = {path} }}"})
    with pytest.raises(StudyError, match="has a path, which a rectangle would drop"):
        editor.hold(editor.shots[0], "beam", [[0, 0], [120, 90]])


def test_a_colour_of_a_film_is_found_and_tracked(tmp_path):
    (tmp_path / "film").mkdir()
    for k in range(3):
        picture = np.full((90, 120, 3), 0.8)
        picture[30:50, 40 + 5 * k : 80 + 5 * k] = [0.9, 0.3, 0.1]
        media.write_png(tmp_path / "film" / f"{k}.png", picture)
    path = tmp_path / "scene.toml"
    film = '[observations.film]\nvideo = "film"\nfps = 30\n'
    path.write_text(SCENE + film, encoding="utf-8")
    editor = Editor(path)
    picked = editor.pick(editor.shots[0], 1, [60, 40])
    assert picked["middle"] == pytest.approx([64.5, 39.5], abs=0.1)
    assert "800 pixels." in picked["say"]
    assert 'track.csv --color "0.902 0.298 0.102" --tolerance 0.15' in picked["say"]
    sheet = editor.pick(editor.shots[0], 0, [5, 5])
    assert "It is cut by the edge." in sheet["say"]


def test_a_change_that_cannot_be_read_changes_nothing(editor):
    editor.change({"bodies.beam.E": "3e5"})
    with pytest.raises(StudyError, match=r"bodies\.beam\.E"):
        editor.change({"bodies.beam.E": "-1.0"})
    assert editor.settings == {"bodies.beam.E": "3e5"}
    editor.change({"bodies.beam.E": None})
    assert editor.settings == {}
    assert editor.file.bodies["beam"].E == 2e5


def test_what_is_no_setting_is_refused(editor):
    with pytest.raises(StudyError, match="must read key=value"):
        Editor(editor.path, ["nonsense"])


def test_a_bundled_scene_is_written_here_twice_and_replaces_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    editor = Editor(find_scene("bounce"))
    for _ in range(2):
        assert editor.write() == tmp_path / "bounce.toml"
    with pytest.raises(StudyError, match="is there already"):
        Editor(find_scene("bounce")).write()


def test_what_is_written_keeps_the_comments(editor):
    editor.change({"bodies.beam.E": "3e5", "obstacles.floor.friction": "0.4"})
    path = editor.write()
    text = path.read_text(encoding="utf-8")
    assert text.startswith("\n# a beam above a floor")
    assert "size = [0.6, 0.15, 0.15]  # [m]" in text
    scene = read_scene(path)
    assert (scene.bodies["beam"].E, scene.obstacles["floor"].friction) == (3e5, 0.4)


def test_the_server_answers_its_own_page_alone(editor):
    server = PageServer(editor)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        page = urlopen(server.address).read().decode()
        assert "Preview of scene.toml" in page
        state = json.loads(urlopen(server.address + "state").read())
        (shot,) = state["shots"]
        assert {mark["name"] for mark in shot["marks"]} >= {"obstacles.floor", "gravity", "axis x"}
        assert urlopen(server.address + "scene/0/1").read(4) == b"\x89PNG"
        sent = json.dumps({"settings": {"bodies.beam.E": "1e5"}}).encode()
        answer = json.loads(urlopen(Request(server.address + "set", sent)).read())
        assert answer["settings"] == {"bodies.beam.E": "1e5"}
        sent = json.dumps({"settings": {"bodies.bean.E": "1e5"}}).encode()
        assert "bean" in json.loads(urlopen(Request(server.address + "set", sent)).read())["error"]
        for path in ("scene/0/9", "scene/7/0", "film"):
            with pytest.raises(HTTPError):
                urlopen(server.address + path)
        for guess in ("guess", "%C3%A9"):
            for body in (None, b"{}"):
                with pytest.raises(HTTPError):
                    urlopen(Request(server.address.replace(server.token, guess), body))
        assert "error" in json.loads(urlopen(Request(server.address + "set", b"[1]")).read())
        for length in ("-1", "9999999", "x"):
            head = {"Content-Length": length}
            with pytest.raises(HTTPError, match="413"):
                urlopen(Request(server.address + "set", b"{}", head))
    finally:
        server.shutdown()
        server.server_close()
