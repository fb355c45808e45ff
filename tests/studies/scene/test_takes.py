"""Several takes of one scene."""

import copy
import tomllib

import numpy as np
import pytest

from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.reading import scene_from_dict, to_toml


FALL = {"simulate": {"frames": 5, "duration": 0.25}, "body": "cube", "at": {"corner": [0.05] * 3}}
VIEW = {"simulate": {"frames": 2, "duration": 0.1, "height": 24, "width": 32}}
TABLES = {
    "bodies": {"cube": {"kind": "rigid", "mesh": "box", "size": [0.1] * 3, "density": 300.0}},
    "obstacles": {"floor": {"point": [0.0, -0.2, 0.0], "bodies": ["cube"]}},
    "cameras": {"front": {"eye": [0.3, 0.2, 1.5], "target": [0.0, 0.0, 0.0], "fov_y": 30.0}},
    "free": {"cube.density": {"start": 500.0}},
    "truth": {"cube.density": 300.0},
    "takes": {
        "slow": {
            "bodies": {"cube": {"velocity": [0.2, 0.0, 0.0]}},
            "observations": {"corner": FALL, "view": VIEW},
            "free": {"cube.velocity": {}},
            "pushes": {"hand": {"body": "cube", "force": [0.0, 5.0, 0.0]}},
        },
        "fast": {
            "bodies": {"cube": {"velocity": [1.0, 0.0, 0.0], "position": [0.0, 0.1, 0.0]}},
            "observations": {"corner": FALL, "view": VIEW},
            "free": {"cube.velocity": {}},
            "truth": {"cube.velocity": [1.1, 0.0, 0.0]},
            "validate": True,
        },
    },
}


def tables(**changes):
    return {**copy.deepcopy(TABLES), **changes}


def test_scans_are_of_the_bodies_their_take_and_encoders_of_its_joints():
    hinge = {"kind": "hinge", "between": ["world", "cube"], "anchor": [0.0] * 3, "axis": [0, 0, 1]}
    scene_tables = tables(joints={"pivot": hinge})
    observations = {
        "scan": {"simulate": {"frames": 2, "duration": 0.1, "points": 9}},
        "film": {"kind": "depth", **VIEW},
        "angle": {"kind": "encoder", "joint": "pivot", "simulate": {"frames": 2, "duration": 0.1}},
    }
    for take in scene_tables["takes"].values():
        take["observations"] = copy.deepcopy(observations)
    scene = scene_from_dict(scene_tables)
    assert scene.observations["scan_fast"].bodies == ("cube_fast",)
    assert scene.observations["film"].bodies == ("cube",)
    assert scene.observations["angle_fast"].joint == "pivot_fast"
    assert len(make_problem(scene).everything.observers) == 6


def test_every_take_has_bodies_and_observations_of_its_own():
    scene = scene_from_dict(tables())
    assert list(scene.bodies) == ["cube", "cube_fast"]
    assert scene.bodies["cube"].velocity == (0.2, 0.0, 0.0)
    assert scene.bodies["cube_fast"].velocity == (1.0, 0.0, 0.0)
    assert scene.obstacles["floor"].bodies == ("cube", "cube_fast")
    assert list(scene.pushes) == ["hand"]
    assert list(scene.observations) == ["corner", "view", "corner_fast", "view_fast"]
    assert scene.observations["corner_fast"].body == "cube_fast"
    assert scene.observations["view_fast"].bodies == ("cube_fast",)
    assert [spec.validate for spec in scene.observations.values()] == [False, False, True, True]
    assert scene.free["cube_fast.density"].tied_to == "cube.density"
    assert scene.free["cube_fast.velocity"].tied_to is None
    assert scene.truth == {
        "cube.density": 300.0, "cube_fast.density": 300.0, "cube_fast.velocity": (1.1, 0.0, 0.0),
    }  # fmt: skip
    assert scene_from_dict(tomllib.loads(to_toml(scene))) == scene


