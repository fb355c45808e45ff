"""What bundled scenes come to: `python -m benchmarks.scenes [SCENE ...] [--data docs/data]`.

Each is run as by `adjsim run SCENE`, with the settings of `SCENES`. Of `identify`, whose true E is
known, the scene file is also changed in one number; with `--data` the error budget is drawn.
"""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.publish import ROOT, record
from studies.answer.scales import percent
from studies.fitting.running import start_scene
from studies.scene.files import find_scene


SCENES = {"beam": (), "identify": ()}  # their overrides
HEADER = ["scene", "number", "answer", "± with model error", "error", "verdict", "evaluations"]
TRUE_E = 2.52e5  # of `identify` [Pa]
GIVEN = {  # what is given, and instead of what; the overrides
    ("all right", ""): (),
    ("`fps = 25.0`", "24 (4 % more)"): ("observations.film.fps=25.0",),
    ("`scale = 0.102`", "0.1 (2 % more)"): ("bodies.beam.scale=0.102",),
    ("`density = 1050.0`", "1000 (5 % more)"): ("bodies.beam.density=1050.0",),
    ("`nu = 0.43`", "0.4 (0.03 more)"): ("bodies.beam.nu=0.43",),
}
HEADER_OF_GIVEN = ["given", "instead of", "E is off by", "interval", "unexplained", "verdict"]
PICTURE = "figures/budget_1.svg"


def run(scene: str, overrides: Sequence[str], picture: Path | None = None) -> dict[str, Any]:
    """Run a scene and return its result; copy the picture of its error budget."""
    with tempfile.TemporaryDirectory() as out:
        options: dict[str, Any] = {"certificate": False}
        folder, job = start_scene(find_scene(scene), overrides, Path(out) / "run", options)
        with folder:
            job.run(folder)
            if picture is not None:
                shutil.copy(folder.file(PICTURE), picture)
            return folder.read_json("result.json", dict)


def rows_of(scene: str, result: dict[str, Any]) -> list[list[str]]:
    """Return a row of texts for each number that a scene finds."""
    rows = []
    for row in result["parameters"]:
        wide = 100.0 * _half_width(row, result)
        error = f"{row['relative_error']:.1g}" if "truth" in row else ""
        rows.append([
            scene, row["name"], f"{row['estimate']:.4g} {row['unit']}", f"{wide:.2g} %", error,
            result["verdict"]["kind"], str(result["evaluations"]),
        ])  # fmt: skip
    return rows


def _half_width(row: dict[str, Any], result: dict[str, Any]) -> float:
    """Return the half-width of an interval as the error budget has it, a part of the value."""
    budget = result["budget"].get(row["name"])
    return budget["half_width"] if budget else row["interval"][1] / row["estimate"] - 1.0


def row_of_given(given: tuple[str, str], result: dict[str, Any]) -> list[str]:
    """Return what `identify` says with one number changed."""
    (row,) = result["parameters"]
    low, high = row["interval"]
    holds = "holds" if low <= TRUE_E <= high else "does not hold"
    wide = percent(_half_width(row, result))
    left = result["verdict"]["numbers"].get("unexplained")
    return [
        *given, percent(abs(row["estimate"] / TRUE_E - 1.0)), f"± {wide}, {holds} the true value",
        "" if left is None else percent(left), f"*{result['verdict']['kind']}*",
    ]  # fmt: skip


def main(
    scenes: Annotated[list[str] | None, typer.Argument(help=f"{', '.join(SCENES)}.")] = None,
    data: Annotated[Path | None, typer.Option(help="Write scenes.json into this folder.")] = None,
    *,
    given: Annotated[bool, typer.Option(help="Also `identify` with one number changed.")] = False,
) -> None:
    """Print what is found in bundled scenes."""
    table, values = [HEADER], dict[str, Any]()
    picture = ROOT / "docs" / "_static" / "error_budget.svg" if data is not None else None
    for scene in scenes or SCENES:
        result = run(scene, SCENES[scene], picture if scene == "identify" else None)
        table += rows_of(scene, result)
        if scene == "identify":
            values["identify-evaluations"] = table[-1][-1]
            values["identify-interval"] = f"± {table[-1][3]}"
            values["identify-advice"] = result["budget"]["beam.E"]["advice"]
    values["table"] = table
    if given:
        results = {each: run("identify", overrides) for each, overrides in GIVEN.items()}
        values["given"] = [HEADER_OF_GIVEN, *(row_of_given(*pair) for pair in results.items())]
        table = [*table, *values["given"]]
    for row in table:
        typer.echo("| " + " | ".join(row) + " |")
    if data is not None:
        record(data, "scenes", values, f"python -m benchmarks.scenes{' --given' * given}")


if __name__ == "__main__":
    typer.run(main)
