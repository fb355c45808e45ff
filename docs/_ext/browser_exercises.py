"""Writes what the page of exercises loads: their texts, and the grader with its files.

Python itself comes from `pyodide_url`, a folder of Pyodide with NumPy. `offline_python.py` lays
such a folder beside the pages of a manual whose exercises need no network.
"""

import json
from pathlib import Path

from studies.exercises.browser import sources, texts


VERSION = "0.27.7"  # of Pyodide, the one that is tested
PYODIDE = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"


def write_data(app, error):
    """Write the data as a script: pages opened from a disk may load scripts, but not fetch."""
    if error is None and app.builder.format == "html":
        data = {"pyodide": app.config.pyodide_url, "files": sources(), "exercises": texts()}
        path = Path(app.outdir, "_static", "exercises_data.js")
        path.write_text(f"window.adjsimExercises = {json.dumps(data)};\n", encoding="utf-8")


def setup(app):
    app.add_config_value("pyodide_url", PYODIDE, "html", [str])
    app.connect("build-finished", write_data)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
