"""Lose the emulated device in a search, go on on the CPU, and print what came of it."""

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path

from studies.cli.main import main
from studies.runs.folder import MANIFEST, RESULT, RunFolder
from studies.scene.files import BUNDLED
from tests.cuda.emulate import install  # noqa: F401
from tests.cuda.emulate.driver import DEVICE
from tests.cuda.study_scenes import BEAM


LAUNCHES = 300  # a few evaluations


def said(*arguments):
    """Return the exit status of the command, and what it says on its error stream."""
    sys.argv = ["adjsim", *arguments]
    stream, code = io.StringIO(), 0
    with contextlib.redirect_stderr(stream), contextlib.redirect_stdout(sys.stderr):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    return code, stream.getvalue()


def search(out):
    """Yield what is said, and the manifest, of each command in turn."""
    first = ("run", str(BUNDLED / "beam.toml"), *BEAM, "search.max_evaluations=30")
    again = ("run", str(BUNDLED / "beam.toml"), "--out", out, "--resume")
    commands = {
        "lost": (*first, "--out", out, "--no-certificate", "--device", "cuda"),
        "without": again,
        "on the CPU": (*again, "--device", "cpu"),
        "back": (*again, "--device", "cuda"),
    }
    for name, command in commands.items():
        DEVICE.launches_left = LAUNCHES if name == "lost" else 0
        code, text = said(*command)
        folder = RunFolder.open(Path(out))
        manifest = folder.read_json(MANIFEST)
        logs = {p.name: p.read_text().count("\n") for p in Path(out).glob("*.jsonl")}
        yield (
            name,
            {
                "code": code,
                "text": text,
                "device": manifest["device"],
                "logged": sum(logs.values()),
                "is done": folder.has(RESULT),
            },
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        json.dump(dict(search(str(Path(folder) / "run"))), sys.stdout)
