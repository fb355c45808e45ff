import numpy as np
import pytest

from adjsim.forces import log_neo_hookean, neo_hookean, neo_hookean_triangles
from adjsim.meshes.grid import box_tets
from studies.runs.errors import StudyError
from studies.scene.bodies.materials import (
    SOLID_LAWS,
    lumping_of,
    plate,
    require_pair,
    shear,
    sheet_curves,
    sheet_first,
    solid_curves,
    solid_first,
)
from studies.scene.declared import Soft


@pytest.mark.parametrize("nu", [-0.3, 0.0, 0.3, 0.45])
def test_moduli_are_those_that_the_forces_convert(nu):
    E, h = 2.5e5, 1e-3
    for (mu, lam), curves, scale in (
        (neo_hookean.NeoHookeanTets.moduli(E, nu), solid_curves("a", SOLID_LAWS["stable"]), E),
        (log_neo_hookean.LogNeoHookeanTets.moduli(E, nu), solid_curves("a", SOLID_LAWS["log"]), E),
        (neo_hookean_triangles.NeoHookeanTriangles.moduli(E * h, nu), sheet_curves("a", h), E),
    ):
        assert scale * curves["a.mu"](nu)[0] == pytest.approx(mu, rel=1e-14)
        assert scale * curves["a.lam"](nu)[0] == pytest.approx(lam, rel=1e-14)


@pytest.mark.parametrize("curve", [shear, solid_first, sheet_first, plate])
def test_slopes_are_derivatives(curve):
    value, slope = curve(0.3 + 1e-30j)
    assert value.imag / 1e-30 == pytest.approx(slope.real, rel=1e-14)


def test_a_plate_has_the_textbooks_rigidity():
    assert plate(0.3)[0] == pytest.approx(1.0 / (12.0 * 0.91))


def test_densities_become_masses():
    mesh = box_tets((2, 1, 1))
    lumping = lumping_of(mesh.tets, mesh.volumes, mesh.n_points)
    density = np.arange(1.0, mesh.n_tets + 1)
    assert (lumping @ density).sum() == pytest.approx(density @ mesh.volumes)
    np.testing.assert_allclose(lumping.sum(axis=0), mesh.volumes)


@pytest.mark.parametrize(
    ("given", "missing"), [({}, "E"), ({"mu": 1.0}, "lam"), ({"lam": 1.0}, "mu")]
)
def test_missing_moduli_are_told(given, missing):
    with pytest.raises(StudyError, match=rf"`bodies.a.{missing}` must be given"):
        require_pair("bodies.a", Soft(**given))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"E": 1.0, "mu": 1.0}, "some of both"),
        ({"nu": 0.3, "mu": 1.0, "lam": 1.0}, "`bodies.a.nu` is given, but not `bodies.a.E`"),
    ],
)
def test_moduli_of_both_kinds_are_told(given, message):
    with pytest.raises(StudyError, match=message):
        require_pair("bodies.a", Soft(**given))
    assert require_pair("bodies.a", Soft(E=1.0))
    assert not require_pair("bodies.a", Soft(mu=1.0, lam=1.0))
