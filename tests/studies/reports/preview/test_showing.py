"""A scene whose film it draws itself: as it is nothing looks wrong, changed it does."""

import numpy as np
import pytest
import pyvista
from PIL import Image
from scipy.ndimage import binary_dilation

from render.scene import Scene
from render.soft_raster import SoftRasterizer, rasterize, softness
from studies.problem.forward import simulate
from studies.reports.preview.overlay import (
    AXES,
    PIECES,
    Overlay,
    draw_overlays,
    overlays,
    seen_pixels,
)
from studies.reports.preview.shots import places_at, shoot
from studies.reports.preview.showing import preview
from studies.runs import media
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.declared import Push, Rigid, Scene as DeclaredScene
from studies.scene.files import find_scene
from studies.scene.reading import read_scene


SCENE = """
[bodies.brick]
kind = "rigid"
mesh = "box"
size = [0.3, 0.2, 0.2]
density = 500.0
rotation = [20, 30, 0]
velocity = [0.5, 1.5, 0.0]
look = { color = [0.9, 0.3, 0.1] }
[cameras.front]
eye = [0, 0, 2]
target = [0, 0, 0]
fov_y = 40
"""
FILM = """
[observations.film]
video = "film"
fps = 30
"""
HELD = """
[bodies.beam]
kind = "soft"
mesh = "box"
size = [0.6, 0.15, 0.15]
cells = [6, 2, 2]
E = 2e5
nu = 0.3
held = { box = { lower = [-9, -9, -9], upper = [-0.299, 9, 9] } }
look = { color = [0.9, 0.3, 0.1] }
[cameras.front]
eye = [0, 0, 2]
target = [0, 0, 0]
fov_y = 40
"""


@pytest.fixture(scope="module")
def filmed(tmp_path_factory):
    """Return a function that films a scene and writes it, and gives the path of its file."""

    def film(text, n=13, behind=(0.6, 0.7, 0.8)):
        folder = tmp_path_factory.mktemp("scene")
        path = folder / "scene.toml"
        (folder / "film").mkdir()
        media.write_png(folder / "film" / "0.png", np.full((48, 64, 3), 0.8))
        for k in range(1, n):
            media.write_png(folder / "film" / f"{k}.png", np.full((48, 64, 3), 0.8))
        path.write_text(text + FILM, encoding="utf-8")
        file = read_scene(path)
        built = build(file)
        shot, _ = shoot(
            file, built, "observations.film", name="front", film=file.observations["film"]
        )
        rasterizer = SoftRasterizer(sigma=softness(0.4, 48), background=behind)
        images = rasterize(
            Scene(built.meshes, built.lights), shot.camera, rasterizer, shot.places, (48, 64)
        )
        for k, image in enumerate(images):
            media.write_png(folder / "film" / f"{k}.png", image[..., :3])
        return path

    return film


SWING = """
[bodies.swing]
kind = "pendulum"
length = [0.6]
angle = [50.0]
bob_radius = 0.06
rod_radius = 0.012
rod_color = [0.55, 0.64, 0.73]
bob_color = [0.8, 0.2, 0.1]
[cameras.front]
eye = [0.1, -0.2, 1.8]
target = [0.0, -0.3, 0.0]
fov_y = 40
"""


def test_a_rod_that_a_film_hardly_shows_moves_no_middle(tmp_path, filmed):
    """The bob alone differs from the wall, as it is drawn too: 8 pixels off the middle of both."""
    right = filmed(SWING)
    assert preview(right, tmp_path / "a.png") == []
    said = preview(right, tmp_path / "a.png", ["bodies.swing.angle=[20]"])
    assert any("pixels too far left" in warning for warning in said)


@pytest.fixture(scope="module")
def brick(filmed):
    return filmed(SCENE)


@pytest.fixture(scope="module")
def beam(filmed):
    return filmed(HELD)


def test_nothing_looks_wrong_where_nothing_is(tmp_path, brick):
    assert preview(brick, tmp_path / "a.png") == []
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == (3 * 480 + 12, 3 * 360 + 12)


def test_held_nodes_are_counted(tmp_path, beam):
    lines = []
    assert preview(beam, tmp_path / "a.png", say=lines.append) == []
    assert lines == ["beam: 9 of 63 nodes held"]


