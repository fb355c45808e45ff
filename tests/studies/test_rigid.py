"""What a video shows of a rigid body on a floor: nothing in newtons, unless a force is known."""

import numpy as np

from studies import config, rigid
from studies.registry import RunOptions
from studies.uncertainty import SINGULAR, uncertainty
from tests.studies.toys import TOYS


TOY = TOYS["rigid-contact"]


def spectrum(*overrides):
    """Return the condition of the fit at the truth, and its worst direction by name."""
    settings = config.resolve("rigid-contact", [*TOY.overrides, *overrides])
    fit = rigid.make_fit(settings.values, RunOptions(), 0)
    assert fit.truth is not None
    parameters = fit.problem.parameters
    spread = uncertainty(fit.problem, np.log(fit.truth.flat(parameters.paths)))
    values = spread.singular_values
    return values, dict(zip(parameters.paths, spread.directions[-1], strict=True)), spread


def test_without_a_known_force_mass_and_contact_scale_together():
    values, worst, spread = spectrum("push.force=[0.0, 0.0, 0.0]")
    # rounding of 300 steps, against a least determined direction of 1e-2 or more otherwise
    assert values[-1] < SINGULAR * values[0]
    assert values[-2] > 1e-3 * values[0]
    together = ("body.mass", "floor.stiffness", "floor.damping", "floor.friction_stiffness")
    expected = {path: 0.5 if path in together else 0.0 for path in worst}
    sign = np.sign(worst["body.mass"])
    for path, weight in worst.items():
        assert abs(sign * weight - expected[path]) < 1e-6, path
    assert "leaves no trace" in spread.reason
    assert np.isnan(spread.interval[0]).all()


def test_a_force_known_in_newtons_determines_them_all():
    values, _, spread = spectrum()
    assert values[-1] > 1e-3 * values[0]
    assert not spread.reason


def test_masses_of_a_gram_are_found():
    overrides = (
        *TOYS["rigid-mass"].overrides,
        "hidden.mass=[1e-3, 2e-3]",
        "start.mass=[3e-3, 4e-3]",
        "bounds.mass=[1e-4, 1e-2]",
        "push.force=[0.0, -0.06, 0.0]",
    )
    fit = rigid.make_fit(config.resolve("rigid-mass", overrides).values, RunOptions(), 0)
    assert fit.truth is not None
    problem, theta = fit.problem, fit.problem.parameters.start
    for _ in range(12):
        r, jacobian = problem.residuals_and_jacobian(theta)
        theta -= np.linalg.lstsq(jacobian, r)[0]
    mass = problem.parameters.natural(theta)
    assert fit.truth.errors(("body.mass",), mass) <= 1e-7
    assert mass[0] < 2e-3
