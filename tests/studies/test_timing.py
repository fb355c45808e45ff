"""The timing study on toy sizes: what is timed, what is written; never how long it took."""

import json

import numpy as np
import pytest

from render.soft_raster import SoftRasterizer, rasterize
from studies import cli, config, timing
from studies.errors import StudyError
from studies.manifest import manifest
from studies.peers import PEERS, node_slots
from studies.registry import RunOptions
from studies.run_folder import RunFolder
from studies.timing_clock import Lap, ratio, run_round, summary, time_off_core
from studies.timing_laps import world_blocks
from studies.timing_results import collect
from studies.timing_scenes import (
    LOOKS,
    ball_mesh,
    block_cells,
    make_ball,
    make_block,
    make_cloth,
    make_smoke,
)
from studies.timing_tables import warnings


TOY = (
    "sizes=[5, 40]",
    'dtypes=["float64"]',
    "threads=[1]",
    "viscosity=[false]",
    "repeats=2",
    "sample=0.001",
    "peers=false",
    "images.faces=[20]",
    "images.pixels=[8]",
    'images.blends=["over"]',
    "images.growth.pixels=[8, 12, 16]",
    "images.growth.faces=[12, 20, 80]",
    "images.growth.at_pixels=8",
    "images.growth.at_faces=20",
    "checkpoint.budget=8kB",
    "cloth.triangles=[8]",
    "smoke.cells=[4]",
    "smoke.steps=3",
    "worlds.counts=[3]",
    "worlds.tets=[5]",
    "worlds.steps=2",
)


def toy(*overrides):
    return timing.prepare(config.resolve("timing", [*TOY, *overrides]).values, RunOptions())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = RunFolder.create(tmp_path_factory.mktemp("timing") / "run")
    return folder, toy().run(folder)


def test_the_command_line_knows_the_report_of_a_timing_run(run):
    folder, _ = run
    written = manifest("timing", vars(RunOptions()), "adjsim run timing")
    folder.write_json("manifest.json", written)
    folder.write_text("study.toml", 'study = "timing"\n')
    page = folder.file("report.html")
    page.unlink()
    cli.report([page.parent])
    assert page.exists()
    with pytest.raises(StudyError, match="holds no motion"):
        cli.view(page.parent)


def test_a_run_writes_numbers_figures_and_a_page(run):
    folder, text = run
    result = folder.read_json("result.json")
    assert str(folder.file("report.html")) in text
    kinds = {(row["tets"], row["pass"], row["viscosity"]) for row in result["tets"]}
    assert len(kinds) == len(result["tets"]) == 2 * 3
    assert all(0.0 < row["ns_min"] <= row["ns_median"] for row in result["tets"])
    assert result["rounds"] == 2
    cloth = {(row["triangles"], row["hinges"], row["pass"]) for row in result["cloth"]}
    assert len(cloth) == len(result["cloth"]) == 3
    assert all(0.0 < row["us_min"] <= row["us_median"] for row in result["cloth"])
    assert [(row["cells"], row["pass"]) for row in result["smoke"]] == [
        (4, "forward"),
        (4, "forward+reverse"),
    ]
    assert all(0.0 < row["ms_min"] <= row["ms_median"] for row in result["smoke"])
    worlds = {(row["contacts"], row["pass"]) for row in result["worlds"]}
    assert len(worlds) == len(result["worlds"]) == 4
    assert all(row["ratio"]["min"] > 0.0 for row in result["worlds"])
    assert {(row["worlds"], row["each"], row["whole"]) for row in result["worlds"]} == {(3, 5, 5)}
    assert result["checkpoint"]["forward_steps"]["budget"] > result["checkpoint"]["steps"]
    assert {row["pass"] for row in result["images"]} == {"forward", "forward+reverse"}
    looks = [(row["look"], row["pass"], row["ratio"]["min"] > 0.0) for row in result["looks"]]
    passes = ("forward", "forward+reverse")
    assert looks == [(name, both, True) for name in ("flat", "phong", "texture") for both in passes]
    assert [row["ratio"]["min"] for row in result["looks"][:2]] == [1.0, 1.0]
    growth = [(row["faces"], row["pixels"]) for row in result["growth"]]
    sizes = [(20, 8), (20, 12), (20, 16), (12, 8), (80, 8)]
    assert growth == [size for size in sizes for _ in range(2)]
    assert all(0.2 < row["covered"] / row["pixels"] ** 2 < 0.6 for row in result["growth"])
    assert folder.has("figures/steps_per_second.png")
    assert folder.has("figures/images.png")
    page = folder.file("report.html").read_text()
    assert 'src="data:image/png;base64,' in page
    assert result["machine"]["processor"] in page
    assert "for each covered pixel" in page


