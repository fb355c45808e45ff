"""`python -m benchmarks.gallery`: see the package."""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.gallery.entries import ENTRIES
from benchmarks.gallery.pictures import draw_all, write_gallery


def gallery(
    *,
    out: Annotated[Path, typer.Option(help="Folder of the pictures and their page.")] = Path(
        "gallery"
    ),
    height: Annotated[int, typer.Option(min=16, help="Of a picture [pixels].")] = 180,
) -> None:
    """Draw all that the renderer can show, and what VTK makes of the same scene."""
    exhibits = draw_all(ENTRIES, (height, round(4 / 3 * height)))
    for shown in exhibits:
        differs = "" if shown.theirs is None else f"VTK: {100 * shown.differing:.2f} % differ"
        typer.echo(f"{shown.entry.name:20s} {differs}".rstrip())
    typer.echo(write_gallery(out, exhibits))


if __name__ == "__main__":
    typer.run(gallery)
