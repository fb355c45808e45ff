"""The data sets that `adjsim dataset` knows. Their modules are imported when they are made."""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from studies.errors import StudyError
from studies.registry import RunOptions


if TYPE_CHECKING:
    from studies.datasets.scene import Field, Scene


@dataclass(frozen=True)
class Dataset:
    """A kind of data set.

    `module` has `check_settings`, `draw_scene`, `fields` and `seen`, which the methods call.
    """

    name: str
    module: str
    summary: str

    def check_settings(self, settings: dict[str, Any]) -> None:
        """Complain of settings out of range, by key."""
        import_module(self.module).check_settings(settings)

    def draw_scene(self, settings: dict[str, Any], options: RunOptions, number: int) -> "Scene":
        """Return scene `number`, which depends on nothing else but the settings and the seed."""
        return import_module(self.module).draw_scene(settings, options, number)

    def fields(self, settings: dict[str, Any]) -> "dict[str, Field]":
        """Return what it keeps of a scene beside what every data set keeps, by name."""
        return import_module(self.module).fields(settings)

    def seen(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the tables `time`, `image` and `camera` of its videos, and maybe others."""
        return import_module(self.module).seen(settings)


DATASETS = {
    one.name: one
    for one in (
        Dataset(
            "rigid",
            "studies.datasets.rigid_scenes",
            "one of fourteen rigid shapes thrown onto a floor, with mass and contact",
        ),
        Dataset(
            "soft",
            "studies.datasets.soft_scenes",
            "a soft ball, beam or cloth thrown onto a floor, with mass, material and contact",
        ),
        Dataset(
            "instances",
            "studies.datasets.study_scenes",
            "instances of a study of rigid bodies, like those of tables 1 and 2",
        ),
    )
}


def find_dataset(name: str) -> Dataset:
    """Return a data set by name; complain with the nearest known one."""
    from adjsim import checks  # it brings Numba, which `adjsim list` can do without

    try:
        return DATASETS[checks.known_key("data set", name, DATASETS)]
    except ValueError as error:
        raise StudyError(
            f'{error} Or give a TOML file that names one: `dataset = "rigid"`.'
        ) from error
