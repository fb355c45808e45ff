"""The teeth of the checks: whatever line of an adjoint is corrupted, they notice."""

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.sharing import TIMEOUT, found_once


HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Adjoint functions that no toy reaches: threads of a GPU, and the forms of pixel shading that these
# call, which the emulated device compares with the CPU's; and what every twin writes anew.
ON_A_GPU = {
    "adjoint/render/raster/fragments.py: color_weights_vjp",
    "adjoint/render/raster/fragments.py: depths_vjp_body",
    "adjoint/render/raster/fragments.py: pair_vjp_body",
    "adjoint/render/raster/fragments.py: pixels_vjp_body",
    "adjoint/render/raster/fragments.py: smooth_vjp_body",
    "adjoint/render/raster/pixel_shading.py: face_highlight_vjp",
    "adjoint/render/raster/pixel_shading.py: pixel_albedo_vjp",
    "adjoint/render/raster/pixel_shading.py: pixel_color_vjp",
    "adjoint/render/raster/pixel_shading.py: pixel_light_vjp",
    "adjoint/render/shaders/shading.py: highlight_vjp",
    "adjoint/render/textures.py: texture_color_vjp",
}
ABSTRACT = {
    "adjoint/courses.py: course_vjp",
    "adjoint/forces/element.py: mass_vjp",
    "adjoint/forces/element.py: rest_vjp",
    "adjoint/forces/lumping.py: measure_vjp",
}
# tests/render/test_losses.py and test_pyramid_boxes.py, whose boxes have the bits of whole frames,
# and for faces that shine where no light is seen test_reach.py there.
ELSEWHERE = {
    "adjoint/render/losses.py: residuals_vjp",
    "adjoint/render/pyramid_boxes.py: box_residuals_vjp",
    "adjoint/render/raster/tile_shading.py: plain_vjp",
}
# Calls that do something only where several threads draw; one alone adds to the texels at once.
OF_THREADS = ("add_records(", "add_tiles(", "add_texels(", "record_block(")


def run(folder, per_file):
    """Run so many mutants of each file in a process of its own; return what it tells."""
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, str(HERE / "mutant_runner.py"), str(ROOT), str(per_file)],
        capture_output=True,
        text=True,
        env=env,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module", params=[3, pytest.param(10, marks=pytest.mark.nightly)])
def outcome(request, tmp_path_factory):
    """What the toys, and the corruptions, led to."""
    find = partial(run, tmp_path_factory.mktemp("mutants"), request.param)
    return found_once(tmp_path_factory, f"mutants-{request.param}", find)


def test_the_uncorrupted_toys_pass(outcome):
    assert len(outcome["controls"]) > 40
    assert {name: wrong for name, wrong in outcome["controls"].items() if wrong} == {}


def test_the_toys_reach_every_adjoint(outcome):
    unreached = {name for name in outcome["unreached"] if "/cuda_" not in name}
    assert unreached == ON_A_GPU | ABSTRACT | ELSEWHERE


def test_every_corruption_is_noticed(outcome):
    unnoticed = [
        "{file}:{line}: {kind}: {was} -> {becomes}".format(**corruption)
        for corruption in outcome["corruptions"]
        if not corruption["verdict"] and not corruption["was"].startswith(OF_THREADS)
    ]
    assert unnoticed == []


def test_corruptions_of_every_kind_and_of_every_file_are_noticed_by_a_number(outcome):
    """What raises an error proves nothing: the checks must have compared."""
    numbers = ("dot test:", "gradcheck:", "terms:")
    noticed = [
        corruption
        for corruption in outcome["corruptions"]
        if corruption["verdict"].startswith(numbers)
    ]
    assert len(noticed) > 0.7 * len(outcome["corruptions"])
    assert {corruption["kind"] for corruption in noticed} == {"drop", "sign", "swap", "stale"}
    files = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "adjoint").rglob("*.py")
        if re.search(r"def \w+_vjp", path.read_text()) and "verify" not in path.parts
    }
    # Drivers, what every twin writes anew, what its own test compares bit by bit, and an adjoint
    # that is the tangent, being symmetric.
    without = {name for name in files if "/cuda_" in name} | {"adjoint/forces/element.py"}
    without |= {"adjoint/render/pyramid_boxes.py", "adjoint/algebra/mat3.py"}
    assert files - {corruption["file"] for corruption in noticed} <= without
