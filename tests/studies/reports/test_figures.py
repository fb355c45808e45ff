"""Figures cost a report half its time: they are drawn once, and look as if drawn with care."""

import io

import numpy as np
import pytest

from adjoint.verify.taylor_test import taylor_test
from studies.reports import figures
from studies.reports.figures import make_axes, parameter, png, spectrum, svg, taylor
from studies.runs.evaluations import Evaluation


def drawn():
    """Return a figure with all that moves in a layout: titles, a legend, labels of powers."""
    figure, axes = make_axes(1, 2, (6.0, 3.0))
    for ax in axes:
        ax.loglog(np.logspace(-9, 2, 12), np.logspace(3, -14, 12), label="falls")
        ax.set(title="title", xlabel="step", ylabel="remainder")
        ax.legend()
    return figure


def test_a_figure_that_is_drawn_once_has_the_bytes_of_one_that_is_drawn_twice():
    expected = io.BytesIO()
    drawn().savefig(expected, format="png", dpi=130, metadata={"Software": None})
    for _ in range(2):  # the second finds the labels of the first
        assert png(drawn(), dpi=130) == expected.getvalue()


def test_a_figure_for_a_page_has_the_same_text_each_time_and_colours_for_a_dark_page():
    text = svg(drawn())
    assert text == svg(drawn())
    assert "@media screen and (prefers-color-scheme:dark)" in text
    assert (
        f'[style*="fill: {figures.INK}"]{{fill:{figures.ON_DARK[figures.INK]}!important}}' in text
    )
    assert f"fill: {figures.INK}" in text.partition("</style>")[2]
    assert "<image" not in text


def test_thousands_of_points_become_a_picture():
    figure, (ax,) = make_axes()
    ax.plot(np.sin(np.arange(10_000.0)), ".")
    assert "<image" in svg(figure)
    assert len(svg(figure)) < 150_000


def remainders(gradient, curvature=1.0):
    """Return a point of a certificate whose loss is a parabola with this slope."""
    test = taylor_test(
        lambda x: float(gradient * x[0] + curvature * x[0] ** 2),
        np.array([gradient]),
        np.zeros(1),
        np.ones(1),
        scale=np.ones(1),
        eps0=1e-3,
        n_halvings=8,
    )
    return {"taylor": test.to_dict()}


