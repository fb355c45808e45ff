"""RGBench: a garment that two grippers move, as clouds of a depth camera."""

import csv
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from benchmarks.datasets.writing import copied_mesh, read_json, required, write_scene
from studies.runs.errors import StudyError


# Where the robots stand in the world, which is between them: x ahead, y to the right, z up [m]
BASES = {"left": (0.0, -0.25, 0.0), "right": (0.0, 0.25, 0.0)}
JOINTS = "joints/{}_arm_joint_states_and_end_pose.csv"
POSE = ("time", "pos_x", "pos_y", "pos_z", "orn_x", "orn_y", "orn_z", "orn_w")
START = (0.1, 0.0, 0.01, 1.0, 0.0, 0.0, 0.0)  # of a garment: place and quaternion x, y, z, w
STAMP = re.compile(r"(\d+)(?:[._](\d{1,9}))?")  # seconds, and what is behind the point
NOTES = (
    "E, bending and friction are guesses; so is where the grippers hold the cloth: the nodes in a",
    "ball about where each is at the start. The mesh lies as `position` and `rotation` have it.",
)


def rgbench(folder: Path, out: Path, mesh: Path, *, delay: float, reach: float) -> Path:
    """Write the scene of a capture of RGBench; return its path.

    `delay` [s] is by how much the camera is late, and `reach` [m] the radius of what a gripper
    holds.
    """
    name = "calibration/world_to_camera_transform.json"
    to_camera = np.array(read_json(required(folder, name, "RGBench")), float)
    clouds = sorted(required(folder, "segment_pcds", "RGBench").glob("*.pcd"))
    if not clouds:
        raise StudyError(f"{folder} is no folder of RGBench: segment_pcds/*.pcd is missing.")
    poses = {side: read_poses(required(folder, JOINTS.format(side), "RGBench")) for side in BASES}
    begin = max(rows[0, 0] for rows in poses.values())
    end = min(rows[-1, 0] for rows in poses.values())
    stamps = np.array([stamp_of(cloud) for cloud in clouds]) - delay
    inside = (stamps >= begin) & (stamps <= end)
    if not inside.any():
        raise StudyError(
            f"{folder}: no cloud was taken while the grippers moved, from {begin:.3f} to "
            f"{end:.3f} s; they are from {stamps[0]:.3f} to {stamps[-1]:.3f} s."
        )
    out.mkdir(parents=True, exist_ok=True)
    (out / "clouds").mkdir(exist_ok=True)
    for k in np.flatnonzero(inside):
        shutil.copyfile(clouds[k], out / "clouds" / clouds[k].name)
    _write_csv(out / "times.csv", ("time",), (stamps[inside] - begin)[:, None])
    grips = {}
    for side, base in BASES.items():
        rows = poses[side] - [begin, *np.zeros(7)]
        rows[:, 1:4] += base
        _write_csv(out / f"{side}.csv", ("time", "x", "y", "z", "qx", "qy", "qz", "qw"), rows)
        center = [float(np.interp(0.0, rows[:, 0], rows[:, k])) for k in (1, 2, 3)]
        where = {"ball": {"center": center, "radius": reach}}
        grips[side] = {"body": "garment", "where": where, "path": f"{side}.csv"}
    start = folder / "calibration/initial_object_pose.json"
    place = np.array(read_json(start) if start.exists() else START, float)
    turn = Rotation.from_matrix(to_camera[:3, :3]).inv()
    cloud = {
        "kind": "cloud", "file": "clouds", "times": "times.csv", "error": 0.005,
        "rotation": np.degrees(turn.as_rotvec()).tolist(),
        "position": (-turn.apply(to_camera[:3, 3])).tolist(),
    }  # fmt: skip
    garment = {
        "kind": "cloth", "mesh": copied_mesh(mesh, out), "thickness": 1e-3, "density": 220.0,
        "E": 1e5, "nu": 0.35, "bending": 1e-5, "position": place[:3].tolist(),
        "rotation": np.degrees(Rotation.from_quat(place[3:]).as_rotvec()).tolist(),
    }  # fmt: skip
    table = {"kind": "plane", "normal": [0.0, 0.0, 1.0], "friction": 0.3}
    scene: dict[str, Any] = {
        "world": {"gravity": [0.0, 0.0, -9.81]},
        "bodies": {"garment": garment},
        "obstacles": {"table": table},
        "grips": grips,
        "observations": {"clouds": cloud},
        "free": {"garment.E": {"bounds": [1e3, 1e7]}, "garment.bending": {"bounds": [1e-8, 1e-2]}},
    }
    return write_scene(out, scene, NOTES)


def read_poses(path: Path) -> np.ndarray:
    """Return time, place and quaternion x, y, z, w of an end effector, (n, 8)."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [column for column in POSE if column not in (reader.fieldnames or ())]
        if missing:
            raise StudyError(f"{path} lacks the column {missing[0]!r} of an end pose.")
        rows = [[float(row[column]) for column in POSE] for row in reader]
    if len(rows) < 2:
        raise StudyError(f"{path} must have two rows or more, got {len(rows)}.")
    return np.array(rows)


def stamp_of(cloud: Path) -> float:
    """Return the time in the name of a cloud's file [s]: its first number, 12_5 or 12.5."""
    stamp = STAMP.search(cloud.stem)
    if stamp is None:
        raise StudyError(f"The name of {cloud} has no time.")
    return float(f"{stamp[1]}.{stamp[2] or 0}")


def _write_csv(path: Path, head: tuple[str, ...], rows: np.ndarray) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows([f"{value:.9g}" for value in row] for row in rows)
