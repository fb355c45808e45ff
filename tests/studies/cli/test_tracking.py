"""`adjsim track` follows a red disc in films that are drawn here."""

import csv

import numpy as np
import pytest
from PIL import Image

from studies.cli.tracking import track_command
from studies.runs import media
from studies.runs.errors import StudyError


RED = "0.8 0.1 0.1"
MIDDLES = [(10.0 + 3.5 * k, 12.0 + 0.75 * k) for k in range(8)]


def drawn(middles, color=(0.8, 0.1, 0.1), radius=4.0):
    """Return a picture with soft discs at columns and rows, and one small spot of their colour."""
    rows, columns = np.mgrid[:32, :48]
    picture = np.full((32, 48, 3), 0.5)
    picture[..., 2] += 0.01 * np.sin(columns)
    for u, v in middles:
        cover = np.clip(radius + 0.5 - np.hypot(columns - u, rows - v), 0.0, 1.0)[..., None]
        picture = cover * np.array(color) + (1.0 - cover) * picture
    picture[28:30, 2:4] = color
    return picture


@pytest.fixture
def film(tmp_path):
    """Return a function that writes pictures as a film of them."""

    def write(pictures):
        (tmp_path / "film").mkdir()
        for k, picture in enumerate(pictures):
            media.write_png(tmp_path / "film" / f"{k}.png", picture)
        return tmp_path / "film"

    return write


def track(film, table, *, color=None, frames=None, region=None, **options):
    numbers = {"color": color, "frames": frames, "region": region}
    given = {"background": False, "tolerance": 0.15, "fps": 20.0, "point": "ball", **options}
    return track_command(film, table, numbers, **given)


def rows_of(table):
    with table.open(newline="") as file:
        return [
            (float(row["time"]), float(row["u"]), float(row["v"]))
            for row in csv.DictReader(file)
            if row["point"] == "ball"
        ]


@pytest.mark.parametrize("how", [{"color": RED}, {"background": True}])
def test_the_middle_is_found_in_every_frame(tmp_path, film, how):
    path = film([drawn([middle]) for middle in MIDDLES])
    table = tmp_path / "t.csv"
    assert track(path, table, **how) == [str(table), str(tmp_path / "t.png")]
    times, *places = np.array(rows_of(table)).T
    np.testing.assert_allclose(times, 0.05 * np.arange(8))
    np.testing.assert_allclose(np.transpose(places), MIDDLES, atol=0.15)
    marked = np.asarray(Image.open(tmp_path / "t.png").convert("RGB")).astype(int)
    assert marked[12, 10].tolist() == [255, 26, 153]


def test_frames_and_region_are_chosen(tmp_path, film):
    path = film([drawn([middle, (40.0, 5.0)], radius=4.0) for middle in MIDDLES])
    track(path, tmp_path / "t.csv", color=RED, frames="2 5", region="0 10 47 27")
    rows = rows_of(tmp_path / "t.csv")
    np.testing.assert_allclose(rows, [(0.05 * k, *MIDDLES[2 + k]) for k in range(3)], atol=0.15)


def test_a_colour_that_is_lost_leaves_the_rows_before(tmp_path, film):
    pictures = [drawn([middle]) for middle in MIDDLES]
    pictures[5] = np.full((32, 48, 3), 0.5)
    path = film(pictures)
    with pytest.raises(StudyError, match=r"frame 5 has no pixels like 0.8 .* The 5 rows before"):
        track(path, tmp_path / "t.csv", color=RED)
    assert len(rows_of(tmp_path / "t.csv")) == 5


def test_a_colour_that_is_nowhere(tmp_path, film):
    with pytest.raises(StudyError, match="frame 0 has no pixels like 0 1 0"):
        track(film([drawn([(20.0, 15.0)])]), tmp_path / "t.csv", color="0 1 0")
    assert not (tmp_path / "t.csv").exists()


def test_what_leaves_the_picture_is_noted(tmp_path, film):
    path = film([drawn([(20.0 + 5.0 * k, 15.0)]) for k in range(6)])
    note, *_ = track(path, tmp_path / "t.csv", color=RED)
    assert "In 1 frames, first in 5," in note


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Give one of `--color"),
        ({"color": RED, "background": True}, "Give one of `--color"),
        ({"color": "200 0 0"}, "`--color` must be three numbers from 0 to 1, got 200 0 0"),
        ({"color": "red"}, "`--color` must be 3 numbers in quotes, got 'red'"),
        ({"color": RED, "tolerance": 0.0}, "`--tolerance` must be above 0"),
        ({"color": RED, "frames": "5 5"}, "`--frames` must be FIRST END"),
        ({"color": RED, "frames": "0 3"}, "`--frames` must lie within the 1 frames of"),
        ({"color": RED, "frames": "2 3"}, "ends before frame 2"),
        ({"color": RED, "region": "9 0 3 3"}, "`--region` must be U0 V0 U1 V1"),
        ({"color": RED, "region": "nan 0 5 5"}, "`--region` must be 4 numbers in quotes, got"),
        ({"color": RED, "region": "0 0 inf inf"}, "`--region` must be 4 numbers in quotes, got"),
        ({"color": RED, "frames": "nan nan"}, "`--frames` must be 2 numbers in quotes, got"),
        ({"color": RED, "frames": "0 1e300"}, "`--frames` must be 2 numbers in quotes, got"),
        ({"color": RED, "fps": None}, "`--fps` is missing"),
        ({"color": RED, "fps": 0.0}, "`--fps` must be above 0 and up to 1e+07, got 0"),
        ({"color": RED, "fps": np.nan}, "`--fps` must be above 0 and up to 1e+07, got nan"),
        ({"color": RED, "fps": 1e300}, "`--fps` must be above 0 and up to 1e+07, got 1e+300"),
        ({"color": "0.5 0.5 0.5", "hue": True}, "`--hue` needs a `--color` that is no grey"),
        ({"background": True, "hue": True}, "`--hue` needs a `--color`"),
    ],
)
def test_bad_options_give_one_clear_message(tmp_path, film, options, message):
    with pytest.raises(StudyError) as caught:
        track(film([drawn([(20.0, 15.0)])]), tmp_path / "t.csv", **options)
    assert message in str(caught.value)


