"""Shards on disk: read by plain h5py, the same bytes however they were made, checked by sums."""

import h5py
import numpy as np
import pytest

from studies.datasets import generating
from studies.datasets.scene import MESH
from studies.datasets.shards import EXAMPLE, all_fields, read_index
from studies.datasets.simulation import make_scenes
from studies.registry import RunOptions
from tests.studies.datasets.toy import made, resolved
from tests.studies.undrawn import undrawn


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A whole toy data set of six scenes in two shards; `test_generating` looks at its figures."""
    with undrawn():
        return made(folder=tmp_path_factory.mktemp("datasets") / "toy")


@pytest.fixture(scope="module")
def soft_folder(tmp_path_factory):
    """A whole toy data set of soft bodies."""
    return made(name="soft", folder=tmp_path_factory.mktemp("datasets") / "soft")


def shard_bytes(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.path.glob("shard-*.h5"))}


UNPAINTED = pytest.mark.usefixtures("unpainted")


@pytest.mark.parametrize(("name", "fixture"), [("rigid", "folder"), ("soft", "soft_folder")])
def test_a_shard_holds_what_was_made_to_the_bit(name, fixture, request):
    folder, spec = request.getfixturevalue(fixture), resolved(name=name)
    scenes = make_scenes(name, spec.settings.values, RunOptions(), range(6))
    for first, file in ((0, "shard-00000.h5"), (4, "shard-00001.h5")):
        with h5py.File(folder.file(file)) as shard:
            for row, number in enumerate(shard["scene"][:]):
                assert number == first + row
                for key, value in scenes[number].items():
                    own = key.removeprefix(MESH)
                    read = shard[f"mesh/{number:06d}/{own}"] if own != key else shard[key][row]
                    if value.dtype.kind == "U":
                        assert read.decode() == str(value)
                    else:
                        assert np.asarray(read).tobytes() == value.tobytes()


@pytest.mark.parametrize(("name", "fixture"), [("rigid", "folder"), ("soft", "soft_folder")])
def test_every_array_has_its_unit_and_a_word_and_the_read_me_names_it(name, fixture, request):
    folder, fields = request.getfixturevalue(fixture), all_fields(resolved(name=name))
    of_mesh = sum(field.startswith(MESH) for field in fields)
    with h5py.File(folder.file("shard-00000.h5")) as shard:
        text = shard.attrs["readme"]
        found = []
        shard.visititems(lambda name, one: found.append((name, one)))
        arrays = {name: one for name, one in found if isinstance(one, h5py.Dataset)}
        assert {name.split("/0000")[0] for name in arrays} >= {"images", "mesh", "times"}
        for key, one in arrays.items():
            assert one.attrs["units"]
            assert one.attrs["description"]
            own = f"mesh/NUMBER/{key.rsplit('/', 1)[1]}" if key.startswith(MESH) else key
            assert f"- {own} [" in text
        assert len(arrays) == len(fields) + 1 + of_mesh * (len(shard["mesh"]) - 1)
        assert shard.attrs["seed"] == 0
        assert shard.attrs["train"].tolist() == [0, 1, 2, 3]
        assert shard.attrs["test"].tolist() == []
        assert f'dataset = "{name}"' in shard.attrs["settings"]
        assert np.allclose(shard["times"], [0.1, 0.2, 0.3])


def test_the_example_of_the_read_me_runs_with_nothing_but_h5py(folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    names = {}
    exec(EXAMPLE, names)
    assert names["mass"].shape == (4,)
    assert names["unit"] == "kg"
    assert names["video"].shape == (3, 12, 16, 4)
    assert not names["is_test"].any()
    assert names["faces"].shape[1] == 3


@UNPAINTED
def test_the_bytes_do_not_depend_on_how_the_work_is_cut(folder, tmp_path, monkeypatch):
    for at_once in (1, 100):
        other = made(folder=tmp_path / str(at_once), at_once=at_once, monkeypatch=monkeypatch)
        assert shard_bytes(other) == shard_bytes(folder)
        assert other.file("index.json").read_bytes() == folder.file("index.json").read_bytes()


@UNPAINTED
@pytest.mark.parametrize("name", ["rigid", "soft"])
def test_a_data_set_gone_on_with_has_the_same_bytes(name, folder, soft_folder, tmp_path):
    whole = {"rigid": folder, "soft": soft_folder}[name]
    begun = made(name=name, count=6, folder=tmp_path / "begun")
    begun.file("shard-00001.h5").unlink()
    _, job = generating.resume(generating.Asked(name), begun.path)
    job.run(begun)
    assert shard_bytes(begun) == shard_bytes(whole)
    assert generating.verify(begun.path)[0]


@UNPAINTED
def test_a_larger_count_begins_with_the_same_shards(folder, tmp_path):
    more = made(count=9, folder=tmp_path / "more")
    first = shard_bytes(folder)
    assert shard_bytes(more)["shard-00000.h5"] == first["shard-00000.h5"]
    with h5py.File(more.file("shard-00001.h5")) as shard:
        assert shard["scene"][:].tolist() == [4, 5, 6, 7]
        assert shard["split"].asstr()[:].tolist() == ["test", "train", "train", "train"]


@UNPAINTED
def test_the_cut_into_shards_changes_no_scene(folder, tmp_path):
    other = made("files.scenes=6", "files.compression=0", folder=tmp_path / "one")
    with h5py.File(other.file("shard-00000.h5")) as shard:
        images = shard["images"][:]
        assert shard["images"].compression is None
    parts = []
    for name in shard_bytes(folder):
        with h5py.File(folder.file(name)) as shard:
            parts.append(shard["images"][:])
    assert np.array_equal(images, np.concatenate(parts))


def test_the_index_has_the_checksum_of_every_shard(folder):
    entries = read_index(folder)
    assert [(one.first, one.count) for one in entries] == [(0, 4), (4, 2)]
    good, lines = generating.verify(folder.path)
    assert good
    assert lines[-1] == "2 of 2 shards are whole"
    index = folder.read_json("index.json")
    assert index["test"] == [4]
    assert index["train"] == [0, 1, 2, 3, 5]


@UNPAINTED
def test_a_shard_that_changed_is_found_and_made_again(tmp_path, capsys):
    folder = made(folder=tmp_path / "toy")
    whole = shard_bytes(folder)
    changed = bytearray(whole["shard-00000.h5"])
    changed[-100] ^= 1
    folder.file("shard-00000.h5").write_bytes(changed)
    folder.file("shard-00001.h5").write_bytes(whole["shard-00001.h5"][:-7])
    good, lines = generating.verify(folder.path)
    assert not good
    assert lines[0].endswith("has another checksum")
    assert "bytes, not" in lines[1]
    folder.file("shard-00001.h5").unlink()
    assert "is missing" in generating.verify(folder.path)[1][1]
    _, job = generating.resume(generating.Asked("rigid"), folder.path)
    job.run(folder)
    assert "it is made again" in capsys.readouterr().out
    assert shard_bytes(folder) == whole
    assert generating.verify(folder.path)[0]
