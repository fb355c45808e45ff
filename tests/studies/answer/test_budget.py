"""The error budget of an answer: closed forms, and cameras that take errors upon themselves."""

import numpy as np
import pytest

from studies.answer.budget import (
    KNOWN_BY_DATA,
    NAMES,
    QUANTILE,
    STEP,
    budget_at,
    declared_changes,
    propagated_errors,
)
from studies.answer.intervals import intervals
from studies.fitting.checking import expected_intervals
from studies.optimizers.jacobian import Jacobian
from studies.problem.clusters import clusters_of_rows
from studies.problem.losses import EVIDENCE
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.scene.reading import scene_from_dict


def tracked(bodies, free, *, error=0.01, **more):
    """Return the prepared problem of simulated points in space, at its truth."""
    (name, body), *_ = bodies.items()
    at = body.pop("at")
    marks = {"body": name, "at": at, "error": 1e-3, "simulate": {"frames": 8, "duration": 0.4}}
    marks |= more.pop("marks", {})
    tables = {"bodies": bodies, "observations": {"marks": marks}, "free": free, **more}
    return make_problem(scene_from_dict(tables))


def changes(made):
    """Return by key how theta changes by one standard uncertainty, (p,)."""
    problem = made.everything
    theta = problem.parameters.start
    J = problem.residuals_and_jacobian(theta)[1]
    changes = declared_changes(problem, theta, made.declared)
    assert changes.notes == []
    moved = propagated_errors(J, changes.residuals, None, clusters_of_rows(problem))
    squares = {}
    for number, square in zip(changes.numbers, moved.shares.T, strict=True):
        squares[number.key] = squares.get(number.key, 0.0) + square
    return {key: np.sqrt(square) for key, square in squares.items()}


def cube(**more):
    table = {"kind": "rigid", "mesh": "box", "size": [0.2, 0.2, 0.2], "velocity": [1.0, 2.0, 0.5]}
    return {"cube": table | {"at": {"a": [0.1, 0.0, 0.0], "b": [0.0, 0.1, 0.0]}} | more}


def test_a_rate_of_frames_changes_a_free_flight_as_its_closed_form_says():
    # x = v t, so v goes with the rate; y = v t - g t^2/2 has gravity's part beside it
    made = tracked(
        cube(), {"cube.velocity": {}}, marks={"fps_error": 0.02}, world={"gravity": [0, 0, 0]}
    )
    change = changes(made)
    assert set(change) == {"observations.marks.fps_error"}
    problem = made.everything
    rate = problem.parameters.natural_rates(problem.parameters.start)
    moved = rate * change["observations.marks.fps_error"]
    slope = 0.02 / (1.0 - (STEP * 0.02) ** 2)  # of 1/(1 + q), by central differences
    np.testing.assert_allclose(moved, slope * np.array([1.0, 2.0, 0.5]), rtol=1e-6)


def test_a_place_of_the_start_turns_into_velocity_by_least_squares():
    made = tracked(cube(position_error=0.01), {"cube.velocity": {}})
    problem = made.everything
    times = problem.observers[0].times
    expected = 0.01 * times.sum() / np.square(times).sum()  # of the fit of v t to a constant
    rate = problem.parameters.natural_rates(problem.parameters.start)
    moved = rate * changes(made)["bodies.cube.position_error"]
    np.testing.assert_allclose(moved, expected, rtol=1e-6)


def test_friction_follows_the_lean_of_gravity_and_of_the_floor():
    # a point mass that slides slows down by g (friction cos + sin), radian for radian; a box, whose
    # weight shifts to its front and which sinks in at first, by a little more
    body = cube(position=[0.0, 0.1, 0.0], velocity=[1.0, 0.0, 0.0])
    floor = {"kind": "plane", "friction": 0.3, "tilt_error": 1.0, "friction_stiffness": 3e3}
    made = tracked(
        body, {"floor.friction": {}}, obstacles={"floor": floor}, world={"gravity_error": 1.0}
    )
    change = changes(made)
    for key in ("world.gravity_error", "obstacles.floor.tilt_error"):
        assert 0.3 * change[key][0] == pytest.approx(np.radians(1.0), rel=0.2)
    # residuals that show it do not make the lean of the floor count for less
    problem, theta = made.everything, made.everything.parameters.start
    r, J = problem.residuals_and_jacobian(theta)
    before = intervals(problem.parameters, theta, r + 1e-3, J, frames=clusters_of_rows(problem))
    budget, _, _ = budget_at(problem, theta, before, J, numbers=made.declared, residuals=r)
    half = budget.parts["the direction of `floor`"][0]
    assert half == pytest.approx(QUANTILE * change["obstacles.floor.tilt_error"][0], rel=0.1)


