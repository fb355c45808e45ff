import numpy as np
import pytest

from adjsim.meshes.grid import box_tets
from studies.runs.errors import StudyError
from studies.scene.bodies.part import held_nodes
from studies.scene.declared import Ball, Box, Held, Plane


POINTS = box_tets((4, 1, 1), (0.4, 0.1, 0.1)).points


def mask(held, **more):
    return held_nodes("bodies.a.held", held, POINTS, numbered=more.pop("numbered", True))


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (Held(box=Box(lower=(-1, -1, -1), upper=(0.1, 1, 1))), POINTS[:, 0] < 0.15),
        (Held(plane=Plane(point=(0.3, 0, 0), normal=(-2, 0, 0))), POINTS[:, 0] > 0.25),
        (Held(ball=Ball(center=(0, 0, 0), radius=0.11)), np.linalg.norm(POINTS, axis=1) < 0.12),
        (Held(nodes=(3,)), np.arange(len(POINTS)) == 3),
    ],
)
def test_places_hold_the_nodes_in_them_with_their_rims(held, expected):
    np.testing.assert_array_equal(mask(held), expected)


def test_places_add_up_and_none_holds_nothing():
    both = Held(nodes=(0,), plane=Plane(point=(0.4, 0, 0), normal=(-1, 0, 0)))
    np.testing.assert_array_equal(mask(both), (POINTS[:, 0] > 0.35) | (np.arange(len(POINTS)) == 0))
    assert not mask(None).any()


@pytest.mark.parametrize(
    ("held", "more", "message"),
    [
        (Held(), {}, r"`bodies.a.held` must select some nodes .* 0 of 20.*\[0, 0, 0\] to \[0.4"),
        (Held(ball=Ball(center=(0, 0, 0), radius=9)), {}, "selects 20 of 20"),
        (Held(nodes=(20,)), {}, "numbers from 0 to 19, got 20"),
        (Held(nodes=(0,)), {"numbered": False}, "filled with tetrahedra"),
    ],
)
def test_what_cannot_be_held_is_told(held, more, message):
    with pytest.raises(StudyError, match=message):
        mask(held, **more)
