"""The programs of `docs/bridges.md` do what the page says, where their packages are installed."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest


ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "bridges"
PAGE = (ROOT / "docs" / "bridges.md").read_text(encoding="utf-8")


@pytest.fixture
def of_page(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


def test_the_page_shows_every_program():
    shown = set(re.findall(r"\{literalinclude\} bridges/(\w+\.py)", PAGE))
    assert shown == {path.name for path in FOLDER.glob("*.py")}


def test_a_training_loop_finds_the_stiffness(of_page):
    pytest.importorskip("torch")
    assert of_page("training").log_stiffness.exp().item() == pytest.approx(60.0, rel=0.01)


def test_optax_finds_the_stiffness(of_page):
    jax = pytest.importorskip("jax")
    pytest.importorskip("optax")
    before = jax.config.jax_enable_x64
    stiffness = of_page("with_optax").found(100)
    jax.config.update("jax_enable_x64", before)
    assert stiffness == pytest.approx(60.0, rel=0.01)


def test_optuna_finds_the_stiffness(of_page):
    pytest.importorskip("optuna")
    assert of_page("with_optuna").found(60) == pytest.approx(60.0, rel=0.05)


@pytest.mark.nightly
def test_a_policy_makes_the_jellyfish_rise(of_page):
    torch = pytest.importorskip("torch")
    jellyfish = of_page("jellyfish")
    risen = jellyfish.train(jellyfish.make_policy(), 8)
    assert abs(risen[0]) < 0.05
    assert risen[-1] > 0.1
    assert torch.get_default_dtype() is torch.float32  # the example changes no setting


@pytest.mark.nightly
def test_gradients_pass_from_a_path_tracer_to_the_motion():
    pytest.importorskip("mitsuba")
    # Without an LLVM that suits, Mitsuba ends its process.
    if subprocess.run([sys.executable, "-m", "benchmarks.peers.mitsuba_ball"], cwd=ROOT,
                      capture_output=True, check=False).returncode:  # fmt: skip
        pytest.skip("Mitsuba needs LLVM as a shared library")
    check = (
        "import numpy as np\n"
        "from path_tracer import *\n"
        "v = np.array([1.2, 0.2, 0.0])\n"
        "target = picture(throw([1.5, 0.5, 0.0]).trajectory.x[-1], seed=1000)\n"
        "def loss(v): return np.mean([loss_and_gradient(v, target, s)[0] for s in range(6)])\n"
        "g = np.mean([loss_and_gradient(v, target, s)[1] for s in range(6)], axis=0)\n"
        "d = 0.025 * np.array([1.0, 1.0, 0.0])\n"
        "print(g @ d, (loss(v + d) - loss(v - d)) / 2)\n"
    )
    done = subprocess.run([sys.executable, "-c", check], cwd=FOLDER, capture_output=True,
                          text=True, check=True)  # fmt: skip
    adjoint, difference = map(float, done.stdout.split()[-2:])
    assert adjoint == pytest.approx(difference, rel=0.1)  # both are noisy by about 2 %
