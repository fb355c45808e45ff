"""The coverage table is complete, every cell passes, and it fails where it should."""

import dataclasses
import json

import numpy as np
import pytest

from adjoint.verify import coverage
from adjoint.verify.coverage import Coverage, check_cell, check_system, missing_parameters, select
from adjoint.verify.declared import declared_parameters
from adjoint.verify.problem import Problem, known_at_point
from adjoint.verify.systems import bodies, contacts, pixels, solids
from render.soft_raster import rasterize
from tests.sharing import found_once


ROLLOUTS = ("tets", "contact", "density")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return found_once(tmp_path_factory, "cells", lambda: coverage.verify(processes=2))


def test_every_declared_parameter_of_every_system_is_proven(table):
    failed = [f"{c.system} {c.parameter}: {c.reason}" for c in table.cells if not c.passed]
    assert failed == []
    assert table.missing == ()
    assert table.passed


def test_every_cell_meets_the_bars_in_numbers(table):
    cells = [c for c in table.cells if not c.is_inert]
    assert len(cells) > 80
    for c in cells:
        assert c.slope >= 1.9
        assert c.halvings >= 4
        assert c.dot <= (
            1e-10 if c.system.startswith(("tets", "contact", "chain", "density")) else 1e-12
        )
        assert c.vjp_error <= 1e-7
        assert c.gradient_norm > 0.0
        assert c.kink > 0.0
    rollouts = [c for c in cells if c.system.startswith(ROLLOUTS)]
    assert all(c.dot_kernel <= 1e-12 for c in rollouts)


def test_a_parameter_that_is_inert_in_one_system_acts_in_another(table):
    owners = {}
    for cell in table.cells:  # objects have other names in other systems
        owners.setdefault(cell.parameter.rpartition(".")[2], []).append(cell.is_inert)
    assert any(any(inert) for inert in owners.values())
    assert not any(all(inert) for inert in owners.values())


def test_the_table_is_plain_json(table):
    plain = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert plain["passed"] is True
    assert len(plain["cells"]) == len(table.cells)
    assert {"system", "parameter", "slope", "dot", "vjp_error", "kink"} <= set(plain["cells"][0])


@pytest.mark.parametrize(("build", "sign"), [(solids.stick, -1.0), (solids.slip, 1.0)])
def test_the_contact_scenes_touch_and_stay_in_stick_or_in_slip(build, sign):
    scene = build(solids.N_STEPS)
    margins = solids.scene_margins(scene)["floor"]
    touches = margins.touch > 0.0
    assert (touches == touches[0]).all(), "a node touches or leaves on the way"
    assert 4 <= touches[0].sum() < scene.model.n_nodes
    assert (sign * margins.slip[touches] > 0.0).all()


@pytest.mark.parametrize("build", contacts.BUILDS.values(), ids=contacts.BUILDS)
def test_the_obstacles_are_touched_everywhere_and_in_every_way_and_nothing_changes(build):
    scene = build(solids.N_STEPS)
    (margins,) = solids.scene_margins(scene).values()
    touches, slips, leaves = margins.touch > 0.0, margins.slip > 0.0, margins.leaving > 0.0
    assert {(a, b) for a, b in zip(slips[touches], leaves[touches], strict=True)} == {
        (a, b) for a in (False, True) for b in (False, True)
    }
    assert not touches.all()
    for regime in (touches, np.where(touches, slips, False), np.where(touches, leaves, False)):
        assert (regime == regime[0]).all(), "a regime changes on the way"
    beyond = np.sign(margins.shape)[:, touches[0]]
    np.testing.assert_array_equal(beyond, np.broadcast_to(beyond[0], beyond.shape))
    regions = {tuple(row) for row in np.nan_to_num(beyond[0], nan=0.0)}
    (obstacle,) = scene.model.forces.values()
    assert len(regions) == {0: 1, 2: 3, 3: 7}[obstacle.GEOMETRY.n_kinks]


@pytest.mark.parametrize(
    ("build", "sign"), [(bodies.stick, -1.0), (bodies.slip, 1.0), (bodies.crowd, -1.0)]
)
def test_bodies_touch_every_obstacle_and_stay_in_stick_or_in_slip(build, sign):
    scene = build(solids.N_STEPS)
    by_obstacle = solids.scene_margins(scene)
    assert set(by_obstacle) == {name for name in scene.model.forces if name != "cloth"}
    for name, margins in by_obstacle.items():
        touches = margins.touch > 0.0
        assert (touches == touches[0]).all(), f"{name}: a vertex touches or leaves on the way"
        assert 1 <= touches[0].sum() < touches.shape[1]
        assert (sign * margins.slip[touches] > 0.0).all()
        leaves = (margins.leaving > 0.0)[:, touches[0]]
        assert (leaves == leaves[0]).all(), f"{name}: a vertex turns back on the way"


@pytest.mark.parametrize("build", [pixels.over, pixels.softmax, pixels.dibr, pixels.hard])
def test_the_pictures_show_both_objects_and_the_background(build):
    alpha = rasterize(*build().arguments)[..., 3]
    assert alpha.min() < 0.05
    assert alpha.max() > 0.95


def test_declared_parameters_come_from_the_classes():
    declared = declared_parameters()
    assert {
        ("NeoHookeanTets", "viscosity"),
        ("HalfSpaceContact", "friction"),
        ("Camera", "fov_y"),
        ("SoftRasterizer", "epsilon"),
        ("Material", "diffuse"),
        ("SoftIou", "images"),
        ("center_of_mass_mse", "mass"),
        ("State", "v"),
        ("AnyCamera", "far"),
        ("RigidBodies", "vertices"),
    } <= declared
    assert not {name for _, name in declared} & {"nominal", "faces", "blend"}


