"""Stable neo-Hookean triangles: closed forms, the reference, the contract, bad input."""

import dataclasses

import numpy as np
import pytest

from adjoint.rollout import record
from adjoint.verify.contract import (
    EPS,
    N_OPS,
    nodal_forces,
    relative,
    vectors,
)
from adjsim.courses import Signal
from adjsim.engine.stepper import RolloutError
from adjsim.forces.neo_hookean_triangles import (
    ELASTIC,
    NeoHookeanTriangles,
    neo_hookean_triangle_energy,
)
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State
from adjsim.rollout import rollout
from tests.forces.complex_steps import check_one_step
from tests.forces.solids import LawFacts, SolidContract
from tests.reference import neo_hookean_triangles as reference


CORNER = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])  # B = I, A0 = 1/2
PLAIN = (1.0, 0.0, 1.0, 1.0)  # M and 1/(2 A0) of the same


# 24 triangles, a tile and a half, out of their plane so that no two share one.
MESH = sheet((4, 3), (0.2, 0.2))
TRIANGLES = MESH.faces
REST = MESH.points + 0.01 * np.random.default_rng(5).standard_normal(MESH.points.shape)


def random_sheet(rng, **parameters):
    n = len(TRIANGLES)
    fields = {
        "mu": 200.0 * rng.uniform(0.8, 1.2, n),
        "lam": 500.0 * rng.uniform(0.8, 1.2, n),
        "actuation": 0.1 * rng.standard_normal(n),
        **parameters,
    }
    return NeoHookeanTriangles(TRIANGLES, REST, **fields)


def random_state(rng):
    return State(REST + 0.008 * rng.standard_normal(REST.shape), rng.standard_normal(REST.shape))


class TestElasticTriangles(SolidContract):
    random, energy_of = staticmethod(random_sheet), staticmethod(neo_hookean_triangle_energy)
    SPREAD = 0.008


class TestViscousTriangles(TestElasticTriangles):
    def make(self, rng):
        return random_sheet(rng, viscosity=0.3 * rng.uniform(0.5, 1.5, len(TRIANGLES)))

    def test_viscosity_takes_energy_from_every_motion(self, case):
        force, x, v = case
        elastic = dataclasses.replace(force, viscosity=None)
        drag = nodal_forces(force, x, v) - nodal_forces(elastic, x, v)
        assert np.vdot(drag, v) < 0.0


class TestScalarTriangles(TestElasticTriangles):
    """One modulus for all: its cotangent is a sum over the elements."""

    def make(self, rng):
        return random_sheet(rng, mu=200.0, lam=500.0, viscosity=0.3, actuation=0.05)


class TestLawOfShells(LawFacts):
    LAW, random, BAD_RATIOS = NeoHookeanTriangles, staticmethod(random_sheet), (1.0, -0.5, 1.7)
    VISCOSITY = 0.3


def corner_forces(F, mu, lam, a=0.0):
    """Forces where F in R^(3x2) maps the unit corner to space."""
    triangle = NeoHookeanTriangles([[0, 1, 2]], CORNER, mu=mu, lam=lam, actuation=a)
    return nodal_forces(triangle, CORNER[:, :2] @ np.transpose(F), np.zeros((3, 3)))


def test_uniaxial_stretch_pulls_with_the_stress_worked_out_by_hand():
    # mu = 3, lam = 4: alpha = 1 + 1/2. F = diag(2, 1): I_C = 5, J = 2, dJ/dF = diag(1, 2).
    # P = 3 (1 - 1/6) F + 4 (2 - 3/2) dJ/dF = diag(5 + 2, 5/2 + 4), and A0 = 1/2.
    f = corner_forces(np.array([[2.0, 0], [0, 1], [0, 0]]), 3.0, 4.0)
    np.testing.assert_allclose(f[1:], [[-3.5, 0, 0], [0, -3.25, 0]], rtol=0, atol=20 * EPS)
    np.testing.assert_allclose(f[0], [3.5, 3.25, 0], rtol=0, atol=20 * EPS)


def test_energy_of_a_stretch_worked_out_by_hand():
    # psi = 3/2 (5 - 2) + 2 (2 - 3/2)^2 - 3/2 log 6, and A0 = 1/2.
    edges = vectors(relative(CORNER * [2.0, 1.0, 1.0]))
    got = neo_hookean_triangle_energy(edges, PLAIN, (1.5, 2.0, 1.5), (0.0,))
    assert got == pytest.approx((4.5 + 0.5 - 1.5 * np.log(6)) / 2, rel=10 * EPS)


def test_actuation_swells_the_rest_area():
    # P = (2 mu s^2/(2 s^2 + 1) + lam (J - alpha)) s at F = s I, J = s^2: it vanishes at
    # alpha = s^2 + mu/lam 2 s^2/(2 s^2 + 1), with alpha = 1 + 2 mu/(3 lam) + a.
    mu, lam, s = 2.0, 4.0, 1.2
    a = s * s + mu / lam * 2 * s * s / (2 * s * s + 1) - 1 - 2 * mu / (3 * lam)
    assert a > 0
    F = s * np.linalg.qr(np.random.default_rng(4).standard_normal((3, 2)))[0]
    assert np.abs(corner_forces(F, mu, lam, a)).max() <= 20 * EPS


