"""Where nodes rest, and the derivatives of that place."""

from dataclasses import replace

import numpy as np
import pytest

from adjoint.equilibrium import equilibrium_jvp, equilibrium_vjp
from adjoint.verify.systems import equilibria as scenes
from adjsim.equilibrium import TOLERANCE, EquilibriumError, equilibrium
from adjsim.field import Field
from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.springs import Springs
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from tests.rigid.scenes import box


G = 9.8


def hanging(k=50.0, m=0.4):
    """A mass on a spring, above it where it is held."""
    spring = Springs([(0, 1)], k, 0.3)
    return Model([1.0, m], {"spring": spring}, pinned=[True, False]), State(
        [[0, 0, 0], [0, -0.2, 0]]
    )


def beam(E=3e4, load=None):
    """A soft beam, held at one end, on a stiff floor below its other."""
    mesh = box_tets((6, 2, 2), (0.3, 0.05, 0.05))
    tets = NeoHookeanTets(mesh.tets, mesh.points, E / 2.8, E * 0.4 / 0.28, density=1000.0)
    floor = HalfSpaceContact(height=-0.03, stiffness=30.0, friction=0.5, friction_stiffness=1.0)
    forces = {"beam": tets, "floor": floor}
    if load is not None:
        forces["push"] = ExternalForces([len(mesh.points) - 1], load)
    return Model(None, forces, pinned=mesh.points[:, 0] < 1e-9), State(mesh.points)


