"""Files whose times begin before 0: each kind of observation refuses them."""

import re

import numpy as np
import pytest

from studies.problem import making
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.scene.reading import scene_from_dict
from tests.studies.problem import test_encoders


HELD = {"box": {"lower": [-0.2, 0.09, -0.2], "upper": [0.2, 0.2, 0.2]}}
BAR = {
    "kind": "soft", "mesh": "box", "size": [0.1, 0.2, 0.1], "cells": [1, 2, 1], "E": 1e5, "nu": 0.3,
    "held": HELD,
}  # fmt: skip
CAMERA = {
    "eye": [0.0, 0.0, 1.0], "target": [0.0, 0.0, 0.0], "fit": False,
    "K": [[40.0, 0.0, 15.5], [0.0, 40.0, 11.5], [0.0, 0.0, 1.0]],
}  # fmt: skip
TIMES = np.array([-0.1, 0.1])
PLACE = np.full((2, 1, 3), 0.05)


def write(path):
    """Write the file of the kind of observation by its name, with a time before 0."""
    if path.suffix == ".npz":
        depth = np.ones((2, 24, 32))
        np.savez(path, times=TIMES, x=PLACE, points=PLACE, depth=depth)
        return
    header, row = {
        "points": ("time,point,x,y,z", "a,0.05,0.05,0.05"),
        "cloud": ("time,x,y,z", "0.05,0.05,0.05"),
        "force": ("time,fx,fy,fz", "1,0,0"),
        "encoder": ("time,q", "1"),
    }[path.stem]
    path.write_text("\n".join([header, *(f"{t},{row}" for t in TIMES)]))


@pytest.mark.parametrize(
    ("file", "more"),
    [
        ("points.csv", {"kind": "points", "body": "bar"}),
        ("states.npz", {"kind": "states", "body": "bar", "center": True}),
        ("cloud.csv", {"kind": "cloud"}),
        ("cloud.npz", {"kind": "cloud"}),
        ("depth.npz", {"kind": "depth"}),
        ("force.csv", {"kind": "force", "grip": "bar"}),
        ("encoder.csv", {"kind": "encoder", "joint": "shoulder"}),
    ],
)
def test_times_before_0_are_refused(file, more, tmp_path):
    write(tmp_path / file)
    tables = {"bodies": {"bar": BAR}, "cameras": {"front": CAMERA}, "free": {"bar.E": {}}}
    arm = {**test_encoders.tables(), "free": {"world.gravity": {}}}
    given = arm if more["kind"] == "encoder" else tables
    given = {**given, "observations": {"seen": {"file": file, **more}}}
    with pytest.raises(StudyError, match=r"`observations.seen.file` must begin at time 0 or later"):
        make_problem(scene_from_dict(given, tmp_path))


def test_recordings_of_different_lengths_are_refused_and_many_steps_announced(
    tmp_path, monkeypatch
):
    (tmp_path / "scan").mkdir()
    for k in range(6):
        np.savez(tmp_path / "scan" / f"{k}.npz", points=np.full((1, 3), 0.05))
    scans = {f"at_{fps}": {"kind": "cloud", "file": "scan", "fps": fps} for fps in (60, 30)}
    tables = {"bodies": {"bar": BAR}, "free": {"bar.E": {}}, "observations": scans}
    with pytest.raises(StudyError, match=r"must show the same time: 6 frames at 60 per second are"):
        make_problem(scene_from_dict(tables, tmp_path))
    later = {**scans, "at_30": {**scans["at_30"], "start": 0.1}}
    said = []
    monkeypatch.setattr(making, "MANY", 10)
    make_problem(scene_from_dict({**tables, "observations": later}, tmp_path), say=said.append)
    assert re.fullmatch(r"a motion of 0\.\d+ s takes \d[\d,]+ steps, which may take .*", said[0])
