"""The timing on toy sizes: what is timed, what is written; never how long it took."""

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from benchmarks.peers import PeerRun, racing
from benchmarks.timing.__main__ import time_loops
from benchmarks.timing.clock import Lap, run_rounds
from benchmarks.timing.laps import BOTH, BOTH_MASS, FORWARD, GPU, PARTS, Sizes, world_laps
from benchmarks.timing.scenes import LOOKS, block_cells, make_ball, make_block, make_cloth
from benchmarks.timing.table import growth_lines, show, tets_table
from render.soft_raster import SoftRasterizer, rasterize


def run(*args):
    app = typer.Typer()
    app.command()(time_loops)
    return CliRunner().invoke(app, [*args, "--small", "--rounds", "2", "--threads", "1"])


def test_a_run_times_every_part_and_writes_its_numbers(tmp_path):
    done = run("--out", str(tmp_path / "t.json"))
    assert done.exit_code == 0, done.output
    timing = json.loads((tmp_path / "t.json").read_text())
    laps = timing["laps"]
    assert list(dict.fromkeys(lap["part"] for lap in laps)) == [*PARTS]
    assert all(0.0 < lap["min"] <= lap["median"] for lap in laps)
    assert timing["machine"]["processor"]
    tets = [(lap["case"], lap["kind"]) for lap in laps if lap["part"] == "tets"]
    assert len(set(tets)) == len(tets) == 2 * 2 * 3
    assert {kind for _, kind in tets} == {FORWARD, BOTH, BOTH_MASS}
    compared = [lap for lap in laps if lap["ratio"]]
    assert {lap["part"] for lap in compared} == {"contact", "worlds", "images", "memory"}
    assert all(lap["ratio"]["min"] > 0.0 for lap in compared)
    for name in PARTS:
        assert f"{name}: " in done.output
    assert "5 tetrahedra, forward: " in done.output
    assert "for each covered pixel" in done.output


def test_a_part_that_does_not_exist_is_named(tmp_path):
    done = run("tots", "--out", str(tmp_path / "t.json"))
    assert done.exit_code == 2
    assert "`tots` is none of tets, cloth" in done.output


@pytest.mark.parametrize("n_tets", [5, 100, 200, 400, 1000, 2000, 5000, 10000])
def test_the_paper_s_sizes_are_met_exactly_by_nearly_cubic_blocks(n_tets):
    cells = block_cells(n_tets)
    assert 5 * np.prod(cells) == n_tets
    assert max(cells) <= 3 * min(cells)


def test_worlds_do_the_work_of_the_block_beside_them():
    laps = [lap for lap in world_laps(Sizes(each=100, worlds=200, steps=5)) if lap.beside]
    assert len(laps) == 4
    for lap in laps:
        assert lap.work == pytest.approx(lap.beside.work)


def test_the_block_touches_the_floor_and_slides():
    block = make_block(40)
    assert (block.state.x[:, 1] < block.model.forces["floor"].height).any()
    assert (block.state.v[:, 0] > 0.0).all()


def test_the_sheet_has_the_asked_size_and_a_hinge_at_every_inner_edge():
    cloth, n = make_cloth(2048), 32
    assert len(cloth.mesh.faces) == 2 * n * n
    assert len(cloth.model.forces["hinges"].hinges) == (3 * 2 * n * n - 4 * n) // 2
    assert (cloth.state.x[cloth.model.pinned, 1] == 1.0).all()
    assert cloth.dt < cloth.model.stable_dt()


def picture(look):
    ball = make_ball(320, look)
    vertices = {"ball": ball.points}
    return rasterize(ball.scene, ball.camera, SoftRasterizer(), vertices, (64, 64), threads=1)


@pytest.mark.parametrize("look", LOOKS)
def test_the_ball_fills_half_of_the_image(look):
    # 320 flat faces cover 1 - 0.012 of the disc; a pixel's width of outline is 1 %.
    assert abs(picture(look)[..., 3].mean() - 0.5) < 0.02


def test_no_look_of_the_ball_is_like_another():
    flat, phong, texture = (picture(look)[..., :3] for look in LOOKS)
    for a, b in ((flat, phong), (flat, texture), (phong, texture)):
        assert np.abs(a - b).max() > 0.1


def test_times_are_summed_up_as_minimum_median_and_paired_ratio():
    b = Lap("p", "b", FORWARD, 1, int, wall=[1.0, 10.0, 1.0], core=[1.0, 2.0, 1.0])
    a = Lap("p", "a", FORWARD, 1, int, work=2.0, beside=b, facts={"steps": 3})
    a.wall, a.core = [2.0, 20.0, 3.0], [2.0, 4.0, 3.0]  # a burst of noise hits both
    result = a.result()
    assert (result["min"], result["median"], result["on_core"]) == (1.0, 1.5, 1.0)
    assert result["ratio"] == {"min": 1.0, "median": 1.0}
    assert result["steps"] == 3
    out = io.StringIO()
    show([result, b.result()], Console(file=out, width=100))
    assert "1000 (1500)" in out.getvalue()