def test_stiffness_follows_density_in_proportion():
    beam = {"kind": "soft", "mesh": "box", "size": [0.3, 0.05, 0.05], "cells": [6, 1, 1],
            "E": 1e5, "nu": 0.3, "mass_error": 0.03, "scale_error": 0.01,
            "held": {"plane": {"point": [-0.149, 0, 0], "normal": [1, 0, 0]}}}  # fmt: skip
    made = tracked({"beam": beam | {"at": {"tip": [0.15, 0.0, 0.0]}}}, {"beam.E": {}})
    change = changes(made)
    assert change["bodies.beam.mass_error"][0] == pytest.approx(0.03, rel=1e-5)
    # a beam of twice the size under the same gravity bends twice as far for its size, but the tip
    # is tracked in metres
    assert change["bodies.beam.scale_error"][0] > 0.0


BAR = {"kind": "soft", "mesh": "box", "size": [0.1, 0.02, 0.02], "cells": [4, 1, 1], "E": 1e5,
       "nu": 0.3, "held": {"plane": {"point": [-0.049, 0, 0], "normal": [1, 0, 0]}}}  # fmt: skip
AT_REST = {"motion": "equilibrium", "gravity": [0.0, 0.0, 0.0]}


def settled(observation, *, bar=None, **more):
    """Return the prepared problem of the E of a bar that rests under a load."""
    tables = {"bodies": {"bar": BAR | (bar or {})}, "world": AT_REST, "free": {"bar.E": {}}}
    return make_problem(scene_from_dict({**tables, "observations": {"seen": observation}, **more}))


def test_stiffness_follows_a_known_force_in_proportion():
    observation = {"kind": "points", "body": "bar", "at": {"tip": [0.05, 0.0, 0.0]}, "error": 1e-5,
            "simulate": {"frames": 1, "duration": 1.0}}  # fmt: skip
    pull = {"body": "bar", "force": [0.01, 0.0, 0.0], "at": [0.05, 0.0, 0.0], "force_error": 0.04}
    change = changes(settled(observation, pushes={"pull": pull}))
    assert change == {"pushes.pull.force_error": pytest.approx([0.04], rel=1e-3)}


@pytest.mark.parametrize("start", [0.0, 0.3])
def test_stiffness_follows_how_far_a_jaw_goes_and_nu_how_it_narrows(start):
    # the jaws hold the ends from narrowing, which a larger nu makes harder
    ends = [[start, 0.0, 0.0], [start + 1e-3, 0.0, 0.0]]
    jaw = {"body": "bar", "where": {"plane": {"point": [0.049, 0, 0], "normal": [-1, 0, 0]}},
           "path": {"times": [0.0, 1.0], "positions": ends}, "path_error": 0.05}  # fmt: skip
    observation = {"kind": "force", "grip": "jaw", "axis": [1.0, 0.0, 0.0], "error": 1e-3,
            "simulate": {"frames": 2, "duration": 1.0}}  # fmt: skip
    change = changes(settled(observation, grips={"jaw": jaw}, bar={"nu_error": 0.05}))
    assert change["grips.jaw.path_error"] == pytest.approx([0.05], rel=0.02)
    assert 1e-3 < change["bodies.bar.nu_error"][0] < 0.05


@pytest.mark.parametrize("kind", ["constant", "series"])
def test_friction_follows_the_motor_that_it_is_measured_against(kind, tmp_path):
    # I w' = T - c w: c changes by 4 % of T less what the inertia would take, thus by more
    table = tmp_path / "torque.csv"
    table.write_text("time,torque\n0,0.2\n2,0.2\n")
    hinge = {"kind": "hinge", "between": ["world", "cube"], "anchor": [0.0, 0.0, 0.0],
             "axis": [0.0, 0.0, 1.0], "viscous_friction": 0.2, "motor_error": 0.04,
             "motor": 0.2 if kind == "constant" else str(table)}  # fmt: skip
    body = {"kind": "rigid", "mesh": "box", "size": [0.2, 0.2, 0.2], "mass": 1.0}
    angle = {"kind": "encoder", "joint": "hinge", "simulate": {"frames": 20, "duration": 1.0}}
    tables = {"bodies": {"cube": body}, "joints": {"hinge": hinge}, "observations": {"a": angle},
              "free": {"hinge.viscous_friction": {}}, "world": {"gravity": [0, 0, 0]}}  # fmt: skip
    change = changes(make_problem(scene_from_dict(tables)))
    assert change["joints.hinge.motor_error"] == pytest.approx([0.0413], rel=0.02)


