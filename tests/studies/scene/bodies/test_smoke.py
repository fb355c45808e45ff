import numpy as np
import pytest
from PIL import Image

from adjsim.rollout import rollout
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.declared import Scene, Smoke
from studies.scene.maps import all_targets


def files(folder, shape=(4, 6)):
    density = np.arange(shape[0] * shape[1], dtype=np.uint8).reshape(shape)
    Image.fromarray(density).save(folder / "a.png")
    np.save(folder / "u.npy", np.broadcast_to([1.0, 0.0], (*shape, 2)))
    return str(folder / "a.png"), str(folder / "u.npy"), density / 255.0


def test_smoke_is_carried_by_its_wind(tmp_path):
    picture, wind, density = files(tmp_path)
    scene = build(Scene(bodies={"a": Smoke(density=picture, velocity=wind, steps_per_second=20.0)}))
    assert scene.dt == 0.05
    end = rollout(scene.system, scene.state, scene.dt, 1, frames=[0, 1])
    np.testing.assert_allclose(end.density[0], density)
    np.testing.assert_allclose(end.density[1], np.roll(density, 1, axis=1), atol=1e-12)
    parameters = scene.system.state_parameters(scene.state)
    for path, value in scene.targets().items():
        np.testing.assert_array_equal(parameters[path], value)


def test_what_is_no_smoke_is_told(tmp_path):
    picture, _, _ = files(tmp_path)
    np.save(tmp_path / "v.npy", np.zeros((2, 2, 2)))
    for given, message in (
        ({"density": "none.png"}, "`bodies.a.density`: .*no file"),
        ({"density": picture, "velocity": "none.npy"}, "`bodies.a.velocity`: there is no file"),
        ({"density": picture, "velocity": str(tmp_path / "v.npy")}, r"must have the shape .*4, 6"),
    ):
        with pytest.raises(StudyError, match=message):
            build(Scene(bodies={"a": Smoke(**given)}))


def test_smoke_is_stirred_by_waves(tmp_path):
    picture, wind, _ = files(tmp_path)
    scene = build(Scene(bodies={"a": Smoke(density=picture, velocity=wind, waves=1)}))
    assert scene.values["a.waves"].value.shape == (4, 2)
    sources = {path: value.value for path, value in scene.values.items()}
    sources["a.wind"] = np.array([0.5, 0.25])
    velocity = all_targets(scene.maps, sources)["state.velocity"]
    np.testing.assert_allclose(velocity, np.broadcast_to([1.5, 0.25], velocity.shape))
