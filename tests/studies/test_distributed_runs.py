"""Tables, instances and data sets over the processes of a real cluster: the same numbers."""

import os
import signal

import pytest

from studies import running
from studies.blas import blas_threads
from studies.datasets import generating
from studies.datasets.spec import Asked
from studies.distribution import connected
from studies.errors import StudyError
from tests.studies.dask_commands import dask, scheduler
from tests.studies.datasets.toy import TOY as SCENES
from tests.studies.paper.tables.toy import TABLE1, settings_of
from tests.studies.toys import TOYS
from tests.studies.undrawn import undrawn


pytest.importorskip("distributed")
__all__ = ["dask", "scheduler"]  # fixtures
PENDULUM = (*TOYS["pendulum"].overrides, 'free=["length"]', "instances=3")
CONTACT = settings_of("contact", TOYS["rigid-contact"].overrides, "optimizer.starts=1")


@pytest.fixture(scope="module")
def cluster():
    """Two workers, each a process."""
    with connected("local:2") as spread:
        yield spread


class Killing:
    """Kills the process of a worker as soon as the first piece has come."""

    def __init__(self, cluster):
        self.cluster, self.width, self.pieces = cluster, cluster.width, 0

    def __call__(self, function, pieces):
        for found in self.cluster(function, pieces):
            if not self.pieces:
                os.kill(min(self.cluster.client.run(os.getpid).values()), signal.SIGKILL)
            self.pieces += 1
            yield found


def test_a_data_set_whose_worker_is_killed_has_the_same_bytes(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(generating, "AT_ONCE", 1)
    asked, folders, spread = Asked("rigid", SCENES, 6), [], Killing(cluster)
    for name, more in (("here", ()), ("there", (spread,))):
        folder, job = generating.start(asked, tmp_path / name, *more)
        job.run(folder)
        folders.append(folder)
    assert spread.pieces == 6
    here, there = folders
    for name in ("index.json", "shard-00000.h5", "shard-00001.h5"):
        assert here.file(name).read_bytes() == there.file(name).read_bytes(), name


def test_a_table_over_workers_has_the_same_records(cluster, tmp_path):
    folders = []
    for name, more in (("here", {}), ("there", {"spread": cluster})):
        folder, job = running.start("table1", TABLE1, tmp_path / name, {}, **more)
        with undrawn():
            job.run(folder)
        folders.append(folder)
    here, there = (folder.file("records.csv").read_bytes() for folder in folders)
    assert here == there


def test_a_worker_of_the_command_has_the_same_bits(scheduler, dask, tmp_path):
    """`dask worker` gives it one thread of linear algebra, where here are others."""
    address, runs = (
        scheduler[1],
        {
            "table2": (("count=1", 'methods=["video"]', CONTACT), "records.csv"),
            "pendulum": ((*PENDULUM, "instances=2"), "instances.csv"),
        },
    )
    dask("worker", address, "--nthreads", "1")
    with blas_threads(3), connected(address) as spread:
        for study, (overrides, name) in runs.items():
            told = []
            for where, more in (("here", {}), ("there", {"spread": spread})):
                folder, job = running.start(study, overrides, tmp_path / study / where, {}, **more)
                with undrawn():
                    job.run(folder)
                told.append(folder.file(name).read_bytes())
            assert told[0] == told[1], study


def test_instances_over_workers_have_the_same_numbers(cluster, tmp_path):
    folders = []
    for name, more in (("here", {}), ("there", {"spread": cluster})):
        folder, job = running.start("pendulum", PENDULUM, tmp_path / name, {}, **more)
        with undrawn():
            job.run(folder)
        folders.append(folder)
    for name in ("instances.csv", "instances.json"):
        here, there = (folder.file(name).read_bytes() for folder in folders)
        assert here == there, name


def test_a_single_search_has_no_pieces(cluster, tmp_path):
    with pytest.raises(
        StudyError, match="`--scheduler` spreads instances, and this run is a single"
    ):
        running.start("pendulum", TOYS["pendulum"].overrides, tmp_path / "r", {}, spread=cluster)
    assert not (tmp_path / "r").exists()
