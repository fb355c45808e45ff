"""Data sets of tiny scenes: everything real, nothing large."""

from studies.datasets import generating, spec


TOY = (
    "observations.film.simulate.height=12", "observations.film.simulate.width=16",
    "observations.film.simulate.frames=3", "observations.film.simulate.duration=0.1",
    "world.dt=5e-3",
)  # fmt: skip
SCENE = "rigid-contact"


def asked(*overrides, name=SCENE, count=6, **options):
    return {"name": name, "overrides": (*TOY, *overrides), "count": count, **options}


def resolved(*overrides, name=SCENE, count=6, **options):
    return spec.resolve(asked(*overrides, name=name, count=count, **options))


def made(*overrides, name=SCENE, count=6, folder, seed=0):
    """Make a toy data set in a folder."""
    begun, job = generating.start(asked(*overrides, name=name, count=count, seed=seed), folder)
    job.run(begun)
    begun.release()
    return begun
