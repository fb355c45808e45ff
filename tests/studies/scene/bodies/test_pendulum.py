import numpy as np
import pytest

from adjsim.rollout import rollout
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.checking import check_scene
from studies.scene.declared import Look, Pendulum, Scene, World
from studies.scene.motion import Motion
from studies.scene.reading import scene_from_dict


def built(world=None, **table):
    return build(Scene(bodies={"a": Pendulum(**table)}, world=world or World()))


def test_a_pendulum_swings_with_its_period():
    scene = built(length=(0.5,), angle=(1.0,))
    period = 2.0 * np.pi * np.sqrt(0.5 / 9.81)
    n = 2000
    end = rollout(scene.system, scene.state, period / n, n, frames=[0, n])
    np.testing.assert_allclose(np.degrees(end.angle), 1.0, rtol=1e-3)


@pytest.mark.parametrize("links", [1, 2])
def test_values_reach_the_system_in_their_units(links):
    scene = built(length=(1.0,) * links, angle=(30.0,) * links, rate=(90.0,) * links)
    targets = scene.targets()
    parameters = {**scene.system.parameters(), **scene.system.state_parameters(scene.state)}
    for path, value in targets.items():
        np.testing.assert_array_equal(parameters[path], value)
    np.testing.assert_allclose(scene.state.angle, np.pi / 6.0)
    np.testing.assert_allclose(scene.state.rate, np.pi / 2.0)
    assert scene.values["a.angle"].unit == "deg"
    assert scene.values["world.gravity"].value == 9.81


@pytest.mark.parametrize("world", [{}, {"gravity": [0.0, -8.5, 0.0]}])
def test_bounds_of_its_gravity_must_hold_the_downward_acceleration(tmp_path, world):
    tables = {
        "bodies": {"a": {"kind": "pendulum", "length": [1.0], "angle": [9.0]}},
        "world": world,
        "free": {"world.gravity": {"bounds": [5.0, 15.0]}},
    }
    scene_from_dict(tables, tmp_path)
    tables["free"]["world.gravity"]["bounds"] = [-1.0, 5.0]
    with pytest.raises(StudyError, match=r"must hold the scene's value, (9\.81|8\.5), got"):
        scene_from_dict(tables, tmp_path)


def test_the_second_link_is_drawn_as_far_in_front_as_the_file_says():
    for gap in (0.0, 0.3):
        scene = built(length=(1.0, 0.5), angle=(90.0, 0.0), link_gap=gap)
        shape = scene.subjects["a"].shape
        z = shape.vertices([[1.0, 0.0]], [1.0, 0.5])[0][(shape.link == 1) & shape.is_bob, 2]
        np.testing.assert_allclose(0.5 * (z.min() + z.max()), gap, atol=1e-12)


def test_rods_and_bobs_hang_where_the_angles_are():
    scene = built(length=(1.0, 0.5), angle=(90.0, 0.0), pivot=(0, 2, 0), bob_radius=0.05)
    motion = Motion(scene.system, scene.state, 1e-3, np.array([0, 1]))
    vertices = scene.subjects["a"].vertices(motion, motion.run())[0]
    shape = scene.subjects["a"].shape
    second = vertices[(shape.link == 1) & shape.is_bob].mean(axis=0)
    np.testing.assert_allclose(second[:2], [1.0, 1.5], atol=1e-12)
    assert scene.meshes["a"].faces.max() == len(vertices) - 1


def test_a_bar_swings_with_the_period_of_a_physical_pendulum():
    scene = built(length=(0.6,), angle=(1.0,), mass=(0.3,), center_of_mass=(0.3,), inertia=(0.009,))
    period = 2.0 * np.pi * np.sqrt(2.0 * 0.6 / (3.0 * 9.81))
    n = 2000
    end = rollout(scene.system, scene.state, period / n, n, frames=[0, n])
    np.testing.assert_allclose(np.degrees(end.angle), 1.0, rtol=1e-3)


@pytest.mark.parametrize("links", [1, 2])
def test_quantities_of_real_links_reach_the_system(links):
    quantities = {"center_of_mass": 0.4, "inertia": 0.02, "friction": 0.1}
    every = {name: (value,) * links for name, value in quantities.items()}
    scene = built(length=(1.0,) * links, angle=(30.0,) * links, friction_width=2.0, **every)
    for name, value in quantities.items():
        np.testing.assert_array_equal(getattr(scene.system, name), value)
        np.testing.assert_array_equal(scene.targets()[name], value)
    np.testing.assert_allclose(scene.system.friction_width, np.radians(2.0))
    assert (scene.values["a.inertia"].unit, scene.values["a.friction"].unit) == ("kg m2", "N m")
    assert "a.center_of_mass" not in built(length=(1.0,), angle=(30.0,)).values


