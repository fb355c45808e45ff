"""How accurate adjsim is: `python -m benchmarks.accuracy [NAME ...] [--data docs/data]`.

Each row compares a number with its closed form or with finite elements, and its derivative with
central differences and with the derivative of the closed form. The bar needs scikit-fem, which the
extra `peers` brings. With `--data` all rows are measured, and the figure of the page is drawn.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.accuracy import beams, figure, motions, solids
from benchmarks.accuracy.rows import Row
from benchmarks.publish import ROOT, in_markdown, record


SCENES: dict[str, Callable[[], Iterator[Row]]] = {
    "bar": solids.hanging,
    "ball": solids.indented,
    "drop": motions.dropping,
    "block": motions.sliding,
    "material": solids.tested,
    "beam": beams.bending,
    "spring": beams.swinging,
}
PICTURE = ROOT / "docs" / "_static" / "accuracy.png"
HEADER = ["scene", "number", "adjsim", "closed form or FEM", "ratio", "CPU [s]"]
OF_SLOPES = [
    "scene", "derivative of", "by", "adjoint", "off differences", "over closed form's or FEM's",
]  # fmt: skip


def line_of(scene: str, row: Row) -> list[str]:
    """Return the texts of a number."""
    value, exact = (f"{number:.5g} {row.unit}".strip() for number in (row.value, row.exact))
    shown = exact if row.reference == "closed form" else f"{exact}, {row.reference}"
    return [f"`{scene}`", row.quantity, value, shown, f"{row.ratio:.4f}", f"{row.seconds:.2g}"]


def slope_of(scene: str, row: Row) -> list[str]:
    """Return the texts of a derivative."""
    error, ratio = f"{row.slope_error:.0e}", f"{row.slope_ratio:.4f}"
    return [f"`{scene}`", row.quantity, row.by, f"{row.slope:.5g}", error, ratio]


def main(
    scenes: Annotated[list[str] | None, typer.Argument(help=f"{', '.join(SCENES)}.")] = None,
    data: Annotated[Path | None, typer.Option(help="Write accuracy.json into this folder.")] = None,
) -> None:
    """Print the rows of some scenes, by default of all."""
    names: Sequence[str] = scenes or list(SCENES)
    if unknown := [name for name in names if name not in SCENES]:
        raise typer.BadParameter(f"`{unknown[0]}` is none of {', '.join(SCENES)}.")
    if data is not None and set(names) != set(SCENES):
        raise typer.BadParameter("`--data` writes the rows of all scenes: leave out their names.")
    rows = {name: list(SCENES[name]()) for name in names}
    tables = [
        [header, *(texts(name, row) for name in names for row in rows[name])]
        for header, texts in ((HEADER, line_of), (OF_SLOPES, slope_of))
    ]
    typer.echo("\n\n".join(in_markdown(table) for table in tables))
    if data is not None:
        figure.draw(PICTURE)
        values = {"numbers": tables[0], "derivatives": tables[1]}
        record(data, "accuracy", values, "python -m benchmarks.accuracy --data docs/data")
    if off := [row for name in names for row in rows[name] if not row.passes]:
        typer.echo(f"farther off than 2 %, or than 1e-8 from differences: {off[0].quantity}")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
