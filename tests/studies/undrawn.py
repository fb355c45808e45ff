"""Runs whose figures nobody looks at: painting them is nearly half of a toy's run."""

from contextlib import contextmanager

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image


def save(canvas, file, **options):
    """Write a picture of one pixel."""
    Image.new("RGB", (1, 1)).save(file, "png")


@contextmanager
def undrawn():
    """Make figures and paint none. For runs of which a test reads numbers alone.

    The same figures must be painted, by the same study, for another test.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FigureCanvasAgg, "print_png", save)
        yield
