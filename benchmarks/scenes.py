"""What bundled scenes come to: `python -m benchmarks.scenes [SCENE ...] [--data docs/data]`.

Each is run as by `adjsim run SCENE`, with the settings of `SCENES`.
"""

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.publish import record
from studies.fitting.running import start_scene
from studies.scene.files import find_scene


SCENES = {"beam": (), "identify": ()}  # their overrides
HEADER = ["scene", "number", "answer", "± with model error", "error", "verdict", "evaluations"]


def rows_of(scene: str) -> list[list[str]]:
    """Run a scene; return a row of texts for each number that it finds."""
    with tempfile.TemporaryDirectory() as out:
        options: dict[str, Any] = {"certificate": False}
        folder, job = start_scene(find_scene(scene), SCENES[scene], Path(out) / "run", options)
        with folder:
            job.run(folder)
            result = folder.read_json("result.json", dict)
    found = []
    for row in result["parameters"]:
        low, high = row["interval"]
        wide = 50.0 * (high - low) / row["estimate"]
        error = f"{row['relative_error']:.1g}" if "truth" in row else ""
        found.append([
            scene, row["name"], f"{row['estimate']:.4g} {row['unit']}", f"{wide:.2g} %", error,
            result["verdict"]["kind"], str(result["evaluations"]),
        ])  # fmt: skip
    return found


def main(
    scenes: Annotated[list[str] | None, typer.Argument(help=f"{', '.join(SCENES)}.")] = None,
    data: Annotated[Path | None, typer.Option(help="Write scenes.json into this folder.")] = None,
) -> None:
    """Print what is found in bundled scenes."""
    table = [HEADER, *(row for scene in scenes or SCENES for row in rows_of(scene))]
    for row in table:
        typer.echo("| " + " | ".join(row) + " |")
    if data is not None:
        values: dict[str, Any] = {"table": table}
        for row in table[1:]:
            if row[0] == "identify":
                values |= {"identify-evaluations": row[-1], "identify-interval": f"± {row[3]}"}
        record(data, "scenes", values, "python -m benchmarks.scenes")


if __name__ == "__main__":
    typer.run(main)
