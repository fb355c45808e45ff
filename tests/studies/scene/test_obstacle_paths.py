"""Obstacles that move along a path, their force on bodies, and mistakes in both."""

import numpy as np
import pytest

from studies.problem.forward import simulate
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.maps import all_targets, values_of
from studies.scene.reading import scene_from_dict


LOW = {"plane": {"point": [0, -0.009, 0], "normal": [0, 1, 0]}}
BLOCK = {"kind": "soft", "mesh": "box", "size": [0.04, 0.02, 0.04], "cells": [3, 2, 3], "E": 1e5,
         "nu": 0.3, "held": LOW}  # fmt: skip
DOWN = {"times": [0.0, 0.06, 0.1], "positions": [[0, 1, 0], [0, 0.998, 0], [0.001, 0.997, 0]]}
BALL = {"center": [0.001, 0.0298, 0.002], "radius": 0.02, "stiffness": 400.0, "path": DOWN}
PISTON = {"point": [0, 0.0101, 0], "normal": [0.1, -1.0, 0.0], "stiffness": 400.0, "path": DOWN}
CELL = {"obstacle": "tip", "error": 0.01, "simulate": {"frames": 2, "duration": 0.1}}
RESTS = {"motion": "equilibrium"}


def tables(**changes):
    """The tables of a block that a ball is pressed into."""
    base = {"bodies": {"block": BLOCK}, "obstacles": {"tip": BALL}, "observations": {"cell": CELL},
            "world": {"gravity": [0, 0, 0], "step": "implicit"},
            "free": {"block.E": {}}}  # fmt: skip
    return {**base, **changes}


def check_slopes(problem):
    """Compare gradient, tangent and differences of all residuals."""
    theta = problem.parameters.start + 0.01
    r = problem.residuals(theta)
    adj = np.random.default_rng(2).standard_normal(len(r))
    gradient = problem.residuals_vjp(theta, adj)
    for i in range(len(theta)):
        d = 1e-7 * np.eye(len(theta))[i]  # between kinks, where a node begins to touch
        slope = (adj @ problem.residuals(theta + d) - adj @ problem.residuals(theta - d)) / 2e-7
        along = adj @ problem.residuals_jvp(theta, d) / 1e-7
        assert gradient[i] == pytest.approx(along, rel=1e-9, abs=1e-9 * np.abs(gradient).max())
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-5 * np.abs(gradient).max())


@pytest.mark.parametrize("world", [RESTS, {"step": "implicit"}, {}])
@pytest.mark.parametrize("tip", [BALL, PISTON])
def test_the_force_has_the_slopes_of_differences(world, tip):
    free = {"block.E": {}, "tip.position": {}, "tip.stiffness": {}}
    free |= {} if tip is BALL else {"tip.height": {}}
    values = tables(world={"gravity": [0, -1.0, 0], **world}, free=free, obstacles={"tip": tip})
    check_slopes(make_problem(scene_from_dict(values)).problem)


def test_a_stone_on_a_plate_weighs_on_it_beside_a_grip():
    stone = {"kind": "rigid", "mesh": "shape:cube", "size": [0.1], "mass": 1.0,
             "position": [0.3, 0.049, 0.0]}  # fmt: skip
    plate = {"kind": "plane", "stiffness": 2000.0, "dissipation": 0.5, "bodies": ["stone"]}
    short = {"error": 0.01, "simulate": {"frames": 2, "duration": 0.02}}
    values = tables(
        bodies={"block": BLOCK, "stone": stone}, obstacles={"plate": plate},
        observations={"cell": {"obstacle": "plate", **short}, "jaw": {"grip": "block", **short}},
        world={"step": "implicit"},
        free={"stone.mass": {}, "stone.velocity": {}, "block.E": {}, "plate.stiffness": {}},
    )  # fmt: skip
    problem = make_problem(scene_from_dict(values)).problem
    plate, grip = problem.observers
    assert plate.forces[:, 1].min() > 5.0
    weight = 9.81 * 1000.0 * 0.04 * 0.02 * 0.04
    assert grip.forces[-1, 1] == pytest.approx(weight, rel=0.5)  # the block still swings
    check_slopes(problem)


