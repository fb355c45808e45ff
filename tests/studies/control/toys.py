"""Sizes at which a control study runs in a second or two."""

from studies import config


TOYS = {
    "control-walker": (
        "policy.sines=3",
        "time.steps=480",
        "target.distance=0.1",
        "image.height=24",
        "image.width=32",
        "loss.levels=3",
    ),
    "control-fem": (
        "gear.teeth=5",
        "gear.rings=1",
        "gear.position=[-4.0, 2.52, 0.0]",
        "policy.sines=3",
        "time.steps=480",
        "target.x=[-3.7, -3.5]",
        "image.height=24",
        "image.width=32",
        "loss.levels=4",
    ),
    "control-cloth": (
        "cloth.cells=[3, 4]",
        "time.dt=1e-3",
        "time.steps=500",
        "hidden.x=[2.5, 3.5]",
        "camera.target=[-4.0, 1.5, 0.0]",
        "camera.eye=[-4.0, 1.5, 5.0]",
        "image.height=24",
        "image.width=32",
        "loss.levels=5",
    ),
    "control-jellyfish": (
        "policy.sines=3",
        "time.dt=4e-3",
        "time.steps=100",
        "image.height=32",
        "image.width=24",
        "loss.levels=4",
    ),
}


def settings(study, *overrides):
    """Return the settings of a toy run."""
    return config.resolve(study, (*TOYS[study], *overrides)).values
