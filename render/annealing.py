r"""How soft a render is, step by step of a search: wide at first, sharp at the end.

    Geometric    value_k = start (end/start)^(k/(n - 1)),  k = 0 to n - 1, then end
    Stages       value_k = the number of the stage that k falls in, then the last one

A wide sigma lets an edge feel targets that are far away; a wide gamma lets faces behind
others be seen. `softness` turns pixels into the sigma of an image: sqrt(sigma) = s 2/H.
In DIBR it is kappa that lets alpha feel what is far away; sigma does nothing there. Seamless
coverage anneals like any other, by sigma or kappa.

Tests: `tests/render/test_annealing.py`.
"""

from dataclasses import dataclass, replace
from typing import Any

from adjsim import checks
from render.blending import DIBR, Hard
from render.soft_raster import SoftRasterizer


def softness(pixels: float, height: int) -> float:
    """Return the sigma [screen units squared] of edges that are so many pixels soft.

    Parameters
    ----------
    pixels : float
        sqrt(sigma) [pixels], positive.
    height : int
        Of the image [pixels].

    Raises
    ------
    ValueError
        If a number is not positive.
    """
    wide, high = checks.number("pixels", pixels), checks.number("height", height)
    checks.positive("pixels", wide)
    checks.positive("height", high)
    return (2.0 * wide / high) ** 2


@dataclass(frozen=True)
class Geometric:
    """A number that goes from one value to another by equal factors.

    Parameters
    ----------
    start, end : float
        First and last value, positive.
    steps : int
        How many steps it takes, at least 2; later ones have the last value.

    Raises
    ------
    ValueError
        If a value is not positive or there are fewer than two steps.
    """

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            checks.positive(name, float(checks.array(name, getattr(self, name), ())))
        checks.whole("steps", self.steps, 2)

    def __call__(self, step: int) -> float:
        """Return the value at a step, from 0."""
        fraction = min(checked_step(step) / (self.steps - 1), 1.0)
        return float(self.start ** (1.0 - fraction) * self.end**fraction)


@dataclass(frozen=True)
class Stages:
    """A number that stays for some steps, then takes the next value: for searches with a memory.

    Parameters
    ----------
    values : sequence of float
        One for each stage, positive.
    steps : int
        Steps of a stage, at least 1; the last stage has no end.

    Raises
    ------
    ValueError
        If there is no value, one is not positive, or a stage has no step.
    """

    values: Any
    steps: int

    def __post_init__(self) -> None:
        values = checks.array("values", self.values, ("n_stages",))
        if values.size == 0:
            raise ValueError("`values` must hold at least one number, got none.")
        checks.freeze(self, "values", checks.positive("values", values))
        checks.whole("steps", self.steps, 1)

    def __call__(self, step: int) -> float:
        """Return the value at a step, from 0."""
        return float(self.values[min(checked_step(step) // self.steps, len(self.values) - 1)])

    def is_new(self, step: int) -> bool:
        """Whether a stage begins at a step: a search should forget its steps so far."""
        return checked_step(step) % self.steps == 0 and step // self.steps < len(self.values)


def checked_step(step: int) -> int:
    """Return the step as a whole number from 0 on, or raise."""
    return checks.whole("step", step, 0)


def annealed(
    rasterizer: SoftRasterizer,
    step: int,
    *,
    sigma: Geometric | Stages | None = None,
    gamma: Geometric | Stages | None = None,
    kappa: Geometric | Stages | None = None,
) -> SoftRasterizer:
    """Return the rasterizer of a step of a search.

    Parameters
    ----------
    rasterizer : SoftRasterizer
    step : int
        From 0.
    sigma, gamma, kappa : Geometric or Stages, optional
        What gives their values; without one they stay as they are. The blends Over and
        Softmax have a sigma, DIBR has a kappa in its place.

    Raises
    ------
    ValueError
        If a schedule is given for a softness that the blend does not have.
    """
    checks.instance("rasterizer", rasterizer, SoftRasterizer)
    blend = rasterizer.blend
    if sigma is not None and isinstance(blend, DIBR | Hard):
        way_out = "Anneal `kappa`." if isinstance(blend, DIBR) else "It has no softness to anneal."
        raise ValueError(
            f"`sigma` must be None where the blend is {type(blend).__name__}, got {sigma!r}. "
            + way_out
        )
    if kappa is not None and not isinstance(blend, DIBR):
        raise ValueError(
            f"`kappa` must be None where the blend is {type(blend).__name__}, got {kappa!r}. "
            "It is the softness of DIBR."
        )
    given = {"sigma": sigma, "gamma": gamma, "kappa": kappa}
    values: dict[str, Any] = {
        name: checks.instance(name, schedule, (Geometric, Stages))(checked_step(step))
        for name, schedule in given.items()
        if schedule is not None
    }
    if "kappa" in values:
        values["blend"] = DIBR(values.pop("kappa"))
    return replace(rasterizer, **values)
