"""Surfaces that touch, slide and stick: two nets of springs, and two stiff cubes of springs."""

import numpy as np

from adjsim.forces.springs import Springs
from adjsim.model import Model, State
from adjsim.pairs.surface import surface_of
from adjsim.pairs.surface_contact import SurfaceContact


DT, N_STEPS = 5e-4, 160


def patch(n, spacing, height, turn):
    """A square net: positions and triangles."""
    square = np.stack(np.meshgrid(np.arange(n), np.arange(n), indexing="ij"), -1).reshape(-1, 2)
    square = spacing * (square - square.mean(axis=0))
    c, s = np.cos(turn), np.sin(turn)
    x = np.column_stack([square @ np.array([[c, s], [-s, c]]), np.full(n * n, height)])
    a = np.arange(n * n).reshape(n, n)[:-1, :-1].ravel()
    lower, upper = np.stack([a, a + n, a + 1], 1), np.stack([a + 1, a + n, a + n + 1], 1)
    return x, np.concatenate([lower, upper])


def nets(*, turn=0.4, **changes):
    """Two nets, of which the one falls on the other and slides."""
    rng = np.random.default_rng(0)
    (below, faces), (above, others) = patch(5, 0.1, 0.0, 0.0), patch(4, 0.12, 0.06, turn)
    others = others + len(below)
    x = np.concatenate([below, above])
    x[:, 2] += 0.005 * rng.standard_normal(len(x))
    v = np.zeros_like(x)
    v[len(below) :] = [0.3, 0.1, -1.0]
    edges = np.concatenate([surface_of(f).edges for f in (faces, others)])
    law = {
        "radius": 0.015, "other_radius": 0.02, "stiffness": 200.0, "dissipation": 0.2,
        "friction_stiffness": 0.5, "friction": 0.3,
    }  # fmt: skip
    touch = SurfaceContact(triangles=faces, other_triangles=others, **{**law, **changes})
    net = Springs(edges, stiffness=50.0, damping=0.02, rest_positions=x)
    model = Model(np.full(len(x), 0.01), {"net": net, "touch": touch}, gravity=(0, 0, -1.0))
    return model, State(x, v)