def test_a_mass_hangs_where_its_weight_is_held_and_moves_as_its_formula_does():
    k, m = 50.0, 0.4
    resting = equilibrium(*hanging(k, m))
    assert resting.state.x[1] == pytest.approx([0, -0.3 - m * G / k, 0], rel=1e-13, abs=1e-13)
    gradient = equilibrium_vjp(resting, np.array([[0.0, 0, 0], [0.0, 1.0, 0]]))
    assert gradient["spring.stiffness"] == pytest.approx(m * G / k**2, rel=1e-12)
    assert gradient["spring.rest_length"] == pytest.approx(-1.0, rel=1e-12)
    np.testing.assert_allclose(gradient["mass"], [0.0, -G / k], rtol=1e-12)
    np.testing.assert_allclose(gradient["gravity"], [0.0, m / k, 0.0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(gradient["state.x"], [[0, 1, 0], [0, 0, 0]], rtol=0, atol=1e-12)


def test_nothing_is_left_at_rest_and_friction_does_not_act():
    model, state = beam()
    resting = equilibrium(model, state)
    left = Field(model, with_weight=True).forces(resting.state)
    free = ~model.pinned
    assert np.abs(left[free]).max() <= TOLERANCE * Field(model).magnitude(resting.state)
    assert np.abs(left[free]).max() == resting.residual
    assert (resting.state.x[:, 1] < -0.03).any()  # it lies on the floor
    rough, start = model.with_values(state, {"floor.friction": 5.0, "floor.damping": 3.0})
    np.testing.assert_array_equal(equilibrium(rough, start).state.x, resting.state.x)


def test_the_start_does_not_matter_and_twice_gives_the_same_bits(rng):
    model, state = beam()
    resting = equilibrium(model, state)
    shaken = State(
        np.where(model.pinned[:, None], 0.0, 2e-3) * rng.standard_normal(state.x.shape) + state.x
    )
    np.testing.assert_allclose(
        equilibrium(model, shaken).state.x, resting.state.x, rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(equilibrium(model, state).state.x, resting.state.x)


PATHS = (
    "beam.mu", "beam.lam", "beam.density", "beam.rest_positions", "floor.stiffness", "floor.height",
    "push.force", "gravity", "state.x",
)  # fmt: skip


def test_tangent_and_adjoint_agree_with_equilibria_beside_it(rng):
    model, state = beam(load=(0.002, -0.01, 0.02))
    resting = equilibrium(model, state)
    at = {**model.parameters(), **model.state_parameters(state)}
    sizes = {"gravity": 1.0, "beam.rest_positions": 1e-3, "state.x": 1e-3, "floor.height": 1e-3}
    tangents = {
        path: sizes.get(path, 0.1 * np.abs(at[path]).max()) * rng.standard_normal(at[path].shape)
        for path in PATHS
    }
    h = 1e-4

    def rest(step):
        moved = {path: at[path] + step * tangents[path] for path in PATHS}
        return equilibrium(*model.with_values(state, moved)).state.x

    pushed = equilibrium_jvp(resting, tangents)
    slope = (rest(h) - rest(-h)) / (2.0 * h)
    assert np.abs(slope - pushed).max() < 1e-6 * np.abs(pushed).max()
    adj = rng.standard_normal(pushed.shape)
    gradient = equilibrium_vjp(resting, adj, PATHS)
    assert min(np.abs(gradient[path]).max() for path in PATHS) > 0.0
    total = sum(np.vdot(gradient[path], tangents[path]) for path in PATHS)
    assert total == pytest.approx(np.vdot(adj, pushed), rel=1e-10)


def test_a_stiffness_is_found_from_where_a_beam_rests():
    model, state = beam()
    target = equilibrium(model, state).state.x
    mu = 2.5 * model.forces["beam"].mu
    for _ in range(12):  # Gauss-Newton on log mu
        changed, start = model.with_values(state, {"beam.mu": mu})
        resting = equilibrium(changed, start)
        J = equilibrium_jvp(resting, {"beam.mu": mu})
        mu = mu * np.exp(-np.vdot(J, resting.state.x - target) / np.vdot(J, J))
    assert mu == pytest.approx(float(model.forces["beam"].mu), rel=1e-9)


def test_what_is_not_held_or_buckles_is_an_error_that_says_so():
    model, state = beam()
    loose = Model(None, {"beam": model.forces["beam"]})
    with pytest.raises(EquilibriumError, match=r"Nothing holds node 0 and \d+ others: pin nodes"):
        equilibrium(loose, state)
    lying = Model(None, model.forces)
    with pytest.raises(EquilibriumError, match="friction does not act on what is at rest"):
        equilibrium(lying, state)
    upright, _ = hanging()
    above = State([[0, 0, 0], [0, 0.3 - 0.4 * G / 50.0, 0]])
    with pytest.raises(EquilibriumError, match="at rest, but not stable"):
        equilibrium(upright, above)
    with pytest.raises(ValueError, match="rigid bodies"):
        equilibrium(Model(bodies={"b": RigidBodies(box(), mass=1.0)}), State())


@pytest.fixture(scope="module")
def stacked():
    scene = scenes.blocks()
    return scene, equilibrium(scene.model, scene.state)


def test_a_block_rests_on_another_by_a_force_as_large_as_its_weight(stacked):
    scene, resting = stacked
    model, upper = scene.model, slice(8, 16)
    of = {
        name: Field(replace(model, forces={name: force})).forces(resting.state)[upper].sum(axis=0)
        for name, force in model.forces.items()
    }
    weight = model.mass[upper].sum() * model.gravity
    left = of["touch"] + of["cords"] + weight
    np.testing.assert_allclose(left, 0.0, rtol=0, atol=1e-12 * np.abs(weight).max())
    assert of["touch"][1] == pytest.approx(-weight[1], rel=1e-3)  # cords are nearly level


def test_no_bit_of_an_equilibrium_depends_on_the_skin(stacked):
    scene, resting = stacked
    touch, x = scene.model.forces["touch"], resting.state.x
    adj = np.random.default_rng(0).standard_normal(x.shape)
    expected = equilibrium_vjp(resting, adj)
    for skin in (1e-3, 0.2):
        forces = {**scene.model.forces, "touch": replace(touch, skin=skin)}
        other = equilibrium(replace(scene.model, forces=forces), scene.state)
        np.testing.assert_array_equal(other.state.x, x)
        for path, value in equilibrium_vjp(other, adj).items():
            np.testing.assert_array_equal(value, expected[path], err_msg=path)


def test_the_gradient_of_stacked_blocks_is_that_of_differences(stacked, rng):
    scene, resting = stacked
    at = {path: v for path, v in scene.parameters().items() if path not in scene.inert}
    tangents = {
        path: (np.abs(v).max() or 0.01) * rng.standard_normal(v.shape) for path, v in at.items()
    }
    tangents["state.x"] *= 0.01
    tangents["solid.rest_positions"] *= 0.01
    adj = rng.standard_normal(resting.state.x.shape)
    gradient = equilibrium_vjp(resting, adj, list(at))
    total = sum(np.vdot(gradient[path], tangents[path]) for path in at)
    assert total == pytest.approx(np.vdot(adj, equilibrium_jvp(resting, tangents)), rel=1e-12)

    def slope(h):
        ends = (scene.at({path: v + s * h * tangents[path] for path, v in at.items()})
                for s in (1.0, -1.0))  # fmt: skip
        ahead, behind = (equilibrium(changed.model, changed.state).state.x for changed in ends)
        return np.vdot(adj, ahead - behind) / (2.0 * h)

    h = 1e-4
    assert (4.0 * slope(h) - slope(2.0 * h)) / 3.0 == pytest.approx(total, rel=1e-9)


def test_what_only_another_body_holds_or_starts_in_it_is_told(stacked):
    scene, _ = stacked
    free = {name: force for name, force in scene.model.forces.items() if name != "cords"}
    with pytest.raises(EquilibriumError, match="Nothing but contact holds node 8 and 7 others"):
        equilibrium(replace(scene.model, forces=free, gravity=(5.0, -9.8, 0.0)), scene.state)
    x = scene.state.x.copy()
    x[8:16, 1] -= 0.05
    with pytest.raises(ValueError, match="must have the surfaces of `touch` apart"):
        equilibrium(scene.model, State(x))


def test_a_block_that_starts_above_another_comes_to_lie_on_it(stacked):
    scene, resting = stacked
    x = scene.state.x.copy()
    x[8:16, 1] += 0.15
    high = equilibrium(scene.model, State(x))
    np.testing.assert_allclose(high.state.x, resting.state.x, rtol=0, atol=1e-11)


def test_a_mass_that_starts_above_its_hold_swings_down():
    model, _ = hanging()
    resting = equilibrium(model, State([[0, 0, 0], [0.05, 0.2, 0.02]]))
    np.testing.assert_allclose(
        resting.state.x[1], [0, -0.3 - 0.4 * G / 50.0, 0], rtol=0, atol=1e-12
    )


def test_nodes_that_are_all_pinned_rest_where_they_are():
    model, state = hanging()
    resting = equilibrium(Model(model.mass, model.forces, pinned=[True, True]), state)
    np.testing.assert_array_equal(resting.state.x, state.x)
    moved = np.ones((2, 3))
    np.testing.assert_array_equal(equilibrium_jvp(resting, {"state.x": moved}), moved)
    np.testing.assert_array_equal(equilibrium_vjp(resting, moved, ["state.x"])["state.x"], moved)
