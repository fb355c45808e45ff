"""The teeth of the checks: every listed corruption of an adjoint line is noticed."""

import json
import os
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest

from tests.sharing import TIMEOUT, found_once


HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MUTATIONS = tomllib.loads((HERE / "mutations.toml").read_text())["mutation"]
CONTROLS = [{"toy": toy} for toy in sorted({m["toy"] for m in MUTATIONS})]


def run_jobs(jobs, folder):
    """Run jobs in a process of their own; return their verdicts."""
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, str(HERE / "mutant_runner.py"), str(ROOT)],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        env=env,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """Verdicts of the controls, and of the mutations in their order."""
    folder = tmp_path_factory.mktemp("mutants")
    find = partial(run_jobs, [*CONTROLS, *MUTATIONS], folder)
    found = found_once(tmp_path_factory, "verdicts", find)
    return found[: len(CONTROLS)], found[len(CONTROLS) :]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m['file']}: {m['what']}")
def test_the_line_of_every_mutation_is_there_exactly_once(mutation):
    assert (ROOT / mutation["file"]).read_text().count(mutation["line"]) == 1
    assert mutation["line"] != mutation["becomes"]


def test_the_list_reaches_every_kind_of_adjoint():
    files = {m["file"] for m in MUTATIONS}
    assert len(MUTATIONS) >= 25
    for folder in ("adjoint/forces", "adjoint/reduced", "adjoint/render", "adjoint/rigid"):
        on_disk = {
            f"{folder}/{p.name}"
            for p in (ROOT / folder).glob("*.py")
            if p.name != "__init__.py" and "_vjp(" in p.read_text()
        }
        names = ("cuda_raster", "cuda_layers", "soft_raster")
        drivers = {f"adjoint/render/{name}.py" for name in names}
        assert on_disk - files <= drivers, "these only run the others"
    others = ("timeloop", "sweep", "series", "parameters", "losses", "render/terms")
    assert {f"adjoint/{name}.py" for name in others} <= files


def test_the_uncorrupted_toys_pass(verdicts):
    assert dict(zip((c["toy"] for c in CONTROLS), verdicts[0], strict=True)) == {
        c["toy"]: "" for c in CONTROLS
    }


@pytest.mark.parametrize(
    "k", range(len(MUTATIONS)), ids=lambda k: f"{MUTATIONS[k]['file']}: {MUTATIONS[k]['what']}"
)
def test_a_corrupted_line_is_noticed(verdicts, k):
    verdict = verdicts[1][k]
    assert verdict.startswith(("dot test:", "gradcheck:", "terms:")), verdict or "nobody noticed"