def test_bending_follows_the_thickness_of_a_cloth_that_has_its_mass():
    strip = {"kind": "cloth", "mesh": "sheet", "size": [0.2, 0.1], "cells": [4, 2], "E": 1e6,
             "rotation": [-90.0, 0.0, 0.0],
             "bending": 0.01, "density": 200.0, "thickness_error": 0.05, "nu_error": 0.0,
             "held": {"plane": {"point": [-0.099, 0, 0], "normal": [1, 0, 0]}}}  # fmt: skip
    made = tracked({"strip": strip | {"at": {"tip": [0.1, 0.0, 0.0]}}}, {"strip.bending": {}})
    change = changes(made)
    assert change["bodies.strip.thickness_error"] == pytest.approx([0.05], rel=0.02)


def test_the_speed_of_what_slides_follows_the_friction_that_was_declared():
    floor = {"kind": "plane", "friction": 0.3, "friction_stiffness": 3e3, "friction_error": 0.1}
    body = cube(position=[0.0, 0.1, 0.0], velocity=[1.5, 0.0, 0.0])
    made = tracked(body, {"cube.velocity[0]": {}}, obstacles={"floor": floor})
    problem = made.everything
    times = problem.observers[0].times
    rate = problem.parameters.natural_rates(problem.parameters.start)
    moved = rate * changes(made)["obstacles.floor.friction_error"]
    # 0.03 g t^2/2 by v t, least squares
    expected = 0.03 * 9.81 / 2.0 * (times**3).sum() / (times**2).sum()
    np.testing.assert_allclose(moved, expected, rtol=0.1)


def test_gravity_of_a_pendulum_follows_its_length():
    rod = {"kind": "pendulum", "length": [0.5], "angle": [20.0], "scale_error": 0.01}
    tables = {
        "bodies": {"rod": rod},
        "cameras": {"front": {"eye": [0, -0.3, 2.0], "target": [0, -0.3, 0], "fov_y": 40.0}},
        "observations": {"film": {"simulate": {"height": 48, "width": 64, "frames": 12,
                                               "duration": 1.5}, "fps_error": 0.005}},
        "free": {"world.gravity": {}, "rod.angle": {}},
    }  # fmt: skip
    change = changes(make_problem(scene_from_dict(tables)))
    # T^2 = 4 pi^2 l/g: by the rate twice, and by the length, which is also seen
    assert change["observations.film.fps_error"][0] == pytest.approx(
        0.01, rel=5e-3
    )  # steps of finite size
    assert 0.0 < change["bodies.rod.scale_error"][0] < 0.02


def test_what_is_simulated_is_exact_and_what_is_declared_exact_is_not_counted():
    assert tracked(cube(), {"cube.velocity": {}}).declared == []
    assert tracked(cube(position_error=0.0), {"cube.velocity": {}}).declared == []


@pytest.mark.parametrize(
    ("bodies", "more", "message"),
    [
        (cube(mass=1.0, mass_error=0.1), {}, "`cube.mass` is free. Leave it out"),
        (
            cube(mass=1.0),
            {"world": {"gravity": [0.0, 0.0, 0.0], "gravity_error": 1.0}},
            "`world.gravity_error` is the uncertainty of a",
        ),
        (cube(mass=1.0, position_error=0.3), {}, "`bodies.cube.position_error` must be at most"),
        (cube(mass=1.0, scale_error=-0.1), {}, "scale_error"),
        (cube(mass=1.0, scale_error=1.5), {}, "scale_error"),
        (cube(mass=1.0), {"world": {"gravity_error": 50.0}}, "gravity_error"),
        (cube(mass=1.0), {"marks": {"fps_error": 1.0}}, "fps_error"),
    ],
)
def test_bad_uncertainties_are_one_message(bodies, more, message):
    push = {"wind": {"body": "cube", "force": [1.0, 0.0, 0.0]}}
    with pytest.raises(StudyError, match=message):
        tracked(bodies, {"cube.mass": {}}, pushes=push, **more)


