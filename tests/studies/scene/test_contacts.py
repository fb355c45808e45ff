from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from adjsim.contact_margins import contact_margins
from adjsim.forces.pressure_laws import bouncing
from adjsim.rollout import rollout
from studies.problem.forward import start_surfaces
from studies.problem.scene_maps import system_at
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.contacts import NODE_LOSS, chosen_dissipation
from studies.scene.declared import HingeJoint, PlaneObstacle, Rigid, Scene, Soft, World
from studies.scene.motion import Motion
from studies.scene.obstacle_shapes import shape_of
from tests.studies.scene.slopes import check_slopes


L = 0.1
DROP = {"position": (0.0, 4.5 * L, 0.0)}  # the bottom is four times the size above the floor
FALL = np.sqrt(8.0 * L / 9.81)  # [s]
SPEED = 9.81 * FALL


def run(body, duration, dt_factor=0.5, **obstacle):
    scene = Scene(bodies={"a": body}, obstacles={"floor": PlaneObstacle(**obstacle)})
    model, state = (built := build(scene)).system, built.state
    dt = dt_factor * model.stable_dt()
    n = int(duration / dt)
    return model, rollout(model, state, dt, n, frames=range(0, n + 1, max(1, n // 2000)))


def depth(model, trajectory):
    return contact_margins(model, trajectory)["floor_a"].touch.max() / L


# 4 L and L above the floor; e of d u = 13.3 and 6.64.
@pytest.mark.parametrize(("height", "e", "sinks"), [(4.0, 0.075, 0.042), (1.0, 0.15, 0.027)])
def test_a_ball_that_falls_on_one_point_sinks_as_deep_and_leaves_as_fast_as_chosen(
    height, e, sinks
):
    place, ratio = {"position": (0.0, (height + 0.5) * L, 0.0)}, np.sqrt(height / 4.0)
    model, fall = run(Rigid(mesh="shape:sphere", size=(0.5 * L,), **place), ratio * FALL + 0.06)
    speed = fall.bodies["a"].velocity[:, 0, 1]
    assert depth(model, fall) == pytest.approx(sinks, rel=0.1)
    assert speed.max() / (ratio * SPEED) == pytest.approx(e, abs=0.02)


@pytest.mark.parametrize("rotation", [(0.0, 0.0, 0.0), (10.0, 20.0, 30.0)])
def test_a_rigid_cube_sinks_less_and_comes_to_rest(rotation):
    size = (L, L, L)
    model, fall = run(Rigid(mesh="box", size=size, rotation=rotation, **DROP), FALL + 0.8)
    assert depth(model, fall) <= 0.043
    assert np.linalg.norm(fall.bodies["a"].velocity[-1]) < 2e-3
    assert fall.bodies["a"].position[-1, 0, 1] == pytest.approx(0.5 * L, rel=2e-3)


def test_a_node_that_is_much_lighter_than_others_is_damped_less():
    body = SimpleNamespace(is_rigid=False, mass=np.array([1.6, 0.4, 0.01]), point_mass=0.67)
    d = chosen_dissipation(body, 2.0) / (0.5 * NODE_LOSS)
    np.testing.assert_allclose(d, [1.0, 1.0, np.sqrt(8.0 * 0.01 / 0.67)])


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
    _, fall = run(body, duration, dt_factor=0.95)
    assert np.linalg.norm(fall.bodies["a"].velocity[-1]) < 2e-3
    _, wild = run(body, duration, dt_factor=16.0)
    energy = np.square(wild.bodies["a"].velocity).sum(axis=2).max()
    assert energy > 1.2 * SPEED**2 or wild.bodies["a"].position[-1, 0, 1] > 0.6 * L


def test_without_contact_a_body_has_any_step_and_nodes_have_the_usual_one():
    assert build(Scene(bodies={"a": Rigid(mesh="box")})).system.stable_dt() == np.inf
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


def fall(body, speed, **obstacle):
    """Return what arrives at the floor at a speed, without gravity, and leaves it."""
    extent = np.ptp(build(Scene(bodies={"a": body})).system.bodies["a"].vertices[:, 1])
    body = replace(body, position=(0, 0.5 * extent + 1e-3, 0), velocity=(0, -speed, 0))
    scene = Scene(bodies={"a": body}, obstacles={"floor": PlaneObstacle(friction=0.0, **obstacle)})
    built = build(scene)
    model = replace(built.system, gravity=(0.0, 0.0, 0.0))
    dt = 0.02 * model.stable_dt() / speed
    n = int((0.002 + 0.02 * L) / speed / dt) * 8
    return built, rollout(model, built.state, dt, n, frames=range(0, n + 1, 8))


@pytest.mark.parametrize("speed", [0.5, 4.0])
@pytest.mark.parametrize("e", [0.2, 0.5, 0.9])
def test_a_body_leaves_with_the_restitution_that_is_given_at_every_speed(e, speed):
    built, motion = fall(Rigid(mesh="ball", size=(0.5 * L,)), speed, restitution=e, depth=4e-3)
    assert motion.bodies["a"].velocity[-1, 0, 1] == pytest.approx(speed * e, rel=5e-3)
    deepest = contact_margins(built.system, motion)["floor_a"].touch.max()
    u = np.sqrt(2.0 * 9.81 * L + speed**2)  # of a fall from its size
    assert deepest == pytest.approx(4e-3 * np.sqrt(speed / u), rel=5e-3)


def test_a_body_leaves_after_the_contact_time_that_is_given():
    built, motion = bounce(contact_time=0.02, speed=2.0)
    touches = contact_margins(built.system, motion)["floor_a"].touch.max(axis=-1) > 0.0
    assert np.ptp(motion.times[touches]) == pytest.approx(0.02, rel=5e-3)


@pytest.mark.parametrize("turn", [(0, 0, 0), (20, 0, 30), CORNER])
def test_a_box_keeps_about_the_restitution_at_any_of_its_corners(turn):
    _, motion = fall(Rigid(mesh="box", size=(L, L, L), rotation=turn), 2.0, restitution=0.5)
    end = motion.bodies["a"]
    left = end.velocity[-1, 0, 1]
    if np.abs(end.angular_velocity[-1]).max() < 1e-6:  # else a part turns
        assert 0.35 < left / 2.0 < 0.65
    assert left < 2.0 * 0.65


def test_a_bar_on_a_hinge_leaves_a_wall_with_the_restitution():
    bar = Rigid(
        mesh="box",
        size=(0.04, 0.4, 0.04),
        position=(0, -0.2, 0),
        spin=(0, 0, 2),
        velocity=(0.4, 0, 0),
    )
    hinge = HingeJoint(between=("world", "bar"), anchor=(0, 0, 0), axis=(0, 0, 1))
    wall = PlaneObstacle(point=(0.03, 0, 0), normal=(-1, 0, 0), restitution=0.5, friction=0.0)
    scene = Scene(
        bodies={"bar": bar},
        obstacles={"wall": wall},
        joints={"pin": hinge},
        world=World(gravity=(0, 0, 0)),
    )
    built = build(scene)
    dt = 0.25 * built.system.stable_dt()
    spin = rollout(built.system, built.state, dt, int(0.04 / dt)).bodies["bar"].angular_velocity
    assert spin[0, 0, 2] == pytest.approx(-0.5 * 2.0, rel=0.03)


def test_a_body_sinks_as_deep_as_chosen_and_keeps_more_of_a_lower_speed():
    built, motion = bounce(speed=2.0)
    size = np.ptp(built.system.bodies["a"].arms[:, 1])
    assert depth(built.system, motion) * L == pytest.approx(0.9141 * 0.03 * size, rel=5e-3)
    assert motion.bodies["a"].velocity[-1, 0, 1] == pytest.approx(0.3, rel=5e-3)
    _, slow = bounce(speed=4.0)
    assert slow.bodies["a"].velocity[-1, 0, 1] > 0.5


def test_without_a_speed_it_is_that_of_a_fall_from_the_size_with_the_declared_velocity():
    built, _ = bounce()
    u = np.sqrt(2.0 * 9.81 * np.ptp(built.system.bodies["a"].arms, axis=0).max() + 4.0)
    assert built.system.forces["floor_a"].dissipation * u == pytest.approx(6.64, rel=1e-3)


def test_given_numbers_of_nodes_are_those_of_each_node_alone():
    body = Soft(mesh="box", size=(L, L, L), cells=(2, 2, 2), E=1e4, nu=0.3, density=100.0)
    numbers = {"restitution": 0.5, "depth": 1e-3, "speed": 1.0}
    built = build(Scene(bodies={"a": body}, obstacles={"floor": PlaneObstacle(**numbers)}))
    force = built.system.forces["floor_a"]
    m = built.system.mass[force.contact_nodes]
    for name in ("cubic_stiffness", "cubic_dissipation"):
        wanted = bouncing(m, 0.5, 1e-3, 1.0)[name]
        np.testing.assert_allclose(getattr(force, name), wanted, rtol=1e-12)
    floor = {path for path in built.values if path.startswith("floor")}
    bounce = {"floor.restitution", "floor.depth"}
    assert floor == bounce | {"floor.friction", "floor.friction_stiffness", "floor.height"}


def test_the_law_follows_a_free_restitution_and_depth_with_their_slopes():
    balls = {"a": Rigid(mesh="ball"), "b": Rigid(mesh="box", size=(0.5,) * 3, velocity=(0, -9, 0))}
    built = build(Scene(bodies=balls, obstacles={"floor": PlaneObstacle(restitution=0.4)}))
    sources = ("floor.restitution", "floor.depth")
    bounces = next(law for law in built.maps if law.sources == sources)
    at = {"floor.restitution": np.array(0.3), "floor.depth": 1.2 * built.values[sources[1]].value}
    other = PlaneObstacle(restitution=0.3, depth=float(at["floor.depth"]), bodies=("a",))
    declared = build(Scene(bodies=balls, obstacles={"floor": other})).targets()
    coefficients = bounces.values(at)
    for key in ("cubic_stiffness", "cubic_dissipation"):
        np.testing.assert_allclose(coefficients[f"floor_a.{key}"], declared[f"floor_a.{key}"])
    for path in sources:
        step = 1e-6 * at[path]
        above, below = (bounces.values(at | {path: at[path] + s}) for s in (step, -step))
        tangent = bounces.jvp(at, {path: step})
        for target, tan in tangent.items():
            assert tan == pytest.approx((above[target] - below[target]) / 2.0, rel=1e-6)
        weights = {target: 1.0 / coefficients[target] for target in tangent}
        adjoint = bounces.vjp(at, weights)[path]
        assert adjoint * step == pytest.approx(sum(tangent[t] * weights[t] for t in tangent))
    beyond = at | {"floor.restitution": np.array(1.5)}
    assert (
        bounces.vjp(beyond, dict.fromkeys(coefficients, np.array(1.0)))["floor.restitution"] == 0.0
    )
    assert bounces.jvp(beyond, {"floor.restitution": np.array(1.0)})["floor_a.cubic_stiffness"] == 0


def test_gradients_of_a_free_restitution_and_depth_match_differences():
    ball = Rigid(mesh="ball", size=(0.05,), position=(0, 0.1, 0), velocity=(0.3, -1, 0))
    floor = PlaneObstacle(restitution=0.6, friction=0.2)
    scene = Scene(bodies={"a": ball}, obstacles={"floor": floor})
    paths = ["floor.restitution", "floor.depth", "floor.friction", "a.velocity"]
    check_slopes(scene, paths, 5e-5, 1500)


def test_a_ball_that_loses_nothing_leaves_as_fast_as_it_came():
    _, motion = fall(Rigid(mesh="ball", size=(0.5 * L,)), 1.0, restitution=1.0)
    assert motion.bodies["a"].velocity[-1, 0, 1] == pytest.approx(1.0, rel=1e-4)


def test_a_depth_larger_than_a_body_is_refused():
    with pytest.raises(StudyError, match=r"`obstacles\.floor\.depth` must be smaller than `bodies"):
        fall(Rigid(mesh="box", size=(L, L, L)), 1.0, restitution=0.5, depth=1.1 * L)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"restitution": 0.5, "dissipation": 1.0}, "`restitution` or `dissipation`, got both: 0.5"),
        ({"restitution": 0.5, "damping": 1.0}, "`restitution` or `damping`, got both: 0.5 and 1 N"),
        ({"contact_time": 0.1, "stiffness": 9.0}, "`contact_time` or `stiffness`, got both: 0.1 s"),
        ({"contact_time": 0.1, "damping": 9.0}, "`contact_time` or `damping`, got both"),
        ({"restitution": 0.5, "stiffness": 9.0}, "not have `stiffness` beside `restitution`"),
        ({"restitution": 0.5, "contact_time": 0.1}, "not have `contact_time` beside"),
        ({"depth": 0.1}, r"`obstacles\.floor\.depth` must come with `restitution`, got 0\.1 m"),
    ],
)
def test_a_law_that_is_given_twice_is_refused(numbers, message):
    scene = Scene(bodies={"a": Rigid(mesh="box")}, obstacles={"floor": PlaneObstacle(**numbers)})
    with pytest.raises(StudyError, match=message):
        build(scene)