def test_a_gpu_is_shown_beside_the_best_number_of_threads():
    rows = [
        {
            "part": "p",
            "case": "a",
            "kind": FORWARD,
            "threads": n,
            "min": t,
            "median": t,
            "ratio": None,
        }
        for n, t in ((GPU, 0.002), (1, 0.009), (2, 0.005))
    ]
    out = io.StringIO()
    show(rows, Console(file=out, width=120))
    assert "CPU/GPU" in out.getvalue()
    assert "2.5" in out.getvalue()


def test_odd_rounds_go_backwards():
    seen = []
    laps = [Lap("p", str(k), FORWARD, 1, lambda k=k: seen.append(k)) for k in range(2)]
    run_rounds(laps, 2, lambda line: None)
    assert seen == [0, 1, 0, 1, 1, 0]  # the first two compile
    assert [len(lap.wall) for lap in laps] == [2, 2]


def test_a_sum_of_pixels_and_faces_is_found_again():
    rows = [
        {"part": "images", "threads": 1, "look": "", "blend": "over", "kind": FORWARD,
         "covered": covered, "faces": faces, "on_core": 3e-4 + 8e-8 * covered + 7e-7 * faces}
        for covered, faces in np.random.default_rng(0).uniform(1e2, 1e5, (12, 2))
    ]  # fmt: skip
    assert growth_lines(rows) == [
        "images, forward, over 12 sizes: 0.30 ms + 80 ns for each covered pixel + 700 ns for each "
        "face, within a factor of 1.00"
    ]


def stand_in(module, off=0.0):
    """A package that computes what adjsim does, by adjsim, but for `off` metres."""

    def prepare(block, n_steps, threads):
        x, grad = racing._our_block(block, n_steps)
        return PeerRun(lambda: None, lambda: x + off, lambda: None, lambda: np.array([grad]))

    return SimpleNamespace(prepare=prepare, HAS_FLOOR=False)


@pytest.mark.parametrize("off", [0.0, 1.0])
def test_a_package_is_timed_only_if_it_computes_the_same(monkeypatch, off):
    monkeypatch.setattr(racing, "BLOCKS", {"Other": "other"})
    monkeypatch.setattr(racing, "BALLS", {"Nobody": "no_such_package"})
    monkeypatch.setitem(sys.modules, "benchmarks.peers.other", stand_in("other", off))
    laps, notes = racing.peer_laps(Sizes().small())
    theirs = [lap for lap in laps if lap.case.startswith("Other")]
    if off:
        assert theirs == []
        assert "Other is not timed: DiffersError: its positions differ from ours" in notes[0]
    else:
        assert [lap.kind for lap in theirs] == [FORWARD, BOTH] * 2
        assert all(lap.beside.case == f"adjsim, {lap.case[7:]}" for lap in theirs)
    assert "Nobody is not timed" in notes[-1]
    assert "pip install" in notes[-1]


@pytest.mark.filterwarnings("ignore")  # what other packages warn of is theirs to mend
@pytest.mark.parametrize("name", [*racing.BLOCKS, *racing.BALLS])
def test_an_installed_package_moves_the_same_block_or_covers_the_same_pixels(name, monkeypatch):
    for table in (racing.BLOCKS, racing.BALLS):
        for other in set(table) - {name}:
            monkeypatch.delitem(table, other)
    laps, notes = racing.peer_laps(Sizes(tets=(100,), faces=(320,), pixels=(128,)))
    if notes and ("No module named" in notes[0] or "it needs LLVM" in notes[0]):
        pytest.skip(notes[0])
    assert notes == []
    assert len(laps) == 4  # forward and with reverse, of both


def test_the_table_of_tetrahedra_has_the_times_of_one_thread_without_viscosity():
    def lap(case, kind, seconds, threads=1):
        return {"part": "tets", "case": case, "kind": kind, "threads": threads, "min": seconds}

    rows = [
        lap("1000 tetrahedra", "forward", 1e-8),
        lap("1000 tetrahedra", "forward", 7e-9, threads=2),
        lap("1000 tetrahedra", "forward+reverse", 3.2e-8),
        lap("1000 tetrahedra, viscosity", "forward", 2e-8),
    ]
    assert tets_table(rows)[1:] == [["1 000", "10.0 ns", "32.0 ns", "100 000", "31 200"]]
