"""Run the command of adjsim in the pages of this folder, and show what it prints."""

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path


folder = Path(tempfile.mkdtemp())  # of the scene files


def adjsim(*words: str) -> None:
    """Run `adjsim WORDS` in the folder; of a search only what it ends with is shown."""
    start = "from studies.cli.entry import main; main()"
    plain = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    done = subprocess.run(
        [sys.executable, "-c", start, *words], cwd=folder, env=plain | {"NO_COLOR": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    lines = done.stdout.splitlines()
    first = next((k for k, line in enumerate(lines) if line.startswith("verdict")), 0)
    for line in lines[first:]:
        if line.strip() and str(folder) not in line:
            print(textwrap.fill(line, 110, subsequent_indent="  ") if len(line) > 110 else line)
