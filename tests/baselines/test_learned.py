"""Networks that guess parameters from a video: what they read, learn and leave. Needs PyTorch."""

import csv
import json

import h5py
import numpy as np
import pytest

from studies.datasets import generating
from studies.runs.errors import StudyError
from tests.studies.datasets.toy import asked, made


torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from baselines import learning as command  # noqa: E402 -- they import PyTorch
from baselines.networks import NETWORKS  # noqa: E402
from baselines.scores import blind_guesses, relative_errors, scored  # noqa: E402
from baselines.training import Plan, train  # noqa: E402
from baselines.videos import Videos, read_index, read_videos  # noqa: E402


SIZE = ("observations.film.simulate.height=16",)
TARGETS = (
    "body.mass", "floor.damping", "floor.friction", "floor.friction_stiffness", "floor.stiffness",
)  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other in small steps are slow where others want the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A whole toy data set of ten scenes, two of them to test on."""
    return made(*SIZE, count=10, folder=tmp_path_factory.mktemp("datasets") / "toy").path


def bright_videos(count, rng):
    """Videos whose brightness tells one value, and a known colour the other."""
    values = np.exp(rng.uniform(-1.0, 1.0, (count, 2)))
    images = np.zeros((count, 2, 4, 16, 16), np.uint8)
    images[:, :, 0] = (60.0 * values[:, 0]).astype(np.uint8)[:, None, None, None]
    images[:, :, 1] = (60.0 * values[:, 1]).astype(np.uint8)[:, None, None, None]
    return Videos(images, values, ("a", "b"), ("kg", "-"), np.arange(count))


def test_the_videos_are_those_of_the_shards(folder):
    train_set, test_set = (read_videos(folder, which, 2) for which in ("train", "test"))
    assert test_set.scenes.tolist() == [4, 9]
    assert len(train_set) == 8
    assert test_set.names == TARGETS
    assert test_set.units == ("kg", "N s/m", "-", "N s/m", "N/m")
    with h5py.File(folder / "shard-00000.h5") as shard:
        video = shard["images/film"][4]
        assert np.array_equal(test_set.images[0], np.moveaxis(video[[0, 2]], -1, 1))
        assert test_set.values[0, 0] == shard["parameters/body.mass"][4]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_finds_what_the_pictures_show(name, rng):
    """Blind guesses are off by 0.5 to 1; brightness is exact to 1/60, and 200 steps are few."""
    videos, unseen = bright_videos(200, rng), bright_videos(40, rng)
    trained = train(videos, Plan(name, 16, 3e-3, 0))
    errors = relative_errors(trained.guess(unseen), unseen.values)
    blind = relative_errors(blind_guesses(videos, unseen, 0)["average"], unseen.values)
    assert errors.mean() < 0.4 * blind.mean()
    assert trained.losses[trained.best]["kept_back"] == min(k["kept_back"] for k in trained.losses)


def test_training_repeats_itself_by_its_seed(rng):
    videos = bright_videos(40, rng)
    guesses = [train(videos, Plan("cnn", 2, 1e-3, seed)).guess(videos) for seed in (0, 0, 1)]
    assert np.array_equal(guesses[0], guesses[1])
    assert not np.array_equal(guesses[0], guesses[2])


def test_errors_are_relative_to_the_truth(rng):
    videos = bright_videos(30, rng)
    doubled = scored({"double": 2.0 * videos.values}, videos)
    assert [row["parameter"] for row in doubled] == ["a", "b"]
    for row in doubled:
        assert row["mean"] == row["median"] == row["worst"] == 1.0
    blind = blind_guesses(videos, videos, 0)
    assert np.array_equal(blind["average"][3], videos.values.mean(axis=0))
    assert np.isin(blind["random"][:, 0], videos.values[:, 0]).all()


def test_the_command_leaves_numbers_guesses_and_a_report(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("baselines.training.KEPT_BACK", 4)
    monkeypatch.setattr("sys.argv", ["baselines", str(folder), "--epochs", "2", "--every", "2"])
    out = tmp_path / "learned"
    command.learn(folder, epochs=2, every=2, out=out)
    printed = capsys.readouterr()
    assert "cnn       body.mass" in printed.out
    assert "convlstm  epoch 2/2" in printed.err
    result = json.loads((out / "result.json").read_text())
    assert [network["network"] for network in result["networks"]] == ["cnn", "convlstm"]
    assert (result["train"], result["test"], result["frames"]) == (8, 2, 2)
    assert len(result["scores"]) == 4 * 5
    assert all(
        network["seconds"] > 0.0 and len(network["losses"]) == 2 for network in result["networks"]
    )
    with (out / "guesses.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert len(lines) == 4 * 2 * 5
    assert {line["scene"] for line in lines} == {"4", "9"}
    text = (out / "report.html").read_text()
    assert "8 videos to train, 2 to test" in text
    assert "2 epochs in" in text
    again = NETWORKS["cnn"](2, (16, 16), 5)
    again.load_state_dict(torch.load(out / "cnn.pt", weights_only=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epochs": 0}, "`--epochs` must be a whole number of at least 1"),
        ({"rate": 0.0}, "`--rate` must be positive"),
        ({"every": 0}, "`every` must be a whole number of at least 1"),
        ({"network": ["cmn"]}, "Did you mean `cnn`"),
    ],
)
def test_a_mistake_is_explained(folder, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        command.learn(folder, out=tmp_path / "learned", **arguments)
    assert not (tmp_path / "learned").exists()


def test_a_folder_without_a_whole_data_set_is_refused(tmp_path):
    with pytest.raises(StudyError, match="holds no data set with an index"):
        read_videos(tmp_path, "train", 1)
    begun, _ = generating.start(asked(), tmp_path / "begun")
    begun.write_json("index.json", {"count": 6, "scene": "rigid-contact", "shards": []})
    with pytest.raises(StudyError, match=r"has 0 of 6 scenes. Go on with it: `adjsim dataset"):
        read_videos(begun.path, "train", 1)


def test_networks_are_judged_by_scenes_that_they_have_not_seen(folder, tmp_path):
    index, names = read_index(folder), read_videos(folder, "train", 1).names
    unseen = made(*SIZE, count=3, seed=1, folder=tmp_path / "own").path
    assert command.read_unseen(unseen, index, names, 1).scenes.tolist() == [0, 1, 2]
    with pytest.raises(StudyError, match=r"must have another seed .* both have 0"):
        command.read_unseen(folder, index, names, 1)
    with pytest.raises(StudyError, match="must be a data set of `rigid-mass` as"):
        command.read_unseen(unseen, {**index, "scene": "rigid-mass"}, names, 1)


def test_too_few_videos_are_refused(rng):
    with pytest.raises(StudyError, match="Training needs at least 20 videos, got 5"):
        train(bright_videos(5, rng), Plan("cnn", 1, 1e-3, 0))


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("size", [(16, 16), (48, 72), (17, 33)])
def test_a_network_takes_pictures_of_any_size(name, size):
    """Table 2 films 48 x 72 pixels: 72 is no multiple of 16."""
    assert NETWORKS[name](3, size, 5).eval()(torch.zeros(2, 3, 4, *size)).shape == (2, 5)
