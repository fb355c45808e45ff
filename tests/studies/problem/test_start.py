import numpy as np
import pytest

from studies.problem.forward import start_surfaces
from studies.scene.building import build
from studies.scene.motion import Motion
from studies.scene.reading import scene_from_dict


TURNED = {"position": [1.0, 2.0, 3.0], "rotation": [20.0, 30.0, 10.0]}
SOFT = {"kind": "soft", "mesh": "box", "cells": [2, 1, 1], "E": 1e4, "nu": 0.3, **TURNED}
RIGID = {"kind": "rigid", "mesh": "shape:cone", "density": 500.0, **TURNED}
CHAIN = {"kind": "springs", "mesh": "chain", "cells": [3]}
PENDULUM = {"kind": "pendulum", "length": [1.0, 0.5], "angle": [20.0, 10.0]}
FLOOR = {"floor": {"kind": "plane", "draw": True, "point": [0.0, -9.0, 0.0]}}


@pytest.mark.parametrize(
    "tables",
    [
        {"bodies": {"block": SOFT, "stone": RIGID, "rope": CHAIN}, "obstacles": FLOOR},
        {"bodies": {"swing": PENDULUM}},
    ],
    ids=["model", "pendulum"],
)
def test_surfaces_at_the_start_are_those_of_a_rollout(tables):
    built = build(scene_from_dict(tables))
    motion = Motion(built.system, built.state, 1e-9, np.array([0, 1]))
    run = motion.run()
    surfaces = start_surfaces(built)
    assert set(surfaces) == {*tables["bodies"], *tables.get("obstacles", {})}
    for name, subject in built.subjects.items():
        assert np.abs(surfaces[name] - subject.vertices(motion, run)[0]).max() < 1e-12, name
