import numpy as np
import pytest

from adjsim.rollout import rollout
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.checking import check_scene
from studies.scene.declared import Held, Pendulum, Plane, Push, Rigid, Scene, Soft, World
from studies.scene.maps import all_targets
from studies.scene.series import Window, in_steps


BODY = {
    "stone": Rigid(mesh="box", size=(0.2, 0.1, 0.1), mass=2.0, position=(1.0, 0.0, 0.0)),
    "jelly": Soft(mesh="box", size=(0.1, 0.1, 0.1), cells=(1, 1, 1), E=1e4, nu=0.3),
}


def scene(**pushes):
    return Scene(bodies=BODY, pushes=pushes, world=World(gravity=(0, 0, 0)))


def end_of(scene, dt=0.01, n=20):
    built = build(scene)
    courses = in_steps(built.varying, built.system.parameters(), dt)
    model, state = built.system.with_values(built.state, courses)
    return built, rollout(model, state, dt, n, frames=[n])


@pytest.mark.parametrize(
    ("seconds", "expected"), [((0.05, 0.12), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0])]
)
def test_a_window_is_open_in_its_steps_only(seconds, expected):
    course = Window(seconds).course(0.01, np.array([0.0, 1.0, 1.0, 0.0]))
    np.testing.assert_array_equal(course.sample(14), expected)
    # a window shorter than a step is one step, and one from 0 on has its first step
    assert Window((0.0, 1e-5)).course(0.01, np.array([0.0, 1.0, 1.0, 0.0])).sample(3).tolist() == [
        1.0, 0.0, 0.0,
    ]  # fmt: skip


def test_an_impulse_at_the_centre_moves_and_does_not_turn():
    push = Push(body="stone", force=(0.0, 3.0, 0.0), seconds=(0.0, 0.1))
    _, run = end_of(scene(shove=push))
    body = run.bodies["stone"]
    np.testing.assert_allclose(body.velocity[0, 0], [0.0, 3.0 * 0.1 / 2.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(body.angular_velocity[0, 0], 0.0, atol=1e-14)


def test_a_push_at_the_nearest_vertex_turns():
    push = Push(body="stone", force=(0.0, 0.0, 1.0), at=(1.09, 0.04, 0.06))
    built, run = end_of(scene(shove=push), n=1)
    spin = run.bodies["stone"].angular_velocity[0, 0]
    arm = np.array([0.1, 0.05, 0.05])
    (vertex,) = built.system.forces["shove"].load_nodes
    np.testing.assert_allclose(built.system.bodies["stone"].arms[vertex], arm, atol=1e-15)
    turning = np.cross(arm, [0.0, 0.0, 0.01])
    inertia = 2.0 / 12.0 * np.array([0.02, 0.05, 0.05])
    np.testing.assert_allclose(spin, turning / inertia, rtol=1e-12, atol=1e-15)


def test_a_soft_body_is_pushed_as_a_whole_or_at_its_nodes():
    _, run = end_of(scene(shove=Push(body="jelly", force=(0.3, 0.0, 0.0))), n=5)
    expected = np.broadcast_to([0.3 * 0.05, 0.0, 0.0], (8, 3))
    np.testing.assert_allclose(run.v[0], expected, atol=1e-14)
    built, run = end_of(scene(shove=Push(body="jelly", force=(0.3, 0.0, 0.0), nodes=(1, 2))), n=5)
    momentum = built.system.mass @ run.v[0]
    np.testing.assert_allclose(momentum, [2.0 * 0.3 * 0.05, 0.0, 0.0], atol=1e-15)


def test_the_force_is_a_value_of_the_scene():
    built = build(scene(shove=Push(body="stone", force=(0.0, 3.0, 0.0), seconds=(0.0, 0.1))))
    value = built.values["pushes.shove.force"]
    assert value.unit == "N"
    assert value.bounds == (-30.0, 33.0)
    sources = {path: each.value for path, each in built.values.items()}
    doubled = all_targets(built.maps, sources | {"pushes.shove.force": np.array([0.0, 6.0, 0.0])})
    np.testing.assert_array_equal(doubled["shove.force"][:, 0, 1], [0.0, 6.0, 6.0, 0.0])


def test_a_series_of_forces_is_followed(tmp_path):
    path = tmp_path / "force.csv"
    path.write_text("time,x,y,z\n0,0,0,0\n0.2,4,0,0\n")
    built, run = end_of(scene(shove=Push(body="stone", force=str(path))))
    assert "pushes.shove.force" not in built.values
    impulse = 0.01 * np.linspace(0.0, 4.0, 21)[:20].sum()
    assert run.bodies["stone"].velocity[0, 0, 0] == pytest.approx(impulse / 2.0, rel=1e-12)


@pytest.mark.parametrize(
    ("push", "message"),
    [
        ({"body": "stones"}, r"`pushes.shove.body`: .*Did you mean `stone`\?"),
        ({"body": "stone", "nodes": (1,), "at": (0, 0, 0)}, "must have `at` or `nodes`, got both"),
        ({"body": "stone", "seconds": (0.2, 0.1)}, r"\[first, last\] with first < last"),
        ({"body": "stone", "force": "a.csv", "seconds": (0.2, 0.3)}, "left out beside a series"),
    ],
)
def test_what_is_no_push_is_told(push, message):
    with pytest.raises(StudyError, match=message):
        check_scene(scene(shove=Push(**{"force": (0.0, 1.0, 0.0), **push})))


def test_vertices_that_are_not_there_and_names_that_are_taken_are_told():
    with pytest.raises(
        StudyError, match=r"`pushes.shove.nodes` must be numbers from 0 to 7, got 8"
    ):
        build(scene(shove=Push(body="stone", force=(0, 1, 0), nodes=(8,))))
    with pytest.raises(StudyError, match=r"`pushes.stone`: the name 'stone' is that of `bodies"):
        build(scene(stone=Push(body="stone", force=(0, 1, 0))))
    swing = {"p": Pendulum(length=(1.0,), angle=(0.0,))}
    with pytest.raises(StudyError, match="Unknown body with a mesh"):
        check_scene(Scene(bodies=swing, pushes={"shove": Push(body="p", force=(0, 1, 0))}))


def test_a_held_node_stays_however_it_is_pushed():
    held = Held(plane=Plane(point=(0.0, -0.05, 0.0), normal=(0.0, 1.0, 0.0)))
    jelly = Soft(mesh="box", size=(0.1, 0.1, 0.1), cells=(1, 1, 1), E=1e4, nu=0.3, held=held)
    pushed = Scene(bodies={"jelly": jelly}, pushes={"a": Push(body="jelly", force=(1, 0, 0))})
    built, run = end_of(pushed, dt=1e-4)
    assert np.abs(run.v[0, built.held]).max() == 0.0
    assert np.abs(run.v[0, ~built.held]).max() > 0.0