def test_an_obstacle_is_where_its_path_says():
    scene = scene_from_dict(tables(obstacles={"tip": {**BALL, "draw": True}}))
    built = build(scene)
    targets = all_targets(built.maps, values_of(built.values))
    center = BALL["center"] + np.subtract(DOWN["positions"], DOWN["positions"][0])
    np.testing.assert_allclose(targets["tip_block.center"], center, atol=1e-15)
    speeds = np.diff(center, axis=0) / np.diff(DOWN["times"])[:, None]
    expected = np.repeat(np.concatenate([[[0.0] * 3], speeds, [[0.0] * 3]]), 2, axis=0)[1:-1]
    np.testing.assert_allclose(targets["tip_block.velocity"], expected, atol=1e-15)
    velocity = built.varying["tip_block.velocity"].course(0.02, targets["tip_block.velocity"])
    np.testing.assert_allclose(velocity.sample(5), speeds[[0, 0, 0, 1, 1]], atol=1e-12)
    drawn = simulate(scene, [0.0, 0.05, 0.1]).surfaces["tip"].mean(axis=1)
    np.testing.assert_allclose(
        drawn[1:] - drawn[0], [[0, -0.002 * 5 / 6, 0], [0.001, -0.003, 0]], atol=1e-12
    )


def test_a_piston_presses_with_E_A_strain():
    # A bar between its held end and a piston may become thicker: uniaxial.
    bar = {**BLOCK, "size": [0.08, 0.02, 0.02], "cells": [8, 2, 2], "nu": 0.0,
           "held": {"plane": {"point": [-0.0399, 0, 0], "normal": [1, 0, 0]}}}  # fmt: skip
    path = {"times": [0.0, 1.0], "positions": [[0, 0, 0], [-4e-4, 0, 0]]}
    piston = {"point": [0.04, 0, 0], "normal": [-1, 0, 0], "stiffness": 1e6, "path": path}
    cell = {**CELL, "axis": [-1, 0, 0], "simulate": {"frames": 2, "duration": 1.0}}
    values = tables(bodies={"block": bar}, obstacles={"tip": piston}, observations={"cell": cell},
                    world={**RESTS, "gravity": [0, 0, 0]})  # fmt: skip
    problem = make_problem(scene_from_dict(values)).problem
    (observer,) = problem.observers
    force = observer.forces[:, 0]
    np.testing.assert_allclose(force, 1e5 * 4e-4 * 0.005 * np.array([0.5, 1.0]), rtol=0.01)


def refused(match, **changes):
    with pytest.raises(StudyError, match=match):
        make_problem(scene_from_dict(tables(**changes)))


def test_mistakes_are_said():
    def tip(**changes):
        return {"obstacles": {"tip": {**BALL, **changes}}}

    def cell(**changes):
        return {"observations": {"cell": {**CELL, **changes}}}

    refused("must not turn the obstacle", **tip(path={**DOWN, "rotations": [[0, 0, 1]] * 3}))
    refused(
        r"`obstacles\.tip\.path` ends at 0\.1 s, before",
        **cell(simulate={"frames": 2, "duration": 0.2}),
    )
    refused("moves by .* more than the size of the body",
            **tip(path={"times": [0, 1e-4, 0.1],
                        "positions": [[0, 0, 0], [0, 1, 0], [0, 0, 0]]}))  # fmt: skip
    refused("Unknown obstacle `tap`.*tip", **cell(obstacle="tap"))
    refused("must have a `grip` or an `obstacle`", **cell(grip="block"))
    refused("`observations.cell.body`: Unknown body", **cell(body="blok"))
    stone = {"kind": "rigid", "mesh": "shape:sphere", "size": [0.1], "mass": 1.0}
    both = {"bodies": {"block": BLOCK, "stone": stone}}
    refused(
        "body that may touch `obstacles.tip`", **both, **tip(bodies=["block"]), **cell(body="stone")
    )
    refused("must have `fixed_to` or `path`", **both, **tip(fixed_to="stone", bodies=["block"]))


def test_a_take_has_the_force_on_its_own_body():
    takes = {name: {"observations": {"cell": CELL}} for name in ("slow", "fast")}
    values = {key: value for key, value in tables(takes=takes).items() if key != "observations"}
    scene = scene_from_dict(values)
    assert [scene.observations[key].body for key in ("cell", "cell_fast")] == [
        "block",
        "block_fast",
    ]
    sensors = build(scene).sensors
    assert sensors["force.obstacles.tip.block_fast"].what == ("tip_block_fast",)
    assert sensors["force.obstacles.tip"].what == ("tip_block", "tip_block_fast")
