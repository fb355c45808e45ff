"""How far laws of cloth differ, at the strains of a motion."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.meshes.sheets import sheet
from studies.answer.law import LAW, errors_by_law, mean_strain
from studies.problem.making import make_problem
from studies.scene.reading import scene_from_dict


MESH = sheet((6, 4), (0.3, 0.2))
REST = np.asarray(MESH.points)
SHEET = NeoHookeanTriangles(MESH.faces, REST, mu=4.0, lam=4.0)


def test_the_mean_strain_of_a_pulled_sheet_is_its_strain_however_it_is_turned():
    turned = Rotation.from_rotvec([0.3, 0.5, -0.2]).apply(REST * [1.1, 1.0, 1.0])
    assert mean_strain(SHEET, np.stack([REST, turned])) == pytest.approx(0.1, rel=1e-9)


def test_strains_of_both_signs_cancel():
    pulled, pushed = (REST * [by, 1.0, 1.0] for by in (1.05, 0.95))
    assert mean_strain(SHEET, np.stack([pulled, pushed])) == pytest.approx(0.0, abs=1e-12)
    assert mean_strain(SHEET, REST[None]) == pytest.approx(0.0, abs=1e-12)


def hanging(density, free, motion="dynamics"):
    """Return a problem of a sheet that hangs from one edge."""
    return make_problem(
        scene_from_dict(
            {
                "bodies": {
                    "towel": {
                        "kind": "cloth", "mesh": "sheet", "size": [0.2, 0.2], "cells": [4, 4],
                        "E": 1e4, "thickness": 0.002, "density": density,
                        "held": {"box": {"lower": [-1.0, 0.09, -1.0], "upper": [1.0, 1.0, 1.0]}},
                    }
                },
                "world": {"motion": motion},
                "observations": {
                    "x": {
                        "kind": "states", "body": "towel",
                        "simulate": {"frames": 8, "duration": 0.2},
                    }
                },
                "free": {free: {}},
            }
        )
    ).problem  # fmt: skip


def test_a_sheet_that_stretches_far_has_an_error_by_law_and_a_note():
    problem = hanging(1000.0, "towel.E")
    theta = problem.parameters.start
    (error,), (note,) = errors_by_law(problem, theta)
    motion: Any = problem.with_steps_for(theta).motion_at(theta)
    forces = motion.system.forces
    strain = mean_strain(forces["towel"], motion.run().x, forces["towel_bending"])
    assert error == pytest.approx(LAW * abs(strain))  # of log E
    assert error > 0.05
    assert "towel.E could be" in note


def test_a_sheet_that_hangs_at_rest_has_one_too():
    problem = hanging(1000.0, "towel.E", motion="equilibrium")
    (error,), (note,) = errors_by_law(problem, problem.parameters.start)
    assert error > 0.05
    assert "towel.E could be" in note


def test_a_sheet_that_hardly_stretches_has_none_to_speak_of():
    problem = hanging(10.0, "towel.density")
    (error,), notes = errors_by_law(problem, problem.parameters.start)
    assert 0.0 < error < 0.01
    assert not notes


def test_bending_that_goes_with_the_stiffness_makes_the_law_count_less():
    problem = hanging(1000.0, "towel.E")
    motion: Any = problem.motion_at(problem.parameters.start)
    sheet, hinges = (motion.system.forces[name] for name in ("towel", "towel_bending"))
    x = motion.run().x.copy()
    alone = mean_strain(sheet, x, hinges)
    x[:, :, 2] += 0.05 * np.sin(40.0 * x[:, :, 1])  # folds
    assert 0.0 < mean_strain(sheet, x, hinges) < mean_strain(sheet, x)
    assert alone == pytest.approx(mean_strain(sheet, motion.run().x), rel=1e-3)  # it hangs flat