def test_a_declared_parameter_that_no_system_has_fails_the_table():
    covered = declared_parameters() - {("HalfSpaceContact", "radius")}
    assert missing_parameters(covered) == ("HalfSpaceContact.radius",)
    table = Coverage((), ("HalfSpaceContact.radius",))
    assert not table.passed
    assert "FAIL HalfSpaceContact.radius is in no system" in table.table()


def test_an_empty_table_does_not_pass():
    assert not Coverage((), ()).passed


def quadratic(*, wrong=1.0, jvp_wrong=1.0):
    """A small problem whose adjoint or tangent may be off by a factor."""
    A = np.random.default_rng(5).standard_normal((4, 3))
    x = np.array([0.3, -0.2, 0.7])
    slope = np.cos(A @ x)[:, None] * A
    return Problem(
        {"x": x},
        {"x": ("Toy", "x")},
        lambda values: np.sin(A @ values["x"]),
        lambda tangents: jvp_wrong * (slope @ tangents["x"]),
        lambda adj, wrt: {"x": wrong * (slope.T @ adj)},
    )


def test_a_right_adjoint_passes_and_a_wrong_one_fails_every_check():
    assert check_cell("toy", quadratic(), "x").passed
    cell = check_cell("toy", quadratic(wrong=1.0 + 1e-5), "x")
    assert not cell.passed
    for check in ("gradient:", "dot:"):
        assert check in cell.reason
    assert "Taylor: slope" in check_cell("toy", quadratic(wrong=-1.0), "x").reason


def test_a_wrong_tangent_fails_the_dot_test():
    cell = check_cell("toy", quadratic(jvp_wrong=1.0 + 1e-9), "x")
    assert cell.reason.startswith("dot: residual")


def test_a_wrong_single_step_is_told_apart_from_the_rollout():
    problem = dataclasses.replace(quadratic(), kernel=quadratic(wrong=1.0 + 1e-10))
    assert check_cell("toy", problem, "x").reason.startswith("one-step dot")


def test_a_parameter_called_inert_that_acts_fails():
    problem = dataclasses.replace(quadratic(), inert=("x",))
    for x in (problem.point["x"], np.zeros(3)):  # at 0 too, where no factor would move it
        cell = check_cell("toy", dataclasses.replace(problem, point={"x": x}), "x")
        assert "outputs, jvp, vjp not zero" in cell.reason


def test_what_a_problem_is_at_its_point_is_computed_once():
    asked, problem = [], quadratic()

    def forward(values):
        asked.append(values["x"])
        return problem.forward(values)

    known = known_at_point(dataclasses.replace(problem, forward=forward))
    x = problem.point["x"]
    for same in (x, x.copy()):
        np.testing.assert_array_equal(known.forward({"x": same}), problem.forward(problem.point))
    assert len(asked) == 1
    np.testing.assert_array_equal(known.forward({"x": x + 1.0}), problem.forward({"x": x + 1.0}))
    assert len(asked) == 2
    cell, plain = (check_cell("toy", p, "x") for p in (known, problem))
    assert dataclasses.replace(cell, seconds=0.0) == dataclasses.replace(
        plain, seconds=0.0, dot_kernel=cell.dot_kernel
    )
    assert sum(np.array_equal(at, x) for at in asked) == 1


def test_a_picture_keeps_what_does_not_move():
    picture = pixels.glossy()
    point = picture.parameters()
    assert picture.at({}).scene is picture.scene
    color = picture.at({"near.face_colors": 0.5 * point["near.face_colors"]})
    near, far = color.scene.objects.values()
    np.testing.assert_array_equal(near.face_colors, 0.5 * point["near.face_colors"])
    assert near.material is picture.scene.objects["near"].material
    assert far is picture.scene.objects["far"]
    assert color.camera is picture.camera
    assert color.rasterizer is picture.rasterizer
    for path, value in point.items():
        moved = picture.at({path: 1.01 * value}).parameters()
        assert {p for p, x in moved.items() if not np.array_equal(x, point[p])} == {path}


def test_the_distance_to_a_kink_keeps_the_steps_inside():
    # |x| has its kink at 0; the point is 0.01 away, in units of its size 1e-2 / 1e-2 = 1.
    problem = Problem(
        {"x": np.array(0.01)},
        {"x": ("Toy", "x")},
        lambda values: np.array([abs(values["x"]) ** 1.5]),
        lambda tangents: np.array([1.5 * 0.1 * tangents["x"]]),
        lambda adj, wrt: {"x": np.asarray(1.5 * 0.1 * adj[0])},
        margins=lambda values: np.array([values["x"], np.nan]),
    )
    cell = check_cell("toy", problem, "x")
    assert cell.passed
    assert cell.kink == pytest.approx(1.0, rel=1e-6)


def test_cells_are_reported_as_they_are_done():
    seen = []
    cells, owners, _ = check_system("loss/mse", on_cell=seen.append)
    assert seen == cells
    assert owners == {("Mse", "images")}
    table = coverage.verify("loss/center_of_mass")
    assert [cell.parameter for cell in table.cells] == ["x", "mass"]
    assert table.missing == (), "a part of the table misses nothing"
    assert "center_of_mass" in table.table()
    assert table.table().endswith("2 cells, pass")


def test_systems_are_chosen_by_name_or_group_and_a_typo_names_the_nearest():
    assert [system.name for system in select("contact")] == [
        "contact/stick",
        "contact/slip",
        *contacts.BUILDS,
    ]
    assert [system.name for system in select("raster/over")] == ["raster/over"]
    assert len(select(None)) == len(coverage.system_names())
    with pytest.raises(
        ValueError, match=r"Unknown system `contcat`\. Did you mean `contact`\? Groups: tets, "
    ):
        select("contcat")
