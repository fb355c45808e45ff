"""Flows as waves, pictures as densities, and the study that joins them."""

import re

import numpy as np
import pytest

from adjsim.reduced.smoke import SmokeTrajectory
from studies import config, running
from studies.errors import StudyError
from studies.flows import EDGE, PICTURES, Everywhere, Waves, drawn, picture
from studies.media import write_png
from studies.registry import STUDIES, RunOptions
from studies.smoke_filming import SmokeFilming
from tests.reference.smoke import divergence
from tests.studies.toys import TOYS


EPS = np.finfo(np.float64).eps
PICTURE = ("target.picture=heart", "optimizer.method=l-bfgs-b", "optimizer.tolerance=0.05")


@pytest.mark.parametrize("shape", [(9, 9), (12, 17)])
def test_waves_are_free_of_divergence_and_have_their_amplitude(rng, shape):
    waves = Waves(shape, 3)
    assert len(waves.numbers) == ((2 * 3 + 1) ** 2 - 1) // 2
    value = rng.normal(size=(len(waves.numbers), 2))
    velocity = waves.apply(value)
    # sums of 24 waves of rounded sines
    assert np.abs(divergence(velocity)).max() < 100 * EPS * np.abs(velocity).max()
    one = np.zeros_like(value)
    one[5] = 0.3, 0.4
    speed = np.linalg.norm(waves.apply(one), axis=-1)
    # mean of (p cos + q sin)^2, all of it across the wave
    np.testing.assert_allclose(np.square(speed).mean(), 0.25 / 2, rtol=1e-12)


@pytest.mark.parametrize("lead", [Waves((8, 11), 2), Everywhere((8, 11))], ids=["waves", "wind"])
def test_a_flow_has_its_transpose(rng, lead):
    value = rng.normal(size=(len(lead.numbers), 2) if isinstance(lead, Waves) else 2)
    adj = rng.normal(size=(8, 11, 2))
    forth, back = np.vdot(lead.apply(value), adj), np.vdot(value, lead.transpose(adj))
    np.testing.assert_allclose(forth, back, rtol=1e-12)


@pytest.mark.parametrize("name", PICTURES)
def test_a_drawn_picture_covers_its_area(name):
    density = drawn(name, (110, 90), 0.25)
    assert density.min() == 0.0
    assert density.max() == 1.0
    # soft edges: half of what they hold on either side, over some 200 cells of rim
    assert abs(density.mean() - 0.25) < 0.1 * 200 * EDGE / density.size
    np.testing.assert_allclose(density, density[:, ::-1], atol=1e-12)


def test_the_heart_stands_upright():
    rows = drawn("heart", (60, 60), 0.25).sum(axis=1)
    assert rows[:30].sum() > rows[30:].sum()
    tip = np.flatnonzero(rows)[-1]
    assert rows[tip] < 3.0


def test_a_picture_comes_from_a_file(tmp_path, rng):
    pixels = np.round(255 * rng.random((5, 7, 1))).repeat(3, axis=-1) / 255
    path = write_png(tmp_path / "mine.png", pixels)
    np.testing.assert_allclose(picture("x", str(path), (5, 7), 0.5), pixels[..., 0], atol=1e-12)
    with pytest.raises(StudyError, match=r"`x` must have one pixel for each cell, 7 x 5, got 5 x"):
        picture("x", str(path), (7, 5), 0.5)
    (tmp_path / "text.png").write_text("no picture")
    with pytest.raises(StudyError, match=r"`x`: .* cannot be read as an image"):
        picture("x", str(tmp_path / "text.png"), (7, 5), 0.5)


def test_filming_has_its_tangent_and_adjoint(rng):
    filming = SmokeFilming([0.9, 0.8, 0.7], [0.1, 0.2, 0.3], (4, 5))
    steps, still = np.arange(2), np.zeros((2, 4, 5, 2))
    run = SmokeTrajectory(steps, 1.0, still, rng.random((2, 4, 5)))
    tangent = SmokeTrajectory(steps, 1.0, still, rng.normal(size=(2, 4, 5)))
    images, tan_images = filming.jvp(None, run, tangent, {})
    assert np.array_equal(images, filming.shoot(None, run))
    adj = rng.normal(size=images.shape)
    pulled = filming.vjp(None, run, adj).frames["density"]
    np.testing.assert_allclose(np.vdot(adj, tan_images), np.vdot(pulled, tangent.density))


def test_smoke_is_stirred_towards_a_picture(tmp_path):
    overrides = (*TOYS["smoke"].overrides, *PICTURE, "flow.waves=2", "time.steps=16")
    folder, job = running.start("smoke", overrides, tmp_path / "run", {})
    text = job.run(folder)
    result, frames = folder.read_json("result.json"), folder.read_npz("frames.npz")
    assert result["status"] == "CONVERGED"
    assert result["loss"] < 0.4 * result["loss_at_start"]
    assert "truth" not in result["parameters"][0]
    assert "The density differs from the picture by" in text
    assert folder.read_json("certificate.json")["passed"]
    # the video shows the way, the loss only its end
    assert frames["compared"].tolist() == [False] * 16 + [True]
    assert np.array_equal(frames["target"][0], frames["target"][-1])
    assert (folder.path / "figures" / "flow.png").stat().st_size > 10_000
    # one picture does not tell the flows apart that lead to it
    values = result["uncertainty"]["singular_values"]
    assert values[-1] < 0.05 * values[0]


def test_a_picture_with_more_smoke_than_there_is_is_told(tmp_path):
    path = write_png(tmp_path / "white.png", np.ones((20, 24, 3)))
    overrides = (*TOYS["smoke"].overrides, *PICTURE, f"target.picture={path}")
    settings = config.resolve("smoke", overrides).values
    fit = STUDIES["smoke"].prepare(settings, RunOptions())
    told = " ".join(fit.findings(fit.problem.parameters.start))
    # a quarter of the grid, but for the soft rim of the disc
    assert re.search(r"holds (4|4\.0\d|3\.9\d) times the smoke that there is", told)
