import numpy as np
import pytest

from adjsim.forces.log_neo_hookean import LogNeoHookeanTets
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.files import unstructured_grid
from adjsim.meshes.grid import box_tets
from adjsim.rollout import rollout
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.declared import Held, Plane, Rigid, Scene, Soft, World
from studies.scene.maps import all_targets
from studies.scene.reading import scene_from_dict


BAR = {"mesh": "box", "size": (0.4, 0.1, 0.1), "cells": (4, 1, 1)}


def built(world=None, **table):
    return build(Scene(bodies={"a": Soft(**table)}, world=world or World()))


@pytest.mark.parametrize("law", ["stable", "log"])
def test_a_bar_that_is_pulled_answers_with_E_and_nu(law):
    E, nu, strain = 1e5, 0.3, 1e-4
    scene = built(**BAR, E=E, nu=nu, law=law)
    stretched = scene.state.x * (1.0 + strain * np.array([1.0, -nu, -nu]))
    model, state = scene.system.with_values(
        scene.state, {"state.x": stretched, "gravity": np.zeros(3)}
    )
    dt = 1e-9
    force = model.mass[:, None] * rollout(model, state, dt, 1, frames=[1]).v[0] / dt
    right = scene.state.x[:, 0] > 0.19
    assert -force[right].sum(axis=0)[0] == pytest.approx(E * strain * 0.01, rel=2e-3)
    assert np.abs(force[:, 1:]).max() < 2e-3 * abs(force[right].sum(axis=0)[0])


@pytest.mark.parametrize("law", ["stable", "log"])
def test_lame_constants_are_small_strain_ones_too(law):
    E, nu = 1e5, 0.3
    mu, lam = E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))
    first, second = (
        built(**BAR, law=law, **table).system
        for table in ({"E": E, "nu": nu}, {"mu": mu, "lam": lam})
    )
    for key in ("mu", "lam"):
        assert getattr(second.forces["a"], key) == pytest.approx(getattr(first.forces["a"], key))


def test_a_cantilever_sags_by_the_order_of_a_beams():
    edge, length, E, rho = 0.05, 0.4, 5e6, 1000.0
    held = Held(plane=Plane(point=(-0.5 * length, 0, 0), normal=(1, 0, 0)))
    bar = {"mesh": "box", "size": (length, edge, edge), "cells": (16, 2, 2), "held": held}
    scene = built(**bar, E=E, nu=0.3, density=rho, viscosity=1e3)
    dt = 0.5 * scene.system.stable_dt()
    n = int(1.2 / dt)
    swing = rollout(scene.system, scene.state, dt, n, frames=range(0, n, 50))
    tip = scene.state.x[:, 0] > 0.499 * length
    sag = (scene.state.x[tip] - swing.x[:, tip].mean(axis=0)).mean(axis=0)[1]
    beam = rho * 9.81 * edge**2 * length**4 / (8.0 * E * edge**4 / 12.0)
    assert 0.5 < sag / beam < 1.1  # two linear elements across the edge are too stiff in bending


def test_fields_of_the_mesh_are_read_for_each_element(tmp_path):
    mesh = box_tets((2, 1, 1))
    grid = unstructured_grid(mesh)
    grid.cell_data["E"] = np.linspace(1e4, 1e5, mesh.n_tets)
    grid.cell_data["rho"] = np.linspace(500.0, 1500.0, mesh.n_tets)
    grid.cell_data["bad"] = -np.ones(mesh.n_tets)
    grid.save(tmp_path / "a.vtu")
    file = str(tmp_path / "a.vtu")
    scene = built(mesh=file, E="field:E", nu=0.3, density="field:rho", scale=2.0)
    np.testing.assert_array_equal(scene.values["a.E"].value, grid.cell_data["E"])
    assert scene.system.forces["a"].mu.shape == (mesh.n_tets,)
    weight = 8.0 * (grid.cell_data["rho"] * mesh.volumes).sum()
    assert scene.system.mass.sum() == pytest.approx(weight)
    with pytest.raises(StudyError, match=r"`bodies.a.E` must name an array .* Known: E, bad, rho"):
        built(mesh=file, E="field:none", nu=0.3)
    with pytest.raises(StudyError, match=r"`bodies.a.density` must be positive"):
        built(mesh=file, E=1e5, nu=0.3, density="field:bad")
    with pytest.raises(StudyError, match="must be a number for a surface that is filled"):
        built(mesh="shape:cube", edge_length=0.3, E="field:E", nu=0.3)


def test_what_is_chosen_is_noted():
    assert built(**BAR, E=1e5).notes == ["`bodies.a.nu` is not given: 0.4 is taken."]
    filled = built(mesh="shape:cube", edge_length=0.3, E=1e5, nu=0.3)
    assert "it was filled with" in filled.notes[0]
    assert filled.system.mass.sum() == pytest.approx(1000.0 * (2.0 / np.sqrt(3.0)) ** 3, rel=0.05)


def test_values_reach_the_energy():
    scene = built(**BAR, E=1e5, nu=0.3, viscosity=2.0)
    sources = {path: value.value for path, value in scene.values.items()}
    doubled = all_targets(scene.maps, sources | {"a.E": 2e5 * np.ones(())})
    np.testing.assert_allclose(doubled["a.mu"], 2.0 * scene.system.forces["a"].mu)
    np.testing.assert_allclose(doubled["a.lam"], 2.0 * scene.system.forces["a"].lam)
    np.testing.assert_allclose(doubled["mass"], scene.system.mass)
    assert doubled["a.viscosity"] == 2.0


