"""What the chapters of the course draw: listings side by side, and drawings."""

import re
import sys
from html import unescape
from pathlib import Path

import matplotlib
import numpy as np
import pytest


pytest.importorskip("IPython")
sys.path.append(str(Path(__file__).resolve().parents[1] / "docs" / "course"))
with matplotlib.rc_context():  # the course sets how it draws for all figures
    from workbench import Drawing, film, side_by_side, source


def twice(x):
    """Return -2 x."""
    y = x + x  # (1)
    return -y  # (2)


def twice_vjp(adj_y):
    """Return adj_x."""
    # (2) the sign
    adj_y = -adj_y
    # (1) y = x + x
    return 2 * adj_y


def test_listings_show_each_line_and_mark_its_number():
    html = side_by_side((twice,), (twice_vjp,)).data
    figures = re.findall(r"<pre>(.*?)</pre>", html, re.DOTALL)
    for figure, function, numbers in zip(figures, (twice, twice_vjp), ("12", "21"), strict=True):
        assert unescape(re.sub(r"<.*?>", "", figure)).rstrip("\n") == source(function)
        assert re.findall(r'data-line="(\d)"', figure) == list(numbers)


def test_a_drawing_has_y_upwards_and_fits_its_width():
    drawing = Drawing((-1.0, 1.0), (0.0, 1.0), width=200)
    np.testing.assert_allclose(drawing.pixels([[-1, 1], [1, 0]]), [[0, 0], [200, 100]])
    drawing.text((0, 0.5), "*a* < b")
    assert 'viewBox="0 0 200 100"' in drawing.html()
    assert '<tspan font-style="italic">a</tspan> &lt; b' in drawing.html()


def test_a_film_shows_one_frame_and_keeps_the_others():
    frames = [Drawing((0, 1), (0, 1)) for _ in range(3)]
    html = film(frames, ["0 s", "1 s", "2 s"], "A film", start=1).data
    assert re.findall(r'data-label="(\d) s" style="(.*?)"', html) == [
        ("0", "display:none"),
        ("1", ""),
        ("2", "display:none"),
    ]
