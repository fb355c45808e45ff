"""The rigid bodies of tables 1 and 2: the scenes of `rigid-mass` and `rigid-contact`."""

from dataclasses import dataclass

import numpy as np

from studies import rigid
from studies.image_fit import ImageFit
from studies.paper.tables.table import Column, Prior, Scene, Settings
from studies.registry import RunOptions


@dataclass(frozen=True, eq=False)
class RigidScene(Scene):
    """A rigid body, thrown or hit by an impulse, its values drawn as the study draws them."""

    name: str
    study: str
    columns: tuple[Column, ...]

    def check(self, settings: Settings, values: Settings) -> None:
        """Complain of the study's settings out of range."""
        del settings
        rigid.check_settings(values)
        self.require_columns(rigid.PATHS[key] for key in values["free"])

    def make_fit(
        self, settings: Settings, values: Settings, options: RunOptions, k: int
    ) -> ImageFit:
        """Return the study's instance k."""
        del settings
        return rigid.make_fit(values, options, k)

    def prior(self, settings: Settings, values: Settings, fit: ImageFit) -> Prior:
        """Return the ends of the study's table `hidden`."""
        del settings, fit
        ends = {rigid.PATHS[key]: values["hidden"][key] for key in values["free"]}
        return {path: (np.array(low), np.array(high)) for path, (low, high) in ends.items()}
