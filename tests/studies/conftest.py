"""What several tests of studies share."""

import pytest

from studies.cli import main as cli
from studies.runs import meshes
from tests.studies.undrawn import undrawn


@pytest.fixture(scope="module", autouse=True)
def _own_meshes():
    """Meshes that one file of tests makes are not written into runs of another."""
    meshes.KEPT.clear()


@pytest.fixture
def adjsim(monkeypatch, capsys):
    """Call the command in this process; return exit code, stdout and stderr."""

    def call(*args):
        monkeypatch.setattr("sys.argv", ["adjsim", *map(str, args)])
        code = 0
        try:
            cli.main()
        except SystemExit as exit_:
            code = exit_.code or 0
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def unpainted():
    """No figures are made in this test, see `undrawn`."""
    with undrawn():
        yield
