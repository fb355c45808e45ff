"""What several tests of studies share."""

import pytest

from studies.runs import meshes
from tests.studies import command
from tests.studies.undrawn import undrawn


@pytest.fixture(scope="module", autouse=True)
def _own_meshes():
    """Meshes that one file of tests makes are not written into runs of another."""
    meshes.KEPT.clear()


@pytest.fixture
def adjsim():
    """The command: see `Command`."""
    return command.adjsim


@pytest.fixture
def unpainted():
    """No figures are made in this test, see `undrawn`."""
    with undrawn():
        yield