def test_the_tape_of_a_step_is_one_state(run):
    for row in run[0].read_json("result.json")["tets"]:
        n_nodes = make_block(row["size"]).model.n_nodes
        assert row["tape_bytes"] == 2 * 3 * n_nodes * 8  # x and v, three numbers of 8 bytes


def test_a_run_that_was_cut_off_keeps_its_whole_rounds(run, tmp_path):
    log = run[0].file("iterations.jsonl").read_text().splitlines(keepends=True)
    cut = tmp_path / "iterations.jsonl"
    cut.write_text(log[0] + log[1][:20])
    rounds = timing.read_rounds(cut)
    assert rounds == [json.loads(log[0])["seconds"]]
    assert cut.read_text() == log[0]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("sizes=[3]", r"`sizes` must hold numbers of at least 5, got 3\."),
        ("smoke.cells=[1]", r"`smoke.cells` must hold numbers of at least 2, got 1\."),
        ("smoke.steps=0", "`smoke.steps` must be positive"),
        ("cloth.triangles=[1]", r"`cloth.triangles` must hold numbers of at least 2, got 1\."),
        ("worlds.counts=[2,0]", r"`worlds.counts` must hold numbers of at least 1, got 0\."),
        ("worlds.tets=[4]", r"`worlds.tets` must hold numbers of at least 5, got 4\."),
        ("repeats=0", "`repeats` must be positive"),
        ("threads=[]", "`threads` must not be empty"),
        ('dtypes=["float16"]', "`dtypes`"),
        ("images.faces=[100]", r"`faces` must be 12, 20, 80, 320, 1280, 5120, \.\.\., got 100\."),
        (
            'images.blends=["overs"]',
            "Unknown entry of `images.blends` `overs`. Did you mean `over`",
        ),
        (
            'images.looks=["fong"]',
            "Unknown entry of `images.looks` `fong`. Did you mean `phong`",
        ),
        ("checkpoint.budget=much", "`checkpoint` must be"),
    ],
)
def test_a_setting_out_of_range_is_named(override, message):
    with pytest.raises(ValueError, match=message):
        toy(override)


def test_a_key_that_does_not_exist_is_named_with_the_nearest():
    with pytest.raises(StudyError, match="Did you mean `repeats`"):
        toy("repeat=3")


@pytest.mark.parametrize("n_tets", [5, 100, 200, 400, 1000, 2000, 5000, 10000])
def test_the_paper_s_sizes_are_met_exactly_by_nearly_cubic_blocks(n_tets):
    cells = block_cells(n_tets)
    assert 5 * np.prod(cells) == n_tets
    assert max(cells) <= 3 * min(cells)


def test_worlds_are_compared_with_as_many_contacts_too():
    pairs = list(world_blocks(100, 1000))
    assert all((small.n_tets, large.n_tets) == (100, 10_000) for small, large in pairs)
    shares = [(small.contacts_per_tet, large.contacts_per_tet) for small, large in pairs]
    assert shares[0] == (0.0, 0.0)
    assert shares[1][0] > 4.0 * shares[1][1]
    assert abs(shares[2][0] - shares[2][1]) <= 0.5 / 100  # of whole nodes
    for small, _ in pairs[1:]:
        nodes = small.model.forces["floor"].nodes[:, 0]
        assert len(np.unique(nodes)) == len(nodes)
        assert (small.state.x[nodes, 1] < small.model.forces["floor"].height).any()


def test_the_block_touches_the_floor_and_slides():
    block = make_block(40)
    floor = block.model.forces["floor"]
    assert (block.state.x[:, 1] < floor.height).any()
    assert (block.state.v[:, 0] > 0.0).all()


def test_the_sheet_has_the_asked_size_and_a_hinge_at_every_inner_edge():
    cloth = make_cloth(2048)
    n = 32
    assert cloth.n_triangles == 2 * n * n
    assert cloth.n_hinges == (3 * cloth.n_triangles - 4 * n) // 2
    assert (cloth.state.x[cloth.model.pinned, 1] == 1.0).all()
    assert cloth.model.pinned.sum() == 2
    assert cloth.dt < cloth.model.stable_dt()
    assert len(make_cloth(8).model.mass) == 9


