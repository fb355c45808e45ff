"""Figures cost a report half its time: they are drawn once, and look as if drawn with care."""

import io

import numpy as np

from studies.figures import make_axes, png


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
