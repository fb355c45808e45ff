"""Networks that stand in a table of the paper, judged by its own instances. Needs PyTorch."""

import json

import h5py
import numpy as np
import pytest

from studies import running
from studies.errors import StudyError
from tests.studies.datasets.toy import made
from tests.studies.paper.tables.toy import settings_of
from tests.studies.toys import TOYS


torch = pytest.importorskip("torch", reason="the extra `learn` is not installed")

from baselines import learning as command  # noqa: E402 -- they import PyTorch
from baselines.tables import read_table  # noqa: E402
from baselines.videos import read_videos  # noqa: E402


ONE = (*TOYS["rigid-mass"].overrides, "image.height=16", "image.width=16")
TABLE = ("count=3", settings_of("mass", ONE), 'methods=["average", "random"]')


def dataset(folder, *more, study="rigid-mass", seed=1):
    overrides = settings_of("mass", (*ONE, *more)).removeprefix("mass.")
    return made(
        f"study={study}", overrides, "files.scenes=20", name="instances", count=10, folder=folder,
        seed=seed,
    ).path  # fmt: skip


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """A whole toy data set of instances."""
    return dataset(tmp_path_factory.mktemp("datasets") / "toy")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of a table."""
    folder, job = running.start("table1", TABLE, tmp_path_factory.mktemp("table") / "run", {})
    job.run(folder)
    return folder.path


def test_the_instances_are_seen_as_the_data_set_keeps_them(videos, run, tmp_path):
    """A data set of the table's own seed holds the very instances, and is refused to learn from."""
    judged = read_table(run, videos)
    shown = judged.videos(read_videos(videos, "test", 2), 2)
    assert shown.scenes.tolist() == [0, 1, 2]
    own = dataset(tmp_path / "own", seed=0)
    with h5py.File(own / "shard-00000.h5") as shard:
        frames = shard["images"][:3, [0, 2]]
        assert np.array_equal(shown.images, np.moveaxis(frames, -1, 2))
        assert np.array_equal(shown.values[:, 0], shard["parameters/mass"][:3])
    with pytest.raises(StudyError, match="have the seed 0, so that what is judged was learned"):
        read_table(run, own)


def test_the_command_adds_rows_that_say_what_was_learned_from(videos, run, tmp_path, monkeypatch):
    monkeypatch.setattr("baselines.training.KEPT_BACK", 4)
    torch.set_num_threads(1)
    command.learn(videos, epochs=2, every=2, out=tmp_path / "learned", table=run)
    for name in ("cnn", "convlstm"):
        row = json.loads((run / "rows" / f"{name}.json").read_text())
        assert [one["instance"] for one in row["records"]] == [0, 1, 2]
        for said in ("trained on 8 videos", "seed 1", "2 epochs in", torch.__version__):
            assert said in row["about"]
        assert (run / "rows" / f"{name}.csv").read_text().count(name) == 3
    report = (run / "report.html").read_text()
    assert "trained on 8 videos of the same study" in report
    assert "ConvLSTM, not run" not in report
    result = json.loads((tmp_path / "learned" / "result.json").read_text())
    assert len(result["scores"]) == 4  # of the one parameter, the mass


def test_a_data_set_drawn_otherwise_is_refused_with_the_command_that_makes_one(
    run, videos, tmp_path
):
    heavy = dataset(tmp_path / "heavy", "hidden.mass=[0.2, 0.35]")
    with pytest.raises(StudyError, match=r"with hidden.mass = \[0.2, 0.35\], the table with"):
        read_table(run, heavy)
    with pytest.raises(StudyError, match=r"`adjsim dataset instances study=rigid-mass --seed 1"):
        read_table(run, made(folder=tmp_path / "rigid").path)
    contact = dataset(tmp_path / "contact", "time.frames=5", study="rigid-contact")
    with pytest.raises(StudyError, match="of `rigid-contact`, which is no scene of table1"):
        read_table(run, contact)
    begun, _ = running.start("beam", (), tmp_path / "beam", {})
    with pytest.raises(StudyError, match="must be a run of table1 or table2, got one of `beam`"):
        read_table(begun.path, videos)
    begun, _ = running.start("table1", TABLE, tmp_path / "begun", {})
    with pytest.raises(StudyError, match="is not finished: go on with `adjsim run table1 --out"):
        read_table(begun.path, videos)