@pytest.mark.parametrize(("E", "nu"), [(1e3, 0.3), (3e4, 0.9), (2e2, -0.4), (1e3, 0.0)])
def test_small_strains_answer_as_hooke_says_in_plane_stress(E, nu):
    mu, lam = NeoHookeanTriangles.moduli(E, nu)
    assert lam > 0

    def tension(strain):
        """Change of P for a small change of F, (3, 2)."""
        tan_f = ELASTIC.jvp(
            vectors(relative(CORNER)), (), PLAIN, (mu / 2, lam / 2, 1 + 2 * mu / (3 * lam)),
            (0.0,), vectors(strain.T), (), (0.0, 0.0, 0.0), (0.0,),
        )  # fmt: skip
        return -2.0 * np.array(tan_f).T

    pulled = np.array([[1.0, 0], [0, -nu], [0, 0]])
    size = 50 * EPS * max(mu, lam)
    np.testing.assert_allclose(tension(pulled), [[E, 0], [0, 0], [0, 0]], rtol=0, atol=size)
    sheared = np.array([[0.0, 1], [1, 0], [0, 0]])
    np.testing.assert_allclose(tension(sheared), E / (1 + nu) * sheared, rtol=0, atol=size)
    lifted = np.array([[0.0, 0], [0, 0], [1, 1]])  # at rest there is no tension to lift against
    np.testing.assert_allclose(tension(lifted), np.zeros((3, 2)), rtol=0, atol=size)


def test_moduli_agree_with_the_reference():
    np.testing.assert_allclose(
        NeoHookeanTriangles.moduli(3e2, 0.45), reference.lame(3e2, 0.45), rtol=10 * EPS
    )


@pytest.mark.parametrize("viscosity", [None, 0.3])
def test_forces_equal_the_reference_in_any_frame(rng, viscosity):
    cloth, state = random_sheet(rng, viscosity=viscosity), random_state(rng)
    for turn in (0.0, 0.7):
        expected = reference.forces(
            state.x, state.v, REST, TRIANGLES, cloth.mu, cloth.lam, viscosity or 0.0,
            cloth.actuation, turn,
        )  # fmt: skip
        got = nodal_forces(cloth, state.x, state.v)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_gradient_equals_complex_steps_through_the_reference(rng):
    each = rng.uniform(0.5, 1.5, (2, len(TRIANGLES)))
    cloth = random_sheet(rng, viscosity=0.3 * each[0], density=0.2 * each[1])

    def references(values):
        rows = [values[f"cloth.{key}"] for key in ("mu", "lam", "viscosity", "actuation")]
        rest = values["cloth.rest_positions"]
        return [lambda k, x, v: reference.forces(x, v, rest, TRIANGLES, *rows)]

    def mass(values):
        return reference.density_mass(
            values["cloth.rest_positions"], TRIANGLES, values["cloth.density"]
        )

    model = Model(None, {"cloth": cloth})
    check_one_step(model, random_state(rng), 1e-3, references, rng, mass=mass)


def test_actuation_may_be_a_signal_and_its_values_get_the_gradient(rng):
    # From 0 to 0.2 over four steps, one value for all triangles: row k is k 0.05.
    cloth = random_sheet(rng, actuation=Signal([0.0, 4.0], [0.0, 0.2]))
    rows = dataclasses.replace(
        cloth, actuation=0.05 * np.arange(4.0)[:, None] * np.ones(len(TRIANGLES))
    )
    state = random_state(rng)
    runs = [record(Model(np.ones(20), {"cloth": force}), state, 1e-2, 4) for force in (cloth, rows)]
    np.testing.assert_allclose(
        runs[0].trajectory.x, runs[1].trajectory.x, rtol=0, atol=10 * EPS * 0.2
    )
    adj = rng.standard_normal((1, 20, 3))
    of_signal, of_rows = (run.vjp(adj)["cloth.actuation"] for run in runs)
    t = np.arange(4.0) / 4.0
    expected = [((1 - t) @ of_rows).sum(), (t @ of_rows).sum()]
    np.testing.assert_allclose(of_signal, expected, rtol=0, atol=1e-10 * np.abs(of_rows).sum())


def test_the_order_of_the_nodes_does_not_matter(rng):
    cloth, state = random_sheet(rng, viscosity=0.3), random_state(rng)
    f = nodal_forces(cloth, state.x, state.v)
    for order in ([1, 2, 0], [0, 2, 1]):
        other = dataclasses.replace(cloth, triangles=TRIANGLES[:, order])
        np.testing.assert_allclose(
            nodal_forces(other, state.x, state.v), f, rtol=0, atol=N_OPS * EPS * np.abs(f).max()
        )