def labels(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_a_taylor_figure_shows_both_remainders_where_one_lies_on_the_other():
    for figure in (taylor("start", remainders(1.0)), taylor("optimum", remainders(1e-15))):
        wide, thin = (
            next(line for line in figure.axes[0].lines if line.get_label().startswith(name))
            for name in ("R0", "R1")
        )
        assert wide.get_markerfacecolor() == "none"
        assert wide.get_markersize() > 2.0 * thin.get_markersize()
        assert wide.get_linewidth() > thin.get_linewidth()


def test_a_taylor_figure_has_the_slopes_that_its_remainders_follow():
    drawn = [taylor("start", remainders(1.0)), taylor("optimum", remainders(1e-15))]
    start, optimum = (labels(figure.legends[0]) for figure in drawn)
    assert {"slope 1", "slope 2"} < set(start)
    assert "slope 2" in optimum
    assert "slope 1" not in optimum
    assert all(figure.axes[0].get_legend() is None for figure in drawn)  # below, on no curve


def test_an_interval_that_is_no_wider_than_a_line_is_not_in_the_legend():
    arrays = {"history": np.array([[3.0], [1.5], [1.0]]), "evaluations": np.array([1, 2, 3])}
    row = {"name": "mu", "unit": "Pa", "index": 0, "truth": 1.0}
    narrow, broad = (
        labels(
            parameter(arrays, {**row, "interval": [1.0 - half, 1.0 + half]}).axes[0].get_legend()
        )
        for half in (1e-9, 0.4)
    )
    assert narrow == ["estimate", "truth"]
    assert set(broad) == {"estimate", "truth", "95 % interval"}


@pytest.mark.parametrize("values", [[3.0, 1.0], [-1.0, 2.0], [-1.0, -1.0]])
def test_an_interval_of_a_value_that_is_not_determined_leaves_the_values_visible(values):
    arrays = {"history": np.array(values)[:, None], "evaluations": np.array([1, 2])}
    wide = [1e-300 if min(values) > 0.0 else -1e300, 1e300]
    figure = parameter(arrays, {"name": "mu", "unit": "Pa", "index": 0, "interval": wide})
    assert png(figure)
    low, high = figure.axes[0].get_ylim()
    assert max(abs(low), abs(high)) < 100.0


def test_few_singular_values_are_stems_and_many_a_line():
    few = spectrum(np.array([0.46, 0.038])).axes[0]
    many = spectrum(np.geomspace(1.0, 1e-6, 40)).axes[0]
    assert few.lines[0].get_linestyle() == "None"
    assert len(few.collections) == 1
    assert len(few.collections[0].get_segments()) == 2
    assert few.get_xticks().tolist() == [1, 2]
    assert many.lines[0].get_linestyle() == "-"
    assert not many.collections


def tile(figure, size, row=None, column=None):
    """Return the part of the one image of a figure that stands beside and below these names."""
    (ax,) = figure.axes
    (image,) = ax.images
    firsts = [0, 0]
    for k, (axis, name) in enumerate(((ax.yaxis, row), (ax.xaxis, column))):
        if name is not None:
            names = [label.get_text() for label in axis.get_ticklabels()]
            firsts[k] = round(axis.get_ticklocs()[names.index(name)] - 0.5 * (size[k] - 1))
    drawn = image.get_array()[firsts[0] : firsts[0] + size[0], firsts[1] : firsts[1] + size[1]]
    assert (drawn[..., 3] == 1.0).all()  # what is between pictures is clear
    return drawn[..., :3]


@pytest.mark.parametrize("count", [2, 3])
def test_pictures_stand_beside_and_below_their_names(rng, count):
    images = {key: rng.random((count, 4, 6, 4)) for key in figures.COMPARED}
    titles = [f"{k} ms" for k in range(count)]
    figure = figures.compared({**images, "times": 1e-3 * np.arange(count)})
    gain = figures.difference_gain(np.abs((images["fitted"] - images["target"])[..., :3]).max())
    for k, title in enumerate(titles):
        difference = 0.5 + gain * (images["fitted"][k] - images["target"][k])
        shown = {key: images[key][k] for key in images} | {"difference": difference}
        for key, image in shown.items():
            row, column = (title, key) if count == 2 else (key, title)
            panel = tile(figure, (4, 6), row, column)
            np.testing.assert_array_equal(panel, np.clip(image[..., :3], 0.0, 1.0))


def test_a_figure_of_tall_pictures_has_a_bounded_size(rng):
    images = {name: rng.random((5, 400, 20, 3)) for name in figures.COMPARED}
    figure = figures.compared({**images, "times": 1e-3 * np.arange(5)})
    assert figure.get_size_inches().max() < 41.0


def test_a_single_instant_needs_no_time(rng):
    images = {key: rng.random((1, 4, 6, 3)) for key in figures.COMPARED}
    (ax,) = figures.compared({**images, "times": np.zeros(1)}).axes
    assert [label.get_text() for label in ax.yaxis.get_ticklabels()] == [""]


def test_the_figure_of_instances_names_what_is_drawn():
    rows = [{"name": "mass", "median": 1e-8, "published": None}]
    records = [{"errors": {"mass": {"mean": 1e-8}}}]
    for more, named in (({}, []), ({"published": 1e-4}, ["published"])):
        figure = figures.instances({"parameters": [{**rows[0], **more}], "records": records})
        assert labels(figure.axes[0].get_legend()) == ["instance", "median", *named]


@pytest.mark.parametrize("count", [2, 3, 40])
def test_the_ticks_of_a_spectrum_are_whole_numbers(count):
    ticks = spectrum(np.logspace(0, -3, count)).axes[0].get_xticks().tolist()
    assert all(float(tick).is_integer() for tick in ticks)
    assert count == 40 or ticks == list(range(1, count + 1))


def test_the_curve_of_losses_breaks_where_a_stage_ends():
    log = [
        Evaluation("gradient", np.zeros(1), loss, np.ones(1), None, {}, k, k, 1.0)
        for k, loss in enumerate((1.0, 0.1, 5.0, 0.5), 1)
    ]
    (ax,) = figures.loss(log, ends=[2]).axes
    lines = [line.get_xdata().tolist() for line in ax.lines if line.get_marker() == "o"]
    assert lines == [[1, 2], [3, 4]]


def test_the_line_of_rounding_is_drawn_only_near_the_spectrum():
    for values, drawn in (([1.0, 0.1], False), ([1.0, 1e-12], True)):
        (ax,) = figures.spectrum(np.array(values)).axes
        assert any(line.get_linestyle() == "--" for line in ax.lines) is drawn