def test_the_outline_lies_on_the_film(tmp_path, brick):
    preview(brick, tmp_path / "a.png")
    picture = media.read_image(tmp_path / "a.png")
    film, over = picture[:360, :480], picture[:360, 972:]
    line = np.abs(over - (1.0, 0.1, 0.6)).max(axis=-1) < 0.02
    assert 300 < line.sum() < 3000
    middle = np.argwhere(line).mean(axis=0)
    body = np.argwhere(film[..., 0] > film[..., 2] + 0.2).mean(axis=0)
    assert np.abs(middle - body).max() < 10.0


def test_a_filmed_body_does_not_stand_beside_the_scene(tmp_path, brick):
    overrides = ["bodies.brick.position=[-0.35, 0, 0]", "observations.film.frames=[0, 1]"]
    preview(brick, tmp_path / "a.png", overrides)
    picture = media.read_image(tmp_path / "a.png")
    film, scene = picture[20:360, :480], picture[20:360, 486:966]
    axis = (np.abs(scene - np.array(AXES["x"]) / 255.0) < 0.3).all(axis=2)
    scene[binary_dilation(axis)] = 1.0  # its label is smooth
    red = [(view[:, 220:, 0] > view[:, 220:, 2] + 0.2).sum() for view in (film, scene)]
    assert red[0] > 1000
    assert red[1] == 0


@pytest.fixture(scope="module")
def lit_ball(filmed):
    """A ball that is lit from one side, before a wall as dark as its other side."""
    look = "look = { color = [0.9, 0.9, 0.9], ambient = 0.1, diffuse = 0.9 }"
    text = SCENE.replace("look = { color = [0.9, 0.3, 0.1] }", look)
    text = text.replace('mesh = "box"\nsize = [0.3, 0.2, 0.2]', 'mesh = "ball"\nsize = [0.2]')
    return filmed(text + "[lights.sun]\ndirection = [1, 0.2, -0.3]\n", behind=(0.03, 0.03, 0.03))


def test_dark_parts_of_a_body_make_no_wrong_size(tmp_path, lit_ball):
    assert preview(lit_ball, tmp_path / "a.png") == []


@pytest.mark.parametrize("override", ["scale=0.6", "scale=1.5", "position=[0.2, 0, 0]"])
def test_a_wrong_size_or_place_of_a_body_with_dark_parts_is_noticed(tmp_path, lit_ball, override):
    (warning,) = preview(lit_ball, tmp_path / "a.png", [f"bodies.brick.{override}"])
    assert "In the first frame of `observations.film` the scene is drawn" in warning


@pytest.mark.parametrize(
    ("override", "excerpts"),
    [
        ("bodies.brick.scale=0.5", ["times smaller", "`bodies.brick.scale` = "]),
        ("bodies.brick.scale=1.5", ["times larger", "`bodies.brick.scale` = "]),
        ("bodies.brick.position=[0.2, 0, 0]", ["too far right", "[-0.", "`position`"]),
        ("bodies.brick.position=[0, -0.2, 0]", ["too low", "`position`"]),
        ("bodies.brick.position=[0, 0, 9]", ["not in the first frame", "behind the camera"]),
        ("bodies.brick.position=[9, 0, 0]", ["not in the first frame", "at column"]),
        ("bodies.brick.rotation=[0, 0, 90]", ["overlap only by", "`rotation`"]),
        ("observations.film.fps=15", ["times the acceleration", "(now 15; 30"]),
        ("world.gravity=[0, -3.7, 0]", ["times the acceleration", "`world.gravity`"]),
        ("bodies.brick.velocity=[9.0, 1.5, 0.0]", ["is not in the picture", "shows a body there"]),
        ("world.gravity=[0, 9.81, 0]", ["fall the other way", "is [0.0, 9.81, 0.0]"]),
    ],
)
def test_what_is_wrong_is_noticed(tmp_path, brick, override, excerpts):
    warnings = preview(brick, tmp_path / "a.png", [override])
    assert len(warnings) == 1
    for excerpt in excerpts:
        assert excerpt in warnings[0]


def test_a_camera_in_a_body_is_refused(tmp_path, brick):
    with pytest.raises(StudyError, match="inside"):
        preview(brick, tmp_path / "a.png", ["cameras.front.eye=[0, 0, 0.05]"])


