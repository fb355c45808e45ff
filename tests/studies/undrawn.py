"""Runs whose figures nobody looks at: making and painting them is over half of a toy's run."""

from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image


class Ignoring:
    """Stands for a figure and all that is in it: takes every call, and does nothing."""

    def __init__(self, *args, **options):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **options):
        return self

    def __getitem__(self, key):
        return self

    def __iter__(self):
        return iter(())

    def get_xlim(self):
        """Return the ends of an axis that is empty."""
        return 0.0, 1.0

    get_ylim = get_xlim

    def get_legend_handles_labels(self):
        """Return that nothing has a label."""
        return (), ()

    def subplots(self, rows, columns):
        """Return as many axes as are asked for."""
        return np.full((rows, columns), self)

    def print_png(self, file, **options):
        """Write a picture of one pixel."""
        Image.new("RGB", (1, 1)).save(file, "png")


@contextmanager
def undrawn():
    """Make no figures. For runs of which a test reads numbers alone.

    The same figures must be painted, by the same study, for another test.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure", Ignoring)
        patch.setattr("matplotlib.backends.backend_agg.FigureCanvasAgg", Ignoring)
        patch.setattr("matplotlib.backends.backend_svg.FigureCanvasSVG", Ignoring)
        yield
