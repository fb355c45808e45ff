"""The reference obstacles against points whose distances are known, and a brute search."""

import numpy as np
import pytest

from tests.reference import obstacles


EPS = np.finfo(np.float64).eps
QUARTER = (0.0, 0.0, np.pi / 2)  # turns x to y, and y to -x
LAW = {"stiffness": 100.0}


def test_points_of_a_sphere():
    s, n = obstacles.sphere(np.array([1.0, 5.0, 2.0]), center=(1.0, 2.0, 2.0), sphere_radius=1.0)
    assert s == 2.0
    np.testing.assert_array_equal(n, [0, 1, 0])


@pytest.mark.parametrize(
    ("x", "s", "n"),
    [
        ((0.5, 0.5, 0.0), 0.5 - 0.2, (0, 1, 0)),  # beside the segment, along x
        ((-0.5, 0.0, -0.1), -0.1, (0, 0, -1)),  # inside
        ((1.6, 0.0, 0.8), 1.0 - 0.2, (0.6, 0, 0.8)),  # beyond the end at x = 1
    ],
)
def test_points_of_a_capsule_turned_to_x(x, s, n):
    shape = {"center": np.zeros(3), "rotation": (0, 0, -np.pi / 2), "half_length": 1.0}
    got, normal = obstacles.capsule(np.array(x), capsule_radius=0.2, **shape)
    assert got == pytest.approx(s, abs=4 * EPS)
    np.testing.assert_allclose(normal, n, atol=8 * EPS)


@pytest.mark.parametrize(
    ("y", "s", "n"),
    [
        ((1.5, 0.5, 0.0), 0.5, (1, 0, 0)),  # face
        ((1.3, -2.4, 0.0), 0.5, (0.6, -0.8, 0)),  # edge
        ((2.0, 4.0, 5.0), 3.0, (1 / 3, 2 / 3, 2 / 3)),  # corner
        ((0.9, 0.0, 0.0), -0.1, (1, 0, 0)),  # inside
        ((0.5, -1.7, 0.0), -0.3, (0, -1, 0)),
    ],
)
def test_points_of_a_turned_box(y, s, n):
    R = obstacles.matrix(QUARTER)
    box = {"center": np.array([3.0, 0, 0]), "rotation": QUARTER, "half_extents": (1.0, 2.0, 3.0)}
    got, normal = obstacles.box(box["center"] + R @ y, **box)
    assert got == pytest.approx(s, abs=8 * EPS)
    np.testing.assert_allclose(normal, R @ n, atol=8 * EPS)


def test_every_normal_is_the_gradient_of_the_distance(rng):
    shapes = [
        (obstacles.sphere, {"sphere_radius": 0.5}),
        (obstacles.capsule, {"rotation": (0.3, -0.2, 0.9), "half_length": 0.6,
                             "capsule_radius": 0.3}),
        (obstacles.box, {"rotation": (0.3, -0.2, 0.9), "half_extents": (0.3, 0.5, 0.4)}),
    ]  # fmt: skip
    for distance, shape in shapes:
        for x in rng.uniform(-1, 1, (40, 3)):
            _, n = distance(x, center=(0.1, 0.2, -0.1), **shape)
            slopes = [
                distance(x + 1e-30j * e, center=(0.1, 0.2, -0.1), **shape)[0].imag / 1e-30
                for e in np.eye(3)
            ]
            np.testing.assert_allclose(slopes, n, rtol=0, atol=20 * EPS)
            np.testing.assert_allclose(np.linalg.norm(n), 1.0, rtol=4 * EPS)


def test_matter_of_a_turning_obstacle_moves_with_omega_cross_d():
    # At d = (0, 0.9, 0), Omega = (0, 0, 2) moves the matter by (-1.8, 0, 0).
    spin = {"angular_velocity": (0.0, 0.0, 2.0), "velocity": (0.3, 0.0, 0.0)}
    law = {**LAW, "friction_stiffness": 1.0, "friction": 10.0}
    f = obstacles.forces(
        obstacles.sphere, [[0, 0.9, 0]], np.zeros((1, 3)),
        center=np.zeros(3), sphere_radius=1.0, law=law, **spin,
    )  # fmt: skip
    np.testing.assert_allclose(f[0], [0.3 - 1.8, 10.0, 0.0], atol=30 * EPS)
