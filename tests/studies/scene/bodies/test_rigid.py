import numpy as np
import pytest

from adjsim.rollout import rollout
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.declared import Held, Rigid, Scene, World
from studies.scene.maps import all_targets


CUBE = {"mesh": "box", "size": (0.2, 0.1, 0.1)}


def built(**given):
    return build(Scene(bodies={"a": Rigid(**given)}, world=World(gravity=(0, 0, 0))))


def test_mass_or_density_weigh_a_body():
    for given, path in (({"mass": 3.0}, "a.mass"), ({"density": 1500.0}, "a.density")):
        one = built(**CUBE, **given)
        assert one.system.bodies["a"].masses[0] == pytest.approx(3.0)
        assert path in one.values
        assert not one.notes
    assert "1000 kg/m3 is taken" in built(**CUBE).notes[0]
    assert one.held is None
    assert not one.nodes


def test_equal_masses_at_the_vertices_weigh_a_body():
    one = built(**CUBE, vertex_mass=0.5, scale=(2.0, 1.0, 1.0), position=(1.0, 2.0, 3.0))
    body = one.system.bodies["a"]
    assert body.masses[0] == 4.0
    np.testing.assert_allclose(body.centers[0], [1.0, 2.0, 3.0])
    # all corners are 0.2 from the axis of x's other two, 0.05 from these
    x, y = 0.2**2, 0.05**2
    np.testing.assert_allclose(body.inertias[0], 4.0 * np.array([2 * y, x + y, x + y, 0, 0, 0]))
    targets = all_targets(one.maps, {k: v.value for k, v in one.values.items()} | {
        "a.vertex_mass": np.array(1.0)})  # fmt: skip
    assert targets["a.mass"] == 8.0
    np.testing.assert_allclose(targets["a.inertia"], 2.0 * body.inertias[0])
    assert not one.notes


def test_a_body_flies_and_turns_as_declared():
    one = built(**CUBE, position=(1, 2, 3), rotation=(0, 0, 90), velocity=(1, 0, 0), spin=(0, 2, 0))
    n, dt = 100, 1e-3
    end = rollout(one.system, one.state, dt, n, frames=[0, n]).bodies["a"]
    np.testing.assert_allclose(end.position[:, 0], [[1, 2, 3], [1.1, 2, 3]], atol=1e-12)
    # the long edge is along y, the axis of the spin: a steady turn
    np.testing.assert_allclose(end.orientation[1, 0], [0, np.sin(0.1), 0, np.cos(0.1)], atol=1e-9)
    low, high = (one.system.bodies["a"].arms.min(axis=0), one.system.bodies["a"].arms.max(axis=0))
    np.testing.assert_allclose(high - low, [0.1, 0.2, 0.1])


def test_the_position_is_that_of_the_meshs_origin():
    one = built(mesh="shape:cone", size=(0.1,), position=(1, 2, 3))
    sources = {path: value.value for path, value in one.values.items()}
    moved = {}
    for part in one.maps:
        moved |= part.values(sources | {"a.position": np.array([2.0, 2.0, 3.0])})
    np.testing.assert_allclose(moved["a.position"] - one.state.bodies["a"].position, [[1, 0, 0]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({**CUBE, "mass": 1.0, "density": 1.0}, "must have one of .*, got density and mass"),
        ({**CUBE, "held": Held(nodes=(0,))}, "`bodies.a.held`: a rigid body has no nodes"),
        ({"mesh": "sheet"}, r"`bodies.a.mesh`: .* closed"),
    ],
)
def test_what_is_no_rigid_body_is_told(given, message):
    with pytest.raises(StudyError, match=message):
        built(**given)