@pytest.mark.parametrize("n_faces", [12, 20, 80, 320])
def test_the_ball_is_closed_round_and_faces_outwards(n_faces):
    points, faces = ball_mesh(n_faces)
    assert len(faces) == n_faces
    assert len(points) == n_faces // 2 + 2  # Euler: V - E + F = 2 with E = 3 F / 2
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0, rtol=1e-14)
    a, b, c = (points[faces[:, k]] for k in range(3))
    assert (np.einsum("fi,fi->f", np.cross(b - a, c - a), a) > 0.0).all()


@pytest.mark.parametrize("look", LOOKS)
def test_the_ball_fills_half_of_the_image(look):
    image = picture(look)
    # 320 flat faces cover 1 - 0.012 of the disc; a pixel's width of outline is 1 %.
    assert abs(image[..., 3].mean() - 0.5) < 0.02


def test_no_look_of_the_ball_is_like_another():
    flat, phong, texture = (picture(look)[..., :3] for look in LOOKS)
    for a, b in ((flat, phong), (flat, texture), (phong, texture)):
        assert np.abs(a - b).max() > 0.1


def picture(look):
    ball = make_ball(320, 0, look)
    vertices = {"ball": ball.points}
    return rasterize(ball.scene, ball.camera, SoftRasterizer(), vertices, (64, 64), threads=1)


def test_times_are_summed_up_as_minimum_median_and_paired_ratio():
    a = Lap({"name": "a", "threads": 1}, 2.0, int)
    b = Lap({"name": "b", "threads": 1}, 1.0, int)
    rounds = [
        {a.name: (2.0, 2.0), b.name: (1.0, 1.0)},
        {a.name: (20.0, 4.0), b.name: (10.0, 2.0)},  # a burst of noise hits both
        {a.name: (3.0, 3.0), b.name: (1.0, 1.0)},
    ]
    assert summary(rounds, a) == {"min": 1.0, "median": 1.5, "on_core": 1.0}
    assert ratio(rounds, a, b) == {"min": 1.0, "median": 1.0}
    assert time_off_core(rounds, [a, b]) == pytest.approx(1.0 - 13.0 / 37.0)


def test_laps_that_no_round_timed_are_left_out():
    labels = {"part": "images", "faces": 20, "threads": 1}
    timed, untimed = (Lap({**labels, "pass": name}, 1.0, int) for name in ("a", "b"))
    found = collect([{timed.name: (0.5, 0.25)}], [timed, untimed], [], [])["images"]
    assert [(row["pass"], row["ms_min"], row["ms_on_core"]) for row in found] == [("a", 500, 250)]


def test_odd_rounds_go_backwards_and_rare_laps_wait_for_theirs():
    seen = []
    laps = [Lap({"name": k}, 1.0, lambda k=k: seen.append(k)) for k in range(2)]
    laps.append(Lap({"name": 2}, 1.0, lambda: seen.append(2), every=3))
    for number in range(2):
        run_round(laps, number)
    assert seen == [0, 1, 2, 1, 0]


def test_a_busy_machine_and_a_peer_that_differs_are_warned_of(run):
    result = run[0].read_json("result.json")
    quiet = {**result, "load": {"before": [0.0], "after": [0.0]}, "off_core": 0.0}
    assert warnings(quiet) == []
    busy = {**quiet, "load": {"before": [9.0 * result["machine"]["cores"]], "after": [0.0]}}
    assert "was busy before the run" in warnings(busy)[0]
    row = {"name": "Other", "tets": 40, "agrees": False, "difference": 0.5}
    assert (
        "Other does not compute what adjsim does, 40 tetrahedra"
        in warnings({**quiet, "peers": [row]})[0]
    )


def test_an_absent_package_is_listed_with_the_way_to_get_it(run):
    for package in run[0].read_json("result.json")["packages"]:
        assert package["missing"] is None or "pip install" in package["missing"]
    assert len({peer.name for peer in PEERS}) == len(PEERS)


def test_the_slots_of_a_node_are_its_corners():
    block = make_block(40)
    tets = block.mesh.tets
    ptr, slots = node_slots(tets, block.model.n_nodes)
    assert ptr[-1] == tets.size
    for node in range(block.model.n_nodes):
        assert (tets.ravel()[slots[ptr[node] : ptr[node + 1]]] == node).all()


def test_the_smoke_is_a_layer_under_whirls():
    smoke, state = make_smoke(50)
    assert smoke.shape == (50, 50)
    assert np.unique(state.density).tolist() == [0.0, 1.0]
    assert state.density[-1].all()
    assert 0.3 < np.abs(state.velocity).max() <= 0.5
