"""The benchmark of real data, with tosses that it simulates itself."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from benchmarks.real import apple, cube
from benchmarks.real.__main__ import app
from benchmarks.real.fits import found_in_scene, row
from studies.api import simulate
from studies.scene.declared import PlaneObstacle


FLOOR = PlaneObstacle(normal=(0, 0, 1), friction=0.2)


@pytest.fixture(scope="module")
def tosses():
    """Two cubes that fly, and then what follows from their starts on a floor of friction 0.2."""
    made = {}
    for name, turn in (("a", (0.3, 0.5, 0.2)), ("b", (1.0, -0.4, 0.3))):
        seconds = np.arange(cube.STARTING + 1)[:, None] / cube.RATE
        start, velocity, spin = [0.1, 0.2, 0.12], [0.9, 0.3, 0.1], np.array([2.0, -1.0, 1.5])
        places = start + seconds * velocity + 0.5 * cube.GRAVITY * seconds**2
        turns = Rotation.from_rotvec(seconds * spin) * Rotation.from_rotvec(turn)
        states = np.zeros((cube.STARTING + 1, 13))
        states[:, :3] = places / (0.5 * cube.WIDTH)
        states[:, 3:7] = turns.as_quat()[:, [3, 0, 1, 2]]
        made[name] = states
    run = simulate(cube.toss_scene(made, FLOOR), np.arange(cube.FRAMES) / cube.RATE)
    for name, flight in made.items():
        corners = run.surfaces[name]
        center = corners.mean(axis=1)
        arms = corners - center[:, None]
        first = Rotation.from_quat(flight[0, [4, 5, 6, 3]])
        turns = [(Rotation.align_vectors(now, arms[0])[0] * first).as_quat() for now in arms]
        states = np.zeros((cube.FRAMES, 13))
        states[:, :3] = center / (0.5 * cube.WIDTH)
        states[:, 3:7] = np.array(turns)[:, [3, 0, 1, 2]]
        made[name] = states
    return made


def test_what_follows_from_the_start_of_its_own_tosses_is_what_they_did(tosses):
    assert len({len(toss) for toss in tosses.values()}) == 1
    right = cube.prediction_errors(tosses, FLOOR)
    assert right[:, 0].max() < 5e-3
    assert right[:, 1].max() < 1.0
    wrong = cube.prediction_errors(tosses, FLOOR, {"floor.friction": 0.05})
    assert wrong[:, 0].min() > 10.0 * right[:, 0].max()


def test_friction_is_found_and_the_table_has_a_row_for_each_fit(tosses, tmp_path):
    np.savez(tmp_path / cube.FILE, **tosses)
    answer = cube.fit_floor(tosses, PlaneObstacle(normal=(0, 0, 1), friction=0.3), ("friction",))
    assert answer.values["floor.friction"] == pytest.approx(0.2, rel=0.02)
    lines = list(cube.table(tmp_path / cube.FILE, fitted=1))
    assert sum(line.startswith("| fitted to 1 others") for line in lines) == 2


def test_a_part_without_its_file_is_skipped_with_where_to_get_it(tmp_path):
    shown = CliRunner().invoke(app, [str(tmp_path), "cube"])
    assert shown.exit_code == 0
    assert f"has no {cube.FILE}" in shown.output.replace("\n", "")
    assert "contact-nets" in shown.output
    assert CliRunner().invoke(app, [str(tmp_path), "cone"]).exit_code == 2


def test_the_length_of_a_string_is_found_from_a_track_in_pixels(tmp_path):
    """A pendulum of 1.1 m without damping, by the camera of the scene rolled by 2 degrees."""
    seconds = np.arange(120) / 30.0
    solved = solve_ivp(
        lambda _, y: [y[1], -9.81 / 1.1 * np.sin(y[0])],
        (0.0, 4.0), [np.radians(-20.0), 0.0], t_eval=seconds, rtol=1e-9,
    )  # fmt: skip
    x, y = 1.1 * np.sin(solved.y[0]), -1.1 * np.cos(solved.y[0])
    roll = np.radians(2.0)
    across = x * np.cos(roll) - (y + 1.05) * np.sin(roll)
    up = x * np.sin(roll) + (y + 1.05) * np.cos(roll)
    rows = ["time,point,u,v"]
    for t, a, b in zip(seconds, across, up, strict=True):
        rows.append(f"{t},apple,{319.5 + 554.0 * a / 1.1},{179.5 - 554.0 * b / 1.1}")
    (tmp_path / "apple.csv").write_text("\n".join(rows))
    answer = found_in_scene(apple.SCENE, tmp_path)
    assert answer.values["string.length"] == pytest.approx(1.1, rel=0.01)
    assert row(answer, "string.length", "1.5 m").startswith("| string.length | 1.5 m | 1.")
