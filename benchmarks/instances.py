"""How well bundled scenes find what is hidden in them, over random instances.

    python -m benchmarks.instances --data docs/data
    python -m benchmarks.instances bounce light --out runs/instances

Each scene is run as by `adjsim run SCENE instances=N`, and once where nothing in it is drawn at
random. What has ended in the folder `--out` is not run again.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.publish import in_markdown, record
from studies.fitting.running import start_scene
from studies.runs.folder import INSTANCES, RESULT, RunFolder
from studies.scene.files import find_scene


# How many instances of each scene; several hours of one core in all.
COUNTS = {
    "rigid-mass": 20, "rigid-contact": 20, "ball-stiffness": 20, "ball-material": 20,
    "cloth-velocity": 20, "bounce": 20, "pendulum": 20, "double-pendulum": 20, "two-balls": 6,
    "links": 8, "tensile-test": 5, "beam": 1, "cradle": 1, "draped-cloth": 1, "sagging-beam": 1,
    "indentation": 1, "depth": 1, "light": 14, "camera": 20, "texture": 14, "shape": 20,
}  # fmt: skip
HEADER = (
    "scene", "instances", "number", "median", "worst", "of them exact", "evaluations",
    "published by gradSim",
)  # fmt: skip
EXACT = 1e-9  # a relative error of rounding, and of where a search stops


def run(scene: str, count: int, out: Path) -> RunFolder:
    """Return the folder of the run of a scene, which is run or resumed if it has not ended."""
    place = out / scene
    if (place / RESULT).exists():
        return RunFolder(place)
    overrides = [f"instances={count}"] if count > 1 else []
    path, options = find_scene(scene), {"certificate": False}
    folder, job = start_scene(path, overrides, place, options, resume=place.exists())
    with folder:
        typer.echo(job.run(folder), err=True)
    return folder


def rows_of(scene: str, folder: RunFolder) -> list[tuple[str, ...]]:
    """Return a row for each number that a scene finds: relative errors, or measures of shapes."""
    if not folder.has(INSTANCES):
        result = folder.read_json(RESULT)
        spent = str(result["evaluations"])
        return [
            (scene, "1", f"`{row['name']}`", f"{row['relative_error']:.1g}", "", "", spent, "")
            for row in result["parameters"]
        ]
    table: dict[str, Any] = folder.read_json(INSTANCES)
    count = f"{len(table['records'])}" + f" ({len(table['failed'])} failed)" * bool(table["failed"])
    spent = f"{np.median([ended['evaluations'] for ended in table['records']]):.0f}"
    rows = []
    for row in table["parameters"]:
        published = "" if row["published"] is None else f"{row['published']:.1e}"
        errors = [ended["errors"][row["name"]]["mean"] for ended in table["records"]]
        exact = str(sum(error <= EXACT for error in errors))
        numbers = (f"{row['median']:.1g}", f"{row['worst']:.1g}", exact)
        rows.append((scene, count, f"`{row['name']}`", *numbers, spent, published))
    return rows


def main(
    scenes: Annotated[list[str] | None, typer.Argument(help=f"{', '.join(COUNTS)}.")] = None,
    *,
    out: Annotated[Path, typer.Option(help="Every scene gets a folder in this one.")] = Path(
        "runs/instances"
    ),
    data: Annotated[Path | None, typer.Option(help="Write instances.json there.")] = None,
) -> None:
    """Print the errors of scenes."""
    table = [HEADER]
    for scene in scenes or COUNTS:
        table += rows_of(scene, run(scene, COUNTS[scene], out))
    typer.echo(in_markdown(table))
    if data is not None:
        words = ["python -m benchmarks.instances", *(scenes or ())]
        typer.echo(record(data, "instances", {"table": table}, " ".join(words)))


if __name__ == "__main__":
    typer.run(main)
