"""The wall of pictures of bundled scenes, from runs of them.

for name in beam bounce ...; do adjsim run $name --out RUNS/$name; done
python docs/_ext/scene_wall.py RUNS
"""

import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont


OUT = Path(__file__).resolve().parents[1] / "_static" / "scenes.jpg"
SCENES = (
    "beam", "sagging-beam", "ball-stiffness", "bounce", "rigid-contact",
    "two-balls", "draped-cloth", "cradle", "links", "control-arm",
    "pendulum", "double-pendulum", "control-walker", "control-jellyfish", "light",
)  # fmt: skip
COLUMNS, WIDTH, HEIGHT, GAP, NAME = 5, 220, 150, 10, 24  # pixels


def main(runs):
    """Draw the last frame of each run, in rows, with the name of its scene below."""
    rows = -(-len(SCENES) // COLUMNS)
    size = COLUMNS * (WIDTH + GAP) - GAP, rows * (HEIGHT + NAME + GAP) - GAP
    wall = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(wall), ImageFont.load_default(15)
    for k, name in enumerate(SCENES):
        x, y = k % COLUMNS * (WIDTH + GAP), k // COLUMNS * (HEIGHT + NAME + GAP)
        one = Image.open(runs / name / "films" / "thumbnail.jpg").convert("RGB")
        back = Image.new("RGB", (WIDTH, HEIGHT), one.getpixel((2, 2)))
        factor = min(WIDTH / one.width, HEIGHT / one.height)
        one = one.resize((round(one.width * factor), round(one.height * factor)))
        back.paste(one, ((WIDTH - one.width) // 2, (HEIGHT - one.height) // 2))
        wall.paste(back, (x, y))
        draw.text((x + WIDTH / 2, y + HEIGHT + 3), name, "#1d2733", font, anchor="ma")
    wall.save(OUT, quality=82, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
