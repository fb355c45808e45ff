"""Grips in scene files: where they lead nodes, what is free, their force, and mistakes."""

import numpy as np
import pytest

from adjsim.rotations import rotation_matrix
from studies.problem.forward import simulate
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.maps import all_targets, values_of
from studies.scene.reading import scene_from_dict
from tests.studies.scene.slopes import check_slopes


LOW, HIGH = (
    {"plane": {"point": [x, 0, 0], "normal": [n, 0, 0]}} for x, n in ((-0.049, 1), (0.049, -1))
)
BAR = {"kind": "soft", "mesh": "box", "size": [0.1, 0.02, 0.02], "cells": [4, 1, 1], "E": 1e5,
       "nu": 0.3, "held": LOW}  # fmt: skip
PULLED = {"times": [0.0, 0.1], "positions": [[0, 0, 0], [0.01, 0, 0]]}
JAW = {"body": "bar", "where": HIGH, "path": PULLED}
CELL = {"grip": "jaw", "simulate": {"frames": 4, "duration": 0.1, "noise": 0.01}}


def tables(**changes):
    """The tables of a bar that a jaw pulls; a key with two underlines is one of a table."""
    base = {"bodies": {"bar": BAR}, "grips": {"jaw": JAW}, "observations": {"cell": CELL},
            "world": {"gravity": [0, 0, 0], "step": "implicit"}, "free": {"bar.E": {}}}  # fmt: skip
    return {**base, **changes}


def led(scene, times):
    """Where the nodes of the grip are at times, and where they begin."""
    built = build(scene)
    rows = built.sensors["force.jaw"].what
    return simulate(scene, times).surfaces, np.asarray(built.state.x)[rows], rows


def file_of(path, text):
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("how", ["linear", "cubic"])
def test_nodes_move_as_a_rigid_body_with_their_grip(tmp_path, how):
    turn = np.array([0.0, 40.0, 60.0])
    at = {"times": [0.0, 0.05, 0.1], "positions": [[0.1, 0, 0], [0.12, 0.01, 0], [0.11, 0.03, 0]],
          "rotations": [[0, 90, 0], (turn / 2).tolist(), turn.tolist()]}  # fmt: skip
    scene = scene_from_dict(tables(grips={"jaw": {**JAW, "path": at, "interpolation": how}}))
    built = build(scene)
    (path,) = built.paths
    X, R = path.start, rotation_matrix(np.radians(np.array(at["rotations"])))
    for time, position, turned in zip(at["times"], at["positions"], R, strict=True):
        k = int(np.argmin(np.abs(path.times - time)))
        moved = position + (X - at["positions"][0]) @ R[0] @ turned.T
        np.testing.assert_allclose(path.places[k], moved, atol=1e-15)
    targets = all_targets(built.maps, values_of(built.values))
    np.testing.assert_allclose(targets["jaw_grip.positions"], path.places, atol=1e-15)
    arms = np.linalg.norm(path.places - path.places.mean(axis=1, keepdims=True), axis=2)
    np.testing.assert_allclose(arms, np.broadcast_to(arms[0], arms.shape), rtol=1e-13)


def test_files_of_poses_say_the_same_as_lists(tmp_path):
    by_list = {"times": [0.0, 0.1], "positions": [[0, 0, 0], [0.01, 0, 0]],
               "rotations": [[0, 0, 0], [0, 0, 180.0]]}  # fmt: skip
    vectors = file_of(
        tmp_path / "a.csv", "time,x,y,z,rx,ry,rz\n0,0,0,0,0,0,0\n0.1,0.01,0,0,0,0,180\n"
    )
    quaternions = "time,x,y,z,qx,qy,qz,qw\n0,0,0,0,0,0,0,1\n0.1,0.01,0,0,0,0,1,0\n"
    quaternions = file_of(tmp_path / "b.csv", quaternions)
    places = []
    for path in (by_list, vectors, quaternions):
        scene = scene_from_dict(tables(grips={"jaw": {**JAW, "path": path}}))
        places.append(build(scene).paths[0].places)
    np.testing.assert_allclose(places[1], places[0], atol=1e-15)
    np.testing.assert_allclose(places[2], places[0], atol=1e-15)
    np.savez(tmp_path / "c.npz", times=build(scene).paths[0].times, x=places[0])
    scene = scene_from_dict(tables(grips={"jaw": {**JAW, "path": str(tmp_path / "c.npz")}}))
    np.testing.assert_array_equal(build(scene).paths[0].places, places[0])


