"""Thin elements: what rounding takes of their forces, and who is told in float32."""

import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from adjoint.rollout import record
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.rollout import rollout


MU, LAM, N = 1.0, 2.0, 400
EPS = float(np.finfo(np.float32).eps)
KINDS = {"tetrahedra": NeoHookeanTets, "triangles": NeoHookeanTriangles}
ROUND_ONES = {
    "tetrahedra": np.array([[0.0, 0, 0], [1, 0, 0], [0.3, 1, 0], [0.4, 0.3, 1]]),
    "triangles": np.array([[0.0, 0, 0], [1, 0, 0], [0.4, 1, 0]]),
}


def thin_elements(rng, kind):
    """N of them, each squeezed along one or two axes by up to 300, (N, n_nodes, 3)."""
    corners = ROUND_ONES[kind] + 0.05 * rng.normal(size=(N, *ROUND_ONES[kind].shape))
    by = 10.0 ** (rng.uniform(-2.5, 0.0, (N, 1, 3)) * [0.0, 1.0, 1.0])
    thin = corners * by
    signs = np.linalg.det(thin[:, 1:] - thin[:, :1]) if kind == "tetrahedra" else np.ones(N)
    thin[signs < 0, :2] = thin[signs < 0, 1::-1]
    return (thin @ Rotation.random(N, rng=rng).as_matrix()).astype(np.float32)


def forces_at(force, x, dtype):
    """What a step of 1 s does to nodes of 1 kg at rest."""
    model = Model(np.ones(len(x)), {"thin": force}, gravity=(0, 0, 0))
    return rollout(model, State(x), 1.0, 1, dtype=dtype).v[0].astype(float)


@pytest.mark.filterwarnings("ignore:`thin` has elements too thin")
@pytest.mark.parametrize("kind", KINDS)
def test_rounding_goes_with_the_square_of_the_condition_number(kind, rng):
    X = thin_elements(rng, kind).astype(float)
    strained = [corners @ (np.eye(3) + 0.1 * rng.normal(size=(3, 3))) for corners in X]
    x = np.concatenate(strained).astype(np.float32).astype(float)
    n = X.shape[1]
    force = KINDS[kind](np.arange(N * n).reshape(N, n), X.reshape(-1, 3), MU, LAM)
    error = np.abs(forces_at(force, x, np.float32) - forces_at(force, x, np.float64))
    s = np.linalg.svd(X[:, 1:] - X[:, :1], compute_uv=False)
    cond2 = (s**2).sum(axis=1) * (s**-2.0).sum(axis=1)
    # The force of a strain of 1, and what a tenth of it has lost.
    unit = force.rest_measure() * (MU + LAM) / s[:, -1]
    lost = error.reshape(N, -1).max(axis=1) / (0.1 * unit)
    bound = force.ROUNDING * EPS * cond2
    thin = cond2 > 50**2  # others have lost what the formula itself rounds
    assert thin.sum() > 100
    assert (lost[thin] <= bound[thin]).all()
    assert (lost[thin] > 0.01 * bound[thin]).mean() > 0.5


def sliver(kind, h):
    """A model of a round element and a thin one."""
    round_one = ROUND_ONES[kind]
    thin = round_one * ([1, 1, h] if kind == "tetrahedra" else [1, h, 1])
    X, n = np.concatenate([round_one, thin]), len(round_one)
    force = KINDS[kind](np.arange(2 * n).reshape(2, n), X, MU, LAM)
    return Model(np.ones(2 * n), {"beam": force}), State(X)


@pytest.mark.parametrize(
    ("kind", "cond", "lost"), [("tetrahedra", "1.67e+03", "0.07"), ("triangles", "1.16e+03", "0.2")]
)
def test_a_thin_element_is_named_in_float32(kind, cond, lost):
    n = len(ROUND_ONES[kind])
    nodes = ", ".join(str(k) for k in range(n, 2 * n))
    said = (
        rf"`beam` has elements too thin for float32: .* more than 0.001 .* in 1 of 2. The worst "
        rf"is element 1, nodes \[{nodes}\], of condition number {cond.replace('+', '[+]')}: up to "
        rf"{lost} of its force. Pass dtype=float64, or mesh without"
    )
    for verb in (rollout, record):
        with pytest.warns(UserWarning, match=said):
            verb(*sliver(kind, 1e-3), 1e-9, 1, dtype=np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_is_told_of_elements_that_lose_little(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rollout(*sliver(kind, 1e-3), 1e-9, 1)
        rollout(*sliver(kind, 0.05), 1e-9, 1, dtype=np.float32)
        mesh = box_tets((3, 2, 2), (1.0, 0.1, 0.1))
        force = NeoHookeanTets(mesh.tets, mesh.points, MU, LAM, density=1.0)
        rollout(Model(forces={"box": force}), State(mesh.points), 1e-3, 2, dtype=np.float32)
