"""Hinges: closed forms, the whole range of angles, the reference, the contract, bad input."""

import numpy as np
import pytest

from adjoint.rollout import record
from adjoint.verify.contract import (
    EPS,
    N_OPS,
    InternalForceContract,
    element_input,
    nodal_forces,
    numbers,
    on_nodes,
    relative,
    vectors,
)
from adjsim.engine.stepper import RolloutError
from adjsim.forces.hinges import DAMPED, ELASTIC, Hinges, dihedral_angle, half_angle, hinge_energy
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State
from adjsim.rollout import rollout
from tests.forces.complex_steps import check_one_step
from tests.reference import hinges as reference


EDGE_FIRST = [2, 3, 0, 1]  # x1 .. x4 in the order of the element
ONE = np.array([[0, 1, 2, 3]])
CLOTH = sheet((4, 4), (0.4, 0.4))
HINGES = mesh_hinges(CLOTH.faces)  # 40: three tiles, of which the last is half full
FLAT_SHEET = CLOTH.points
REST = FLAT_SHEET + 0.015 * np.random.default_rng(6).standard_normal(FLAT_SHEET.shape)
N = len(HINGES)


def folded(phi):
    """x1, x2, x3, x4: two right triangles on an edge along y, bent down by phi about it.

    Their normals point to +z when flat, so bending down makes the upper side convex.
    """
    down, out = -np.sin(phi / 2), np.cos(phi / 2)
    return np.array([(-out, 0.4, down), (2 * out, 0.7, 2 * down), (0, 0, 0), (0, 1.0, 0)])


def random_hinges(rng, **parameters):
    fields = {
        "stiffness": 0.02 * rng.uniform(0.8, 1.2, N),
        "actuation": 0.2 * rng.standard_normal(N),
        **parameters,
    }
    return Hinges(HINGES, REST, **fields)


def random_state():
    """A crumpled sheet whose angles are all over the range, 0.1 away from its ends."""
    rng = np.random.default_rng(682)
    x = FLAT_SHEET + 0.05 * rng.standard_normal(FLAT_SHEET.shape)
    phi = dihedral_angle(x, HINGES)
    assert phi.max() > 2.0
    assert phi.min() < -2.0
    assert np.abs(phi).max() < np.pi - 0.1
    return State(x, rng.standard_normal(x.shape))


class TestHinges(InternalForceContract):
    def make(self, rng):
        return random_hinges(rng)

    def state(self, rng, force):
        return random_state()

    def energy(self, force, x):
        inputs = (element_input(force, e, x, x) for e in range(N))
        return sum(hinge_energy(x, c, p, s) for x, _, c, p, s in inputs)

    def at_rest(self, force):
        return force.with_values({"rest_angle": reference.angles(REST, HINGES), "actuation": 0.0})


class TestDampedHinges(TestHinges):
    def make(self, rng):
        return random_hinges(rng, damping=1e-3 * rng.uniform(0.5, 1.5, N))

    def test_damping_takes_energy_from_every_motion(self, case):
        force, x, v = case
        bare = force.with_values({"damping": 0.0})
        drag = nodal_forces(force, x, v) - nodal_forces(bare, x, v)
        assert np.vdot(drag, v) < 0.0


class TestEqualHinges(TestHinges):
    """One number for all: its cotangent is a sum over the hinges."""

    def make(self, rng):
        return random_hinges(rng, stiffness=0.02, damping=1e-3, rest_angle=0.3, actuation=0.05)


def test_wings_of_a_square_feel_the_moment_worked_by_hand():
    # Wings of length 1 and 2 at right angles to an edge of length 1, flat, phi0 = -pi/3:
    # c0 = 1/(1 + 2), moment = 6/3 sin(pi/6) = 1, and dphi/dx1 = -1/1 along n, dphi/dx2 = -1/2.
    x = folded(0.0)
    f = nodal_forces(Hinges(ONE, x, 6.0, rest_angle=-np.pi / 3), x, 0 * x)
    np.testing.assert_allclose(f[:2], [(0, 0, 1), (0, 0, 0.5)], rtol=0, atol=10 * EPS)


@pytest.mark.parametrize("phi0", [0.0, 0.8, -2.0])
@pytest.mark.parametrize("actuation", [0.0, 0.3, -0.4])
def test_rest_is_at_the_rest_angle_less_twice_the_actuation(phi0, actuation):
    hinge = Hinges(ONE, folded(phi0), 2.0, actuation=actuation)
    assert hinge.rest_angle == pytest.approx([phi0], abs=10 * EPS)
    x = folded(phi0 - 2 * actuation)
    assert np.abs(nodal_forces(hinge, x, 0 * x)).max() <= 20 * EPS
    bent = folded(phi0 - 2 * actuation + 0.1)
    assert np.abs(nodal_forces(hinge, bent, 0 * x)).max() > 0.01


