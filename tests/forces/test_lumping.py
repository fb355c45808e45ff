"""Masses from densities, and what a gradient of the rest shape costs where none is asked for."""

import dataclasses

import numpy as np
import pytest

from adjoint.engine.parameters import needs_forces
from adjoint.engine.sweep import ReverseSweep
from adjoint.rollout import record, rollout_jvp
from adjoint.verify.dot_test import dot_test
from adjoint.verify.gradcheck import gradcheck
from adjsim.engine.tangent_packing import needs_rest
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.rollout import rollout
from tests.physics import rebuilt, values_of


MESH = box_tets((2, 1, 1), (0.2, 0.1, 0.1))
DT, N_STEPS = 5e-4, 6


def body(density=None, tets=MESH.tets):
    return NeoHookeanTets(tets, MESH.points, 2e4, 5e4, viscosity=20.0, density=density)


def case(rng, **forces):
    """A model whose masses come from densities, moving and in contact."""
    model = Model(None, {"solid": body(800.0), **forces}, pinned=np.arange(12) == 3)
    x = MESH.points + 0.004 * rng.standard_normal(MESH.points.shape)
    return model, State(x, rng.standard_normal(x.shape))


def test_masses_are_the_sum_of_those_of_all_densities(rng):
    rho = rng.uniform(100.0, 200.0, 4)
    shell = body(rho, MESH.tets[:4])
    model, _ = case(rng, shell=shell, floor=HalfSpaceContact())
    expected = body().lumped_mass(800.0) + shell.lumped_mass(rho)
    np.testing.assert_array_equal(model.mass, expected)
    assert model.has_densities
    assert "mass" not in model.parameters()
    assert model.parameters()["solid.density"] == 800.0
    assert model.inverse_mass[3] == 0.0


def test_a_model_is_rebuilt_with_the_masses_of_its_new_densities(rng):
    model, _ = case(rng)
    heavier = dataclasses.replace(model, forces={"solid": body(1600.0)})
    np.testing.assert_array_equal(heavier.mass, 2.0 * model.mass)
    given = dataclasses.replace(model, mass=np.ones(12), forces={"solid": body()})
    np.testing.assert_array_equal(given.mass, np.ones(12))
    assert not given.has_densities
    assert dataclasses.replace(given, gravity=(0, 0, 0)).mass[0] == 1.0


def test_a_density_moves_the_body_as_the_same_masses_do(rng):
    model, state = case(rng, floor=HalfSpaceContact(height=0.02))
    given = Model(model.mass, {**model.forces, "solid": body()}, pinned=model.pinned)
    np.testing.assert_array_equal(
        rollout(model, state, DT, N_STEPS).x, rollout(given, state, DT, N_STEPS).x
    )


@pytest.mark.parametrize("path", ["solid.density", "solid.rest_positions", "shell.density"])
def test_gradient_and_tangent_go_through_the_masses(rng, path):
    model, state = case(rng, shell=body(rng.uniform(100.0, 200.0, 4), MESH.tets[:4]))
    run = record(model, state, DT, N_STEPS)
    value = values_of(model, state)[path]

    def ends(block):
        end = rollout(*rebuilt(model, state, block), DT, N_STEPS)
        return np.stack([end.x, end.v])

    def vjp(adj):
        return run.vjp(adj[0], adj[1], wrt=[path])

    def jvp(tangents):
        _, tan = rollout_jvp(model, state, DT, N_STEPS, tangents)
        return np.stack([tan.x, tan.v])

    check = gradcheck(ends, vjp, {path: value}, n_directions=10)
    assert check.passed, check.table()
    dots = dot_test(jvp, vjp, {path: value}, tolerance=1e-12)
    assert dots.passed, dots.table()


def test_twice_the_density_in_free_fall_changes_nothing(rng):
    # Without stiffness to speak of, and no contact: the derivative of free fall is 0.
    soft = NeoHookeanTets(MESH.tets, MESH.points, 1e-12, 1e-12, density=10.0)
    run = record(Model(None, {"soft": soft}), State(MESH.points), DT, N_STEPS)
    assert abs(run.vjp(rng.standard_normal((1, 12, 3)))["soft.density"]) < 1e-12


def test_a_rest_shape_costs_nothing_where_no_gradient_of_it_is_asked_for(rng):
    model, state = case(rng)
    assert needs_forces(model, ["solid.density"])
    assert needs_rest(["solid.rest_positions"])
    for wanted in (["solid.mu"], ["state.x", "gravity"]):
        assert not needs_forces(model, wanted)
        assert not needs_rest(wanted)
    run = record(model, state, DT, N_STEPS)
    frames = run._twin.cotangents(run.trajectory, (state.x[None], None), run.trajectory.x.dtype)
    sweep = ReverseSweep(run._stepper, state, run.trajectory.steps, frames, ["solid.mu"])
    assert sweep.adj.consts.size == 0


def test_what_is_asked_for_does_not_change_the_bits_of_the_rest(rng):
    model, state = case(rng)
    run = record(model, state, DT, N_STEPS)
    adj = rng.standard_normal((1, 12, 3))
    full = run.vjp(adj)
    for wrt in (["solid.mu"], ["solid.density", "state.v"], ["solid.rest_positions"]):
        for path, value in run.vjp(adj, wrt=wrt).items():
            np.testing.assert_array_equal(value, full[path], err_msg=path)


LOOSE = NeoHookeanTets([[0, 1, 2, 3]], np.vstack([np.eye(4)[:, :3], [[9, 9, 9]]])[[3, 0, 1, 2, 4]],
                       2.0, 4.0)  # fmt: skip


@pytest.mark.parametrize(
    ("mass", "forces", "message"),
    [
        (None, {}, "`mass` must be given, one entry per node, unless a force has a `density`"),
        (None, {"it": body()}, "`mass` must be given, one entry per node, unless"),
        (np.ones(12), {"it": body(1.0)}, "`mass` is given, and `it.density` too: masses would"),
        (
            None,
            {"it": dataclasses.replace(LOOSE, density=1.0)},
            "`mass` must be positive, but node 4 is in no element of it, from whose density",
        ),
        (
            None,
            {"a": body(1.0), "b": dataclasses.replace(LOOSE, density=1.0)},
            "`rest_positions` must have one row per node of the model, got {'a': 12, 'b': 5}",
        ),
        (
            [1.0, 2.0],
            {"wind": HalfSpaceContact(), "it": body()},
            r"`mass` must have shape \(n_nodes,\) = \(12,\), one for each row of "
            r"`it.rest_positions`, got \(2,\)",
        ),
        (np.ones(12), {"a": body(), "b": LOOSE}, r"`b.rest_positions` must have one row per node"),
    ],
)
def test_masses_given_twice_or_not_at_all_are_named(mass, forces, message):
    with pytest.raises(ValueError, match=message):
        Model(mass, forces)
