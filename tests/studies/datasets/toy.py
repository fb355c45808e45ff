"""Data sets of tiny scenes: everything real, nothing large."""

from studies.datasets import generating, spec
from studies.datasets.spec import Asked
from studies.registry import RunOptions


TOY = (
    'body.shapes=["cube", "star"]', "drawn.damping=[1.0, 30.0]",
    "drawn.friction_stiffness=[1.0, 30.0]", "time.frames=3", "time.fps=10.0", "time.steps=64",
    "time.most_steps=64", "image.height=12", "image.width=16", "files.scenes=4",
)  # fmt: skip

SOFT = (
    "ball.shells=1", "beam.cells=[2, 1, 1]", "cloth.cells=[3, 3]", "time.frames=3",
    "time.fps=10.0", "time.steps=128", "time.most_steps=128", "image.height=12", "image.width=16",
    "files.scenes=4",
)  # fmt: skip
TOYS = {"rigid": TOY, "soft": SOFT, "instances": ()}


def resolved(*overrides, name="rigid", count=6, **options):
    return spec.resolve(Asked(name, (*TOYS[name], *overrides), count, options))


def settings(*overrides, name="rigid"):
    return resolved(*overrides, name=name).settings.values


def made(*overrides, name="rigid", count=6, folder, at_once=3, monkeypatch=None, seed=0):
    """Make a toy data set in a folder."""
    if monkeypatch is not None:
        monkeypatch.setattr(generating, "AT_ONCE", at_once)
    begun, job = generating.start(
        Asked(name, (*TOYS[name], *overrides), count, {"seed": seed}), folder
    )
    job.run(begun)
    return begun


SEED = RunOptions(seed=3)


def same(one, other):
    """Assert that two scenes are equal to the bit."""
    assert one.keys() == other.keys()
    for key in one:
        assert one[key].dtype == other[key].dtype, key
        assert one[key].tobytes() == other[key].tobytes(), key
