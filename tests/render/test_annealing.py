import numpy as np
import pytest

from render.annealing import Geometric, Stages, annealed, softness
from render.blending import DIBR, Hard
from render.soft_raster import SoftRasterizer


def test_softness_is_in_pixels():
    assert np.sqrt(softness(0.5, 128)) * 128 / 2 == pytest.approx(0.5, rel=1e-15)


def test_a_geometric_schedule_shrinks_by_equal_factors_and_stays_at_its_end():
    schedule = Geometric(1e-2, 1e-5, 4)
    values = [schedule(k) for k in range(6)]
    np.testing.assert_allclose(values, [1e-2, 1e-3, 1e-4, 1e-5, 1e-5, 1e-5], rtol=1e-14)


def test_stages_stay_and_then_jump():
    schedule = Stages([3.0, 2.0, 1.0], 2)
    assert [schedule(k) for k in range(8)] == [3.0, 3.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    assert [k for k in range(8) if schedule.is_new(k)] == [0, 2, 4]


def test_only_what_is_annealed_changes():
    soft = SoftRasterizer(1e-2, 0.5, 0.1, (0.1, 0.2, 0.3))
    changed = annealed(soft, 1, sigma=Geometric(1e-2, 1e-4, 2))
    assert changed.sigma == pytest.approx(1e-4, rel=1e-15)
    assert (changed.gamma, changed.epsilon) == (0.5, 0.1)
    assert annealed(soft, 3, gamma=Stages([0.5, 0.25], 3)).gamma == 0.25
    assert annealed(soft, 3).sigma == soft.sigma


def test_dibr_anneals_its_kappa_and_seamless_coverage_stays():
    sharp = SoftRasterizer(blend=DIBR(), seamless=True)
    wide = annealed(sharp, 0, kappa=Geometric(1e-2, 1e-4, 3))
    assert wide.spread == pytest.approx(1e-2, rel=1e-15)
    assert annealed(wide, 9, kappa=Stages([3e-3, 2e-3], 2)).blend == DIBR(2e-3)
    assert annealed(wide, 1).blend == wide.blend
    assert wide.seamless
    assert annealed(SoftRasterizer(seamless=True), 0, sigma=Stages([1e-3], 1)).seamless


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Geometric(0.0, 1.0, 3), "`start` must be positive, got 0"),
        (lambda: Geometric(1.0, -1.0, 3), "`end` must be positive, got -1"),
        (lambda: Geometric(1.0, 1.0, 1), "`steps` must be a whole number of at least 2, got 1"),
        (lambda: Geometric(1.0, 1.0, 3)(-1), "`step` must be a whole number of at least 0, got -1"),
        (lambda: Stages([], 3), "`values` must hold at least one number"),
        (lambda: Stages([1.0, 0.0], 3), "`values` must be positive, got 0"),
        (lambda: Stages([1.0], 0), "`steps` must be a whole number of at least 1, got 0"),
        (
            lambda: annealed(SoftRasterizer(blend=DIBR()), 0, sigma=Stages([1.0], 1)),
            "`sigma` must be None where the blend is DIBR, got Stages.*Anneal `kappa`",
        ),
        (
            lambda: annealed(SoftRasterizer(blend=Hard()), 0, sigma=Geometric(1.0, 0.1, 2)),
            "`sigma` must be None where the blend is Hard, got Geometric.*no softness",
        ),
        (
            lambda: annealed(SoftRasterizer(), 0, kappa=Geometric(1.0, 0.1, 2)),
            "`kappa` must be None where the blend is Over, got Geometric.*softness of DIBR",
        ),
        (lambda: softness(0.0, 64), "`pixels` must be positive, got 0"),
        (lambda: softness(1.0, 0), "`height` must be positive, got 0"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