@pytest.mark.parametrize("e", [0.0, 1.001, -0.5])
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


@pytest.mark.parametrize("e", [0.3, 0.6, 0.9])
def test_flights_before_and_after_a_bounce_meet_at_the_surface(e):
    speed, duration = 2.0, 0.05
    ball = Rigid(mesh="ball", size=(0.5 * L,), position=(0, 0.6 * L, 0), velocity=(0, -speed, 0))
    floor = PlaneObstacle(restitution=e, speed=speed)
    scene = Scene(bodies={"a": ball}, obstacles={"floor": floor}, world=World(gravity=(0, 0, 0)))
    built = build(scene)
    gap = shape_of("floor", floor).distance(start_surfaces(built)["a"]).min()
    dt = 0.02 * built.system.stable_dt()
    n = round(duration / dt)
    motion = rollout(built.system, built.state, dt, n, frames=[0, n])
    place = motion.bodies["a"].position[:, 0, 1]
    hard = e * speed * (motion.times[-1] - gap / speed) - gap  # of a contact that takes no time
    depth = float(built.values["floor.depth"].value)
    assert place[-1] - place[0] == pytest.approx(hard, abs=0.15 * depth)


def test_a_body_that_rests_on_an_obstacle_is_not_thrown_off():
    box = Rigid(mesh="box", size=(L, L, L), position=(0, 0.5 * L, 0))
    built = build(Scene(bodies={"a": box}, obstacles={"floor": PlaneObstacle(restitution=0.5)}))
    assert built.targets()["floor_a.radius"] == 0.0
    dt = 0.5 * built.system.stable_dt()
    n = round(0.2 / dt)
    motion = rollout(built.system, built.state, dt, n, frames=range(0, n, 10))
    assert motion.bodies["a"].position[:, 0, 1].max() <= 0.5 * L