def test_a_bar_is_drawn_without_a_bob():
    shape = built(length=(1.0,), angle=(0.0,), bob_radius=0.0).subjects["a"].shape
    assert not shape.is_bob.any()


def test_rods_and_bobs_have_colours_of_their_own():
    red, blue, grey = (0.9, 0.1, 0.1), (0.1, 0.1, 0.9), (0.3, 0.3, 0.3)
    two = {"length": (1.0, 0.5), "angle": (0.0, 0.0), "look": Look(color=grey, diffuse=0.7)}
    scene = built(bob_color=(red, blue), **two)
    mesh, shape = scene.meshes["a"], scene.subjects["a"].shape
    np.testing.assert_array_equal(mesh.vertex_colors[~shape.is_bob], np.tile(grey, (24, 1)))
    for link, color in enumerate((red, blue)):
        of_bob = shape.is_bob & (shape.link == link)
        assert (mesh.vertex_colors[of_bob] == color).all()
    np.testing.assert_array_equal(mesh.material.diffuse, [0.7] * 3)
    dark = built(rod_color=(0.1, 0.1, 0.1), **two).meshes["a"]
    assert (dark.vertex_colors[~shape.is_bob] == 0.1).all()
    assert (dark.vertex_colors[shape.is_bob] == 0.3).all()
    assert built(**two).meshes["a"].vertex_colors is None


def test_a_series_of_torques_is_kept_with_its_times(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("time,T\n0,0.5\n1,0.7\n")
    scene = built(length=(1.0,), angle=(0.0,), torque=str(path))
    np.testing.assert_array_equal(scene.system.torque.values, [0.5, 0.7])
    course = scene.varying["torque"].course(0.25, np.array([1.0, 2.0]))  # of other values
    np.testing.assert_allclose(course.sample(5), [1.0, 1.25, 1.5, 1.75, 2.0])
    assert scene.values["a.torque"].bounds == pytest.approx((-6.5, 7.7))


def test_a_torque_is_searched_up_to_what_holds_the_links_level():
    scene = built(length=(1.0, 0.5), angle=(0.0, 0.0), mass=(2.0, 1.0))
    np.testing.assert_array_equal(scene.system.torque, [0.0, 0.0])
    reach = 3.0 * 9.81 * 1.5
    assert scene.values["a.torque"].bounds == pytest.approx((-reach, reach))
    assert built(length=(1.0,), angle=(0.0,), torque=(0.3,)).system.torque == 0.3


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"length": (1.0, 1.0), "angle": (1.0,)}, r"`bodies.a.angle` must have one value for each"),
        ({"length": (1.0,), "angle": (1.0,), "mass": (1.0, 2.0)}, "`bodies.a.mass` must have one"),
        ({"length": (1.0,), "angle": (1.0,), "inertia": (1.0, 2.0)}, "`bodies.a.inertia` must"),
        ({"length": (1.0,), "angle": (1.0,), "torque": (1.0, 2.0)}, "`bodies.a.torque` must have"),
        ({"length": (1.0, 1.0), "angle": (1.0, 1.0), "bob_radius": (0.1,)}, "a.bob_radius` must"),
        (
            {"length": (1.0, 1.0), "angle": (1.0, 1.0), "rod_color": ((0.1, 0.1, 0.1),)},
            "`bodies.a.rod_color` must have one value for each link, 2 as `length` has, got 1",
        ),
        ({"length": (1.0,), "angle": (1.0,), "bob_color": ()}, "`bodies.a.bob_color` must have"),
        ({"length": (1.0,) * 3, "angle": (1.0,) * 3}, "`bodies.a.length` must have one or two"),
    ],
)
def test_links_and_lists_must_agree(table, message):
    with pytest.raises(StudyError, match=message):
        check_scene(Scene(bodies={"a": Pendulum(**table)}))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"length": (1.0,), "angle": (1.0,), "rod_radius": 1.0}, "`bodies.a`: `rod_radius`"),
        ({"length": (1.0,), "angle": (1.0,), "look": Look(texture="a.png")}, "`bodies.a.look`"),
        (
            {"length": (1.0,), "angle": (1.0,), "world": World(gravity=(1, -9, 0))},
            "`world.gravity` must be along y",
        ),
    ],
)
def test_what_is_no_pendulum_is_told(table, message):
    with pytest.raises(StudyError, match=message):
        built(**table)