def test_a_displacement_along_an_axis_is_a_path(tmp_path):
    table = file_of(tmp_path / "a.csv", "force,time,displacement\n0,0,0\n7,0.05,5\n9,0.1,10\n")
    stroke = {"file": table, "axis": [-2.0, 0.0, 0.0], "units": "mm"}
    (path,) = build(scene_from_dict(tables(**with_path(stroke)))).paths
    np.testing.assert_allclose(path.places[-1] - path.start, [[-0.01, 0.0, 0.0]] * len(path.start))
    refused(
        r"`grips\.jaw\.path\.axis` must not be zero", **with_path({**stroke, "axis": [0, 0, 0]})
    )
    other = file_of(tmp_path / "b.csv", "time,way,force\n0,0,0\n0.1,0.01,9\n")
    message = r"b\.csv must have 1 .* or more with `displacement` among them, got 2: way, force"
    refused(message, **with_path({**stroke, "file": other}))


def test_a_path_that_begins_before_the_scene_is_cut_at_its_start(tmp_path):
    text = "time,x,y,z\n-0.1,0,0,0\n0.1,0.02,0,0\n0.2,0.02,0,0\n"
    path = file_of(tmp_path / "early.csv", text)
    (jaw_path,) = build(scene_from_dict(tables(grips={"jaw": {**JAW, "path": path}}))).paths
    np.testing.assert_allclose(jaw_path.times, [0.0, 0.1, 0.2])
    np.testing.assert_allclose(
        jaw_path.places[:, 0, 0] - jaw_path.start[0, 0], [0.0, 0.01, 0.01], atol=1e-15
    )


@pytest.mark.parametrize("names", ["z,y,x", "x,y,z,qw,qx,qy,qz"])
def test_columns_whose_names_have_another_order_are_refused(tmp_path, names):
    row = ",".join(["0"] * names.count(",") + ["1"])
    path = file_of(tmp_path / "other.csv", f"time,{names}\n0,{row}\n0.2,{row}\n")
    with pytest.raises(StudyError, match="must be in the order time, x, y, z"):
        build(scene_from_dict(tables(grips={"jaw": {**JAW, "path": path}})))


def test_a_cubic_that_begins_before_the_scene_is_refused(tmp_path):
    path = file_of(tmp_path / "early.csv", "time,x,y,z\n-0.1,0,0,0\n0.1,0.02,0,0\n0.2,0,0,0\n")
    jaw = {**JAW, "path": path, "interpolation": "cubic"}
    with pytest.raises(StudyError, match="must begin at time 0 or later for a cubic"):
        build(scene_from_dict(tables(grips={"jaw": jaw})))


def test_rotations_go_on_beyond_half_a_turn(tmp_path):
    rows = [f"{0.01 * k},0,0,0,0,0,{(50 * k + 180) % 360 - 180}" for k in range(11)]
    path = file_of(tmp_path / "turns.csv", "\n".join(["time,x,y,z,rx,ry,rz", *rows]))
    (jaw_path,) = build(scene_from_dict(tables(grips={"jaw": {**JAW, "path": path}}))).paths
    assert len(jaw_path.times) >= 500  # a degree each
    np.testing.assert_allclose(np.diff(jaw_path.times), jaw_path.times[1], rtol=1e-6)


@pytest.mark.parametrize("how", ["linear", "cubic"])
def test_slopes_of_a_path_are_those_of_differences(how):
    at = {
        "times": [0.0, 0.02, 0.05],
        "positions": [[0, 0, 0], [0.01, 0, 0.01], [0.01, 0, 0]],
        "rotations": [[10, 0, 0], [20, 5, 0], [0, 40, 10]],
    }
    jaw = {**JAW, "path": at, "interpolation": how}
    scene = scene_from_dict(tables(grips={"jaw": jaw}, world={"gravity": [0, -9.8, 0]}))
    paths = ("grips.jaw.position", "grips.jaw.rotation", "bar.position", "bar.rotation", "bar.E")
    check_slopes(scene, paths, 5e-4, 80)


def test_held_with_a_path_is_a_grip_of_the_body():
    held = {**HIGH, "path": PULLED}
    built = build(scene_from_dict(tables(bodies={"bar": {**BAR, "held": held}}, grips={},
        observations={"cell": {**CELL, "grip": "bar"}})))  # fmt: skip
    assert set(built.sensors) == {"force.bar"}
    assert "grips.bar.position" in built.values
    assert (
        built.system.forces["bar_grip"].held_nodes.tolist() == np.flatnonzero(built.held).tolist()
    )