def test_a_ball_that_rests_on_an_obstacle_touches_with_its_own_radius():
    ball = Rigid(mesh="ball", position=(0, 1, 0), rotation=(25, 10, 15))
    built = build(Scene(bodies={"a": ball}, obstacles={"floor": PlaneObstacle(restitution=0.6)}))
    radius = 0.5 * np.ptp(built.system.bodies["a"].vertices[:, 1])
    assert built.system.forces["floor_a"].radius == pytest.approx(radius, rel=2e-2)
    assert built.system.forces["floor_a"].radius <= 1.0 + 1e-12


def test_how_far_off_a_contact_begins_follows_its_depth():
    bodies = {"a": Rigid(mesh="ball", position=(0, 5, 0)), "b": Rigid(mesh="box", size=(0.5,) * 3)}
    built = build(Scene(bodies=bodies, obstacles={"floor": PlaneObstacle(restitution=0.4)}))
    widened = next(law for law in built.maps if "floor_a.radius" in law.targets)
    depth = built.values["floor.depth"].value
    at, tangent = {"floor.depth": depth}, {"floor.depth": np.array(1.0)}
    radii = widened.values(at)
    assert radii["floor_a.radius"] == built.system.forces["floor_a"].radius
    rates = widened.jvp(at, tangent)
    assert rates == {"floor_a.radius": pytest.approx(1.25), "floor_b.radius": 0.0}
    radius = 0.5 * np.ptp(built.system.bodies["a"].vertices[:, 1])
    assert radii["floor_a.radius"] - 1.25 * depth == pytest.approx(radius)
    assert widened.vjp(at, dict.fromkeys(rates, np.array(2.0)))["floor.depth"] == 2.0 * 1.25