def test_a_film_in_which_nothing_moves_is_noticed(tmp_path, brick):
    warnings = preview(brick, tmp_path / "a.png", ["observations.film.frames=[0, 1]"])
    assert warnings == []
    overrides = ["world.gravity=[0, 0, 0]", "bodies.brick.velocity=[0, 0, 0]"]
    still = tmp_path / "still"
    still.mkdir()
    for k in range(3):
        first = media.read_image(brick.parent / "film" / "0.png")
        media.write_png(still / f"{k}.png", first)
    warnings = preview(brick, tmp_path / "a.png", [*overrides, f"observations.film.video={still}"])
    assert len(warnings) == 1
    assert "nothing moves" in warnings[0]


def test_held_nodes(tmp_path, beam):
    assert preview(beam, tmp_path / "a.png") == []
    other = "bodies.beam.held.box={lower=[0.299, -9, -9], upper=[9, 9, 9]}"
    assert any(
        "held nodes lie where" in warning for warning in preview(beam, tmp_path / "a.png", [other])
    )


def test_missing_held_nodes(tmp_path, beam):
    text = beam.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("held"))
    path = beam.parent / "free.toml"
    path.write_text(text.replace(line, ""), encoding="utf-8")
    (warning,) = preview(path, tmp_path / "a.png")
    assert "`bodies.beam` are held: give `held`" in warning


