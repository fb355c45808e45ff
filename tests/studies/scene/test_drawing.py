"""Random instances of a scene file."""

from dataclasses import replace

import numpy as np
import pytest

from studies.runs.errors import StudyError
from studies.scene.drawing import instance_of
from studies.scene.files import find_scene
from studies.scene.overrides import set_override
from studies.scene.reading import read_scene, scene_from_dict, to_toml
from tests.studies.fitting.twins import tables


TRUTH = {
    "rod.length": {"between": [0.9, 1.1]},
    "rod.damping": {"normal": 0.1, "mean": 5.0},
    "world.gravity": 9.5,
}


def file(**more):
    return scene_from_dict(tables(**{"truth": TRUTH, **more}))


def test_an_instance_follows_from_seed_and_number():
    instance, again = instance_of(file(), 3, 4), instance_of(file(), 3, 4)
    assert instance == again
    lengths = {
        instance_of(file(), seed, k).truth["rod.length"] for seed in (0, 1) for k in range(3)
    }
    assert len(lengths) == 6
    assert all(0.9 < length < 1.1 for length in lengths)
    rng = np.random.default_rng([3, 4])
    assert instance.truth["rod.length"] == rng.uniform(0.9, 1.1)
    assert instance.truth["rod.damping"] == 5.0 + 0.1 * rng.standard_normal()
    assert instance.truth["world.gravity"] == 9.5


def test_an_instance_is_data_that_can_be_written_and_read(tmp_path):
    observation = tables()["observations"]["film"]
    observation["simulate"]["noise"] = 0.1
    instance = instance_of(file(observations={"film": observation}, instances=5), 0, 2)
    assert instance.instances == 1
    assert instance.observations["film"].simulate.seed is not None
    path = tmp_path / "scene.toml"
    path.write_text(to_toml(instance))
    assert read_scene(path) == instance
    assert instance_of(instance, 7, 9) == instance


def test_starts_and_arrays_are_drawn():
    free = {
        "rod.length": {"start": {"between": [0.5, 0.6]}, "bounds": [0.3, 3.0]},
        "rod.angle": {"start": [{"between": [1.0, 2.0]}, 3.0]},
        "rod.rate": {"start": {"between": [1.0, 2.0], "shape": [2, 3]}},
    }
    instance = instance_of(file(free=free), 0)
    assert 0.5 < instance.free["rod.length"].start < 0.6
    assert instance.free["rod.angle"].start[1] == 3.0
    assert np.shape(instance.free["rod.rate"].start) == (2, 3)


def test_truths_are_overridden_with_and_without_quotes():
    values = tables(truth=TRUTH)
    for text in ("truth.rod.length=1.2", 'truth."rod.damping"={between=[1, 2]}'):
        set_override(values, text)
    set_override(values, "truth.cube.velocity[0]=3")
    assert values["truth"] == {
        **TRUTH,
        "rod.length": 1.2,
        "rod.damping": {"between": [1, 2]},
        "cube.velocity[0]": 3,
    }


def test_a_hook_draws_nothing_where_all_is_footage():
    simulated = read_scene(find_scene("camera"))
    picture = replace(simulated.observations["picture"], simulate=None, video="photo.jpg")
    filmed = replace(simulated, observations={"picture": picture})
    assert instance_of(simulated, 0).truth
    assert instance_of(filmed, 0) == replace(filmed, draw=None)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"truth": {"rod.length": {"between": [2.0, 1.0]}}}, r"must be \[low, high\]"),
        ({"truth": {"rod.length": {"between": [1.0, 2.0], "normal": 1.0}}}, "one of the two"),
        ({"truth": {"rod.length": "long"}}, "must be a number"),
        ({"draw": "os"}, "Unknown bundled module"),
        ({"draw": "rigid"}, "`draw` = 'rigid' is for other scenes: .*'body'"),
        (
            {"free": {"rod.length": {"start": {"between": [5.0, 6.0]}, "bounds": [0.3, 3.0]}}},
            "must hold `start`",
        ),
    ],
)
def test_what_cannot_be_drawn_is_said(more, said):
    with pytest.raises(StudyError, match=said):
        instance_of(file(**more), 0)