def test_the_force_has_the_slopes_of_differences():
    free = {"bar.E": {}, "bar.nu": {}, "grips.jaw.position": {}, "grips.jaw.rotation": {}}
    for world in ({"gravity": [0, -9.8, 0], "step": "implicit"}, {"motion": "equilibrium"}):
        prepared = make_problem(scene_from_dict(tables(world=world, free=free)))
        problem = prepared.problem
        theta = problem.parameters.start + 0.01
        r = problem.residuals(theta)
        adj = np.random.default_rng(2).standard_normal(len(r))
        gradient = problem.residuals_vjp(theta, adj)
        for i in range(len(theta)):
            d = 1e-5 * np.eye(len(theta))[i]
            slope = (adj @ problem.residuals(theta + d) - adj @ problem.residuals(theta - d)) / 2e-5
            along = adj @ problem.residuals_jvp(theta, d) / 1e-5
            assert gradient[i] == pytest.approx(along, rel=1e-9, abs=1e-9)
            assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_takes_have_grips_of_their_own():
    takes = {name: {"observations": {"cell": CELL}} for name in ("slow", "fast")}
    takes["fast"]["grips"] = {"jaw": {"path": {**PULLED, "positions": [[0, 0, 0], [0.02, 0, 0]]}}}
    values = {key: value for key, value in tables(takes=takes).items() if key != "observations"}
    scene = scene_from_dict(values)
    assert scene.grips["jaw_fast"].body == "bar_fast"
    assert scene.observations["cell_fast"].grip == "jaw_fast"
    assert scene.grips["jaw_fast"].path.positions[1] == (0.02, 0.0, 0.0)


def test_a_path_into_an_obstacle_is_said():
    table = {"kind": "box", "center": [0.08, 0.0, 0.0], "size": [0.05, 0.1, 0.1]}
    notes = build(scene_from_dict(tables(obstacles={"table": table}))).notes
    (note,) = (note for note in notes if "grips" in note)
    assert note.startswith("`grips.jaw.path` leads nodes 0.005 m deep into `obstacles.table`, at")
    for change in ({"bodies": ["other"]}, {"center": [0.2, 0.0, 0.0]}):
        scene = tables(obstacles={"table": {**table, **change}})
        scene["bodies"] = {**scene["bodies"], "other": {**BAR, "position": [0.0, 0.5, 0.0]}}
        assert not any("leads nodes" in note for note in build(scene_from_dict(scene)).notes)


def refused(match, **changes):
    with pytest.raises(StudyError, match=match):
        make_problem(scene_from_dict(tables(**changes)))


def with_path(path):
    return {"grips": {"jaw": {**JAW, "path": path}}}


