"""A scene that is quick to run: a pendulum, filmed with hidden values."""

from studies.scene.drawing import instance_of
from studies.scene.reading import scene_from_dict


LENGTH, GRAVITY = 1.04, 9.2


def tables(**more):
    """Return the tables of a pendulum whose length and gravity are hidden."""
    return {
        "bodies": {
            "rod": {
                "kind": "pendulum",
                "length": [1.0],
                "angle": [20.0],
                "bob_radius": 0.2,
                "look": {"color": [0.8, 0.4, 0.2], "ambient": 1.0, "diffuse": 0.0},
            }
        },
        "cameras": {"front": {"eye": [0.0, -0.5, 4.0], "target": [0.0, -0.5, 0.0], "fov_y": 45.0}},
        "world": {"gravity": [0.0, -10.0, 0.0], "dt": 0.02, "duration": 0.8},
        "observations": {
            "film": {
                "simulate": {"height": 24, "width": 32, "frames": 8},
                "background": {"color": [0.9, 0.9, 1.0]},
                "softness": 1.0,
            }
        },
        "truth": {"rod.length": LENGTH, "world.gravity": GRAVITY},
        "free": {
            "rod.length": {"start": 0.8, "bounds": [0.3, 3.0]},
            "world.gravity": {"start": 7.0, "bounds": [2.0, 30.0]},
        },
        "search": {"coarse": 0, "stages": [1.0], "held_back": 0.0, "tolerance": 1e-10},
        **more,
    }


def twin(seed=0, instance=0, **more):
    """Return an instance of the scene."""
    return instance_of(scene_from_dict(tables(**more)), seed, instance)
