"""Runs whose figures nobody looks at: painting them is nearly half of a toy's run."""

from contextlib import contextmanager

import pytest
from matplotlib.figure import Figure
from PIL import Image


def save(figure, file, **options):
    """Write a picture of one pixel."""
    Image.new("RGB", (1, 1)).save(file, options["format"])


@contextmanager
def undrawn():
    """Make figures and paint none. For runs of which a test reads numbers alone.

    The same figures must be painted, by the same study, for another test.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", save)
        yield