@pytest.mark.parametrize("wings", [1e-3, 1.0, 300.0])
def test_half_angles_are_right_over_the_whole_range(wings):
    near = np.concatenate([10.0 ** np.arange(-9, 1.0), [1.5, 1.6]])
    for phi in np.concatenate([[0.0], near, -near, np.pi - near, near - np.pi]):
        e, a, b = relative(wings * folded(phi)[EDGE_FIRST])
        n1, n2 = np.cross(e, a), np.cross(b, e)
        got = half_angle(tuple(b), np.linalg.norm(e), tuple(n1), tuple(n2))
        # n1 x n2 carries an error of eps |n|^2, and so does the angle.
        np.testing.assert_allclose(
            got, [np.sin(phi / 2), np.cos(phi / 2)], rtol=0, atol=10 * EPS, err_msg=f"{phi}"
        )
        assert got[0] ** 2 + got[1] ** 2 == pytest.approx(1.0, abs=4 * EPS)


@pytest.mark.parametrize("phi", [-3.1, -1.0, -1e-9, 0.0, 1e-9, 0.5, 1.57, 1.58, 2.5, 3.1])
@pytest.mark.parametrize("phi0", [0.0, 1.2, -2.9])
def test_the_force_is_the_reference_at_every_angle(phi, phi0):
    rng = np.random.default_rng(4)
    x, v = folded(phi), rng.standard_normal((4, 3))
    hinge = Hinges(ONE, folded(0.3), 2.0, damping=0.1, rest_angle=phi0, actuation=0.2)
    expected = reference.forces(x, v, folded(0.3), ONE, 2.0, phi0, 0.1, 0.2)
    np.testing.assert_allclose(nodal_forces(hinge, x, v), expected, rtol=0, atol=1e-14)


def test_flat_hinges_have_finite_derivatives():
    hinge = Hinges(HINGES, FLAT_SHEET, 0.02, damping=1e-3)
    run = record(Model(np.ones(len(REST)), {"it": hinge}), State(FLAT_SHEET), 1e-2, 3)
    gradient = run.vjp(np.ones((1, *REST.shape)), np.ones((1, *REST.shape)))
    assert all(np.isfinite(value).all() for value in gradient.values())


def test_forces_and_gradient_equal_the_reference(rng):
    hinges = random_hinges(rng, damping=1e-3 * rng.uniform(0.5, 1.5, N))
    model = Model(rng.uniform(0.5, 2.0, len(REST)), {"bend": hinges})

    def references(at):
        names = ("rest_positions", "stiffness", "damping", "rest_angle", "actuation")
        parameters = {name: at[f"bend.{name}"] for name in names}
        return [lambda k, x, v: reference.forces(x, v, hinges=HINGES, **parameters)]

    check_one_step(model, random_state(), 0.1, references, rng)


def test_naming_the_triangles_the_other_way_round_changes_nothing(rng):
    state = random_state()
    hinges = random_hinges(rng, damping=1e-3)
    turned = Hinges(
        HINGES[:, [1, 0, 3, 2]], REST, hinges.stiffness, 1e-3, actuation=hinges.actuation
    )
    np.testing.assert_allclose(turned.rest_angle, hinges.rest_angle, rtol=0, atol=20 * EPS)
    f = nodal_forces(hinges, state.x, state.v)
    np.testing.assert_allclose(
        nodal_forces(turned, state.x, state.v), f, rtol=0, atol=N_OPS * EPS * np.abs(f).max()
    )


def test_beyond_a_full_fold_the_angle_jumps_and_so_does_the_force():
    # The kink: phi is not unwrapped. Just before and just behind a full fold psi is pi/2 and
    # -pi/2, and the moment changes its sign; the slopes on both sides are finite.
    hinge = Hinges(ONE, folded(0.0), 3.0)
    f = [
        nodal_forces(hinge, folded(phi), np.zeros((4, 3)))[0] for phi in (3.141, 2 * np.pi - 3.141)
    ]
    # The wing of length 1 hangs down: its force is the moment, 3/3 sin(pi/2), along -x and +x.
    np.testing.assert_allclose(f[0], [-1, 0, 0], rtol=0, atol=1e-3)
    np.testing.assert_allclose(f[1], [1, 0, 0], rtol=0, atol=1e-3)
    model = Model(np.ones(4), {"it": hinge}, gravity=(0, 0, 0))
    gradient = record(model, State(folded(3.141)), 1e-3, 1).vjp(np.ones((1, 4, 3)))
    assert all(np.isfinite(value).all() for value in gradient.values())


def test_without_a_damping_velocities_are_not_read(rng):
    hinges = random_hinges(rng)
    assert hinges.kind is ELASTIC
    assert "damping" not in hinges.parameters()
    assert random_hinges(rng, damping=0.0).kind is DAMPED


def test_the_rest_angle_is_independent_of_the_rest_positions_once_set(rng):
    hinges = random_hinges(rng)
    np.testing.assert_allclose(
        hinges.rest_angle, reference.angles(REST, HINGES), rtol=0, atol=20 * EPS
    )
    other = hinges.with_values({"rest_positions": FLAT_SHEET})
    np.testing.assert_array_equal(other.rest_angle, hinges.rest_angle)
    ratio = other.pack_params()[:, 0] / hinges.pack_params()[:, 0]
    expected = reference.rest_factor(FLAT_SHEET, HINGES) / reference.rest_factor(REST, HINGES)
    np.testing.assert_allclose(ratio, expected, rtol=20 * EPS)


