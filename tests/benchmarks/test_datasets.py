"""Loaders of other papers' data sets, on stand-ins of the layouts that these document."""

import json

import numpy as np
import pytest
import pyvista
from PIL import Image
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from benchmarks.datasets.__main__ import app
from benchmarks.datasets.rgbench import BASES
from benchmarks.films import meshes
from studies.problem.making import make_problem
from studies.problem.observations.clouds import read_cloud
from studies.problem.observations.outlines import overlap
from studies.scene.reading import read_scene


EDGE, MIDDLE, FOCAL, SIZE = 0.2, np.array([0.0, 0.5, 0.0]), 90.0, (96, 80)
EYES = {0: np.array([0.05, 0.55, 2.0]), 1: np.array([-2.0, 0.45, 0.05])}
# Axes right, up and back of a camera that looks along -z, and of one that looks along x
AXES = {0: np.eye(3), 1: np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])}
K = [[FOCAL, 0.0, SIZE[0] / 2], [0.0, FOCAL, SIZE[1] / 2], [0.0, 0.0, 1.0]]


def pose(view):
    """Return the pose of a camera in the world, (4, 4)."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = AXES[view], EYES[view]
    return matrix


def picture(view, time):
    """Return the mask of a cube that falls: its face towards the camera, (height, width)."""
    corners = MIDDLE - [0.0, 0.5 * 9.81 * time**2, 0.0]
    corners = corners + 0.5 * EDGE * (np.indices((2, 2, 2)).reshape(3, -1).T * 2 - 1)
    x = (corners - EYES[view]) @ AXES[view]
    x = x[x[:, 2] > x[:, 2].mean()]  # the nearest, as `back` points to the camera
    u, v = SIZE[0] / 2 - FOCAL * x[:, 0] / x[:, 2], SIZE[1] / 2 + FOCAL * x[:, 1] / x[:, 2]
    row, column = np.indices(SIZE[::-1]) + 0.5
    return (column > u.min()) & (column < u.max()) & (row > v.min()) & (row < v.max())


def cube(folder):
    """Write the mesh of the cube; return its path."""
    points, tets = meshes.box((EDGE,) * 3, (1, 1, 1))
    meshes.save(folder / "cube.vtu", points + MIDDLE, tets)
    return folder / "cube.vtu"


def pac_nerf(folder):
    """Write an object of PAC-NeRF: two views, three frames at 24 Hz, and a background."""
    (folder / "data").mkdir(parents=True)
    entries = []
    for view in EYES:
        for frame in (-1, 0, 1, 2):
            mask = picture(view, frame / 24) if frame >= 0 else np.zeros(SIZE[::-1], bool)
            pixels = np.where(mask[..., None], (200, 80, 40), (230, 230, 235)).astype(np.uint8)
            name = f"./data/r_{view}_{frame}.png"
            Image.fromarray(pixels).save(folder / name)
            entries.append({"file_path": name, "c2w": pose(view)[:3].tolist(), "intrinsic": K})
    (folder / "all_data.json").write_text(json.dumps(entries))


def spring_gaus(folder):
    """Write a synthetic object of Spring-Gaus: two views, three frames with alpha."""
    entries = []
    for view in EYES:
        (folder / f"r_{view}").mkdir(parents=True)
        for frame in range(3):
            mask = picture(view, frame / 24)
            pixels = np.where(mask[..., None], (200, 80, 40, 255), (0, 0, 0, 0)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"r_{view}" / f"{frame:03d}.png")
        entries.append({"camera": f"r_{view}", "c2w": pose(view).tolist(), "K": K})
    (folder / "camera.json").write_text(json.dumps(entries))


TURN = Rotation.from_rotvec([0.4, -2.0, 0.3])
TO_CAMERA = np.block([[TURN.as_matrix(), np.array([[0.1], [0.2], [0.9]])], [np.eye(4)[3:]]])
TIMES = 12.0 + np.arange(6) / 10
SHEET = np.stack(np.meshgrid(np.linspace(0.2, 0.5, 7), np.linspace(-0.2, 0.2, 9)), -1)
POINTS = np.concatenate([SHEET.reshape(-1, 2), np.full((63, 1), 0.3)], axis=1)


def rgbench(folder):
    """Write a capture of RGBench: a sheet that two grippers hold at its corners and lift."""
    for name in ("calibration", "joints", "segment_pcds"):
        (folder / name).mkdir(parents=True)
    path = folder / "calibration" / "world_to_camera_transform.json"
    path.write_text(json.dumps(TO_CAMERA.tolist()))
    start = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    (folder / "calibration" / "initial_object_pose.json").write_text(json.dumps(start))
    for side, y in (("left", -0.2), ("right", 0.2)):
        rows = ["time,pos_1,pos_gripper,pos_x,pos_y,pos_z,orn_w,orn_x,orn_y,orn_z"]
        for time in TIMES:
            place = np.array([0.2, y, 0.3 + 0.1 * (time - 12.0)]) - BASES[side]
            rows.append(f"{time:.4f},0.1,0.02,{place[0]},{place[1]},{place[2]},1.0,0.0,0.0,0.0")
        name = f"{side}_arm_joint_states_and_end_pose.csv"
        (folder / "joints" / name).write_text("\n".join(rows) + "\n")
    for time in TIMES[:-1] + 0.06:
        x = POINTS @ TO_CAMERA[:3, :3].T + TO_CAMERA[:3, 3]
        head = [
            "VERSION 0.7", "FIELDS x y z", "SIZE 4 4 4", "TYPE F F F", "COUNT 1 1 1",
            f"WIDTH {len(x)}", "HEIGHT 1", "VIEWPOINT 0 0 0 1 0 0 0", f"POINTS {len(x)}",
            "DATA ascii",
        ]  # fmt: skip
        lines = [*head, *(f"{a:.7f} {b:.7f} {c:.7f}" for a, b, c in x)]
        name = f"pointcloud_{time:.6f}_segmented.pcd"
        (folder / "segment_pcds" / name).write_text("\n".join(lines) + "\n")


def sheet(folder):
    """Write the mesh of the sheet; return its path."""
    grid = pyvista.Plane(i_size=0.3, j_size=0.4, i_resolution=6, j_resolution=8).triangulate()
    mesh = grid.translate((0.35, 0.0, 0.3))
    mesh.save(folder / "sheet.ply")
    return folder / "sheet.ply"


def load(*words):
    """Return the result of the command."""
    return CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "2000"})


@pytest.mark.parametrize("has_mesh", [True, False])
@pytest.mark.parametrize(("name", "write"), [("pac-nerf", pac_nerf), ("spring-gaus", spring_gaus)])
def test_a_loaded_scene_draws_the_body_where_the_pictures_have_it(tmp_path, name, write, has_mesh):
    write(tmp_path / "data set")
    mesh = ("--mesh", cube(tmp_path)) if has_mesh else ()
    done = load(name, tmp_path / "data set", tmp_path / "out", *mesh)
    assert done.exit_code == 0, done.output
    file = read_scene(tmp_path / "out" / "scene.toml")
    problem = make_problem(file).problem
    assert len(problem.observers) == 2
    rows = problem.predicted_rows(problem.parameters.start)
    for observer, of_film in problem.by_observer(rows):
        np.testing.assert_allclose(observer.times, np.arange(3) / 24)
        _, _, drawn, seen = observer.pictures(of_film)
        assert seen[0].sum() > 40
        for frame in range(3):  # it falls 3.4 cm, a third of a pixel and 1.5
            assert overlap(drawn[frame : frame + 1], seen[frame : frame + 1]) > 0.8


def test_a_capture_of_rgbench_is_loaded_into_the_world(tmp_path):
    rgbench(tmp_path / "capture")
    words = ("--mesh", sheet(tmp_path), "--delay", 0.06)
    done = load("rgbench", tmp_path / "capture", tmp_path / "out", *words)
    assert done.exit_code == 0, done.output
    file = read_scene(tmp_path / "out" / "scene.toml")
    problem = make_problem(file).problem
    (observer,) = problem.observers
    np.testing.assert_allclose(observer.times, np.arange(5) / 10, atol=1e-9)
    first = read_cloud(file.observations["clouds"]).frames[0]
    np.testing.assert_allclose(first, POINTS, atol=1e-6)
    moved, _, _ = problem.run_at(problem.parameters.start)
    corners = moved["garment"][-1][np.argsort(moved["garment"][0] @ [1.0, 0.0, 0.0])]
    assert corners[:, 2].max() == pytest.approx(0.34, abs=2e-3)  # what the grippers have lifted


@pytest.mark.parametrize(
    ("name", "write", "missing"),
    [
        ("pac-nerf", pac_nerf, "all_data.json"),
        ("pac-nerf", pac_nerf, "data/r_1_2.png"),
        ("pac-nerf", pac_nerf, "data/r_0_-1.png"),
        ("spring-gaus", spring_gaus, "camera.json"),
        ("spring-gaus", spring_gaus, "r_0"),
        ("rgbench", rgbench, "calibration/world_to_camera_transform.json"),
        ("rgbench", rgbench, "joints/left_arm_joint_states_and_end_pose.csv"),
        ("rgbench", rgbench, "segment_pcds"),
    ],
)
def test_a_loader_says_what_is_missing(tmp_path, name, write, missing):
    write(tmp_path / "given")
    (tmp_path / "given" / missing).rename(tmp_path / "elsewhere")
    done = load(name, tmp_path / "given", tmp_path / "out", "--mesh", tmp_path / "body.vtu")
    assert done.exit_code == 2
    assert f"{missing} is missing" in done.output


def test_a_loader_says_that_there_is_no_folder_and_no_mesh(tmp_path):
    done = load("pac-nerf", tmp_path / "no", tmp_path / "out", "--mesh", "body.vtu")
    assert "there is no folder" in done.output
    pac_nerf(tmp_path / "given")
    done = load("pac-nerf", tmp_path / "given", tmp_path / "out", "--mesh", tmp_path / "body.vtu")
    assert "`--mesh`: there is no file" in done.output


@pytest.mark.parametrize(("change", "said"), [
    (lambda text: text.replace("orn_w", "w"), "lacks the column 'orn_w'"),
    (lambda text: "\n".join(text.splitlines()[:2]), "two rows or more"),
])  # fmt: skip
def test_wrong_poses_are_refused(tmp_path, change, said):
    rgbench(tmp_path / "given")
    path = tmp_path / "given" / "joints" / "right_arm_joint_states_and_end_pose.csv"
    path.write_text(change(path.read_text()))
    done = load("rgbench", tmp_path / "given", tmp_path / "out", "--mesh", "body.ply")
    assert said in done.output


def test_clouds_of_another_time_are_refused(tmp_path):
    rgbench(tmp_path / "given")
    done = load("rgbench", tmp_path / "given", tmp_path / "out", "--mesh", "b.ply", "--delay", "9")
    assert "no cloud was taken while the grippers moved" in done.output