def test_takes_are_one_problem_whose_films_show_only_their_own_bodies():
    problem = make_problem(scene_from_dict(tables())).everything
    assert problem.parameters.paths[:3] == ("cube.density", "cube.velocity", "cube_fast.velocity")
    shown = [observer.scene.objects for observer in problem.observers if observer.KIND == "film"]
    assert [list(objects) for objects in shown] == [["cube"], ["cube_fast"]]
    theta = problem.parameters.start
    natural = problem.parameters.natural(theta)
    natural[:7] = [300.0, 0.2, 0.0, 0.0, 1.1, 0.0, 0.0]
    true = problem.parameters.theta(natural)
    assert problem.with_steps_for(true).loss_at(true) < 1e-12 < problem.loss_at(theta)
    of_density = np.asarray(problem.residuals_and_jacobian(theta)[1])[:, 0]
    moved = {observer.name for observer, r in problem.by_residuals(of_density) if r.any()}
    assert {"corner", "corner_fast"} <= moved  # a shared number moves both takes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"takes": {}}, "`takes` must be tables, one for each take"),
        ({"takes": {"a b": {}}}, '`takes."a b"`: a name must be letters'),
        ({"takes": {"a": {}}}, r"`takes\.a\.observations` is missing"),
        ({"takes": {"a": {"observation": {}}}}, r"`takes\.a`: Unknown key `observation`\. Did you"),
        ({"observations": {"c": FALL}}, r"write \[takes\.slow\.observations\.c\]"),
        ({"takes": {"a": {"observations": {"c": FALL}, "bodies": {"cub": {}}}}},
         r"`takes\.a\.bodies`: Unknown body `cub`\. Did you mean `cube`\?"),
        ({"takes": {"a": {"observations": {"c": FALL}, "free": {"floor.friction": {}}}}},
         r"`floor\.friction` under `free` of a take is of nothing that takes have"),
        ({"bodies": {"rod": {"kind": "pendulum"}}}, r"`bodies\.rod` is a pendulum\. Fit each"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(changes, message):
    with pytest.raises(StudyError, match=message):
        scene_from_dict(tables(**changes))


def test_copies_may_not_take_the_name_of_something_else():
    two = tables(bodies={**TABLES["bodies"], "cube_fast": TABLES["bodies"]["cube"]})
    with pytest.raises(
        StudyError, match="its copy 'cube_fast' has the name of another of `bodies`"
    ):
        scene_from_dict(two)


def test_ties_are_kept_within_a_take():
    bodies = {**TABLES["bodies"], "ball": {**TABLES["bodies"]["cube"], "mesh": "shape:sphere"}}
    free = {"cube.density": {"start": 500.0}, "ball.density": {"tied_to": "cube.density"}}
    takes = copy.deepcopy(TABLES["takes"])
    takes["fast"]["free"] |= {"ball.velocity": {"tied_to": "cube.velocity"}}
    obstacles = {"floor": {"point": [0.0, -0.2, 0.0]}}
    scene = scene_from_dict(tables(bodies=bodies, free=free, takes=takes, obstacles=obstacles))
    assert scene.free["ball_fast.density"].tied_to == "cube.density"
    assert scene.free["ball_fast.velocity"].tied_to == "cube_fast.velocity"


@pytest.mark.parametrize("changes", [
    {"free": {"cube.mass": 2.0}}, {"bodies": {"cube": 3}}, {"bodies": 3}, {"truth": 3},
    {"obstacles": {"floor": 3}},
])  # fmt: skip
def test_simple_mistakes_beside_takes_are_said(changes):
    with pytest.raises(StudyError, match=r"must be|`free`"):
        scene_from_dict(tables(**changes))


def test_a_mistake_in_a_body_is_said_once():
    bodies = {"cube": {**TABLES["bodies"]["cube"], "densty": 1.0, "size": "big"}}
    with pytest.raises(StudyError) as caught:
        scene_from_dict(tables(bodies=bodies))
    assert str(caught.value).count("densty") == 1
    bodies = {"cube": {**TABLES["bodies"]["cube"], "held": {"nodes": [1]}}}
    takes = copy.deepcopy(TABLES["takes"])
    takes["fast"]["bodies"]["cube"]["velocity"] = "field:v"
    with pytest.raises(StudyError) as caught:
        scene_from_dict(tables(bodies=bodies, takes=takes))
    assert str(caught.value).count("a rigid body has no nodes to hold") == 1


def test_only_bodies_one_take_are_said_to_pass_through_each_other():
    assert not any("names both" in note for note in build(scene_from_dict(tables())).notes)
    both = tables(bodies={**TABLES["bodies"], "ball": TABLES["bodies"]["cube"]})
    assert any("`cube` and `ball`" in note for note in build(scene_from_dict(both)).notes)


def test_each_take_has_a_copy_of_an_obstacle_that_a_body_carries():
    bodies = {"cube": TABLES["bodies"]["cube"], "ball": TABLES["bodies"]["cube"]}
    paddle = {"center": [0.0, 0.2, 0.0], "radius": 0.1, "fixed_to": "cube"}
    free = {"paddle.friction": {"start": 0.4}}
    scene = scene_from_dict(tables(bodies=bodies, obstacles={"paddle": paddle}, free=free))
    assert list(scene.obstacles) == ["paddle", "paddle_fast"]
    paddles = {name: (each.fixed_to, each.bodies) for name, each in scene.obstacles.items()}
    assert paddles["paddle"] == ("cube", ("ball",))
    assert paddles["paddle_fast"] == ("cube_fast", ("ball_fast",))
    assert scene.free["paddle_fast.friction"].tied_to == "paddle.friction"