def test_bounds_are_the_largest_eigenvalues_at_rest(rng):
    hinges = random_hinges(rng, damping=1e-3, actuation=0.0)
    for e in range(5):
        x, v, _, params, series = element_input(hinges, e, REST, 0 * REST)
        columns = [
            np.ravel(on_nodes(ELASTIC.jvp(
                x, v, (), params[:1], series, vectors(relative(unit.reshape(4, 3))), (), (0.0,),
                (0.0, 0.0),
            )))
            for unit in np.eye(12)
        ]  # fmt: skip
        K = -np.array(columns)
        largest = np.linalg.eigvalsh(K).max()
        assert np.abs(K - K.T).max() <= N_OPS * EPS * largest
        assert hinges.stiffness_bound()[e] == pytest.approx(largest, rel=1e-12)
        ratio = hinges.damping_bound()[e] / hinges.stiffness_bound()[e]
        assert ratio == pytest.approx(2e-3 / hinges.stiffness[e], rel=1e-12)


def test_energy_worked_by_hand():
    # 2 * 6/3 (1 - cos(pi/6)) for c0 = 1/3, phi = pi/3.
    hinge = Hinges(ONE, folded(0.0), 6.0)
    x, _, c, p, s = element_input(hinge, 0, folded(np.pi / 3), np.zeros((4, 3)))
    assert hinge_energy(x, c, p, s) == pytest.approx(4 * (1 - np.sqrt(3) / 2), rel=20 * EPS)
    assert numbers(hinge.pack_consts()[0]) == ()


def test_a_triangle_that_loses_its_area_ends_the_rollout():
    # x1 runs into the line through x3 and x4, which it reaches to the bit after four steps.
    model = Model(np.ones(4), {"it": Hinges(ONE, folded(0.0), 0.0)}, gravity=(0, 0, 0))
    state = State(folded(0.0), np.array([(1.0, 0, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0)]))
    assert rollout(model, state, 0.25, 4).x[0, 0, 0] == 0.0
    with pytest.raises(RolloutError, match=r"in step 4 .* triangle of `it` at row 0, nodes \["):
        rollout(model, state, 0.25, 5)


@pytest.mark.parametrize(("keep", "named"), [([0, 1, 1, 1], "2, 3, 0"), ([1, 0, 1, 1], "3, 2, 1")])
def test_a_state_that_makes_a_line_of_a_triangle_is_refused(keep, named):
    model = Model(np.ones(4), {"bend": Hinges(ONE, folded(0.0), 1.0)})
    x = folded(0.0)
    x = np.where(np.array(keep)[:, None] == 1, x, 0.5 * (x[2] + x[3]))
    with pytest.raises(ValueError, match=rf"`state.x` .* triangle of `bend` .* \[{named}\]"):
        rollout(model, State(x), 1e-3, 1)


FITS = {"hinges": ONE, "rest_positions": folded(0.0), "stiffness": 1.0}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hinges": [[0, 1, 2, 2]]}, r"`hinges` must have four different nodes, .* at row 0"),
        ({"hinges": [[0, 0, 2, 3]]}, r"`hinges` must have four different .* triangles are one"),
        ({"hinges": [[0, 1, 2]]}, r"`hinges` must have shape \(n_hinges, 4\), got \(1, 3\)"),
        ({"hinges": [[0, 1, 2, 4]]}, r"`hinges` must index the 4 points, 0 to 3"),
        (
            {"rest_positions": folded(0.0) * [[0], [1], [1], [1]]},
            r"`hinges` must lie between triangles with an area at rest, .* \[2, 3, 0\] at row 0",
        ),
        (
            {"rest_positions": folded(0.0) * [[1], [1], [1], [0]]},
            r"`hinges` must lie between triangles with an area at rest, .* \[2, 3, 0\] at row 0",
        ),
        ({"stiffness": None}, r"`stiffness` must be .* no number, got None"),
        ({"stiffness": -1.0}, r"`stiffness` must not be negative, got -1"),
        ({"damping": -1.0}, r"`damping` must not be negative, got -1"),
        ({"damping": [1.0, 1.0]}, r"`damping` must have shape \(\) or \(n_hinges,\) = \(1,\)"),
        ({"rest_angle": [0.1, 0.2]}, r"`rest_angle` must have shape \(\) or \(n_hinges,\)"),
        ({"rest_angle": np.nan}, r"`rest_angle` must be finite, got nan"),
        ({"actuation": [0.1, 0.2]}, r"`actuation` must have shape"),
        ({"rest_positions": np.zeros((4, 2))}, r"`rest_positions` must have shape \(n_nodes, 3\)"),
    ],
)  # fmt: skip
def test_bad_input_is_named(changed, message):
    with pytest.raises(ValueError, match=message):
        Hinges(**{**FITS, **changed})


def test_rest_positions_must_be_those_of_the_model():
    with pytest.raises(ValueError, match=r"`mass` .* each row of `bend.rest_positions`, got"):
        Model(np.ones(5), {"bend": Hinges(**FITS)})
