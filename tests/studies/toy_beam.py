"""A beam of 15 tetrahedra in a tiny video: everything real, nothing large."""

from studies import beam, config
from studies.registry import RunOptions


OVERRIDES = (
    "beam.cells=[3, 1, 1]",
    "beam.size=[1.2, 0.4, 0.4]",
    "time.dt=1e-3",
    "time.steps=120",
    "time.frames=4",
    "image.height=24",
    "image.width=32",
    "loss.levels=3",
)


def toy_fit(*overrides, **options):
    settings = config.resolve("beam", [*OVERRIDES, *overrides])
    return beam.prepare(settings.values, RunOptions(**options))
