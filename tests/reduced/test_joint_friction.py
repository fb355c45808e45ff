"""The smooth sign of dry friction: its ends, and its derivatives."""

import math

import pytest

from adjoint.reduced.joint_friction import smooth_sign_vjp
from adjsim.reduced.joint_friction import smooth_sign, smooth_sign_jvp


def test_it_is_the_sign_far_from_rest_and_linear_near_it():
    assert smooth_sign(3.0, 4.0) == 0.6
    assert smooth_sign(0.0, 0.01) == 0.0
    # 1 - eps^2/(2 w^2), and w/eps (1 - w^2/(2 eps^2))
    assert smooth_sign(-10.0, 0.01) == pytest.approx(-1.0 + 0.5e-6, abs=1e-12)
    assert smooth_sign(1e-6, 0.01) == pytest.approx(1e-4, rel=1e-8)


@pytest.mark.parametrize(("w", "width"), [(0.0, 0.3), (0.2, 0.3), (-2.0, 0.3), (1e-3, 1.0)])
def test_tangent_and_adjoint_are_the_closed_form(w, width):
    cubed = math.hypot(w, width) ** 3
    exact = width**2 / cubed, -w * width / cubed
    assert smooth_sign_jvp(w, width, 1.0, 0.0) == pytest.approx(exact[0], rel=1e-14)
    assert smooth_sign_jvp(w, width, 0.0, 1.0) == pytest.approx(exact[1], rel=1e-14)
    assert smooth_sign_vjp(w, width, 2.0) == pytest.approx([2.0 * e for e in exact], rel=1e-14)
    step = 1e-6  # differences are off by step^2 times the third derivative, below 1e3
    slope = (smooth_sign(w + step, width) - smooth_sign(w - step, width)) / (2.0 * step)
    assert slope == pytest.approx(exact[0], abs=1e-8)
