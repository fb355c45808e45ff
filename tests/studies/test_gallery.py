"""The gallery: what it shows, whom it asks, and what it leaves behind."""

import re
import sys

import numpy as np
import pytest

from render.blending import Hard
from render.lenses import Intrinsics
from studies import cli
from studies.errors import StudyError
from studies.gallery import making, vtk_pictures
from studies.gallery.entries import ENTRIES, by_face, by_vertex, calibrated, rasterizer, shot
from studies.gallery.making import draw_all, make_gallery
from studies.gallery.others import OTHERS, Other
from studies.gallery.shots import Shot


SIZE = (24, 32)


class Absent:
    """A package that is not installed."""

    name = "Nobody"

    @staticmethod
    def load():
        return Absent

    @staticmethod
    def missing():
        return "not installed: pip install nobody"


class Echo:
    """A package that draws what we draw, a little brighter."""

    name = "Echo"

    @staticmethod
    def load():
        return Echo

    @staticmethod
    def missing():
        return None

    @staticmethod
    def draw(shot):
        return None if isinstance(shot.camera.lens, Intrinsics) else shot.draw() + 0.1


def test_names_are_those_of_files_and_occur_once():
    names = [entry.name for entry in ENTRIES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)


def test_every_entry_shows_something():
    exhibits, _ = draw_all(ENTRIES, SIZE, (), lambda _: None)
    for shown in exhibits:
        assert shown.ours.shape == (*SIZE, 3)
        assert np.isfinite(shown.ours).all()
        assert np.ptp(shown.ours) > 0.2, shown.entry.name


def test_the_command_leaves_pictures_and_one_self_contained_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(making, "ENTRIES", ENTRIES[:2])
    monkeypatch.setattr(making, "OTHERS", (Absent, Echo))
    monkeypatch.setattr(
        sys, "argv", ["adjsim", "gallery", "--out", f"{tmp_path}", "--height", "24"]
    )
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 0
    said = capsys.readouterr().out
    assert "Nobody does not draw: not installed: pip install nobody" in said
    assert said.strip().endswith("index.html")
    first = ENTRIES[0].name
    assert {path.name for path in tmp_path.iterdir()} >= {
        "index.html", f"{first}.png", f"{first}-echo.png", f"{first}-echo-difference.png",
    }  # fmt: skip
    page = (tmp_path / "index.html").read_text()
    assert page.count("<figure>") == 6
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert "Nobody does not draw here" in page


def test_what_another_cannot_draw_is_left_out():
    cannot = next(entry for entry in ENTRIES if entry.name == "intrinsics")
    exhibits, _ = draw_all([cannot, ENTRIES[0]], SIZE, (Echo,), lambda _: None)
    assert exhibits[0].theirs == {}
    assert exhibits[1].theirs["Echo"].differing > 0.5


def test_alpha_of_dibr_fades_around_outlines_and_nobody_else_draws_it():
    soft = next(entry for entry in ENTRIES if entry.name == "dibr-alpha")
    (shown,), _ = draw_all([soft], (48, 64), (Echo,), lambda _: None)
    assert shown.theirs == {}
    fading = (shown.ours > 0.05) & (shown.ours < 0.95)
    assert 0.02 < fading.mean() < 0.5  # a rim of 4 pixels, of 48
    hard = Shot(**{**vars(ENTRIES[0].make((48, 64))), "alpha": True}).draw()
    assert set(np.unique(hard)) == {0.0, 1.0}
    assert (shown.ours[hard == 1.0] == 1.0).all()


def test_a_page_too_small_to_see_is_refused(tmp_path):
    with pytest.raises(StudyError, match=r"`--height` must be at least 16 pixels, got 3"):
        make_gallery(tmp_path, 3)


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.name)
def test_others_draw_or_say_what_is_missing(other: Other):
    module = other.load()
    if problem := module.missing():
        assert "install" in problem or "trial" in problem
        return
    drawn = Shot(*vars(ENTRIES[1].make((48, 64))).values())
    picture = making.compare(drawn.draw(), module.draw(drawn))
    assert picture.image.shape == (48, 64, 3)
    assert picture.median < making.ROUNDING


@pytest.mark.skipif(vtk_pictures.missing() is not None, reason="VTK cannot draw here")
@pytest.mark.parametrize("scene", [by_face, by_vertex])
@pytest.mark.parametrize("camera", [None, calibrated])
def test_vtk_draws_the_same_pixels(scene, camera):
    size = (90, 120)
    view = {} if camera is None else {"camera": camera}
    one = shot(scene, lambda size: rasterizer(size, blend=Hard()), **view)(size)
    picture = making.compare(one.draw(), vtk_pictures.draw(one))
    # Edges that pass within 1/256 of a pixel of its centre fall to either side.
    assert picture.differing < 0.01
    assert picture.median < 0.5 / 255 + 1e-6
