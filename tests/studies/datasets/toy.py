"""Data sets of tiny scenes: everything real, nothing large."""

from studies.datasets import generating, spec
from studies.datasets.spec import Asked
from studies.registry import RunOptions


TOY = (
    'body.shapes=["cube", "star"]', "drawn.damping=[1.0, 30.0]",
    "drawn.friction_stiffness=[1.0, 30.0]", "time.frames=3", "time.fps=10.0", "time.steps=64",
    "time.most_steps=64", "image.height=12", "image.width=16", "files.scenes=4",
)  # fmt: skip


def resolved(*overrides, count=6, **options):
    return spec.resolve(Asked("rigid", (*TOY, *overrides), count, options))


def settings(*overrides):
    return resolved(*overrides).settings.values


def made(*overrides, count=6, folder, at_once=3, monkeypatch=None):
    """Make a toy data set in a folder."""
    if monkeypatch is not None:
        monkeypatch.setattr(generating, "AT_ONCE", at_once)
    begun, job = generating.start(Asked("rigid", (*TOY, *overrides), count), folder)
    job.run(begun)
    return begun


SEED = RunOptions(seed=3)
