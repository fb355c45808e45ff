import numpy as np
import pytest

from adjsim.rollout import rollout
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.declared import (
    Cloth,
    Free,
    Held,
    Light,
    Look,
    Pendulum,
    Plane,
    PlaneObstacle,
    Rigid,
    Scene,
    SceneFile,
    Soft,
    Springs,
    World,
)
from studies.scene.files import find_scene
from studies.scene.filming import Hulls, Skin
from studies.scene.maps import add_up, all_targets
from studies.scene.motion import Motion, pull_frames, trajectory_fields
from studies.scene.reading import read_scene
from tests.studies.scene.test_maps import dot, tangents_of


BODIES = {
    "duck": Soft(
        mesh="box", size=(0.2, 0.1, 0.1), cells=(2, 1, 1), E=1e5, nu=0.3, viscosity=1.0,
        actuation=0.1, position=(0, 1, 0), rotation=(10, 20, 30), velocity=(1, 2, 3),
        spin=(3, 2, 1),
    ),
    "cube": Rigid(mesh="box", size=(0.1,) * 3, mass=2.0, position=(1, 1, 0), spin=(1, 2, 3)),
    "flag": Cloth(
        mesh="sheet", size=(1, 1), cells=(2, 2), E=1e6, drag=1.0, lift=0.5, viscosity=10.0,
        bending_damping=1e-4, held=Held(plane=Plane(point=(-0.5, 0, 0), normal=(1, 0, 0))),
        velocity=(0, 0, 1),
    ),
    "rope": Springs(mesh="chain", cells=(3,), position=(0, 2, 0), mass=0.5, damping=1.0),
    "jelly": Soft(mesh="ball", size=(0.1,), cells=(1,), mu=1e4, lam=5e4, position=(2, 1, 0)),
}  # fmt: skip
SCENE = Scene(
    bodies=BODIES, obstacles={"floor": PlaneObstacle(draw=True)}, world=World(wind=(1, 0, 0.5))
)
BUILT = build(SCENE)
SOURCES = {path: value.value for path, value in BUILT.values.items()}


def parameters(system, state):
    return {**system.parameters(), **system.state_parameters(state)}


def test_targets_at_the_scenes_own_values_change_nothing():
    values = parameters(BUILT.system, BUILT.state)
    targets = BUILT.targets()
    system, state = BUILT.system.with_values(BUILT.state, targets)
    changed = parameters(system, state)
    assert set(targets) <= set(values)
    for path, value in values.items():
        np.testing.assert_array_equal(changed[path], value, err_msg=path)


def test_every_value_moves_something():
    for path, value in SOURCES.items():
        tangents = {path: np.ones_like(value)}
        moved = add_up(each.jvp(SOURCES, tangents) for each in BUILT.maps if path in each.sources)
        assert any(np.any(tangent) for tangent in moved.values()), path
        low, high = BUILT.values[path].bounds
        assert low <= value.min() <= value.max() <= high, path


def test_all_maps_together_have_tangents_and_their_transpose():
    moved = {path: value + 0.01 for path, value in SOURCES.items()}
    tangents, h = tangents_of(moved), 1e-5
    pushed = add_up(each.jvp(moved, tangents) for each in BUILT.maps)
    ahead, behind = (
        all_targets(BUILT.maps, {p: v + s * h * tangents[p] for p, v in moved.items()})
        for s in (1, -1)
    )
    for path, tangent in pushed.items():
        difference = (ahead[path] - behind[path]) / (2.0 * h)
        scale = max(1e-6, float(np.abs(ahead[path]).max()))
        np.testing.assert_allclose(tangent, difference, rtol=1e-6, atol=1e-7 * scale, err_msg=path)
    adjoints = tangents_of(pushed)
    pulled = add_up(each.vjp(moved, adjoints) for each in BUILT.maps)
    terms = sum(np.abs(pushed[path] * adjoints[path]).sum() for path in pushed)
    assert abs(dot(pulled, tangents) - dot(pushed, adjoints)) <= 1e-12 * terms


def test_bodies_have_their_rows_masses_and_held_nodes():
    rows, mass = BUILT.nodes, BUILT.system.mass
    assert [rows[name].stop - rows[name].start for name in rows] == [12, 9, 4, 13]
    weights = {name: mass[nodes].sum() for name, nodes in rows.items()}
    assert weights["duck"] == pytest.approx(0.2 * 0.1 * 0.1 * 1000.0)
    assert weights["flag"] == pytest.approx(1e-3 * 1000.0)
    assert weights["rope"] == pytest.approx(0.5)
    assert BUILT.held.sum() == 3
    assert BUILT.held[rows["flag"]].sum() == 3
    np.testing.assert_array_equal(BUILT.system.pinned, BUILT.held)
    assert BUILT.system.bodies["cube"].masses == [2.0]


