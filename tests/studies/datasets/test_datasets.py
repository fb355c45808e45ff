"""Data sets: drawn by seed and number, the same bytes however they are made, refused otherwise."""

import errno
import re
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from studies.datasets import generating, shards, spec
from studies.datasets.samples import EACH, make_samples
from studies.datasets.shards import example, read_index
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.runs.options import RunOptions
from studies.scene.reading import read_scene
from tests.studies.datasets.toy import SCENE, TOY, asked, made, resolved
from tests.studies.undrawn import undrawn


SAME = ("index.json", "shard-00000.h5", "shard-00001.h5")


@pytest.fixture(scope="module", autouse=True)
def four_in_a_shard():
    """So that a few scenes fill two shards."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (spec, shards):
            patch.setattr(module, "PER_SHARD", 4)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory, four_in_a_shard):
    """A whole toy data set of six scenes in two shards."""
    with undrawn():
        return made(folder=tmp_path_factory.mktemp("datasets") / "toy")


def assert_same(folder, other):
    for name in SAME:
        assert folder.file(name).read_bytes() == other.file(name).read_bytes(), name


def test_a_scene_is_an_instance_of_the_study_to_the_bit(tmp_path):
    (sample,) = make_samples(resolved().file, RunOptions(), [3])
    (tmp_path / "one.toml").write_text(str(sample["toml"]))
    file = read_scene(tmp_path / "one.toml")
    assert file.bodies["body"].mesh == "shape:cone"
    assert sample["parameters/body.mass"] == file.truth["body.mass"]
    film = make_problem(file).problem.observers[0]
    shown = np.rint(255 * film.frames.clip(0, 1)).astype(np.uint8)
    assert np.array_equal(sample["images/film"][..., :3], shown)
    assert 0 < sample["images/film"][..., 3].max() <= 255
    np.testing.assert_allclose(
        sample["coverage/film"], sample["images/film"][..., 3].mean(axis=(1, 2)) / 255, atol=1e-3
    )
    x = sample[f"{EACH}body/vertices"]
    assert x.shape[0] == 3
    assert sample[f"{EACH}body/faces"].max() == x.shape[1] - 1
    assert np.all(np.diff(x[..., 0].mean(axis=1)) > 0.0)  # thrown along x


def test_a_scene_depends_on_seed_and_number_alone():
    file = resolved().file
    (sample,) = make_samples(file, RunOptions(), [2])
    (*_, same) = make_samples(file, RunOptions(), [0, 2])
    (other,) = make_samples(file, RunOptions(seed=1), [2])
    for key, value in sample.items():
        assert value.tobytes() == same[key].tobytes(), key
    assert sample["parameters/floor.friction"] != other["parameters/floor.friction"]


def test_noise_is_in_the_film_and_not_in_what_is_covered():
    noise = "observations.film.simulate.noise=0.1", "observations.film.simulate.seed=1"
    noisy = resolved(*noise).file
    (sample,) = make_samples(resolved().file, RunOptions(), [0])
    (other,) = make_samples(noisy, RunOptions(), [0])
    assert np.array_equal(sample["images/film"][..., 3], other["images/film"][..., 3])
    off = other["images/film"][..., :3].astype(float) - sample["images/film"][..., :3]
    assert 15.0 < off.std() < 35.0


def test_a_scene_that_cannot_be_simulated_is_black_and_says_why():
    file = resolved().file
    away = {"front": replace(file.cameras["front"], target=(0.0, 99.0, 0.0))}
    (sample,) = make_samples(replace(file, cameras=away), RunOptions(), [0])
    assert "sees nothing of the motion" in str(sample["problem"])
    assert sample["images/film"].shape == (3, 12, 16, 4)
    assert not sample["images/film"].any()
    assert "parameters/body.mass" in sample


def test_nothing_needs_to_be_free_in_a_scene_of_a_data_set(tmp_path):
    text = tmp_path / "mine.toml"
    text.write_text(
        '[bodies.ball]\nkind = "rigid"\nmesh = "shape:cube"\nmass = 1.0\n[cameras.front]\n'
        "eye = [0, 0, 8]\ntarget = [0, 0, 0]\nfov_y = 40.0\n[observations.film]\n"
        "simulate = { height = 8, width = 8, frames = 2, duration = 0.1 }\n"
        '[truth]\n"ball.velocity" = [{ between = [-1.0, 1.0] }, 0.0, 0.0]\n'
    )
    begun, job = generating.start(
        {"name": str(text), "overrides": (), "count": 2}, tmp_path / "out"
    )
    assert "not simulated: 0 scenes" in job.run(begun)
    with h5py.File(begun.file("shard-00000.h5")) as shard:
        assert shard["parameters/ball.velocity"].shape == (2, 3)


def test_a_shard_is_read_by_h5py_alone_and_every_array_is_explained(folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    names = {}
    exec(example(resolved()), names)
    assert names["film"].shape == (3, 12, 16, 4)
    assert not names["is_test"].any()
    assert names["scene"].startswith("title =")
    with h5py.File("shard-00001.h5") as shard:
        items = []
        shard.visititems(lambda name, item: items.append((name, item)))
        arrays = {name: item for name, item in items if isinstance(item, h5py.Dataset)}
        for key, item in arrays.items():
            assert item.attrs["description"], key
            shown = re.sub(r"^each/\d+/body", "each/NUMBER/BODY", key)
            shown = shown.replace("/film", "/FILM")
            assert f"- {shown} [{item.attrs['units']}]" in shard.attrs["readme"]
        assert shard["parameters/body.mass"].attrs["units"] == "kg"
        assert shard["scene"][:].tolist() == [4, 5]
        assert shard["split"].asstr()[:].tolist() == ["test", "train"]
        assert shard.attrs["test"].tolist() == [4]
        np.testing.assert_allclose(shard["times/film"], [0.1 / 3, 0.2 / 3, 0.1])


@pytest.mark.usefixtures("unpainted")
@pytest.mark.parametrize("at_once", [1, 100])
def test_the_bytes_do_not_depend_on_how_the_work_is_cut(folder, tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(generating, "AT_ONCE", at_once)
    assert_same(made(folder=tmp_path / "other"), folder)


@pytest.mark.usefixtures("unpainted")
def test_one_that_was_stopped_ends_with_the_same_bytes(folder, tmp_path, monkeypatch, adjsim):
    out, make, left = tmp_path / "stopped", generating.make_samples, [2]

    def stop(*args):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return make(*args)

    monkeypatch.setattr(generating, "make_samples", stop)
    monkeypatch.setattr(generating, "AT_ONCE", 3)
    code, _, err = adjsim("dataset", SCENE, *TOY, "--count", 6, "--out", out)
    assert code == 130
    assert f"adjsim dataset {SCENE} --out {out} --resume" in err
    code, printed, _ = adjsim("dataset", "--verify", out)
    assert code == 1
    assert "4 of 6 scenes are made: go on with `--resume`" in printed
    assert f"is not whole. Go on with it: `adjsim dataset {SCENE}" in adjsim.refused("report", out)
    monkeypatch.undo()
    for module in (spec, shards):
        monkeypatch.setattr(module, "PER_SHARD", 4)
    printed = adjsim.done("dataset", SCENE, "--out", out, "--resume")
    assert "4 scenes are in shards already" in printed
    for name in SAME:
        assert (out / name).read_bytes() == folder.file(name).read_bytes(), name


@pytest.mark.usefixtures("unpainted")
def test_a_shard_that_changed_is_found_and_made_again(folder, tmp_path, capsys):
    other = made(folder=tmp_path / "toy")
    changed = bytearray(other.file("shard-00000.h5").read_bytes())
    changed[-100] ^= 1
    other.file("shard-00000.h5").write_bytes(changed)
    other.file("shard-00001.h5").unlink()
    good, lines = generating.verify(other.path)
    assert not good
    assert lines[0].endswith("has another checksum")
    assert lines[1].endswith("is missing")
    begun, job = generating.start(
        {"name": SCENE, "overrides": None, "count": None}, other.path, resume=True
    )
    job.run(begun)
    assert "it is made again" in capsys.readouterr().out
    assert_same(other, folder)
    assert generating.verify(other.path) == (
        True,
        ["shard-00000.h5  ok", "shard-00001.h5  ok", "2 of 2 shards are whole"],
    )


def test_the_index_has_both_sets(folder):
    assert [(entry.first, entry.count) for entry in read_index(folder)] == [(0, 4), (4, 2)]
    index = folder.read_json("index.json")
    assert index["test"] == [4]
    assert index["train"] == [0, 1, 2, 3, 5]


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        (asked(count=7), "count"),
        (asked(seed=4), "seed"),
        (asked("cameras.front.fov_y=30.0"), "fov_y"),
    ],
)
def test_a_data_set_is_not_resumed_as_another(folder, other, differs):
    with pytest.raises(StudyError, match=f"was started otherwise.*{differs}"):
        generating.start(other, folder.path, resume=True)


def test_a_full_disk_is_one_message(tmp_path, monkeypatch):
    write = Path.write_bytes

    def full(path, data):
        if path.name.endswith(".h5"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StudyError, match=r"shard-00000.h5 cannot be written: No space left.*room"):
        made(count=1, folder=tmp_path / "toy")


def test_the_report_is_one_self_contained_file(tmp_path, adjsim):
    begun = made(count=2, folder=tmp_path / "toy")
    text = begun.file("report.html").read_text()
    assert "data:video/mp4;base64," in text
    assert "floor.friction" in text
    assert not re.search(r'src="(?!data:)', text)
    rows = re.findall(r"<tr>\s*<td>(\d)</td>\s*<td>(train|test)</td>\s*<td>([\d.]+)</td>", text)
    assert [row[:2] for row in rows] == [("0", "train"), ("1", "train")]
    with h5py.File(begun.file("shard-00000.h5")) as shard:
        np.testing.assert_allclose(float(rows[0][2]), shard["parameters/body.mass"][0], rtol=1e-5)
    assert adjsim.done("report", begun.path).splitlines()[-1] == str(begun.file("report.html"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Name a scene file, or a bundled scene"),
        (["rigid-contakt"], "Did you mean `rigid-contact`"),
        ([SCENE, "--count", "0"], "`--count` must be from 1 to 10,000,000, got 0"),
        ([SCENE, "--count", "9" * 30], "got a number of more digits"),
        ([SCENE, "--seed", "-1"], "`--seed` must be 0 or more"),
        ([SCENE, "bodies.body.mas=2.0"], "Did you mean `mass`"),
        ([SCENE, "--resume"], "add `--out DIR`"),
        ([SCENE, *TOY, "cameras.front.target=[0,99,0]"], "sees nothing of the motion"),
        (["pushed-cube"], "The scene draws nothing"),
        (["identify"], "`observations` must hold a film with `simulate"),
    ],
)
def test_a_users_mistake_is_one_message(adjsim, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in adjsim.refused("dataset", *arguments)
    assert not list(tmp_path.iterdir())


def test_a_run_is_no_data_set(tmp_path):
    for name, text in (("study.toml", 'study = "beam"\n'), ("manifest.json", "{}")):
        (tmp_path / name).write_text(text)
    with pytest.raises(StudyError, match="holds no data set"):
        generating.verify(tmp_path)
