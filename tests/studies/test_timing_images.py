"""What a timing run says of the rasterizer, of numbers made up here: aims, and how time grows."""

import numpy as np
import pytest

from studies.timing_growth import exponent, fit_sum, growth_lines
from studies.timing_image_tables import aim_lines, growth, images
from studies.timing_images import covered_share
from studies.timing_laps import BOTH, FORWARD


def row(faces, pixels, ms, what=FORWARD, threads=1, **changes):
    each = {"faces": faces, "pixels": pixels, "pass": what, "threads": threads, "blend": "over"}
    each |= {"dtype": "float64", "ms_min": ms, "ms_median": 2.0 * ms, "ms_on_core": ms}
    return {**each, "covered": 0.5 * pixels**2, **changes}


def table_of(time, **changes):
    """Rows of growth, forward and with reverse, of a time in ms by covered pixels and faces."""
    sizes = [(1280, n) for n in (64, 128, 256, 512)] + [(f, 256) for f in (80, 320, 5120, 20480)]
    return [
        row(faces, n, k * time(0.5 * n**2, faces), what, **changes)
        for faces, n in sizes
        for k, what in ((1.0, FORWARD), (2.0, BOTH))
    ]


def test_a_sum_of_pixels_and_faces_is_found_again():
    rng = np.random.default_rng(0)
    covered, faces = rng.uniform(1e3, 1e6, 12), rng.uniform(12, 8e4, 12)
    found = fit_sum(covered, faces, 0.3 + 8e-5 * covered + 7e-4 * faces)
    assert found.fixed == pytest.approx(0.3, rel=1e-9)
    assert found.per_pixel == pytest.approx(8e-5, rel=1e-9)
    assert found.per_face == pytest.approx(7e-4, rel=1e-9)
    assert found.off == pytest.approx(1.0, abs=1e-9)


def test_no_part_of_the_sum_is_negative_and_what_it_misses_is_a_factor():
    size = np.array([1.0, 2.0, 4.0])
    found = fit_sum(size, np.ones(3), np.array([1.0, 4.0, 16.0]))
    assert min(found.fixed, found.per_pixel, found.per_face) >= 0.0
    ratios = (found.fixed + found.per_face + found.per_pixel * size) / [1.0, 4.0, 16.0]
    assert found.off == pytest.approx(max(ratios.max(), 1.0 / ratios.min()), rel=1e-12)
    assert found.off > 1.5


def test_an_exponent_is_the_slope_of_the_logarithms():
    size = np.array([1.0, 10.0, 1000.0])
    assert exponent(size, 3.0 * size**0.7) == pytest.approx(0.7, rel=1e-12)


def test_growth_with_pixels_plus_faces_is_told_with_its_prices():
    forward, both, verdict = growth_lines(table_of(lambda c, f: 0.1 + 9e-5 * c + 8e-4 * f))
    assert forward.startswith(
        "forward, 1 thread, on a core: 0.10 ms + 90 ns for each covered pixel + 800 ns for each "
        "face is within a factor of 1.00 of all 8 times."
    )
    assert "0.20 ms + 180 ns for each covered pixel + 1600 ns for each face" in both
    # (0.1 + 9e-5 * 131072 + 1.024) / (0.1 + 9e-5 * 32768 + 1.024) = 3.169 at four times the pixels
    assert f"from 256² to 512² {np.log(3.1686) / np.log(4.0):.2f}" in forward
    assert verdict == (
        "Where one of the two grows, time grows with covered pixels plus faces: the sums are off "
        "1.00 x."
    )


def test_growth_with_the_product_is_told_not_to_be_the_sum():
    *_, verdict = growth_lines(table_of(lambda c, f: 1e-7 * c * f))
    assert "time does not grow just with covered pixels plus faces" in verdict


def test_growth_of_several_threads_is_that_of_the_fewest_by_the_minima():
    rows = table_of(lambda c, f: 1e-4 * c + 1e-3 * f, threads=2, ms_on_core=None)
    assert growth_lines(rows)[0].startswith("forward, 2 threads: 0.00 ms + 100 ns")
    alone = table_of(lambda c, f: 2e-4 * c + 2e-3 * f)
    assert growth_lines([*rows, *alone])[0].startswith(
        "forward, 1 thread, on a core: 0.00 ms + 200"
    )


def test_nothing_is_said_of_growth_that_was_not_timed():
    rows = table_of(lambda c, f: c + f)
    assert growth_lines([]) == []
    assert growth_lines([row for row in rows if row["pixels"] == 256]) == []
    assert growth_lines([{k: v for k, v in row.items() if k != "covered"} for row in rows]) == []


def test_aims_stand_beside_the_figures_that_they_are_of():
    rows = [
        row(1280, 128, 1.4), row(1280, 128, 4.5, BOTH), row(1280, 128, 9.0, BOTH, threads=2),
        row(1280, 64, 1.0), row(1280, 128, 2.0, blend="softmax"),
    ]  # fmt: skip
    table = images({"images": rows})
    assert table.header[-1] == "aim, 1 thr"
    assert [(*cells[:3], cells[-1]) for cells in table.rows] == [
        ("1280", "128²", "over", "1.5 / 4"),
        ("1280", "64²", "over", "-"),
        ("1280", "128²", "softmax", "-"),
    ]
    said = "1 of 2 aims are met by the minimum on one thread: missed 1280 faces at 128², "
    assert table.conclusion == [f"{said}forward+reverse: 4.50 ms (4.50 on a core), aim 4."]


def test_no_aim_is_claimed_for_float32_or_many_threads():
    for changes in ({"dtype": "float32"}, {"threads": 2}):
        rows = [row(1280, 128, 1.0, **changes)]
        assert aim_lines(rows) == []
        assert "aim, 1 thr" not in growth({"growth": rows}).header


def test_a_ball_covers_half_of_its_image_and_a_cube_less():
    # of a disc of half the image 20 flat faces cover 1 - 0.2 of it or more
    assert covered_share(1280) == pytest.approx(0.5, abs=0.01)
    assert 0.35 < covered_share(20) < 0.5
    assert 0.2 < covered_share(12) < 0.35