def test_a_scene_without_a_film(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(SCENE, encoding="utf-8")
    assert preview(path, tmp_path / "a.png") == []
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == (480, 3 * 360 + 12)


def test_many_views_are_laid_out_in_a_grid(tmp_path):
    path, (bodies, view) = tmp_path / "scene.toml", SCENE.split("[cameras.front]")
    path.write_text(bodies + "".join(f"[cameras.view{k}]{view}" for k in range(4)))
    preview(path, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == (3 * 480 + 48, 2 * (3 * 360 + 12) + 24)


def test_obstacles_held_nodes_axes_and_gravity_are_drawn_over_a_scene(tmp_path):
    path = tmp_path / "scene.toml"
    text = HELD.replace("eye = [0, 0, 2]", "eye = [0, 0, 2]\nsize = [90, 120]")
    floor = '[obstacles.floor]\nkind = "plane"\npoint = [0, -0.3, 0]\n'
    path.write_text(text + floor, encoding="utf-8")
    file = read_scene(path)
    built = build(file)
    shot, _ = shoot(file, built, "cameras.front", name="front", film=None)
    assert shot.size == (90, 120)
    marks = {mark.name: mark for mark in overlays(file, built, shot)}
    assert set(marks) == {
        "obstacles.floor", "held nodes", "axis x", "axis y", "axis z", "gravity"
    }  # fmt: skip
    assert marks["held nodes"].points.shape == (3, int(built.held.sum()), 1, 3)
    start, end = marks["gravity"].at(0)[0]
    assert (end - start)[1] == -0.1  # 0.3 of the diagonal, 0.64 m, as a round number
    plain = np.full((*shot.size, 3), 255, np.uint8)
    for mark in marks.values():
        drawn = draw_overlays(plain, [mark], 0, shot)
        assert (drawn == mark.color).all(axis=2).any()


def test_lines_behind_a_body_are_dashed_and_paths_are_drawn(tmp_path):
    grip = """
[grips.jaw]
body = "beam"
where.box = { lower = [0.299, -9, -9], upper = [9, 9, 9] }
path = { times = [0.0, 1.0], positions = [[0, 0, 0], [0.0, 0.0, 0.4]] }
[obstacles.tip]
center = [0.0, 0.5, 0.1]
radius = 0.05
path = { times = [0.0, 1.0], positions = [[1, 0, 0], [1.2, 0, 0]] }
"""
    path = tmp_path / "scene.toml"
    path.write_text(HELD.replace("eye = [0, 0, 2]", "eye = [0, 0, 2]\nsize = [90, 120]") + grip)
    file = read_scene(path)
    built = build(file)
    shot, _ = shoot(file, built, "cameras.front", name="front", film=None)
    marks = {mark.name: mark for mark in overlays(file, built, shot)}
    jaw = marks["grips.jaw.path"]
    np.testing.assert_allclose(jaw.points[0, 0, 0], [0.3, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(jaw.points[0, -1, 1] - jaw.points[0, 0, 0], [0.0, 0.0, 0.4])
    ends = marks["obstacles.tip.path"].points[0, [0, -1], [0, 1]]
    np.testing.assert_allclose(ends, [[0.0, 0.5, 0.1], [0.2, 0.5, 0.1]], atol=1e-12)
    wires = marks["obstacles.tip"].points
    moved = np.broadcast_to([0.2 * shot.times[-1], 0.0, 0.0], wires[0].shape)
    np.testing.assert_allclose(wires[-1] - wires[0], moved, atol=1e-12)
    middle = shot.center
    ahead, behind, aside = middle + np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    assert shot.hides(0, np.stack([ahead, behind, aside])).tolist() == [False, True, False]
    across = np.array([0.3, 0.0, 0.0])
    for place, n in ((ahead, 1), (behind, PIECES - PIECES // 2)):
        line = Overlay("line", (0, 0, 0), np.stack([place - across, place + across])[None, None])
        assert len(seen_pixels(line, 0, shot, shot.size)) == n


def test_the_wire_of_an_obstacle_on_a_body_moves_with_it(tmp_path):
    ball = '[obstacles.hand]\ncenter = [0.4, 0.0, 0.0]\nradius = 0.1\nfixed_to = "brick"\n'
    text = SCENE.replace("velocity", "spin = [0.0, 0.0, 2.0]\nvelocity") + ball
    text += '[bodies.other]\nkind = "rigid"\nmesh = "box"\nsize = [0.1, 0.1, 0.1]\n'
    path = tmp_path / "scene.toml"
    path.write_text(
        text + "position = [-0.5, 0.0, 0.0]\n[world]\nduration = 0.5\ngravity = [0, 0, 0]\n",
        encoding="utf-8",
    )
    file = read_scene(path)
    built = build(file)
    shot, _ = shoot(file, built, "cameras.front", name="front", film=None)
    assert set(shot.places) == {"brick", "other"}
    wires = {mark.name: mark for mark in overlays(file, built, shot)}["obstacles.hand"].points
    middles = wires.reshape(len(shot.times), -1, 3).mean(axis=1)
    np.testing.assert_allclose(middles[0], [0.4, 0.0, 0.0], atol=0.01)
    distance = np.linalg.norm(wires - shot.places["brick"].mean(axis=1)[:, None, None], axis=-1)
    np.testing.assert_allclose(distance, np.broadcast_to(distance[0], distance.shape), atol=1e-6)
    assert middles[-1, 1] > 0.3  # it is thrown upwards, and turned


def test_a_film_is_shown_from_the_start_that_is_free(tmp_path):
    path = tmp_path / "scene.toml"
    film = "[observations.film]\nsimulate = {height = 9, width = 12, frames = 2, duration = 0.2}\n"
    path.write_text(SCENE + film, encoding="utf-8")
    start = "observations.film.start"
    times = []
    for settings in ([f'free."{start}"={{start=0.3}}'], [f"{start}=0.3"], []):
        file = read_scene(path, settings)
        spec = file.films["film"]
        shot, _ = shoot(file, build(file), "observations.film", name="front", film=spec)
        times.append(shot.times)
    np.testing.assert_array_equal(times[0], times[1])
    np.testing.assert_allclose(times[0] - times[2], 0.3)


@pytest.mark.parametrize(("off", "is_said"), [(0.02, False), (0.1, True)])
def test_measured_points_far_from_the_surface_are_noticed(tmp_path, off, is_said):
    x, y = np.meshgrid(np.linspace(-0.2, 0.2, 9), np.linspace(-0.05, 0.05, 5))
    rows = "".join(f"0,{a},{b},{0.075 + off}\n" for a, b in zip(x.ravel(), y.ravel(), strict=True))
    (tmp_path / "scan.csv").write_text(f"time,x,y,z\n{rows}", encoding="utf-8")
    text = HELD + '[observations.scan]\nkind = "cloud"\nfile = "scan.csv"\n[free]\n"beam.E" = {}\n'
    (tmp_path / "scene.toml").write_text(text, encoding="utf-8")
    said = preview(tmp_path / "scene.toml", tmp_path / "a.png")
    match = "first frame are more than 0.1 m from the surface at the start, which is 0.636 m large"
    assert any(match in warning for warning in said) == is_said


def test_a_scene_without_a_camera(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(SCENE.partition("[cameras")[0], encoding="utf-8")
    with pytest.raises(StudyError, match="`cameras` is empty"):
        preview(path, tmp_path / "a.png")


def test_smoke_is_not_shown(tmp_path):
    media.write_png(tmp_path / "smoke.png", np.full((16, 16, 3), 0.5))
    path = tmp_path / "scene.toml"
    path.write_text('[bodies.smoke]\nkind = "smoke"\ndensity = "smoke.png"\n', encoding="utf-8")
    with pytest.raises(StudyError, match="smoke is a picture already"):
        preview(path, tmp_path / "a.png")


def test_a_path_that_cannot_be_free_is_noticed(tmp_path, brick):
    free = 'free."brick.velocity"={bounds=[-9.0, 9.0]}'
    assert preview(brick, tmp_path / "a.png", [free]) == []
    (warning,) = preview(brick, tmp_path / "a.png", ['free."brick.velocty"={}'])
    assert "`adjsim run` will refuse this scene" in warning
    assert "brick.velocity" in warning


def test_a_film_that_is_simulated_is_drawn_in_its_size(tmp_path):
    path = tmp_path / "scene.toml"
    film = "[observations.film]\nsimulate = { height = 30, width = 30, frames = 5, duration = 1.0 }"
    path.write_text(SCENE + film + '\n[free]\n"brick.velocity" = {}\n', encoding="utf-8")
    assert preview(path, tmp_path / "a.png") == []
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == (360, 3 * 360 + 12)


def test_what_a_scene_draws_is_drawn_for_its_preview(tmp_path):
    assert preview(find_scene("pendulum"), tmp_path / "pendulum.png") == []


@pytest.fixture
def tracked(tmp_path):
    """Write a scene without film and camera, whose brick is tracked by a point beside it."""
    rows = [f"{t},tip,{0.2 + 0.5 * t},{1.5 * t - 4.9 * t * t},0.0\n" for t in (0.0, 0.1, 0.2)]
    (tmp_path / "p.csv").write_text("time,point,x,y,z\n" + "".join(rows), encoding="utf-8")
    path = tmp_path / "tracks.toml"
    table = '[observations.marks]\nfile = "p.csv"\nbody = "brick"\n[free]\n"brick.velocity" = {}\n'
    path.write_text(SCENE.partition("[cameras")[0] + table, encoding="utf-8")
    return path


def test_tracks_alone_are_drawn_over_time(tmp_path, tracked):
    assert preview(tracked, tmp_path / "a.png") == []
    picture = np.asarray(Image.open(tmp_path / "a.png").convert("RGB")).astype(int)
    assert picture.shape[1] > 2 * picture.shape[0]
    for color in (0x2F6DB3, 0x8A96A3):  # lines and dots
        rgb = [color >> 16, color >> 8 & 255, color & 255]
        assert (np.abs(picture - rgb).max(axis=-1) < 10).sum() > 50


SWINGS = """
[bodies.apple]
kind = "pendulum"
length = [1.0]
angle = [20]
bob_radius = 0.04
rod_radius = 0.004
[observations.marks]
file = "p.csv"
body = "apple"
at = { tip = [0.55, -0.8, 0.0] }
[free]
"apple.length" = {}
"""


def test_a_force_of_a_file_is_drawn_over_time(tmp_path):
    path = tmp_path / "test.toml"
    path.write_text(find_scene("tensile-test").read_text(encoding="utf-8"), encoding="utf-8")
    rows = "".join(f"{2 * t},{2.0 * t}\n" for t in range(1, 6))
    (tmp_path / "load.csv").write_text(f"time,force\n{rows}", encoding="utf-8")
    lines = path.read_text(encoding="utf-8").splitlines()
    cell = lines.index(next(line for line in lines if line.startswith("[observations.cell]")))
    simulated = next(k for k in range(cell, len(lines)) if lines[k].startswith("simulate"))
    lines[simulated] = 'file = "load.csv"'
    path.write_text("\n".join(lines), encoding="utf-8")
    preview(path, tmp_path / "a.png")  # loads a second apart: a bar that rests has no time step
    assert (tmp_path / "a.png").is_file()


def test_a_point_far_off_the_bob_of_a_pendulum_is_noticed(tmp_path):
    rows = [f"{t},tip,{0.5 * np.cos(3 * t)},-0.8,0.0\n" for t in (0.0, 0.1, 0.2)]
    (tmp_path / "p.csv").write_text("time,point,x,y,z\n" + "".join(rows), encoding="utf-8")
    path = tmp_path / "tracks.toml"
    path.write_text(SWINGS, encoding="utf-8")
    (warning,) = preview(path, tmp_path / "a.png")
    assert "`observations.marks`: a point is 0.2" in warning
    assert "`pivot`, `angle` and `length`" in warning
    on_bob = "observations.marks.at.tip=[0.342, -0.94, 0.0]"
    assert preview(path, tmp_path / "a.png", [on_bob]) == []


def test_a_track_off_its_body_is_refused(tmp_path, tracked):
    with pytest.raises(StudyError, match="must have points on its body"):
        preview(tracked, tmp_path / "a.png", ["bodies.brick.position=[9, 0, 0]"])


def test_forces_that_vary_are_those_of_the_simulation():
    push = Push(body="die", force=(5.0, 0.0, 0.0), seconds=(0.05, 0.15))
    scene = DeclaredScene(bodies={"die": Rigid(mesh="box", mass=1.0)}, pushes={"hand": push})
    times = np.linspace(0.0, 0.3, 7)
    places, failed = places_at(build(scene), None, times)
    assert failed is None
    expected = simulate(scene, times).surfaces["die"]
    np.testing.assert_allclose(places["die"], expected, atol=1e-12)
    assert np.ptp(expected[:, 0, 0]) > 0.05


def test_a_box_of_six_colours_is_drawn_in_six_colours(tmp_path):
    colors = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0], [0, 255, 255], [90, 90, 90]]
    box = pyvista.Cube(clean=False).triangulate()
    box.point_data["RGB"] = np.repeat(np.array(colors, np.uint8), 4, axis=0)
    box.save(tmp_path / "box.ply", texture="RGB")
    text = """
[bodies.box]
kind = "rigid"
mesh = "box.ply"
mass = 1.0
position = [0, 0, 0]
look = { vertex_colors = "RGB", smooth = false, ambient = 1.0, diffuse = 0.0 }
"""
    for k, eye in enumerate([[2.0, 1.5, 2.5], [-2.0, -1.5, -2.5], [2.5, -2.0, 1.5]]):
        text += f"[cameras.c{k}]\neye = {eye}\ntarget = [0, 0, 0]\nfov_y = 40\n"
    (tmp_path / "scene.toml").write_text(text, encoding="utf-8")
    file = read_scene(tmp_path / "scene.toml")
    built, drawn = build(file), set()
    assert built.meshes["box"].faces.max() == 7
    for name in file.cameras:
        shot, _ = shoot(file, built, f"cameras.{name}", name=name, film=None)
        image = np.rint(255.0 * shot.images[0, ..., :3][shot.images[0, ..., 3] == 1.0])
        kinds, counts = np.unique(image, axis=0, return_counts=True)
        assert (counts > 1000).sum() == 3  # sides
        drawn |= {tuple(kind) for kind, count in zip(kinds, counts, strict=True) if count > 1000}
    assert sorted(drawn) == sorted(map(tuple, colors))
    preview(file, tmp_path / "a.png")
    picture = np.asarray(Image.open(tmp_path / "a.png").convert("RGB")).reshape(-1, 3)
    for color in colors:
        assert (np.abs(picture - np.array(color)).max(axis=-1) <= 2).sum() > 1000


def test_a_scene_is_drawn_at_the_start_values_of_what_is_free(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(HELD + "[world]\nduration = 0.2\n", encoding="utf-8")
    start = 'free."beam.E"={start=2e4, bounds=[1e3, 1e6]}'
    nodes = []
    for settings in ([start], ["bodies.beam.E=2e4"], []):
        file = read_scene(path, settings)
        shot, _ = shoot(file, build(file), "cameras.front", name="front", film=None)
        nodes.append(shot.nodes)
    np.testing.assert_allclose(nodes[0], nodes[1], atol=1e-6)
    assert np.abs(nodes[0] - nodes[2]).max() > 0.01