def test_mistakes_in_grips_are_said(tmp_path):
    refused(r"`grips\.jaw\.body`: Unknown soft body, cloth or body of springs `bra`",
            grips={"jaw": {**JAW, "body": "bra"}})  # fmt: skip
    refused(r"`grips\.jaw\.where` selects nothing", grips={"jaw": {"body": "bar", "where": {}}})
    where = {**HIGH, "path": PULLED}
    refused(r"`grips\.jaw\.where\.path` must be left out", grips={"jaw": {**JAW, "where": where}})
    where = {**JAW["where"], "path_error": 0.1}
    refused("where.path_error` must be left out", grips={"jaw": {**JAW, "where": where}})
    still = {key: value for key, value in JAW.items() if key != "path"} | {"path_error": 0.1}
    refused("grips.jaw.path_error` is the uncertainty of a", grips={"jaw": still})
    refused(
        r"`grips\.jaw\.path\.times` must increase", **with_path({**PULLED, "times": [0.1, 0.1]})
    )
    stroke = {"file": file_of(tmp_path / "a.csv", "time,displacement\n0,0\n"), "axis": [1, 0, 0]}
    for path, message in (
        ({**stroke, "file": "none.csv"}, r"\.file`: there is no file or folder none\.csv"),
        ({**stroke, "units": "inch"}, r'\.units` must be one of "m", "cm", "mm", got \'inch\''),
        (
            {**stroke, "axs": 1},
            r"`: Unknown key `axs`. Did you mean `axis`\? Known: file, axis, un",
        ),
        ({"times": [0], "position": []}, "`: Unknown key `position`. Did you mean `positions`"),
        ({"times": [0], "positions": ["a"]}, r"\.positions` must be a list"),
    ):
        refused(rf"`grips\.jaw\.path{message}", **with_path(path))
    refused(r"`grips\.jaw\.path\.positions` must have one row for each of the 3 `times`, got 2",
            **with_path({**PULLED, "times": [0.0, 0.1, 0.2]}))  # fmt: skip
    refused("ends at 0.05 s, before what is observed, at 0.1 s",
            **with_path({**PULLED, "times": [0.0, 0.05]}))  # fmt: skip
    milliseconds = {**PULLED, "times": [0.0, 100.0]}
    refused(r"`grips\.jaw\.path` ends at 100 s, what is observed at 0.1 s. Divide its times by",
            **with_path(milliseconds))  # fmt: skip
    refused(r"Give places until then.* by 1000, if they are milliseconds",
            **with_path({**PULLED, "times": [0.0, 0.0005]}))  # fmt: skip
    far = {"times": [0.0, 0.02, 0.1], "positions": [[0, 0, 0], [30.0, 0, 0], [0.01, 0, 0]]}
    refused(r"`grips\.jaw\.path` moves by .* in a step of .* more than the size of the body, 0",
            **with_path(far))  # fmt: skip
    refused("Divide the places by 1000 if they are in millimetres", **with_path(far))
    once = {"times": [0.1], "positions": [[0, 0, 0]]}
    refused("must have two times or more for a cubic",
            grips={"jaw": {**JAW, "path": once, "interpolation": "cubic"}})  # fmt: skip
    for name, text, match in (
        (
            "nan.csv",
            "time,x,y,z\n0,0,0,0\n0.1,nan,0,0\n",
            "must have 4 finite numbers in every row",
        ),
        ("back.csv", "time,x,y,z\n0.1,0,0,0\n0,0,0,0\n", "must increase from row to row"),
        ("few.csv", "time,x\n0,0\n0.1,0\n", r"must have 3 or 6 or 7 columns beside `time`"),
        ("zero.csv", "time,x,y,z,a,b,c,d\n0,0,0,0,0,0,0,0\n", "a quaternion in .* is 0"),
    ):
        refused(match, **with_path(file_of(tmp_path / name, text)))
    np.savez(tmp_path / "few.npz", times=[0.0, 0.1], x=np.zeros((2, 3, 3)))
    refused(r"`grips\.jaw\.path` must have the 4 nodes of the grip or the 20 of its body, got 3",
            **with_path(str(tmp_path / "few.npz")))  # fmt: skip


def test_mistakes_in_observed_forces_are_said(tmp_path):
    def cell(**changes):
        return {"observations": {"cell": {**CELL, **changes}}}

    refused(r"`observations\.cell\.grip`: Unknown grip or body with `held` `jam`.*jaw",
            **cell(grip="jam"))  # fmt: skip
    refused(r"`observations\.cell\.axis` must not be zero", **cell(axis=[0, 0, 0]))
    refused(
        r"`observations\.cell\.error` is missing", **cell(simulate={"frames": 4, "duration": 0.1})
    )
    column = file_of(tmp_path / "one.csv", "time,f\n0.05,1\n0.1,2\n")
    refused(r"must have 3 columns beside `time`, or .* `fx`, `fy`, `fz` among them, got 1",
            observations={"cell": {"kind": "force", "grip": "jaw", "file": column}})  # fmt: skip
    refused(r"`observations\.cell\.body` must be left out", **cell(body="bar"))
    load = file_of(tmp_path / "load.csv", "time,displacement,load\n0.05,1,1\n0.1,2,2\n")
    cell = {"kind": "force", "grip": "jaw", "axis": [1, 0, 0], "file": load}
    said, world = [], {"motion": "equilibrium"}
    settling = scene_from_dict(tables(observations={"cell": cell}, world=world))
    with pytest.raises(StudyError, match=r"1 column beside .* `force` among .* got 2: .*, load"):
        make_problem(settling, say=said.append)
    assert said == []  # no body has settled


def test_a_file_of_forces_is_read(tmp_path):
    text = "time,fx,fy,fz\n0.05,1,0,0\n0.1,2,0.5,0\n"
    cell = {"kind": "force", "grip": "jaw", "file": file_of(tmp_path / "cell.csv", text)}
    (observer,) = make_problem(
        scene_from_dict(tables(observations={"cell": cell}))
    ).problem.observers
    np.testing.assert_array_equal(observer.forces, [[1, 0, 0], [2, 0.5, 0]])
    assert observer.error == pytest.approx(0.02)
    curves = observer.curves(np.zeros((2, 4)))
    assert curves["observed"].shape == curves["predicted"].shape == (2, 1, 3)