def test_no_film(tmp_path):
    with pytest.raises(StudyError, match=r"`FILM`: there is no file or folder"):
        track(tmp_path / "none.mp4", tmp_path / "t.csv", color=RED)


def test_a_table_is_replaced_only_by_force(tmp_path, film):
    path, table = film([drawn([middle]) for middle in MIDDLES[:2]]), tmp_path / "t.csv"
    table.write_text("mine")
    with pytest.raises(StudyError, match=r"t\.csv is there already.*`--force`"):
        track(path, table, color=RED)
    assert table.read_text() == "mine"
    track(path, table, color=RED, force=True)
    assert len(rows_of(table)) == 2


SHADED = [(30.0 + 3.3 * k, 28.0 + 1.7 * k) for k in range(4)]


def shaded(middle, color, behind, radius=14.0):
    """Return a picture of a ball that is lit from the upper left, a quarter of it all around."""
    rows, columns = np.mgrid[:60, :80]
    x, y = (columns - middle[0]) / radius, (rows - middle[1]) / radius
    z = np.sqrt(np.clip(1.0 - x * x - y * y, 0.0, 1.0))
    lit = np.clip((-0.6 * x - 0.6 * y + 0.5 * z) / np.sqrt(0.97), 0.0, 1.0)
    cover = np.clip((1.0 - np.hypot(x, y)) * radius + 0.5, 0.0, 1.0)[..., None]
    ball = (0.25 + 0.75 * lit)[..., None] * np.array(color)
    noise = 0.01 * np.random.default_rng(0).standard_normal((60, 80, 3))
    return np.clip(cover * ball + (1.0 - cover) * np.array(behind) + noise, 0.0, 1.0)


def farthest(table):
    """Return how far a table is from the middles of the shaded ball at most [pixels]."""
    return np.linalg.norm(np.array(rows_of(table))[:, 1:] - SHADED, axis=1).max()


@pytest.mark.parametrize(
    ("color", "behind"), [((0.75, 0.15, 0.12), (0.5,) * 3), ((0.85, 0.45, 0.1), (0.55, 0.42, 0.3))]
)
def test_the_shaded_side_of_a_ball_belongs_to_it(tmp_path, film, color, behind):
    path = film([shaded(middle, color, behind) for middle in SHADED])
    text = " ".join(map(str, color))
    assert len(track(path, tmp_path / "t.csv", color=text)) == 2  # no advice
    assert farthest(tmp_path / "t.csv") < 0.4
    picture = media.read_image(tmp_path / "t.png")[..., :3]
    is_pink, is_blue = (
        (picture[..., c] > picture.max(axis=-1) - 1e-9) & (np.ptp(picture, axis=-1) > 0.3)
        for c in (0, 2)
    )
    assert is_pink.sum() > 60
    assert is_blue.sum() > 300
    said = track(path, tmp_path / "u.csv", color=text, hue=False)
    assert farthest(tmp_path / "u.csv") > 5.0
    assert "With `--tolerance` 0.3, " in said[0]
    assert "the lit part only" in said[0]


def test_a_white_ball_is_told_by_its_brightness(tmp_path, film):
    path = film([shaded(middle, (0.9,) * 3, (0.1, 0.2, 0.3)) for middle in SHADED])
    said = track(path, tmp_path / "t.csv", color="0.9 0.9 0.9")
    assert "the lit part only. Raise it" in said[0]
    assert len(track(path, tmp_path / "u.csv", color="0.9 0.9 0.9", tolerance=0.5)) == 2


def test_a_background_of_the_same_hue_is_noted(tmp_path, film):
    brown = 0.55 * np.array([0.85, 0.45, 0.1])
    path = film([shaded(middle, (0.85, 0.45, 0.1), brown) for middle in SHADED])
    said = track(path, tmp_path / "t.csv", color="0.85 0.45 0.1")
    assert "is as bright as the colour" in said[0]
    assert "`--no-hue`" in said[0]
