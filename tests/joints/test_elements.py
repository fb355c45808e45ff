"""Elements of joints prove what every force proves, between two bodies and to the world.

The frame points are nodes here, in any places: nothing is asked of them but four per body.
"""

import dataclasses

import numpy as np
import pytest

from adjoint.verify.contract import ForceContract
from adjsim.model import State
from tests.joints.scenes import CLASSES, arguments, bound, on_nodes


N = 18  # two more than a tile has


class TestJointsOfNodes(ForceContract):
    @pytest.fixture(params=[*CLASSES], ids=lambda kind: kind.__name__)
    def kind(self, request):
        return request.param

    @pytest.fixture(params=["a", None], ids=["pair", "world"])
    def owner(self, request):
        return request.param

    @pytest.fixture
    def case(self, rng, kind, owner):
        force = on_nodes(kind)([(owner, "b")] * N, **arguments(rng, kind, N))
        state = self.state(rng, force)
        return force.bind(None, "it"), state.x, state.v

    def make(self, rng):
        raise NotImplementedError  # `case` makes one of every kind

    def state(self, rng, force):
        # Generic points, but with axes as long as those of bodies.
        return State(*rng.standard_normal((2, N * force.kind.n_nodes, 3)))

    def test_a_joint_to_the_world_is_one_to_a_body_that_stands_still(self, rng, kind):
        options = arguments(rng, kind, 1)
        to_world, pair = (bound(kind((owner, "b"), **options)) for owner in (None, "a"))
        x, v = rng.standard_normal((2, 4, 3))
        still = np.vstack([np.zeros(3), np.eye(3)])
        rows = (
            tuple(map(float, pair.pack_params()[0])),
            tuple(map(float, pair.pack_series(1)[0, 0])),
        )
        alone = to_world.kind.force(tuples(x), tuples(v), (), *rows)
        both = pair.kind.force(tuples(still) + tuples(x), ((0.0,) * 3,) * 4 + tuples(v), (), *rows)
        np.testing.assert_allclose(alone, both[4:], rtol=0, atol=1e-14 * np.abs(both).max())

    def test_kinds_of_the_same_class_are_one(self, kind, rng):
        options = arguments(rng, kind, 1)
        first, second = kind(("a", "b"), **options), kind(("c", "d"), **options)
        assert first.kind is second.kind
        assert dataclasses.replace(first, stiffness=1.0).kind is first.kind


def tuples(rows):
    return tuple(tuple(map(float, row)) for row in rows)