def test_an_uncertainty_that_may_be_percent_is_said():
    made = tracked(cube(mass=1.0, scale_error=0.5), {"cube.velocity": {}})
    assert any("know it to 0.5 %, write 0.005." in note for note in made.notes)
    made = tracked(cube(mass=1.0, scale_error=0.05), {"cube.velocity": {}})
    assert not any("scale_error" in note for note in made.notes)


def test_smoke_has_no_derivative_by_the_rate_of_its_film(tmp_path):
    from PIL import Image

    picture = tmp_path / "cloud.png"
    Image.fromarray(np.full((8, 8), 128, np.uint8)).save(picture)
    film = {"simulate": {"height": 8, "width": 8, "frames": 3, "duration": 0.1}, "fps_error": 0.01}
    tables = {
        "bodies": {"cloud": {"kind": "smoke", "density": str(picture), "waves": 1}},
        "observations": {"film": film},
        "free": {"cloud.wind": {}},
    }
    with pytest.raises(StudyError, match="smoke moves from frame to frame"):
        make_problem(scene_from_dict(tables))


def test_a_camera_that_is_known_less_well_never_makes_an_interval_narrower(rng):
    errors = np.geomspace(1e-3, 30.0, 12)
    frames = np.append(np.arange(40), [-1] * 3)
    for _ in range(20):
        data, slopes = rng.standard_normal((40, 3)), rng.standard_normal((43, 2))
        r = np.append(0.3 * rng.standard_normal(40), np.zeros(3))
        slopes[40:] = 0.0  # of priors
        widths = []
        for error in errors:
            # theta of a nuisance counts in its error, and its prior is 1 there
            J = np.concatenate([data * [1.0, error, error], np.diag([0.0, 1.0, 1.0])])
            J, C = Jacobian.of(J), Jacobian.of(slopes)
            of_camera = np.array([False, True, True])
            widths.append(propagated_errors(J, C, r, frames, is_camera=of_camera).covariance[0, 0])
        widths = np.sqrt(widths)
        assert (np.diff(widths) >= -1e-3 * widths[:-1]).all()
        assert widths[0] > 0.0


