"""Bodies at rest: their vertices, their pose, and light from a sky."""

import numpy as np
import pytest

from adjoint.verify.dot_test import dot_test
from adjoint.verify.gradcheck import gradcheck
from studies.problem.forward import start_surfaces
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.motion import AtRest
from studies.scene.motions import RestingPose
from studies.scene.reading import scene_from_dict


def scene(**more):
    body = {"kind": "rigid", "mesh": "box", "size": [1, 2, 3], "position": [0.5, 0.0, 0.0]}
    return scene_from_dict({"bodies": {"brick": {**body, **more.pop("body", {})}}, **more})


def test_a_body_at_rest_is_its_surface_whatever_it_is_made_of():
    rigid = build(scene(), at_rest=True)
    soft = build(scene(body={"kind": "soft", "E": 1e5, "cells": [1, 1, 1]}), at_rest=True)
    assert isinstance(rigid.system, AtRest)
    points = start_surfaces(rigid)["brick"]
    assert np.array_equal(np.sort(points, axis=0), np.sort(start_surfaces(soft)["brick"], axis=0))
    assert np.allclose(points.min(axis=0), [0.0, -1.0, -1.5])
    assert set(rigid.values) == {"brick.vertices", "brick.position", "brick.rotation"}


def test_an_open_mesh_is_fine_where_nothing_moves():
    sheet = {"kind": "rigid", "mesh": "sheet", "size": [1, 1]}
    scene = scene_from_dict({"bodies": {"page": sheet}})
    assert len(start_surfaces(build(scene, at_rest=True))["page"])
    with pytest.raises(StudyError, match="mesh"):
        build(scene)


def test_the_pose_turns_the_vertices_about_their_middle():
    pose = RestingPose("b", np.array([1.0, 0.0, 0.0]), np.zeros(3))
    V = np.array([[2.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    at = {"b.vertices": V, "b.position": np.array([0.0, 0.0, 3.0])}
    at["b.rotation"] = np.array([0.0, 0.0, np.pi / 2.0])
    assert np.allclose(pose.values(at)["b.vertices"], [[1.0, 1.0, 3.0], [0.0, 0.0, 3.0]])


def test_the_derivatives_of_the_pose():
    rng = np.random.default_rng(0)
    pose = RestingPose("b", rng.standard_normal(3), rng.standard_normal(3))
    sizes = {"b.vertices": (4, 3), "b.position": (3,), "b.rotation": (3,)}
    x = rng.standard_normal(18)

    def unpacked(x):
        parts = np.split(x, [12, 15])
        return {k: p.reshape(n) for (k, n), p in zip(sizes.items(), parts, strict=True)}

    def forward(x):
        return pose.values(unpacked(x))["b.vertices"].ravel()

    def jvp(tangent):
        return pose.jvp(unpacked(x), unpacked(tangent))["b.vertices"].ravel()

    def vjp(adj):
        pulled = pose.vjp(unpacked(x), {"b.vertices": adj.reshape(4, 3)})
        return np.concatenate([pulled[path].ravel() for path in sizes])

    assert dot_test(jvp, vjp, x).passed
    weights = rng.standard_normal(12)
    assert gradcheck(lambda x: float(weights @ forward(x)), vjp(weights), x).passed


def test_a_sky_is_white_and_even_by_default_and_colours_faces():
    lit = {"lights": {"sky": {"kind": "sky"}}, "body": {"look": {"color": [0.2, 0.4, 0.6]}}}
    built = build(scene(**lit), at_rest=True)
    coefficients = built.lights["sky"].coefficients
    assert np.allclose(coefficients[0] * 0.2820948, 1.0)
    assert not coefficients[1:].any()
    assert np.allclose(built.meshes["brick"].face_colors, [0.2, 0.4, 0.6])


@pytest.mark.parametrize(
    ("lights", "words"),
    [
        ({"sky": {"kind": "sky"}, "sun": {}}, ["lights.sky", "all light", "sun"]),
        ({"sky": {"coefficients": [[1.0, 1.0, 1.0]]}}, ["lights.sky.coefficients", "nine"]),
    ],
)
def test_mistakes_of_a_sky_are_named(lights, words):
    with pytest.raises(StudyError) as error:
        scene(lights=lights)
    assert all(word in str(error.value) for word in words)
