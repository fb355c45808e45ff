"""The deformable bodies of table 3: balls, beams and curtains of the studies."""

import copy
from dataclasses import dataclass, replace

import numpy as np

from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.model import Model
from studies import ball_material, beam, cloth_velocity
from studies.image_fit import ImageFit
from studies.paper.tables.table import Column, Prior, Scene, Settings
from studies.registry import RunOptions
from studies.settings import draw_each, ends, require_positive
from studies.video_problem import VideoProblem


LAME = ("mu", "lam")


@dataclass(frozen=True, eq=False)
class BallScene(Scene):
    """A soft ball on a floor, its values drawn as `ball-material` draws them."""

    name: str
    study: str
    columns: tuple[Column, ...]

    def check(self, settings: Settings, values: Settings) -> None:
        """Complain of the study's settings out of range."""
        del settings
        ball_material.check_settings(values)
        self.require_columns(_free_of_ball(values))

    def make_fit(
        self, settings: Settings, values: Settings, options: RunOptions, k: int
    ) -> ImageFit:
        """Return the study's instance k."""
        del settings
        return ball_material.make_fit(values, options, k)

    def prior(self, settings: Settings, values: Settings, fit: ImageFit) -> Prior:
        """Return the ends of the study's table `hidden`; masses are parts of an even ball's."""
        del settings
        assert isinstance(fit.problem, VideoProblem)
        model = fit.problem.motion.system
        assert isinstance(model, Model)
        solid = model.forces[ball_material.NAME]
        assert isinstance(solid, NeoHookeanTets)
        even = solid.lumped_mass(values["ball"]["density"])
        return {
            path: (low * even, high * even) if path == "mass" else (low, high)
            for path, (low, high) in _free_of_ball(values).items()
        }


def _free_of_ball(values: Settings) -> dict[str, np.ndarray]:
    """Return by path the ends that the free values of a ball are drawn from."""
    hidden, found = values["hidden"], {}
    if "mass" in values["free"]:
        found["mass"] = np.array(hidden["mass"])
    if "material" in values["free"]:
        found |= {f"{ball_material.NAME}.{key}": np.array(hidden[key]) for key in LAME}
    return found


@dataclass(frozen=True, eq=False)
class BeamScene(Scene):
    """The beam of the study `beam`, its material and its start drawn as the table says."""

    name: str
    study: str
    columns: tuple[Column, ...]

    def check(self, settings: Settings, values: Settings) -> None:
        """Complain of ranges that are none; the study checks what is drawn from them."""
        del values
        own = self._drawn(settings)
        for table in own:
            ends(own, table, LAME)
            require_positive(own, table, *LAME)

    def _drawn(self, settings: Settings) -> Settings:
        """Return the tables that values are drawn from, by their dotted names."""
        return {f"{self.name}.{key}": settings[self.name][key] for key in ("hidden", "start")}

    def make_fit(
        self, settings: Settings, values: Settings, options: RunOptions, k: int
    ) -> ImageFit:
        """Return the study's fit of drawn values from a drawn start."""
        rng = np.random.default_rng([options.seed, k])
        own, values = self._drawn(settings), copy.deepcopy(values)
        for part, table in zip(("beam", "start"), own, strict=True):
            values[part] |= draw_each(rng, own, table, LAME)
        return replace(beam.prepare(values, options), instance=k)

    def prior(self, settings: Settings, values: Settings, fit: ImageFit) -> Prior:
        """Return the ends that the table draws from."""
        del values, fit
        hidden = settings[self.name]["hidden"]
        return {
            f"{beam.NAME}.{key}": (np.array(hidden[key][0]), np.array(hidden[key][1]))
            for key in LAME
        }


@dataclass(frozen=True, eq=False)
class ClothScene(Scene):
    """A thrown curtain, its velocities drawn as `cloth-velocity` draws them."""

    name: str
    study: str
    columns: tuple[Column, ...]

    def check(self, settings: Settings, values: Settings) -> None:
        """Complain of the study's settings out of range."""
        del settings
        cloth_velocity.check_settings(values)

    def make_fit(
        self, settings: Settings, values: Settings, options: RunOptions, k: int
    ) -> ImageFit:
        """Return the study's instance k."""
        del settings
        return cloth_velocity.make_fit(values, options, k)

    def prior(self, settings: Settings, values: Settings, fit: ImageFit) -> Prior:
        """Return the ends of each component of a point's velocity."""
        del settings, fit
        low, high = np.array([values["hidden"][axis] for axis in cloth_velocity.AXES]).T
        return {cloth_velocity.VELOCITY: (low, high)}
