"""Encoders as observations: angles and lengths worked by hand, derivatives, what does not fit."""

from dataclasses import replace

import numpy as np
import pytest

from studies.problem.forward import start_surfaces
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.scene.reading import scene_from_dict


def tables(kind="hinge", between=("world", "arm"), **encoder):
    """Return the tables of an arm on a joint, and perhaps a second one."""
    box = {"kind": "rigid", "mesh": "box", "size": [0.3, 0.05, 0.05], "density": 500.0}
    axis = [0.0, 0.0, 2.0] if kind == "hinge" else [0.0, 1.0, 0.0]
    joint = {"kind": kind, "between": list(between), "anchor": [0.0, 0.0, 0.0]}
    joint |= {} if kind == "weld" else {"axis": axis}
    elbow = {
        "kind": "hinge", "between": ["arm", "hand"], "anchor": [0.3, 0.0, 0.0],
        "axis": [0.0, 0.0, 1.0],
    }  # fmt: skip
    simulate = {"frames": 6, "duration": 0.3}
    return {
        "bodies": {
            "arm": {**box, "position": [0.15, 0.0, 0.0]},
            "hand": {**box, "position": [0.45, 0.0, 0.0]},
        },
        "joints": {"shoulder": joint, "elbow": elbow},
        "observations": {
            "enc": {"kind": "encoder", "joint": "shoulder", "simulate": simulate, **encoder}
        },
        "free": {"world.gravity": {}, "observations.enc.offset": {}},
    }


def made(folder=".", **changes):
    return make_problem(scene_from_dict(tables(**changes), folder)).problem


def turned(x, about, degrees, shift=(0.0, 0.0, 0.0)):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return (x - about) @ R.T + about + np.asarray(shift)


@pytest.mark.parametrize("between", [("world", "arm"), ("arm", "world")])
def test_the_angle_of_a_hinge_is_that_of_its_second_body(between):
    (observer,) = made(between=between).observers
    x = start(observer, "arm")
    angles = np.array([0.0, 20.0, -75.0, 179.0, 190.0, 10.0])
    vertices = {"arm": np.stack([turned(x, np.zeros(3), angle) for angle in angles])}
    observer = replace(observer, measured=np.zeros(6))
    rows = observer.shown(vertices, {}).rows
    np.testing.assert_allclose(rows[:, 0], np.where(angles > 180, angles - 360, angles), atol=1e-9)
    more = observer.simulated(rows + 360.0)
    np.testing.assert_allclose(more.residuals(more.shown(vertices, {}).rows), 0.0, atol=1e-9)


def start(observer, body):
    """Return the vertices of a body whose weights the observer has."""
    assert body in observer.weights
    return start_surfaces(made().built)[body]


def test_an_angle_between_two_bodies_does_not_see_how_both_turn():
    (observer,) = made(joint="elbow").observers
    vertices = {
        body: np.stack([turned(start(observer, body), np.zeros(3), 30.0 * k) for k in range(6)])
        for body in ("arm", "hand")
    }
    np.testing.assert_allclose(observer.shown(vertices, {}).rows[:, 0], 0.0, atol=1e-9)
    elbows = np.stack([turned(np.array([[0.3, 0, 0]]), np.zeros(3), 30.0 * k) for k in range(6)])
    vertices["hand"] = np.stack(
        [turned(x, e[0], 15.0) for x, e in zip(vertices["hand"], elbows, strict=True)]
    )
    np.testing.assert_allclose(observer.shown(vertices, {}).rows[:, 0], 15.0, atol=1e-9)


def test_the_length_of_a_slider_is_along_its_axis():
    (observer,) = made(kind="slider").observers
    x = start(observer, "arm")
    vertices = {"arm": np.stack([x + np.array([0.02, 0.1, 0.03]) * k for k in range(6)])}
    np.testing.assert_allclose(
        observer.shown(vertices, {}).rows[:, 0], 0.1 * np.arange(6), atol=1e-9
    )