def test_a_series_of_actuation_is_kept_with_its_times(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("time,a\n0,0\n0.5,0.2\n")
    scene = built(**BAR, E=1e5, nu=0.3, actuation=str(path))
    series = scene.varying["a.actuation"].course(0.1, None)
    np.testing.assert_array_equal(series.knots, [0.0, 5.0])
    np.testing.assert_array_equal(series.values, [0.0, 0.2])
    assert "a.actuation" not in scene.values
    assert built(**BAR, E=1e5, nu=0.3, actuation=0.1).system.forces["a"].actuation == 0.1


@pytest.mark.parametrize("law", ["stable", "log"])
def test_a_rest_that_is_not_stable_is_told(law):
    with pytest.raises(StudyError, match=r"`bodies.a.lam` must be above -2/3"):
        built(**BAR, mu=1e4, lam=-0.7e4, law=law)
    assert built(**BAR, mu=1e4, lam=-0.6e4, law=law).values["a.lam"].transform == "linear"


def test_a_law_is_chosen_by_name():
    assert type(built(**BAR, E=1e5, nu=0.3).system.forces["a"]) is NeoHookeanTets
    assert type(built(**BAR, E=1e5, nu=0.3, law="log").system.forces["a"]) is LogNeoHookeanTets


BODY = {"mesh": "box", "size": [0.2, 0.1, 0.1], "cells": [4, 2, 2], "mu": 4e3, "lam": 8e3}
HELD = {"box": {"lower": [-1.0, -1.0, -1.0], "upper": [-0.09, 1.0, 1.0]}}


@pytest.mark.parametrize(
    "world", [{}, {"step": "implicit", "dt": 0.01}, {"motion": "equilibrium"}],
    ids=["explicit", "implicit", "equilibrium"],
)  # fmt: skip
def test_both_constants_of_the_log_law_are_found(world):
    states = {"kind": "states", "body": "a", "error": 1e-5}
    still = world.get("motion") == "equilibrium"
    states["simulate"] = {"frames": 1} if still else {"frames": 8, "duration": 0.2}
    problem = make_problem(
        scene_from_dict(
            {
                "bodies": {"a": {"kind": "soft", "law": "log", "held": HELD, **BODY}},
                "world": world,
                "observations": {"x": states},
                "truth": {"a.mu": 5e3, "a.lam": 6e3},
                "free": {"a.mu": {}, "a.lam": {}},
            }
        )
    ).problem
    theta = problem.parameters.start
    for _ in range(6):
        r, J = problem.residuals_and_jacobian(theta)
        theta = theta - np.linalg.lstsq(J, r, rcond=None)[0]
    np.testing.assert_allclose(problem.parameters.natural(theta), [5e3, 6e3], rtol=1e-4)


def test_nodes_start_with_the_velocities_of_the_mesh_file(tmp_path):
    mesh = box_tets((2, 1, 1), (0.2, 0.1, 0.1))
    grid = unstructured_grid(mesh)
    v = np.arange(3.0 * mesh.n_points).reshape(-1, 3)
    grid.point_data["v"], grid.point_data["flat"] = v, v[:, 0]
    grid.save(tmp_path / "a.vtu")
    stuff = {"mesh": str(tmp_path / "a.vtu"), "E": 1e4, "nu": 0.3, "velocity": "field:v"}
    end = {"plane": {"point": (0.0, 0.0, 0.0), "normal": (1.0, 0.0, 0.0)}}
    scene = built(**stuff, scale=2.0, rotation=(0.0, 0.0, 90.0), spin=(0.0, 0.0, 1.0))
    R = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    center = scene.system.mass @ scene.state.x / scene.system.mass.sum()
    spun = np.cross([0.0, 0.0, 1.0], scene.state.x - center)
    np.testing.assert_allclose(scene.state.v, v @ R.T + spun, atol=1e-12)
    low, high = scene.values["a.node_velocity"].bounds
    assert low < v.min() < v.max() < high
    assert not scene.values["a.velocity"].value.any()
    is_held = mesh.points[:, 0] <= 0.0
    scene = built(**stuff, held=Held(**end))
    np.testing.assert_array_equal(scene.state.v, np.where(is_held[:, None], 0.0, v))
    with pytest.raises(
        StudyError, match=r"`bodies.a.velocity` must name an array of points .* v\b"
    ):
        built(**stuff | {"velocity": "field:w"})
    with pytest.raises(StudyError, match=r"must have three finite numbers .* got shape \(12,\)"):
        built(**stuff | {"velocity": "field:flat"})
    with pytest.raises(StudyError, match=r"`bodies.a.velocity` must be a vector for a mesh whose"):
        built(mesh="shape:cube", edge_length=0.3, E=1e4, velocity="field:v")


def test_held_and_numbers_of_nodes_are_those_of_the_body_itself():
    far = Soft(**BAR, E=1e5, nu=0.3, position=(5, 0, 0), held=Held(nodes=(0,)))
    scene = Scene(bodies={"r": Rigid(mesh="box"), "b": Soft(**BAR, E=1e5, nu=0.3), "a": far})
    built_scene = build(scene)
    assert np.flatnonzero(built_scene.held).tolist() == [built_scene.nodes["a"].start]


def test_a_poisson_ratio_near_one_half_is_noted():
    def notes(nu):
        body = Soft(mesh="box", size=(1.0, 1.0, 1.0), cells=(1, 1, 1), E=1e4, nu=nu)
        return build(Scene(bodies={"cube": body})).notes

    assert not notes(0.45)
    assert "`bodies.cube.nu` = 0.49 is near 0.5" in notes(0.49)[0]
