"""How forces count what they act on."""

import numpy as np
import pytest

from adjsim.forces.acted_rows import ActedRows
from adjsim.forces.springs import Springs
from adjsim.model import Model
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from tests.rigid.scenes import box


@pytest.fixture
def model():
    points = {"tip": [0.0, 0.0, 0.0], "middle": BodyPoint(body=1)}
    pair = RigidBodies([box(), box()], density=100.0, points=points)
    return Model([1.0, 1.0], bodies={"pair": pair, "one": RigidBodies(box(), mass=1.0)})


def test_vertices_come_before_named_points(model):
    rows = model.rows("pair")
    bodies = model.bodies["pair"]
    np.testing.assert_array_equal(rows.indices[rows.surface], 2 + bodies.hull)
    assert rows.indices[rows.points["tip"]] == 2 + bodies.point_row("tip")
    assert rows.points == {"pair.tip": 16, "pair.middle": 17, "tip": 16, "middle": 17}


def test_parts_follow_each_other(model):
    rows = model.rows(("one", "nodes", "pair"))
    first = 2 + model.bodies["pair"].n_points
    np.testing.assert_array_equal(rows.indices[:10], [*range(first, first + 8), 0, 1])
    assert rows.points["pair.tip"] == 8 + 2 + 16
    assert len(rows.surface) == 8 + 2 + 16
    numbers = rows.numbers("it.pairs", [("pair.tip", "middle")], ("n", 2))
    np.testing.assert_array_equal(numbers, [[26, 27]])


def test_a_name_of_two_points_needs_its_set():
    twins = {"left": np.zeros((1, 3)), "right": np.zeros((1, 3))}
    parts = []
    for name, points in twins.items():
        bodies = RigidBodies(
            points, mass=1.0, inertia=[1, 1, 1, 0, 0, 0], points={"tip": [0, 0, 1]}
        )
        parts.append(ActedRows.of_bodies(name, bodies, 0))
    rows = ActedRows.joined(parts)
    assert sorted(rows.points) == ["left.tip", "right.tip"]
    with pytest.raises(ValueError, match=r"`it.pairs` `tip`. Known: left.tip, right.tip"):
        rows.numbers("it.pairs", ["tip"], ("n",))


def test_numbers_and_names_may_be_mixed(model):
    rows = model.rows(("nodes", "pair"))
    np.testing.assert_array_equal(rows.numbers("it", [(0, "tip")], ("n", 2)), [[0, 18]])
    spring = Springs([(1, "tip")], 1.0, 1.0, acts_on=("nodes", "pair"))
    bound = Model([1.0, 1.0], {"s": spring}, bodies=model.bodies).forces["s"]
    np.testing.assert_array_equal(bound.nodes, [[1, 2 + model.bodies["pair"].point_row("tip")]])


@pytest.mark.parametrize("acts_on", [(), None, ("nodes", "nodes")])
def test_what_a_force_acts_on_is_one_name_or_several_different_ones(model, acts_on):
    with pytest.raises(ValueError, match=r"`acts_on` must be .* several different names"):
        model.rows(acts_on)


def test_a_spring_joins_two_different_points(model):
    spring = Springs([("tip", "pair.tip")], 1.0, 1.0, acts_on="pair")
    with pytest.raises(ValueError, match=r"`s.edges` must join two different nodes, got .*tip"):
        Model([1.0], {"s": spring}, bodies=model.bodies)