COLLAPSED = {
    "two nodes in one place": [[0.0, 0, 0], [1, 0, 0], [1, 0, 0]],
    "all nodes in one place": [[0.25, 0.125, 0.5]] * 3,
    "nodes on a line": [[0.0, 0, 0], [0.1, 0.3, 0.7], [0.3, 0.9, 2.1]],
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("x", COLLAPSED.values(), ids=COLLAPSED)
def test_a_collapsed_triangle_is_named_or_stops_the_rollout(x, dtype):
    # The last has e2 = 3 e1 up to rounding: its area is of the size of eps |e|^2.
    cloth = NeoHookeanTriangles([[0, 1, 2]], CORNER, mu=2.0, lam=4.0)
    model = Model(np.ones(3), {"cloth": cloth}, pinned=np.ones(3, bool))
    with pytest.raises(ValueError, match=r"`state.x` .* triangle of `cloth` .* \[0, 1, 2\]"):
        rollout(model, State(x), 1.0, 1, dtype=dtype)
    named = r"in step 1 .* at node 0: the triangle of `cloth` at row 0, nodes \[0, 1, 2\], lies"
    with pytest.raises(RolloutError, match=named):
        rollout(model, State(CORNER, x - CORNER), 1.0, 2, dtype=dtype)


@pytest.mark.filterwarnings("ignore:`cloth` has elements too thin")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_thin_triangle_is_not_a_collapsed_one(dtype):
    # Thinner than any that should be, and still a thousand times above the rounding of J.
    thin = 1e4 * np.finfo(dtype).eps
    cloth = NeoHookeanTriangles([[0, 1, 2]], CORNER, mu=2.0, lam=4.0)
    end = rollout(
        Model(np.ones(3), {"cloth": cloth}), State(CORNER * [1, thin, 1]), 1e-3, 1, dtype=dtype
    )
    # lam (J - alpha) dJ/dF is as large as ever: it pushes node 2 away from the edge.
    assert 1e-3 < end.v[0, 2, 1] + 9.8e-3 < 1e-2


def test_lumped_mass_is_areal_density_times_area(rng):
    flat = NeoHookeanTriangles(TRIANGLES, MESH.points, mu=2.0, lam=4.0)
    assert flat.lumped_mass(0.3).sum() == pytest.approx(0.3 * 0.04, rel=100 * EPS)
    sigma = rng.uniform(0.1, 0.3, len(TRIANGLES))
    np.testing.assert_allclose(
        random_sheet(rng).lumped_mass(sigma),
        reference.density_mass(REST, TRIANGLES, sigma),
        rtol=100 * EPS,
    )


FITS = {"triangles": [[0, 1, 2]], "rest_positions": CORNER, "mu": 2.0, "lam": 4.0}
N = "n_triangles"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"triangles": [[0, 1, 1]]}, r"`triangles` must have triangles of positive area"),
        ({"rest_positions": CORNER * [1, 0, 1]}, r"points \[0, 1, 2\], whose corners lie on a"),
        ({"triangles": [[0, 1, 3]]}, r"`triangles` must index the 3 points, 0 to 2, got \[0, 1, 3"),
        ({"triangles": [[0.5, 1, 2]]}, r"`triangles` must hold integers, got float64"),
        ({"triangles": [[0, 1]]}, rf"`triangles` must have shape \({N}, 3\), got \(1, 2\)"),
        ({"rest_positions": np.zeros((3, 2))}, r"`rest_positions` must have shape \(n_nodes, 3\)"),
        ({"rest_positions": CORNER * np.nan}, r"`rest_positions` must be finite, got nan"),
        ({"mu": 0.0}, r"`mu` must be positive, got 0"),
        ({"mu": [[2.0]]}, rf"`mu` must have shape \(\) or \({N},\) = \(1,\).*`mu.ravel\(\)`"),
        ({"lam": 0.0}, r"`lam` must be positive, got 0\. The rest shape is stable only then"),
        ({"lam": [4.0, 4.0]}, rf"`lam` must have shape \(\) or \({N},\) = \(1,\), got \(2,\)"),
        ({"viscosity": -1.0}, r"`viscosity` must not be negative, got -1"),
        ({"viscosity": [1.0, 1.0]}, r"`viscosity` must have shape"),
        ({"actuation": [0.1, 0.2]}, r"`actuation` must have shape .* got \(2,\)"),
        ({"actuation": np.zeros((1, 1, 1))}, r"`actuation` must have shape"),
    ],
)  # fmt: skip
def test_bad_input_is_named(changed, message):
    with pytest.raises(ValueError, match=message):
        NeoHookeanTriangles(**{**FITS, **changed})


def test_rest_positions_must_be_those_of_the_model():
    with pytest.raises(ValueError, match=r"`mass` .* each row of `cloth.rest_positions`, got"):
        Model(np.ones(5), {"cloth": NeoHookeanTriangles(**FITS)})


def test_density_must_be_positive():
    with pytest.raises(ValueError, match="`density` must be positive, got 0"):
        NeoHookeanTriangles(**FITS).lumped_mass(0.0)
