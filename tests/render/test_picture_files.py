import io
from pathlib import Path

import PIL.EpsImagePlugin
import pytest
from PIL import Image

from render.picture_files import FORMATS, open_picture
from render.textured_files import read_texture
from studies.runs import media
from tests.test_layout import ROOT


PROGRAM = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 32 32
%%EndComments
{} loop
"""


@pytest.fixture
def programs_run(monkeypatch):
    """What PostScript would have been run."""
    run = []
    monkeypatch.setattr(PIL.EpsImagePlugin, "Ghostscript", lambda *args, **_: run.append(args))
    return run


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (open_picture, "x.png"),
        (read_texture, "x.png"),
        (media.read_image, "x.jpg"),
        (media.read_video, "x.gif"),
        (lambda path: media.read_video(path.parent), "x.png"),
    ],
)
def test_a_program_called_a_picture_is_refused_and_not_run(tmp_path, programs_run, read, name):
    path = tmp_path / name
    path.write_bytes(PROGRAM)
    with pytest.raises(ValueError, match="its content is none of PNG, JPEG"):
        read(path)
    assert not programs_run


@pytest.mark.parametrize("kind", FORMATS)
def test_formats_are_found_by_their_content(kind):
    stream = io.BytesIO()
    Image.new("RGB", (3, 2)).save(stream, kind)
    with open_picture(stream) as picture:
        assert picture.size == (3, 2)
        assert picture.format == kind


def test_no_other_place_opens_pictures():
    opening = [
        path.relative_to(ROOT)
        for package in ("adjsim", "render", "adjoint", "studies")
        for path in (ROOT / package).rglob("*.py")
        if "Image.open(" in path.read_text()
    ]
    assert opening == [Path("render/picture_files.py")]
