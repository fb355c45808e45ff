"""The pictures of the pages on scene files, from runs of the bundled scene.

Run these first, in a folder RUNS (`held.toml` is the bundled scene without its line `held`):

    adjsim preview identify --out good.png
    adjsim preview identify bodies.beam.scale=0.05 --out scale.png
    adjsim preview held.toml --out held.png
    adjsim run identify --out found
    adjsim run identify --out bound bodies.beam.E=5e4 'free."beam.E".bounds=[1e4,1e5]'
    adjsim run identify --out rate observations.film.fps=48
    adjsim run identify --out density 'free."beam.density"={}'
    python docs/_ext/scene_pictures.py RUNS

`page.png` is a picture of `adjsim preview identify --page`, 1280 pixels wide, with four corners
clicked.
Needs chromium, for the pages of the reports.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image


STATIC = Path(__file__).resolve().parents[1] / "_static"
WIDE = 1000  # pixels of a page
ROW, GAP = 360, 6  # of a preview
TOP, SIDE, CARD = 640, 12, 150  # of a report: what is shown of it, its margin, inside its verdict


def write(name, picture, width=None):
    """Write a picture of few colours, as wide as the page shows it."""
    if width is not None:
        picture = picture.resize(
            (width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS
        )
    path = STATIC / f"{name}.png"
    picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path.name, picture.size, f"{path.stat().st_size / 1000:.0f} kB")


def screenshot(file, width, height):
    """Return a picture of a page or a figure, in a window of this size."""
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "page.png"
        command = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars"]
        command += [f"--window-size={width},{height}", f"--screenshot={picture}"]
        subprocess.run([*command, file.resolve().as_uri()], check=True, capture_output=True)
        return Image.open(picture).convert("RGB")


def page(run):
    """Return the top of a report."""
    return screenshot(run / "report.html", WIDE, 1400)


def figure(run, name):
    """Return a figure of a report."""
    file = run / "figures" / f"{name}.svg"
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', file.read_text())
    return screenshot(file, *(round(float(side) * 96 / 72) for side in size.groups()))


def verdict(picture):
    """Return the verdict at the top of a report."""
    paper = picture.getpixel((2, 2))
    column = [picture.getpixel((WIDE // 2, y)) == paper for y in range(picture.height)]
    first = CARD - column[CARD::-1].index(True)
    end = CARD + column[CARD:].index(True)
    return picture.crop((SIDE, first - GAP, WIDE - SIDE, end + GAP))


def rows(picture, which):
    """Return some rows of a preview."""
    pictures = [
        picture.crop((0, k * (ROW + GAP), picture.width, k * (ROW + GAP) + ROW)) for k in which
    ]
    return stacked(pictures)


def stacked(pictures, gap=GAP):
    """Return pictures below each other, white between them."""
    height = sum(picture.height + gap for picture in pictures) - gap
    out = Image.new("RGB", (max(picture.width for picture in pictures), height), "white")
    y = 0
    for picture in pictures:
        out.paste(picture, (0, y))
        y += picture.height + gap
    return out


def main(runs):
    """Write all of them."""
    write("preview_good", Image.open(runs / "good.png"), 900)
    write("preview_scale", rows(Image.open(runs / "scale.png"), [0]), 900)
    write("preview_held", rows(Image.open(runs / "held.png"), [1]), 900)
    write("preview_page", Image.open(runs / "page.png").crop((0, 60, 1264, 745)), 900)
    write("scene_fit", figure(runs / "found", "strip-film"), 900)
    write("taylor", figure(runs / "found", "taylor-1"), 480)
    write("scene_search", figure(runs / "found", "coarse"), 700)
    write("report_found", page(runs / "found").crop((SIDE, 0, WIDE - SIDE, TOP)))
    cards = [verdict(page(runs / name)) for name in ("found", "bound", "rate", "density")]
    write("report_verdicts", stacked(cards, 0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
