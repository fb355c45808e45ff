"""Commands on a Dask cluster, a scheduler and two workers in processes: the same files as here."""

import pytest

from tests.studies.datasets.toy import SCENE, TOY
from tests.studies.runs.dask_commands import dask_commands, start_scheduler
from tests.studies.scans.toy import BEAM, PENDULUM, written


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Address of a scheduler with two workers."""
    pytest.importorskip("distributed")
    with dask_commands() as start:
        _, address = start_scheduler(start, tmp_path_factory.mktemp("scheduler"))
        for _ in range(2):
            start("worker", address, "--nthreads", "1", "--no-nanny")
        yield address


@pytest.fixture
def assert_same(adjsim, address, tmp_path):
    """Run a command here and on the cluster, and compare files; return what is printed here."""

    def run(*arguments, files):
        printed = {}
        for name, scheduler in (("here", "serial"), ("there", address)):
            folder = tmp_path / name
            out = adjsim.done(*arguments, "--out", folder, "--scheduler", scheduler)
            printed[name] = out.replace(str(folder), "FOLDER")
        assert printed["there"] == printed["here"]
        for name in files:
            here, there = (tmp_path / place / name for place in ("here", "there"))
            assert there.read_bytes() == here.read_bytes(), name
        return printed["here"]

    return run


@pytest.mark.usefixtures("unpainted")
def test_a_scan_has_the_same_bytes_with_points_that_fail(assert_same, tmp_path):
    over = ("--over", "beam.mu=1e5:1e14:3:log", "--over", "observations.film.simulate.frames=2:3:2")
    path = written(tmp_path / "scene", BEAM)
    printed = assert_same("scan", path, *over, files=("points.jsonl", "scan.nc"))
    assert "have no loss" in printed


@pytest.mark.usefixtures("unpainted")
def test_a_data_set_has_the_same_bytes(assert_same):
    assert_same("dataset", SCENE, *TOY, "--count", "4", files=("index.json", "shard-00000.h5"))


@pytest.mark.usefixtures("unpainted")
def test_instances_have_the_same_bytes(assert_same, tmp_path):
    path = written(tmp_path / "scene", PENDULUM)
    settings = ("instances=3", "search.max_evaluations=6")
    each = [f"instances/{k:03d}/result.json" for k in range(3)]
    assert_same("run", path, *settings, files=("instances.csv", *each))
