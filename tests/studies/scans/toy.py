"""Scans of tiny problems: everything real, nothing large."""

from studies.scans import scanning, spec
from studies.scans.spec import Asked
from studies.scans.terrain import make_grid
from tests.studies.toys import TOYS


CUBE = ("time.dt=0.1", "time.steps=6", "time.frames=3", "image.height=16", "image.width=16")
BEAM = (
    "beam.cells=[2, 1, 1]", "time.dt=1e-3", "time.steps=40", "time.frames=2", "image.height=16",
    "image.width=20", "loss.levels=2",
)  # fmt: skip
CONTACT = (*TOYS["rigid-contact"].overrides, "time.steps=300", "time.frames=2")


def grid_of(study, overrides, *over, **more):
    return make_grid(spec.resolve(Asked(study, overrides, over, **more)))


def run(folder, study, overrides, *over, **more):
    """Scan into a folder; return the folder and what is told."""
    made, job = scanning.start(Asked(study, overrides, over, **more), folder)
    return made, job.run(made)
