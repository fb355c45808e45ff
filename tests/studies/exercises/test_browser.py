"""The page of exercises: what it ships runs without Numba, and a browser grades with it.

The second needs Chromium, and Pyodide with NumPy: `PYODIDE` is its URL or its folder.
"""

import functools
import json
import os
import subprocess
import sys
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from studies.exercises.browser import check, sources, texts
from studies.exercises.catalogue import exercises
from tests.chromium import CHROMIUM, page


DOCS = Path(__file__).parents[3] / "docs"
PYODIDE = os.environ.get("PYODIDE")
PRODUCT = exercises()[1]
RIGHT = PRODUCT.given + PRODUCT.solution
WRONG = PRODUCT.given + PRODUCT.mutated(PRODUCT.mistakes[0])
ALONE = """
import sys
for name in ("resource", "numba", "adjsim", "render", "adjoint"):
    sys.modules[name] = None  # whose import fails
from studies.exercises.browser import check
print(check(1, sys.stdin.read()))
"""


def test_the_files_of_the_page_grade_by_themselves(tmp_path):
    for path, text in sources().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    done = subprocess.run(
        [sys.executable, "-P", "-c", ALONE],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        input=RIGHT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("(True, 'Exercise 1. A product of two numbers: right")


def test_a_check_says_what_was_printed_and_what_is_wrong():
    passed, text = check(1, "print('hello')\n" + WRONG)
    assert not passed
    assert text.startswith("hello\n\nExercise 1. ")
    assert "A sign is wrong." in text
    assert check(1, "1 +") == (
        False,
        "exercise_01_product.py does not parse: line 1: invalid syntax.",
    )
    assert check(1, f"print('x' * 10**6)\n{RIGHT}")[1].count("x") < 5000


def test_each_text_is_a_file_with_a_gap():
    for one in texts():
        passed, text = check(one["number"], one["text"])
        assert not passed
        assert "the gap is still there" in text


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def address(tmp_path):
    """Serve the page, built alone, and Pyodide if it is a folder."""
    pytest.importorskip("furo")
    source, out = tmp_path / "source", tmp_path / "out"
    (source / "course").mkdir(parents=True)
    (source / "index.md").write_text("# Index\n\n```{toctree}\ncourse/practice\n```\n")
    (source / "course" / "practice.md").write_text((DOCS / "course" / "practice.md").read_text())
    url = PYODIDE
    if Path(PYODIDE).is_dir():
        out.mkdir()
        (out / "pyodide").symlink_to(Path(PYODIDE).resolve())
        url = "../pyodide/"
    command = [sys.executable, "-m", "sphinx", "-q", "-c", DOCS, "-D", f"pyodide_url={url}"]
    subprocess.run([*command, source, out], check=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(out)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/course/practice.html"
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(
    not (CHROMIUM and PYODIDE), reason="needs Chromium, and PYODIDE in the environment"
)
def test_a_browser_grades_within_a_minute_of_opening_the_page(address):
    def report():
        while tab.run("document.getElementById('exercise-check').disabled"):
            assert time.monotonic() < start + 300, tab.run("document.body.innerText")
            time.sleep(0.1)
        return tab.run("document.getElementById('exercise-report').textContent")

    def graded(source):
        tab.run(
            f"document.getElementById('exercise-editor').value = {json.dumps(source)};"
            "document.getElementById('exercise-check').click()"
        )
        return report()

    with page() as tab:
        start = time.monotonic()
        tab.open(address)
        assert report().startswith("Python is ready.")
        assert "the gap is still there" in graded(texts()[0]["text"])
        assert time.monotonic() < start + 60
        assert graded(WRONG) == check(1, WRONG)[1]
        assert "right, at 4 random points" in graded(RIGHT)
        assert tab.run("document.getElementById('exercise-choice').options[0].text")[0] == "\u2713"
        assert graded("while True: pass").startswith("Your program has not ended after 10 s.")
        assert "right, at 4 random points" in graded(RIGHT)
