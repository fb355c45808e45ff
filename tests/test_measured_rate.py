"""The rate at a state: by hand for a node and a box, and where steps begin to grow."""

import numpy as np
import pytest

from adjsim.field import Field
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.springs import Springs
from adjsim.measured_rate import DENSE, rate_at
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from adjsim.stable_step import step_of
from tests.rigid.scenes import box


def test_a_node_on_the_floor_has_the_rate_of_its_stiffness_and_damping():
    floor = HalfSpaceContact(stiffness=100.0, damping=3.0)
    model = Model([2.0, 5.0], {"floor": floor}, pinned=[False, True])
    sinking = State([[0.0, -0.1, 0.0], [0.0, -0.1, 0.0]], [[0.0, -1.0, 0.0]] * 2)
    k, c = 100.0 / 2.0, 3.0 / 2.0
    field = Field(model)
    assert rate_at(field, sinking) == pytest.approx(c + np.sqrt(c * c + 4.0 * k), rel=1e-12)
    assert step_of(rate_at(field, State([[0.0, 0.1, 0.0]] * 2))) == np.inf


@pytest.mark.parametrize("turn", [(0.0, 0.0, 0.0), (0.3, -0.8, 0.5)])
def test_a_spring_at_the_corner_of_a_turned_box_counts_its_mass_and_its_lever(turn):
    bodies = RigidBodies(box((0.2, 0.2, 0.2)), mass=2.0, points={"end": [0.1, 0.1, 0.2]})
    # Along a lever through the centre of mass nothing turns: k/m is the rate. Across it does.
    spring = Springs([(0, 10 - 1)], 50.0, 0.0, 0.0, acts_on=("nodes", "block"))
    model = Model([1.0], {"held": spring}, bodies={"block": bodies}, pinned=[True])
    start = State([[0.0, 0.0, 0.0]], bodies={"block": BodyState([[0.4, 0.0, 0.0]], rotation=turn)})
    rate = rate_at(Field(model), start)
    arm2, inertia = 0.01, 2.0 * 2 * 0.2**2 / 12
    # A spring of rest length 0 is as stiff in all directions.
    assert rate == pytest.approx(2.0 * np.sqrt(50.0 * (1.0 / 2.0 + arm2 / inertia)), rel=1e-9)


def test_a_soft_body_grows_beyond_the_step_and_not_below(rng):
    mesh = box_tets((4, 4, 4), (0.2, 0.2, 0.2))
    solid = NeoHookeanTets(mesh.tets, mesh.points, mu=1e4, lam=2e4, density=1000.0)
    model = Model(forces={"solid": solid}, gravity=(0.0, 0.0, 0.0))
    assert 3 * model.n_nodes < DENSE
    field, state = Field(model), State(mesh.points, 1e-6 * rng.standard_normal(mesh.points.shape))
    step = step_of(rate_at(field, state))
    assert step > 1.1 * model.stable_dt()
    for factor, grows in ((0.99, False), (1.02, True)):
        end = rollout(model, state, factor * step, 400, on_divergence="mark")
        assert (end.diverged is not None or np.abs(end.v[-1]).max() > 1e-4) == grows


def test_the_largest_of_many_motions_is_found_too(rng):
    mesh = box_tets((6, 5, 5), (0.3, 0.2, 0.2))
    solid = NeoHookeanTets(mesh.tets, mesh.points, mu=1e4, lam=2e4, density=1000.0, viscosity=1.0)
    model = Model(forces={"solid": solid}, gravity=(0.0, 0.0, 0.0))
    assert 3 * model.n_nodes > DENSE
    rate = rate_at(Field(model), State(mesh.points))
    field, row = Field(model), Field(model).row(State(mesh.points))
    B = np.repeat(np.sqrt(model.inverse_mass), 3)
    k, c = (
        np.linalg.eigvalsh(B[:, None] * field.matrix_at(row, *along, 0).toarray() * B)[-1]
        for along in ((-1.0, 0.0), (0.0, -1.0))
    )
    assert rate == pytest.approx(c + np.sqrt(c * c + 4.0 * k), rel=0.03)