def test_bodies_start_as_declared():
    x, v = BUILT.state.x[BUILT.nodes["duck"]], BUILT.state.v[BUILT.nodes["duck"]]
    mass = BUILT.system.mass[BUILT.nodes["duck"]]
    np.testing.assert_allclose(mass @ v / mass.sum(), (1, 2, 3), rtol=1e-12)
    about = x - mass @ x / mass.sum()
    np.testing.assert_allclose(v - (1, 2, 3), np.cross((3, 2, 1), about), atol=1e-12)
    flag = BUILT.nodes["flag"]
    np.testing.assert_array_equal(BUILT.state.v[flag][BUILT.held[flag]], 0.0)
    np.testing.assert_array_equal(BUILT.state.bodies["cube"].angular_velocity, [[1, 2, 3]])


def test_drawn_vertices_are_on_the_bodies():
    dt = 0.1 * BUILT.system.stable_dt()
    motion = Motion(BUILT.system, BUILT.state, dt, np.array([0, 5]))
    run = motion.run()
    for name, subject in BUILT.subjects.items():
        vertices = subject.vertices(motion, run)
        assert BUILT.meshes[name].faces.max() == vertices.shape[1] - 1
        assert np.isfinite(vertices).all()
    assert isinstance(BUILT.subjects["duck"], Skin)
    assert isinstance(BUILT.subjects["cube"], Hulls)
    duck = BUILT.subjects["duck"].vertices(motion, run)[0]
    np.testing.assert_allclose(duck, BUILT.state.x[BUILT.nodes["duck"]], atol=1e-14)
    beads = BUILT.subjects["rope"].vertices(motion, run)[0]
    rope = BUILT.state.x[BUILT.nodes["rope"]]
    assert np.ptp(beads, axis=0)[0] == pytest.approx(np.ptp(rope, axis=0)[0] + 0.02, abs=3e-3)


def test_free_bodies_fall():
    scene = Scene(bodies={name: BODIES[name] for name in ("duck", "cube", "jelly", "rope")})
    built = build(scene)
    dt, n = 1e-4, 1000
    end = rollout(built.system, built.state, dt, n, frames=[0, n])
    t, drop = n * dt, -0.5 * 9.81 * (n * dt) ** 2 * (1 + 1 / n)
    for name, nodes in built.nodes.items():
        mass = built.system.mass[nodes]
        x0, x1 = (mass @ end.x[k, nodes] / mass.sum() for k in (0, 1))
        v = np.asarray(BODIES[name].velocity)
        np.testing.assert_allclose(x1 - x0, v * t + (0, drop, 0), atol=1e-9)
    cube = end.bodies["cube"].position[:, 0]
    np.testing.assert_allclose(cube[1] - cube[0], (0, drop, 0), atol=1e-12)


def test_values_have_the_gradient_of_a_rollout():
    bottom = float(BUILT.state.x[BUILT.nodes["duck"], 1].min())
    low = PlaneObstacle(point=(0, bottom + 0.002, 0), bodies=("duck",))  # it touches at once
    built = build(Scene(bodies=BODIES, obstacles={"floor": low}, world=World(wind=(1, 0, 0.5))))
    motion = Motion(built.system, built.state, 0.3 * built.system.stable_dt(), np.array([20, 60]))
    sources = {path: value.value for path, value in built.values.items()}
    recorded = motion.record()
    fields = trajectory_fields(recorded.trajectory)
    rng = np.random.default_rng(3)
    adjoints = {key: rng.standard_normal(fields[key].shape) for key in ("x", "cube.position")}

    def loss(values):
        run = trajectory_fields(motion.with_values(all_targets(built.maps, values)).run())
        return sum(float(np.sum(adjoints[key] * (run[key] - fields[key]))) for key in adjoints)

    wrt = tuple(dict.fromkeys(t for each in built.maps for t in each.targets))
    of_targets = pull_frames(recorded, adjoints, wrt)
    gradient = add_up(each.vjp(sources, of_targets) for each in built.maps)
    assert set(gradient) == set(sources)
    for path, value in sources.items():
        tangent = rng.standard_normal(value.shape) * max(1e-3, float(np.abs(value).max()))
        h = 1e-5
        ahead, behind = (loss(sources | {path: value + s * h * tangent}) for s in (1, -1))
        expected = float(np.sum(gradient[path] * tangent))
        assert (ahead - behind) / (2.0 * h) == pytest.approx(expected, rel=1e-5, abs=1e-8), path


