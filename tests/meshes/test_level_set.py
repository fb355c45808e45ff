"""The surface around where a function is positive: closed, of its volume and its topology."""

import numpy as np
import pytest

from adjsim.meshes import level_set as module
from adjsim.meshes.level_set import level_set


def grid(n):
    """Return x, y, z at the points of the cube from -1 to 1, each (n + 1, n + 1, n + 1)."""
    axis = np.linspace(-1.0, 1.0, n + 1)
    return np.meshgrid(axis, axis, axis, indexing="ij")


def torus(n):
    x, y, z = grid(n)
    return 0.25 - np.hypot(np.hypot(x, y) - 0.6, z)


def of(values):
    n = len(values) - 1
    return level_set(values, (-1.0, -1.0, -1.0), 2.0 / n)


def test_volume_of_a_ball_converges_in_second_order():
    errors = []
    for n in (12, 24):
        x, y, z = grid(n)
        mesh = of(0.8 - np.sqrt(x * x + y * y + z * z))
        errors.append(1.0 - mesh.volume / (4.0 / 3.0 * np.pi * 0.8**3))
    assert 0.0 < errors[1] < 0.3 * errors[0] < 0.02


def test_a_torus_stays_a_torus():
    mesh = of(torus(20))
    mesh.require_closed()
    mesh.require_sound()
    assert len(mesh.points) - len(mesh.edges) + len(mesh.faces) == 0  # Euler
    assert mesh.volume == pytest.approx(2.0 * np.pi**2 * 0.6 * 0.25**2, rel=0.04)


def test_crossings_that_are_near_become_one_vertex(monkeypatch):
    joined = of(torus(20))
    monkeypatch.setattr(module, "NEAR", ())
    apart = of(torus(20))
    apart.require_closed()
    assert len(joined.points) < 0.65 * len(apart.points)
    assert joined.volume == pytest.approx(apart.volume, rel=5e-3)
    assert shortest_edge(joined) > 3.0 * shortest_edge(apart)


def shortest_edge(mesh):
    ends = mesh.points[mesh.edges]
    return np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).min()


@pytest.mark.parametrize("seed", range(5))
def test_any_function_gives_a_closed_surface_on_which_it_is_zero(seed, monkeypatch):
    values = np.full((8, 9, 10), -1.0)
    values[1:-1, 1:-1, 1:-1] = np.random.default_rng(seed).normal(size=(6, 7, 8))
    level_set(values, (0.0, 0.0, 0.0), 0.1).require_closed()
    monkeypatch.setattr(module, "NEAR", ())
    level_set(values, (0.0, 0.0, 0.0), 0.1).require_closed()


def test_a_plane_is_where_it_is():
    x, y, z = grid(10)
    values = np.minimum(0.33 - x, 0.9 - np.maximum.reduce([abs(x), abs(y), abs(z)]) + 1e-3)
    flat = of(values).points
    assert flat[:, 0].max() == pytest.approx(0.33, abs=1e-12)


def test_what_is_thinner_than_a_cell_has_a_surface():
    values = np.full((5, 5, 5), -1.0)
    values[2, 2, 2] = 0.01  # all crossings are near this point
    mesh = of(values)
    mesh.require_closed()
    assert mesh.volume > 0.0


def test_refuses_what_has_no_closed_surface():
    with pytest.raises(ValueError, match="`values` must be positive somewhere"):
        of(-np.ones((3, 3, 3)))
    with pytest.raises(ValueError, match="`values` must not be positive at the border"):
        of(np.ones((3, 3, 3)))
    with pytest.raises(ValueError, match="`spacing`"):
        level_set(-np.ones((3, 3, 3)), (0.0, 0.0, 0.0), 0.0)
