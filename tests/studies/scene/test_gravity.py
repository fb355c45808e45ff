import numpy as np
import pytest

from studies.problem.scene_maps import SceneMaps, system_at
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.declared import Cloth, Rigid, Scene, World
from studies.scene.gravity import DIRECTION, GRAVITY, Turned
from studies.scene.reading import scene_from_dict
from tests.studies.scene.test_maps import check_dot, dot, tangents_of


DOWN = np.array([0.0, -9.81, 0.0])
BODIES = {"die": Rigid(mesh="box", mass=1.0), "flag": Cloth(mesh="sheet", cells=(1, 1), E=1e5)}


def difference(values, at, tangents, h=1e-4):
    """Return the derivative of a function of values by path, to fourth order in h."""
    low, below, above, high = (
        values({path: value + step * h * tangents[path] for path, value in at.items()})
        for step in (-2, -1, 1, 2)
    )
    return {k: (8.0 * (above[k] - below[k]) - (high[k] - low[k])) / (12.0 * h) for k in low}


@pytest.mark.parametrize("declared", [DOWN, np.array([1.0, 2.0, -3.0]), np.ones(3)])
@pytest.mark.parametrize("angles", [(0.0, 0.0), (20.0, -35.0)])
def test_tangents_are_derivatives_and_cotangents_their_transpose(declared, angles):
    turned = Turned(declared)
    at = {GRAVITY: declared + 0.1, DIRECTION: np.array(angles)}
    tangents = tangents_of(at)
    expected = difference(turned.values, at, tangents)["gravity"]
    np.testing.assert_allclose(turned.jvp(at, tangents)["gravity"], expected, atol=1e-9)
    check_dot(turned, at)


def test_gravity_leans_towards_the_axes_across_it_and_keeps_its_length():
    turned = Turned(DOWN)
    sine, cosine = 9.81 * np.sin(np.radians(30.0)), 9.81 * np.cos(np.radians(30.0))
    for angles, expected in (
        ((0.0, 0.0), DOWN),
        ((30.0, 0.0), [sine, -cosine, 0.0]),
        ((0.0, 30.0), [0.0, -cosine, sine]),
    ):
        values = turned.values({GRAVITY: DOWN, DIRECTION: np.array(angles)})
        np.testing.assert_allclose(values["gravity"], expected, atol=1e-14)


def test_the_start_half_a_step_early_has_the_direction_of_gravity():
    maps = SceneMaps(build(Scene(bodies=BODIES)), 0.1)
    system, state = system_at(maps.built, {DIRECTION: np.array([90.0, 0.0])}, 0.1)
    np.testing.assert_allclose(system.gravity, [9.81, 0.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(state.v, np.tile([-0.4905, 0.0, 0.0], (4, 1)), atol=1e-14)
    np.testing.assert_allclose(state.bodies["die"].velocity, [[-0.4905, 0.0, 0.0]], atol=1e-14)
    at = {GRAVITY: DOWN, DIRECTION: np.array([10.0, -20.0])}
    tangents = tangents_of(at)
    pushed, expected = maps.jvp(at, tangents), difference(maps.values, at, tangents)
    for path in ("gravity", "state.v", "die.velocity"):
        np.testing.assert_allclose(pushed[path], expected[path], atol=1e-8)
    adjoints = tangents_of(pushed)
    pulled = maps.vjp(at, adjoints)
    assert dot({path: pulled[path] for path in at}, tangents) == pytest.approx(
        dot(pushed, adjoints), rel=1e-12
    )


def test_no_gravity_has_no_direction():
    assert DIRECTION not in build(Scene(bodies=BODIES, world=World(gravity=(0, 0, 0)))).values


def test_gravity_and_its_direction_are_not_both_free():
    free = {GRAVITY: {}, DIRECTION: {}}
    die = {"kind": "rigid", "mesh": "box", "density": 1.0}
    states = {"simulate": {"frames": 2, "duration": 0.1}, "body": "die"}
    given = {"bodies": {"die": die}, "observations": {"all": states}}
    scene_from_dict({**given, "free": {f"{GRAVITY}[1]": {}, DIRECTION: {}}})
    with pytest.raises(StudyError, match="must be left out beside"):
        scene_from_dict({**given, "free": free})