@pytest.mark.parametrize("error", [0.01, 0.3, 1.0, 3.0])
def test_a_number_is_shown_as_well_as_the_camera_that_could_make_up_for_it(rng, error):
    # the answer makes up for 3 of the number's trace, a camera for the rest: known to `error` of
    # what an uncertainty of the number looks like, it leaves e^2/(1 + e^2) of the number's variance
    j, t = np.linalg.qr(rng.standard_normal((200, 2)))[0].T
    prior = np.diag([0.0, 1.0 / np.sqrt(EVIDENCE)])
    J = Jacobian.of(np.concatenate([np.stack([j, error * t], axis=1), prior]))
    C = Jacobian.of(np.append(3.0 * j + t, [0.0, 0.0])[:, None])
    frames = np.append(np.arange(200) // 10, [-1, -1])
    moved = propagated_errors(J, C, np.zeros(202), frames, is_camera=np.array([False, True]))
    left = error**2 + KNOWN_BY_DATA**2
    assert moved.covariance[0, 0] == pytest.approx(9.0 * left / (1.0 + left), rel=1e-6)


def test_the_parts_of_a_budget_add_up_to_the_interval():
    made = tracked(cube(position_error=0.01), {"cube.velocity": {}}, marks={"fps_error": 0.02})
    problem = made.everything
    theta = problem.parameters.start
    r, J = problem.residuals_and_jacobian(theta)
    before = intervals(
        problem.parameters, theta, r + 1e-3, J, frames=clusters_of_rows(problem), floor=0.01
    )
    budget, counted, _ = budget_at(problem, theta, before, J, numbers=made.declared, residuals=r)
    squares = sum(np.square(half_width) for half_width in budget.parts.values())
    np.testing.assert_allclose(squares, np.square(budget.half_width), rtol=1e-9)
    assert (counted.half_width > before.half_width).all()
    shown = budget.to_dict()["cube.velocity[0]"]
    names = [row["name"] for row in shown["parts"]]
    assert {"the frame rate of `marks`", "where `cube` starts", NAMES["floor"]} <= set(names)
    widths = [row["half_width"] for row in shown["parts"]]
    assert widths == sorted(widths, reverse=True)
    assert "the interval would be ±" in shown["advice"]


def test_takes_of_one_body_share_its_size_and_start_apart():
    tables = {"bodies": {"cube": cube()["cube"]}, "free": {"floor.friction": {}}, "blind": True,
              "obstacles": {"floor": {"kind": "plane", "point": [0.0, -0.1, 0.0]}}}  # fmt: skip
    at = tables["bodies"]["cube"].pop("at")
    marks = {"body": "cube", "at": at, "simulate": {"frames": 4, "duration": 0.2}}
    takes = {name: {"observations": {"marks": marks}} for name in ("first", "second")}
    tables["pushes"] = {"wind": {"body": "cube", "force": [0.1, 0, 0], "force_error": 0.1}}
    made = make_problem(scene_from_dict({**tables, "takes": takes}))
    counts = {}
    for number in made.declared:
        counts[number.key] = counts.get(number.key, 0) + 1
    assert counts["bodies.cube.scale_error"] == counts["bodies.cube.mass_error"] == 1
    assert counts["bodies.cube.position_error"] == 6
    assert counts["obstacles.floor.tilt_error"] == counts["world.gravity_error"] == 2
    assert counts["pushes.wind.force_error"] == 1


def test_the_length_of_one_link_is_declared_where_the_other_is_free():
    arm = {"kind": "pendulum", "length": [0.4, 0.3], "angle": [40.0, 10.0], "scale_error": 0.01}
    tables = {
        "bodies": {"arm": arm},
        "cameras": {"front": {"eye": [0, -0.3, 2.0], "target": [0, -0.3, 0], "fov_y": 40.0}},
        "observations": {"film": {"simulate": {"height": 24, "width": 32, "frames": 3,
                                               "duration": 0.3}}},
        "free": {"arm.length[0]": {}},
    }  # fmt: skip
    made = make_problem(scene_from_dict(tables))
    (number,) = made.declared
    problem = number.moved(made.everything, 0.5)
    values = problem.parameters.scene_values(problem.parameters.start)
    np.testing.assert_allclose(values["arm.length"], [0.4, 0.45])


def test_a_number_that_nothing_determines_has_no_budget():
    made = tracked(cube(scale_error=0.01), {"cube.velocity": {}})
    problem = made.everything
    theta = problem.parameters.start
    r, J = problem.residuals_and_jacobian(theta)
    J.values[:, 0] *= 1e-9
    before = intervals(problem.parameters, theta, r + 1e-3, J, frames=clusters_of_rows(problem))
    shown = budget_at(problem, theta, before, J, numbers=made.declared, residuals=r)[0].to_dict()
    assert set(shown) == {"cube.velocity[1]", "cube.velocity[2]"}


@pytest.mark.parametrize(
    ("camera", "size"),
    [({}, 0.02), ({"position_error": 0.03}, 0.06), ({"fov_error": 0.05, "fit": False}, 0.02)],
)
def test_a_size_is_taken_to_be_known_as_well_as_the_camera_that_checks_it(camera, size):
    body = cube()["cube"]
    del body["at"]
    front = {"eye": [0.3, 0.3, 2.0], "target": [0.2, 0.2, 0.0], "fov_y": 40.0, **camera}
    film = {"simulate": {"height": 24, "width": 32, "frames": 3, "duration": 0.2}}
    tables = {"bodies": {"cube": body}, "cameras": {"front": front}, "blind": True,
              "observations": {"film": film}, "free": {"cube.velocity": {}}}  # fmt: skip
    made = make_problem(scene_from_dict(tables))
    (error,) = [n.error for n in made.declared if n.key == "bodies.cube.scale_error"]
    assert error == pytest.approx(size)


def test_what_the_residuals_show_of_a_number_is_not_counted_and_what_they_do_not_is(rng):
    # two numbers: theta makes up for the first, and the second leaves a trace of its own
    n, frames = 400, np.append(np.repeat(np.arange(20), 20), -1)
    J = rng.standard_normal((n, 1))
    trace = rng.standard_normal(n)
    trace -= J[:, 0] * (J[:, 0] @ trace) / (J[:, 0] @ J[:, 0])
    rows = [np.stack([3.0 * J[:, 0], J[:, 0] + trace], axis=1), np.zeros((1, 2))]
    J, C = Jacobian.of(np.append(J, [[0.0]], axis=0)), Jacobian.of(np.concatenate(rows))

    def shares(r):
        return propagated_errors(J, C, r, frames).shares[0]

    quiet = 1e-3 * rng.standard_normal(n + 1)
    np.testing.assert_allclose(shares(quiet), [9.0, KNOWN_BY_DATA**2], rtol=0.1)
    loud = 30.0 * rng.standard_normal(n + 1)  # residuals that show nothing
    np.testing.assert_allclose(shares(loud), [9.0, 1.0], atol=0.15)
    off = quiet - 2.0 * np.append(trace, 0.0)  # the second number is two uncertainties off
    assert shares(off)[1] > 0.8


def test_what_is_measured_at_places_of_a_body_stays_there_if_the_body_is_larger():
    bar = {
        "kind": "soft", "mesh": "box", "size": [0.3, 0.1, 0.1], "cells": [3, 1, 1], "E": 2e5,
        "nu": 0.3, "scale_error": 0.02,
        "held": {"plane": {"point": [-0.149, 0, 0], "normal": [1, 0, 0]}},
    }  # fmt: skip
    world = {"motion": "equilibrium", "gravity": [0.0, -9.8, 0.0]}
    marks = {
        "kind": "points", "body": "bar", "error": 1e-4, "at": {"tip": [0.15, 0.05, 0.05]},
        "simulate": {"frames": 1, "duration": 1.0},
    }  # fmt: skip
    tables = {"bodies": {"bar": bar}, "world": world, "observations": {"marks": marks}}
    made = make_problem(scene_from_dict({**tables, "free": {"bar.E": {"start": 2.5e5}}}))
    problem, theta = made.problem, made.problem.parameters.start
    (size,) = (number for number in made.declared if number.name == "the size of `bar`")
    column = np.asarray(declared_changes(problem, theta, [size]).residuals)[:, 0]
    h = 1e-4
    ends = [size.moved(problem, sign * h).residuals(theta) for sign in (1.0, -1.0)]
    expected = size.error * (ends[0] - ends[1]) / (2.0 * h)
    np.testing.assert_allclose(column, expected, atol=1e-3 * np.abs(expected).max())
    x = [size.moved(problem, amount) for amount in (0.0, 0.02)]
    begin = [each.observers[0].matrix @ np.asarray(each.built.state.x) for each in x]
    np.testing.assert_allclose(begin[1], begin[0], atol=1e-12)


@pytest.mark.parametrize("nu", [0.2, 0.45])
def test_forces_on_a_bar_show_nothing_of_its_size_which_the_law_could_do_too(nu):
    # E goes as 1/size. The curve of the force over the displacement, up to 10 % of the length,
    # bends as the size says if the law is right
    bar = {
        "kind": "soft", "mesh": "box", "size": [0.15, 0.02, 0.02], "cells": [6, 1, 1], "E": 1e6,
        "nu": nu, "law": "log", "scale_error": 0.02,
        "held": {"plane": {"point": [-0.074, 0, 0], "normal": [1, 0, 0]}},
    }  # fmt: skip
    jaw = {"body": "bar", "where": {"plane": {"point": [0.074, 0, 0], "normal": [-1, 0, 0]}},
           "path": {"times": [0, 10], "positions": [[0, 0, 0], [0.015, 0, 0]]}}  # fmt: skip
    cell = {"kind": "force", "grip": "jaw", "axis": [1, 0, 0], "error": 0.05,
            "simulate": {"frames": 10, "duration": 10.0}}  # fmt: skip
    world = {"motion": "equilibrium", "gravity": [0.0, 0.0, 0.0]}
    made = make_problem(scene_from_dict({
        "bodies": {"bar": bar}, "grips": {"jaw": jaw}, "world": world, "blind": True,
        "observations": {"cell": cell}, "free": {"bar.E": {"start": 1e6}},
    }))  # fmt: skip
    problem, theta = made.everything, made.everything.parameters.start
    slope = changes(made)["bodies.bar.scale_error"][0]
    assert slope == pytest.approx(0.02, rel=0.1)
    budget = expected_intervals(
        problem, theta, 0.0, made.declared, other_law=made.other_law(problem)
    )[1]
    assert budget.parts["the size of `bar`"][0] > 0.9 * QUANTILE * slope
