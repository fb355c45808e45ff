"""Lays Python beside the pages, so that their exercises need no network but their own server.

    python docs/_ext/offline_python.py OUT/pyodide [--numpy FILE]
    sphinx-build -D pyodide_url=../pyodide/ docs OUT
    python -m http.server -d OUT

Pyodide is fetched by npm. Its NumPy is not on npm: it is fetched from jsDelivr, or copied from
FILE, the wheel or a zip file that holds it. It must have the check sum that Pyodide names.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen


sys.path.insert(0, str(Path(__file__).resolve().parent))
from browser_exercises import PYODIDE, VERSION


FILES = (
    "pyodide.js",
    "pyodide.asm.js",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)


def fetch_pyodide(folder):
    """Write Pyodide's own files, from its npm package."""
    with tempfile.TemporaryDirectory() as place:
        command = ["npm", "pack", "--silent", "--pack-destination", place, f"pyodide@{VERSION}"]
        try:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"Pyodide {VERSION} could not be fetched by npm: {error}") from None
        with tarfile.open(next(Path(place).glob("*.tgz"))) as package:
            for name in FILES:
                (folder / name).write_bytes(package.extractfile(f"package/{name}").read())


def numpy_wheel(name, file):
    """Return the wheel `name` as bytes, from a file or from jsDelivr."""
    if file is None:
        try:
            with urlopen(PYODIDE + name, timeout=60) as answer:
                return answer.read()
        except URLError as error:
            raise SystemExit(
                f"{PYODIDE}{name} could not be fetched: {error.reason}\n"
                f"Fetch {name} elsewhere, and give it by --numpy FILE."
            ) from None
    if file.name == name or not zipfile.is_zipfile(file):
        return file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        inside = [path for path in archive.namelist() if path.endswith(f"/{name}")]
        if not inside:
            raise SystemExit(f"{file} is not {name}, and does not hold it.")
        return archive.read(inside[0])


def add_numpy(folder, file=None):
    """Write NumPy into a folder of Pyodide, if it is the build that Pyodide lists."""
    lock = json.loads((folder / "pyodide-lock.json").read_text())["packages"]["numpy"]
    name = lock["file_name"]
    wheel = numpy_wheel(name, file)
    if hashlib.sha256(wheel).hexdigest() != lock["sha256"]:
        where = file or PYODIDE
        raise SystemExit(f"{where} has another {name} than Pyodide {VERSION} was built with.")
    (folder / name).write_bytes(wheel)


def main():
    """Write all files into the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="beside the pages, such as OUT/pyodide")
    parser.add_argument("--numpy", type=Path, metavar="FILE", help="its wheel, or a zip with it")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    fetch_pyodide(arguments.folder)
    add_numpy(arguments.folder, arguments.numpy)


if __name__ == "__main__":
    main()
