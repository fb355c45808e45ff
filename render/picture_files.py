"""Picture files from anywhere, opened in the formats that Pillow decodes by itself.

Without a list Pillow opens all that it has a plugin for, whatever the suffix: it hands PostScript
to Ghostscript, which runs it.

Tests: `tests/render/test_picture_files.py`.
"""

import os
from typing import IO, Any

from adjsim.extras import optional


FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")


def open_picture(file: str | os.PathLike | IO[bytes]) -> Any:
    """Open a picture by its content; return the `PIL.Image.Image`, whose pixels are read later.

    Raise a ValueError if its content is of no format in `FORMATS`.
    """
    Image = optional("PIL.Image")
    try:
        return Image.open(file, formats=FORMATS)
    except Image.UnidentifiedImageError as error:
        raise ValueError(f"its content is none of {', '.join(FORMATS)}") from error
