"""A data set of a study's instances: what the study itself draws and films, to the bit."""

import h5py
import numpy as np
import pytest

from studies import config, rigid
from studies.datasets.shards import all_fields
from studies.datasets.simulation import make_scenes
from studies.media import as_uint8
from studies.rigid import PATHS
from tests.studies.datasets.toy import SEED, made, resolved, settings
from tests.studies.paper.tables.toy import settings_of
from tests.studies.toys import TOYS


def toy(study, *more):
    """Return the overrides of a data set of a tiny study."""
    own = settings_of("mass", TOYS[study].overrides, "time.frames=6", *more)
    return f"study={study}", own.removeprefix("mass.")


@pytest.mark.parametrize(
    ("study", "names"), [("rigid-mass", ("mass",)), ("rigid-contact", tuple(PATHS))]
)
def test_scene_k_is_instance_k_of_the_study(study, names):
    values = settings(*toy(study), name="instances")
    own = config.resolve(study, values["settings"]).values
    for k, one in zip((0, 3), make_scenes("instances", values, SEED, [0, 3]), strict=True):
        fit = rigid.make_fit(own, SEED, k)
        assert one["images"].tobytes() == as_uint8(fit.problem.targets).tobytes()
        assert str(one["shape"]) == "cube"
        kept = {name for name in one if name.startswith("parameters/")}
        assert kept == {f"parameters/{name}" for name in names}
        for name in names:
            assert one[f"parameters/{name}"] == fit.truth.values[PATHS[name]]
        steps = own["time"]["steps"] // 6
        assert one["quality/steps"] == steps
        assert np.isnan(one["quality/energy_gain"])


def test_shards_say_when_frames_are_and_what_there_is(tmp_path):
    folder = made(*toy("rigid-mass"), "files.scenes=4", name="instances", folder=tmp_path / "new")
    with h5py.File(folder.file("shard-00001.h5")) as shard:
        assert np.allclose(shard["times"], 0.05 * np.arange(1, 7), rtol=1e-12)
        assert shard["scene"][:].tolist() == [4, 5]
        assert set(shard["parameters"]) == {"mass"}
        assert 'study = "rigid-mass"' in shard.attrs["settings"]
        for name in all_fields(resolved(*toy("rigid-mass"), name="instances")):
            shown = name.replace("mesh/", "mesh/NUMBER/")
            assert f"- {shown} [" in shard.attrs["readme"]
        assert "parameters/density" not in shard.attrs["readme"]
    assert "1 shard" not in folder.file("report.html").read_text()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("study=rigid-mas",), "Did you mean `rigid-mass`"),
        (('settings=["tim.dt=1.0"]',), "`settings`: Unknown key `tim.dt`"),
        (('settings=["time.dt=-1.0"]',), "`time.dt` must be positive"),
        (('settings=["time.frames=7"]',), "must be a multiple of `time.frames` = 7, got 500"),
        (('settings=["hidden.mass=[0.0, 1.0]"]',), "`hidden.mass` must be positive"),
        (("split.test=1.0",), "`split.test` must be a part from 0 to below 1"),
    ],
)
def test_a_mistake_in_the_settings_is_named_by_its_key(overrides, message):
    with pytest.raises(ValueError, match=message):
        resolved(*overrides, name="instances")