def test_what_is_zero_is_left_out_unless_it_is_free():
    body = Soft(mesh="box", cells=(1, 1, 1), E=1e5, nu=0.3)
    flag = Cloth(mesh="sheet", cells=(2, 2), E=1e5, bending=0.0)
    paths = ("a.viscosity", "a.actuation", "b.drag", "b.bending")
    without = build(Scene(bodies={"a": body, "b": flag}))
    assert not set(paths) & set(without.values)
    assert set(without.system.forces) == {"a", "b"}
    free = {path: Free(start=1.0) for path in paths}
    assert set(paths) <= set(build(SceneFile(bodies={"a": body, "b": flag}, free=free)).values)


def test_several_bodies_are_told_to_pass_through_each_other():
    assert any("names both of them; none names" in note for note in BUILT.notes)
    assert not build(Scene(bodies={"cube": BODIES["cube"]})).notes


@pytest.mark.parametrize("name", ["control-arm", "cradle"])
def test_bodies_that_others_link_need_no_note(name):
    notes = build(read_scene(find_scene(name))).notes
    assert not any("none names" in note for note in notes), notes


def test_lights_are_those_of_the_scene_or_one_sun():
    assert set(BUILT.lights) == {"sun"}
    lamp = build(Scene(bodies=BODIES, lights={"lamp": Light(direction=(0, 0, 1))})).lights["lamp"]
    np.testing.assert_array_equal(lamp.direction, (0, 0, 1))


BOX = Rigid(mesh="box")
TWO = {"a": Pendulum(length=(1.0,), angle=(0.0,)), "b": BOX}


@pytest.mark.parametrize(
    ("scene", "message"),
    [
        ({"bodies": {}}, "`bodies` must hold at least one body"),
        ({"bodies": {"a b": BOX}}, "a name must be letters, digits and _"),
        ({"bodies": {"mass": BOX}}, "`bodies.mass`: the name 'mass' has a meaning of its own"),
        (
            {"bodies": {"a": BOX}, "obstacles": {"a": PlaneObstacle()}},
            "`obstacles.a`: the name 'a' is that of `bodies.a`",
        ),
        (
            {"bodies": {"a": BOX}, "lights": {"a": Light()}},
            "`lights.a`: the name 'a' is that of `bodies.a`",
        ),
        ({"bodies": TWO}, "`bodies.a` is a pendulum, which must be alone"),
        (
            {"bodies": {"a": TWO["a"]}, "obstacles": {"f": PlaneObstacle()}},
            "`obstacles` must be left out",
        ),
        (
            {
                "bodies": {"a": BOX, "f_a": BODIES["duck"]},
                "obstacles": {"f": PlaneObstacle(bodies=("a",))},
            },
            "'f_a' is that of a body",
        ),
        (
            {"bodies": {"a": Rigid(mesh="box", look=Look(texture="a.png"))}},
            "`bodies.a.look.texture`",
        ),
    ],
)
def test_scenes_that_make_no_sense_are_told_by_key(scene, message):
    with pytest.raises(StudyError, match=message):
        build(Scene(**scene))


def test_on_a_mesh_twice_as_fine_bodies_are_the_same():
    finer = build(SCENE, refined=True)
    for name, nodes in BUILT.nodes.items():
        more = finer.nodes[name]
        assert finer.system.mass[more].sum() == pytest.approx(BUILT.system.mass[nodes].sum())
        n = nodes.stop - nodes.start
        before, after = BUILT.state.x[nodes], finer.state.x[more]
        assert after[:n] == pytest.approx(before, abs=1e-9 if name == "rope" else 1e-3)
        is_cut = name in ("duck", "flag", "jelly")
        assert (len(after) > n) == is_cut
        if not is_cut:
            continue
        pairs = [built.system.forces[f"floor_{name}"] for built in (BUILT, finer)]
        for key in ("stiffness", "friction_stiffness"):
            coarse, fine = (np.asarray(getattr(pair, key)) for pair in pairs)
            assert fine.sum() == pytest.approx(coarse.sum())  # shared out among more nodes
    assert finer.held.sum() == 5  # 3 of the coarse flag's edge
    for name, mesh in BUILT.meshes.items():
        assert (finer.meshes[name].faces == mesh.faces).all()
    for path in ("floor.stiffness", "floor.dissipation"):
        assert finer.values[path].value == BUILT.values[path].value


def test_numbers_that_are_given_for_nodes_are_shared_out_on_a_finer_mesh():
    floor = PlaneObstacle(stiffness=100.0, damping=2.0)
    scene = Scene(bodies={"duck": BODIES["duck"]}, obstacles={"floor": floor})
    coarse, fine = (build(scene, refined=each) for each in (False, True))
    n, m = (len(each.system.forces["floor_duck"].contact_nodes) for each in (coarse, fine))
    contact = fine.system.forces["floor_duck"]
    assert contact.stiffness == pytest.approx(np.full(m, 100.0 * n / m))
    assert contact.damping == pytest.approx(np.full(m, 2.0 * n / m))
    assert fine.values["floor.stiffness"].value == 100.0
