"""Every CUDA kernel on the emulated device: the CPU's numbers, in any order of threads."""

import re
import sys

import pytest

from tests.cuda.processes import launched_threads, run
from tests.cuda.render_scenes import ZERO


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="numba-cuda runs on Linux")
EMULATED = {"LLVMLITE_ENABLE_IR_LAYER_TYPED_POINTERS": "0"}
# Kernels of each family: outputs use all of the renderer's, the others some of them.
GRID, BLOCKS = "on_grid_with_bodies", "in_blocks_with_bodies"
ON_GRID = {f"{sweep}_{GRID}" for sweep in ("advance", "reverse", "tangent")}
IN_BLOCKS = {f"{sweep}_{BLOCKS}" for sweep in ("advance", "reverse_with_rest", "tangent_with_rest")}
OF_PAIRS = {
    f"{name}_thread"
    for name in ("far", "box", "enter", "count", "trouble", "write", "lane", "entry", "spread")
}
KERNELS = {
    "worlds": ON_GRID | IN_BLOCKS,
    "nodes": {"advance_own_nodes"},
    "surfaces": ON_GRID | OF_PAIRS,
    "outputs": launched_threads() - {"product_thread"} - OF_PAIRS,
    "physics": IN_BLOCKS,
}
# Worlds have few forces and the kernels of all of them. The simulator runs all forces.
LAUNCHES_OF_A_SEARCH = 6  # 7 where it is checked
NIGHTLY = ("physics", "render", "batches", "study")
RUNS = ["worlds", "nodes", "surfaces", "outputs", "reduced"]
RUNS += [pytest.param(what, marks=pytest.mark.nightly) for what in NIGHTLY]


@pytest.mark.parametrize("what", RUNS)
def test_the_emulated_device_gives_the_numbers_of_the_cpu(what):
    report = run("tests.cuda.emulate", what, "--json", **EMULATED)
    assert report["faults"] == []
    files = r"^.*_cuda_(raster|bins|sums|tangents|pairs|search)_"
    assert KERNELS.get(what, set()) <= {re.sub(files, "", name) for name in report["kernels"]}
    for name, row in report["results"].items():
        assert row["alike"], name
        assert row["repeats"], f"{name} depends on the order of threads"
        assert row["largest"] > 0.0 or name in ZERO, f"{name} is zero: nothing was compared"
        assert row["difference"] <= row["allowed"], (name, row)


def test_a_picture_of_new_vertices_asks_little_of_the_host():
    counted = run("tests.cuda.emulate", "count", "picture", "--json", **EMULATED)
    print(counted.pop("host time of it with stand-ins, least [µs]"))
    assert counted == {
        f"{what}, a picture of 128², forward / with reverse": numbers
        for what, numbers in {
            "launches": "10 / 16",
            "kernels and fills of CuPy": "10 / 11",
            "times the host waits": "3 / 4",
            "uploads": "1 / 2",
        }.items()
    }


def test_pairs_are_found_as_on_the_cpu_in_any_order_of_threads():
    """The lists to the bit; distances contract otherwise there."""
    report = run("tests.cuda.emulate.lists", **EMULATED)
    rows = report["lists"]
    for name, row in rows.items():
        assert row["same"], name
        assert row["faults"] == [], name
        assert row["pairs"] > 0 or "much larger" in name, name
        assert row["counts"]["bytes read back"] == 8, name
        assert row["counts"]["launches"] <= LAUNCHES_OF_A_SEARCH, name
        assert row["counts"]["uploads"] == 1, name
    assert len(rows) == 30
    said = {name: last for name, (first, last) in report["troubles"].items() if not first}
    assert said == {
        "apart": False,
        "through": True,
        "beyond": True,
        "found beyond": False,
        "fast": True,
    }
    assert set(report["errors"]) == {"cpu", "cuda"}
    for text in report["errors"].values():  # each looks when it searches
        assert re.match("The surfaces of `touch` went through each other before step [23] ", text)
    (forward, after), (again, more) = (report["kept"][name] for name in ("with room", "without"))
    assert forward == after == again > 2
    assert more > again
    assert report["kept"]["same"]


def test_the_emulated_device_tells_mistakes():
    report = run("tests.cuda.emulate.broken", **EMULATED)
    assert report["none"]["faults"] == []
    assert report["none"]["difference"] < 1e-15
    assert "race: " in report["no barrier"]["faults"][0]
    assert "in no array" in str(report["a lane too many"]["faults"])
    assert report["two swapped"]["difference"] > 1e-6
    assert "reads what is in no array" in report["beyond"]["faults"][0]
    assert "reads what nobody wrote" in report["unwritten"]["faults"][0]
    assert "race: writes" in report["onto_one"]["faults"][0]
    assert "ended while others wait at a barrier" in report["uneven"]["faults"][0]
    assert report["uneven"]["error"]
    assert report["within blocks"] == {"faults": [], "is right": True}
    assert "race: reads" in str(report["beyond blocks"]["faults"])
    for name in ("reversed", "reversed with grid"):
        assert report[name] == {"faults": [], "is right": True}
    for name in ("unordered", "unordered with grid"):
        assert "race: " in str(report[name]["faults"]), name
    assert "reads what nobody wrote" in str(report["empty place"]["faults"])
    assert "in no array" in str(report["beyond shared"]["faults"])
    kind, text = report["old driver"]
    assert kind == "RuntimeError"
    assert "knows CUDA 12.8, and 13.0 is needed: install driver 580 or later" in text
    kind, text = report["no cuFFT"]
    assert kind == "RuntimeError"
    assert "cuFFT cannot be loaded" in text
    assert "pip install -e '.[cuda]'" in text
    kind, text = report["no model"]
    assert kind == "MemoryError"
    assert "Take a coarser mesh, or fewer worlds" in text
    kind, text = report["no states"]
    assert kind == "MemoryError"
    assert re.match(r"404 states .* needed are [\d,]+ bytes, and [\d,]+ are free", text)
    assert "`checkpoint`" in text
    assert "`--checkpoint 500MB`" in text
    assert report["budget"] is None
    kind, text = report["full"]
    assert kind == "MemoryError"
    assert re.fullmatch(r"Out of memory allocating \d+ bytes", text), text


@pytest.mark.nightly
def test_a_search_whose_gpu_is_lost_goes_on_on_the_cpu():
    report = run("tests.cuda.emulate.lost", **EMULATED)
    lost, without = report["lost"], report["without"]
    assert lost["code"] == without["code"] == 2
    assert not lost["is done"]
    assert "The GPU failed: CUDA_ERROR" in lost["text"]
    assert "run --resume --device cpu`" in lost["text"]
    assert "Add `--device cpu`" in without["text"]
    assert lost["logged"] == without["logged"] > 0
    done = report["on the CPU"]
    assert f"{lost['logged']} evaluations are read from the log" in done["text"]
    assert (done["code"], done["is done"], done["device"]) == (0, True, "cuda, then cpu")
    assert done["logged"] > lost["logged"]
    assert "`--device` was cuda, then cpu, is cuda" in report["back"]["text"]