@pytest.mark.parametrize(
    "change", [{}, {"joint": "elbow"}, {"kind": "slider"}, {"between": ("arm", "world")}]
)
def test_tangent_and_cotangent_are_those_of_the_residuals(change, rng):
    problem = made(**change)
    theta = problem.parameters.start
    tan = rng.standard_normal(theta.size)
    pushed = problem.residuals_jvp(theta, tan)
    adj = rng.standard_normal(pushed.size)
    assert np.linalg.norm(pushed[:-4]) > 0.0
    assert pushed @ adj == pytest.approx(tan @ problem.residuals_vjp(theta, adj), rel=1e-10)
    (observer,) = problem.observers
    x = {k: start(observer, k) for k in observer.weights}
    vertices = {k: v + 0.05 * rng.standard_normal((6, *v.shape)) for k, v in x.items()}
    tan = {k: rng.standard_normal(v.shape) for k, v in vertices.items()}

    def at(h):
        return observer.shown({k: v + h * tan[k] for k, v in vertices.items()}, {}).rows[:, 0]

    h = 1e-5  # what is left of the fourth order is 1e-12 of a slope
    slopes = [(at(k * h) - at(-k * h)) / (2 * k * h) for k in (1, 2)]
    exact = observer.shown(vertices, {}).jvp(tan, {})[:, 0]
    np.testing.assert_allclose((4 * slopes[0] - slopes[1]) / 3, exact, rtol=1e-9, atol=1e-9)


def test_a_file_in_radians_with_an_offset_is_the_same_as_what_is_simulated(tmp_path):
    (observer,) = made().observers
    numbers = np.radians(observer.measured) + 0.5
    rows = [f"{t},{q}" for t, q in zip(observer.times, numbers, strict=True)]
    (tmp_path / "enc.csv").write_text("\n".join(["time,q", *rows]))
    scene_tables = tables()
    scene_tables["observations"]["enc"] = {
        "kind": "encoder", "joint": "shoulder", "file": "enc.csv", "units": "rad", "offset": 0.5,
    }  # fmt: skip
    (read,) = make_problem(scene_from_dict(scene_tables, tmp_path)).problem.observers
    np.testing.assert_allclose(read.measured - np.degrees(0.5), observer.measured, atol=1e-9)
    assert np.abs(observer.measured).max() > 10.0
    vertices = {"arm": np.stack([start(read, "arm")] * 6)}  # at rest it says its offset
    for values, says in (({}, 0.5), ({"observations.enc.offset": np.array(-0.25)}, -0.25)):
        off = read.shown(vertices, values).rows[:, 0] - np.degrees(says)
        np.testing.assert_allclose(off, 360.0 * np.rint(off / 360.0), atol=1e-9)
    assert read.expected_noise(np.zeros((6, 4))) == pytest.approx(1 / 6)


def test_an_unknown_offset_is_found_beside_gravity():
    scene_tables = tables(offset=20.0)
    scene_tables["truth"] = {"observations.enc.offset": 35.0, "world.gravity": [0.0, -8.0, 0.0]}
    problem = make_problem(scene_from_dict(scene_tables, ".")).problem
    theta = problem.parameters.start
    for _ in range(5):
        r, J = problem.residuals_and_jacobian(theta)
        theta = theta - np.linalg.lstsq(J @ np.eye(theta.size), r, rcond=1e-8)[0]
    values = problem.parameters.scene_values(theta)
    assert values["observations.enc.offset"] == pytest.approx(35.0, abs=1e-6)
    assert values["world.gravity"][1] == pytest.approx(-8.0, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"joint": "knee"}, "`observations.enc.joint`.*knee.*shoulder, elbow"),
        ({"kind": "weld"}, "must be a hinge or a slider, got 'shoulder'. Known: elbow"),
        ({"units": "mm"}, "`observations.enc.units` must be deg or rad of a hinge, got 'mm'"),
        ({"kind": "slider", "units": "rad"}, "must be m or mm of a slider, got 'rad'"),
    ],
)
def test_a_joint_or_unit_that_does_not_fit_is_refused(change, message, tmp_path):
    (tmp_path / "enc.csv").write_text("time,q\n0,0\n0.1,1\n")
    scene_tables = tables(**change)
    observation = scene_tables["observations"]["enc"]
    del observation["simulate"]
    observation["file"] = "enc.csv"
    with pytest.raises(StudyError, match=message):
        make_problem(scene_from_dict(scene_tables, tmp_path))
