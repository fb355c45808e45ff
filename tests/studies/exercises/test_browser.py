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
import zipfile
from contextlib import contextmanager
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from studies.exercises.browser import check, sources, texts
from studies.exercises.catalogue import exercises
from tests.chromium import CHROMIUM, page


DOCS = Path(__file__).parents[3] / "docs"
sys.path.append(str(DOCS / "_ext"))
import offline_python  # noqa: E402  beside the manual, which is no package


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
    for exercise in texts():
        passed, text = check(exercise["number"], exercise["text"])
        assert not passed
        assert "the gap is still there" in text


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextmanager
def served(tmp_path, pyodide):
    """Serve the page, built alone, and Pyodide if it is a folder."""
    pytest.importorskip("furo")
    source, out = tmp_path / "source", tmp_path / "out"
    (source / "course").mkdir(parents=True)
    (source / "index.md").write_text("# Index\n\n```{toctree}\ncourse/practice\n```\n")
    (source / "course" / "practice.md").write_text((DOCS / "course" / "practice.md").read_text())
    url = pyodide
    if Path(pyodide).is_dir():
        out.mkdir()
        (out / "pyodide").symlink_to(Path(pyodide).resolve())
        url = "../pyodide/"
    command = [sys.executable, "-m", "sphinx", "-q", "-c", DOCS, "-D", f"pyodide_url={url}"]
    subprocess.run([*command, source, out], check=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(out)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/course/practice.html"
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
def test_the_page_names_what_a_folder_of_pyodide_lacks(tmp_path):
    folder = tmp_path / "incomplete"
    folder.mkdir()
    wheel = "numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl"
    for name in offline_python.FILES:
        (folder / name).write_text("throw new Error('cut');")
    lock = {"packages": {"numpy": {"file_name": wheel}}}
    (folder / "pyodide-lock.json").write_text(json.dumps(lock))
    with served(tmp_path, folder) as address, page() as tab:
        tab.open(address)
        report = "document.getElementById('exercise-report')"
        start = time.monotonic()
        while tab.run(f"{report}.className") != "wrong":
            assert time.monotonic() < start + 60
            time.sleep(0.1)
        text = tab.run(f"{report}.textContent")
    assert f"missing there: {wheel}." in text
    assert "python docs/_ext/offline_python.py OUT/pyodide" in text
    assert len(text.splitlines()) <= 5


def test_another_build_of_numpy_is_refused(tmp_path):
    lock = {
        "packages": {"numpy": {"file_name": "numpy.whl", "sha256": sha256(b"right").hexdigest()}}
    }
    (tmp_path / "pyodide-lock.json").write_text(json.dumps(lock))
    wheel = tmp_path / "other.whl"
    wheel.write_bytes(b"wrong")
    with pytest.raises(SystemExit, match=r"has another numpy.whl than Pyodide"):
        offline_python.add_numpy(tmp_path, wheel)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("folder/numpy.whl", b"right")
    offline_python.add_numpy(tmp_path, tmp_path / "all.zip")
    assert (tmp_path / "numpy.whl").read_bytes() == b"right"


@pytest.mark.skipif(
    not (CHROMIUM and PYODIDE), reason="needs Chromium, and PYODIDE in the environment"
)
def test_a_browser_grades_within_a_minute_of_opening_the_page(tmp_path):
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

    with served(tmp_path, PYODIDE) as address, page() as tab:
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
