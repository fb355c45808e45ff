import numpy as np
import pytest

from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.declared import Box, Cloth, Free, Held, Policy, SceneFile, Soft
from studies.scene.maps import all_targets


SHEET = {"mesh": "sheet", "size": (1.0, 1.0), "cells": (2, 2), "E": 1e5}
BEAT = Policy(sines=3, frequency=4.0, scale=0.2)


def built(body, *free):
    return build(SceneFile(bodies={"a": body}, free=dict.fromkeys(free, Free())))


@pytest.mark.parametrize(
    ("body", "target"),
    [
        (Soft(mesh="box", cells=(1, 1, 1), E=1e5, nu=0.3, actuation=BEAT), "a.actuation"),
        (Cloth(**SHEET, actuation=BEAT), "a.actuation"),
        (Cloth(**SHEET, bending_actuation=BEAT), "a_bending.actuation"),
    ],
)
def test_every_element_has_a_policy_whose_rate_follows_the_step(body, target):
    scene = built(body)
    path = "a.bending_policy" if "bending" in target else "a.policy"
    weights = np.random.default_rng(0).standard_normal(scene.values[path].value.shape)
    assert weights.shape == (len(scene.system.forces[target.partition(".")[0]].nodes), 3)
    values = {name: value.value for name, value in scene.values.items()} | {path: weights}
    moved = all_targets(scene.maps, values)[target]
    np.testing.assert_array_equal(moved, weights)
    course = scene.varying[target].course(0.01, moved)
    t = 0.01 * np.arange(5)[:, None]
    sines = np.sin(4.0 * t + 2.0 * np.pi * np.arange(3) / 3.0)
    np.testing.assert_allclose(course.sample(5), 0.2 * np.tanh(sines @ weights.T), atol=1e-15)


def test_only_elements_between_selected_nodes_are_muscles():
    left = Held(box=Box(lower=(-1, -1, -1), upper=(0.0, 1, 1)))
    beat = Policy(sines=2, frequency=1.0, scale=0.1, where=left)
    scene = built(Cloth(**SHEET, actuation=beat))
    assert scene.values["a.policy"].value.shape == (4, 2)
    weights = {path: value.value for path, value in scene.values.items()} | {
        "a.policy": np.ones((4, 2))
    }
    acted = all_targets(scene.maps, weights)["a.actuation"].any(axis=1)
    middles = scene.state.x[scene.system.forces["a"].nodes].mean(axis=1)
    np.testing.assert_array_equal(acted, middles[:, 0] < 0.0)
    alone = Policy(frequency=1.0, scale=0.1, where=Held(nodes=(0,)))
    with pytest.raises(StudyError, match=r"`bodies.a.actuation.where` .* 1 nodes and no element"):
        built(Cloth(**SHEET, actuation=alone))


def test_a_sheet_may_swell_by_a_number_that_is_free():
    assert built(Cloth(**SHEET, actuation=0.1)).system.forces["a"].actuation == 0.1
    assert built(Cloth(**SHEET), "a.bending_actuation").values["a.bending_actuation"].unit == "rad"
    with pytest.raises(StudyError, match=r"`bodies.a.bending_actuation` needs hinges"):
        built(Cloth(**SHEET, bending=0.0, bending_actuation=BEAT))
