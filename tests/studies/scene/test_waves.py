import numpy as np
import pytest

from studies.runs.errors import StudyError
from studies.scene.bodies.smoke import Waves
from tests.reference.smoke import divergence


EPS = np.finfo(np.float64).eps


def flow(shape, largest=3):
    return Waves("a", shape, largest)


@pytest.mark.parametrize("shape", [(9, 9), (12, 17)])
def test_waves_are_free_of_divergence_and_have_their_amplitude(rng, shape):
    waves = flow(shape)
    assert len(waves.numbers) == ((2 * 3 + 1) ** 2 - 1) // 2
    value = rng.normal(size=(len(waves.numbers), 2))
    velocity = waves.values({"a.waves": value, "a.wind": np.array([0.1, -0.2])})["state.velocity"]
    # sums of 24 waves of rounded sines
    assert np.abs(divergence(velocity)).max() < 100 * EPS * np.abs(velocity).max()
    np.testing.assert_allclose(velocity.mean(axis=(0, 1)), [0.1, -0.2], atol=1e-14)
    amplitudes = np.zeros_like(value)
    amplitudes[5] = 0.3, 0.4
    speed = np.linalg.norm(waves.values({"a.waves": amplitudes})["state.velocity"], axis=-1)
    # mean of (p cos + q sin)^2, all of it across the wave
    np.testing.assert_allclose(np.square(speed).mean(), 0.25 / 2, rtol=1e-12)


def test_a_flow_has_its_transpose(rng):
    waves = flow((8, 11))
    value = {"a.wind": rng.normal(size=2), "a.waves": rng.normal(size=(len(waves.numbers), 2))}
    adj = rng.normal(size=(8, 11, 2))
    forth = np.vdot(waves.jvp(value, value)["state.velocity"], adj)
    pulled = waves.vjp({}, {"state.velocity": adj})
    back = sum(np.vdot(value[path], pulled[path]) for path in value)
    np.testing.assert_allclose(forth, back, rtol=1e-12)


def test_waves_that_a_grid_cannot_hold_are_told():
    with pytest.raises(StudyError, match=r"`bodies.a.waves` must be up to 3, .* 8 x 11"):
        flow((8, 11), 4)
