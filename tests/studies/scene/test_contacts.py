import numpy as np
import pytest

from adjsim.contact_margins import contact_margins
from adjsim.rollout import rollout
from studies.problem.reach import system_at
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.declared import PlaneObstacle, Rigid, Scene, Soft, World
from studies.scene.motion import Motion


L = 0.1
DROP = {"position": (0.0, 4.5 * L, 0.0)}  # the bottom is four times the size above the floor
FALL = np.sqrt(8.0 * L / 9.81)  # [s]
SPEED = 9.81 * FALL


def run(body, duration, part=0.5, **obstacle):
    scene = Scene(bodies={"a": body}, obstacles={"floor": PlaneObstacle(**obstacle)})
    model, state = (built := build(scene)).system, built.state
    dt = part * model.stable_dt()
    n = int(duration / dt)
    trajectory = rollout(model, state, dt, n, frames=range(0, n + 1, max(1, n // 2000)))
    return model, trajectory


def depth(model, trajectory):
    return contact_margins(model, trajectory)["floor_a"].touch.max() / L


# 4 L and L above the floor; e of d u = 13.3 and 6.64. In the first a ring of vertices beside the
# lowest one takes a part of the load.
@pytest.mark.parametrize(("height", "e", "sinks"), [(4.0, 0.075, 0.0335), (1.0, 0.15, 0.027)])
def test_a_ball_that_falls_on_one_point_sinks_as_deep_and_leaves_as_fast_as_chosen(
    height, e, sinks
):
    place, part = {"position": (0.0, (height + 0.5) * L, 0.0)}, np.sqrt(height / 4.0)
    model, fall = run(Rigid(mesh="shape:sphere", size=(0.5 * L,), **place), part * FALL + 0.06)
    speed = fall.bodies["a"].velocity[:, 0, 1]
    assert depth(model, fall) == pytest.approx(sinks, rel=0.1)
    assert speed.max() / (part * SPEED) == pytest.approx(e, abs=0.02)


@pytest.mark.parametrize("rotation", [(0.0, 0.0, 0.0), (10.0, 20.0, 30.0)])
def test_a_rigid_cube_sinks_less_and_comes_to_rest(rotation):
    size = (L, L, L)
    model, fall = run(Rigid(mesh="box", size=size, rotation=rotation, **DROP), FALL + 0.8)
    assert depth(model, fall) <= 0.043
    assert np.linalg.norm(fall.bodies["a"].velocity[-1]) < 2e-3
    assert fall.bodies["a"].position[-1, 0, 1] == pytest.approx(0.5 * L, rel=2e-3)


@pytest.mark.parametrize(("E", "limit"), [(1e5, 0.023), (1e6, 0.01)])
def test_a_soft_ball_sinks_little(E, limit):
    body = Soft(mesh="ball", size=(0.5 * L,), cells=(3,), E=E, nu=0.4, **DROP)
    model, fall = run(body, FALL + 0.1)
    assert depth(model, fall) <= limit
    without = build(Scene(bodies={"a": body})).system.stable_dt()
    assert without / 2.2 < model.stable_dt() <= without


def test_the_stable_step_of_a_rigid_body_is_stable_and_not_far_too_short():
    body = Rigid(mesh="box", size=(L, L, L), rotation=(10, 20, 30), **DROP)
    duration = FALL + 0.8
    _, fall = run(body, duration, part=0.95)
    assert np.linalg.norm(fall.bodies["a"].velocity[-1]) < 2e-3
    _, wild = run(body, duration, part=16.0)
    energy = np.square(wild.bodies["a"].velocity).sum(axis=2).max()
    assert energy > 1.2 * SPEED**2 or wild.bodies["a"].position[-1, 0, 1] > 0.6 * L


def test_without_contact_a_body_has_any_step_and_nodes_have_the_usual_one():
    flying = build(Scene(bodies={"a": Rigid(mesh="box")})).system
    assert flying.stable_dt() == np.inf
    soft = Soft(mesh="box", cells=(2, 2, 2), E=1e5, nu=0.3)
    both = build(Scene(bodies={"a": Rigid(mesh="box"), "b": soft})).system
    alone = build(Scene(bodies={"b": soft})).system
    assert both.stable_dt() == alone.stable_dt()


def creep(body, friction, degrees=10.0):
    angle = np.radians(degrees)
    normal = (np.sin(angle), np.cos(angle), 0.0)
    placed = {"rotation": (0, 0, -degrees), "position": tuple(0.5 * L * np.array(normal))}
    _, slide = run(body(placed), 0.5, normal=normal, friction=friction)
    bodies = slide.bodies
    return slide, (bodies["a"].velocity[:, 0] if bodies else slide.v.mean(axis=1))


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        (lambda placed: Rigid(mesh="box", size=(L, L, L), **placed), 1e-3),
        (
            lambda placed: Soft(
                mesh="box", size=(L, L, L), cells=(4, 4, 4), E=1e5, viscosity=20.0, **placed
            ),
            1e-2,
        ),
    ],
)
def test_bodies_on_a_slope_slide_as_coulomb_says_and_hardly_creep(body, limit):
    slide, v = creep(body, 0.1)
    angle = np.radians(10.0)
    expected = 9.81 * (np.sin(angle) - 0.1 * np.cos(angle)) * slide.times[-1]
    assert np.linalg.norm(v[-1]) == pytest.approx(expected, rel=0.05)
    _, v = creep(body, 0.5)
    assert np.linalg.norm(v[len(v) // 2 :].mean(axis=0)) < limit * np.sqrt(9.81 * L)


SLIDERS = {  # each begins 1 or 0.1 mm above the floor
    "soft": Soft(mesh="box", size=(0.16, 0.06, 0.12), cells=(6, 3, 4), E=6e4, nu=0.4,
                 position=(0.0, 0.031, 0.0), velocity=(1.0, 0.0, 0.0)),
    "rigid": Rigid(mesh="box", size=(0.1, 0.06, 0.08), density=700.0, rotation=(0.0, 20.0, 0.0),
                   position=(0.0, 0.0301, 0.0), velocity=(1.0, 0.0, 0.0)),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(SLIDERS))
def test_a_body_that_slides_to_rest_does_not_rattle(kind):
    """Its way changes with friction as v^2/(2 mu g) does; where it rattles it grows for ever."""
    built = build(Scene(bodies={"a": SLIDERS[kind]}, obstacles={"floor": PlaneObstacle()}))
    dt = 0.5 * built.system.stable_dt()
    frames = np.rint(np.linspace(0.0, 0.5, 11) / dt).astype(int)
    system, state = system_at(built, {}, dt)
    friction = float(system.forces["floor_a"].friction)
    motion = Motion(system, state, dt, frames)
    _, tangent = motion.jvp({"floor_a.friction": np.array(friction)})  # by its logarithm
    change = tangent.x if kind == "soft" else tangent.bodies["a"].position
    way = 1.0 / (2.0 * friction * 9.81)
    assert 0.5 * way < np.abs(change).max() < 2.0 * way


CORNER = (-38.704, 0.0, 38.704)  # [deg], a cube that stands on a corner


def bounce(**obstacle):
    """Return a cube that flies at the floor at 2 m/s with a corner ahead, without gravity."""
    body = Rigid(
        mesh="box", size=(L, L, L), position=(0, L, 0), rotation=CORNER, velocity=(0, -2, 0)
    )
    scene = Scene(
        bodies={"a": body},
        obstacles={"floor": PlaneObstacle(**obstacle)},
        world=World(gravity=(0.0, 0.0, 0.0)),
    )
    built = build(scene)
    return built, rollout(built.system, built.state, 2.5e-5, 4000, frames=range(4001))


@pytest.mark.parametrize("e", [0.1, 0.5, 0.9])
def test_a_body_leaves_with_the_restitution_and_after_the_contact_time_that_are_given(e):
    built, motion = bounce(restitution=e, contact_time=0.02, speed=2.0)
    assert motion.bodies["a"].velocity[-1, 0, 1] == pytest.approx(2.0 * e, rel=5e-3)
    touches = contact_margins(built.system, motion)["floor_a"].touch.max(axis=-1) > 0.0
    assert np.ptp(motion.times[touches]) == pytest.approx(0.02, rel=5e-3)


def test_a_body_sinks_as_deep_as_chosen_and_keeps_more_of_a_lower_speed():
    built, motion = bounce(speed=2.0)
    size = np.ptp(built.system.bodies["a"].arms[:, 1])
    assert depth(built.system, motion) * L == pytest.approx(0.9141 * 0.03 * size, rel=5e-3)
    assert motion.bodies["a"].velocity[-1, 0, 1] == pytest.approx(0.3, rel=5e-3)
    _, slow = bounce(speed=4.0)
    assert slow.bodies["a"].velocity[-1, 0, 1] > 0.5


def test_without_a_speed_it_is_that_of_a_fall_from_the_size_with_the_declared_velocity():
    built, _ = bounce(restitution=0.5)
    size = np.ptp(built.system.bodies["a"].arms, axis=0).max()
    u = np.sqrt(2.0 * 9.81 * size + 4.0)
    assert built.system.forces["floor_a"].dissipation * u == pytest.approx(1.43275, rel=1e-5)


def test_given_numbers_of_nodes_are_those_of_each_node_alone():
    body = Soft(mesh="box", size=(L, L, L), cells=(2, 2, 2), E=1e4, nu=0.3, density=100.0)
    numbers = {"restitution": 0.5, "contact_time": 0.01, "speed": 1.0}
    built = build(Scene(bodies={"a": body}, obstacles={"floor": PlaneObstacle(**numbers)}))
    force = built.system.forces["floor_a"]
    m = built.system.mass[force.contact_nodes]
    np.testing.assert_allclose(force.dissipation, 1.43275, rtol=1e-5)
    np.testing.assert_allclose(force.stiffness, m * (3.28533 / 0.01) ** 2, rtol=1e-5)
    floor = [path for path in built.values if path.startswith("floor")]
    assert "floor.restitution" in floor
    assert "floor.dissipation" not in floor


def test_the_dissipation_follows_a_free_restitution_with_its_slope():
    balls = {"a": Rigid(mesh="ball"), "b": Rigid(mesh="ball", velocity=(0, -9, 0))}
    built = build(Scene(bodies=balls, obstacles={"floor": PlaneObstacle(restitution=0.4)}))
    bounce = next(one for one in built.maps if one.sources == ("floor.restitution",))
    at = {"floor.restitution": np.array(0.3)}
    other = Scene(bodies=balls, obstacles={"floor": PlaneObstacle(restitution=0.3)})
    declared = build(other).targets()
    for path, d in bounce.values(at).items():
        np.testing.assert_allclose(d, declared[path])
    step = {"floor.restitution": np.array(1e-6)}
    above, below = (
        bounce.values({"floor.restitution": np.array(e)}) for e in (0.3 + 1e-6, 0.3 - 1e-6)
    )
    tangent = bounce.jvp(at, step)
    adjoint = bounce.vjp(at, {path: np.array(1.0) for path in tangent})
    for path, tan in tangent.items():
        assert tan == pytest.approx((above[path] - below[path]) / 2.0, rel=1e-6)
    total = sum(tangent.values()) / 1e-6
    assert adjoint["floor.restitution"] == pytest.approx(total)
    beyond = {"floor.restitution": np.array(1.5)}
    assert bounce.vjp(beyond, adjoint)["floor.restitution"] == 0.0


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"restitution": 0.5, "dissipation": 1.0}, "`restitution` or `dissipation`, got both: 0.5"),
        ({"restitution": 0.5, "damping": 1.0}, "`restitution` or `damping`, got both: 0.5 and 1 N"),
        ({"contact_time": 0.1, "stiffness": 9.0}, "`contact_time` or `stiffness`, got both: 0.1 s"),
        ({"contact_time": 0.1, "damping": 9.0}, "`contact_time` or `damping`, got both"),
    ],
)
def test_a_law_that_is_given_twice_is_refused(numbers, message):
    scene = Scene(bodies={"a": Rigid(mesh="box")}, obstacles={"floor": PlaneObstacle(**numbers)})
    with pytest.raises(StudyError, match=message):
        build(scene)


@pytest.mark.parametrize("e", [0.0, 1.0, -0.5])
def test_a_restitution_out_of_range_is_refused(e):
    with pytest.raises(ValueError, match="restitution"):
        PlaneObstacle(restitution=e)


def test_without_gravity_the_declared_speed_counts():
    def stiffness(speed):
        body = Rigid(mesh="box", velocity=(0, -speed, 0))
        world = World(gravity=(0, 0, 0))
        scene = Scene(bodies={"a": body}, obstacles={"floor": PlaneObstacle()}, world=world)
        return float(build(scene).values["floor.stiffness"].value)

    assert stiffness(100.0) > 50.0 * stiffness(1.0)
