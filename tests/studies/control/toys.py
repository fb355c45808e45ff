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
}


def settings(study, *overrides):
    """Return the settings of a toy run."""
    return config.resolve(study, (*TOYS[study], *overrides)).values
