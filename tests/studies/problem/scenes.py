"""A small scene in a folder: a soft cube above a floor, filmed by our own renderer."""

from dataclasses import replace

import numpy as np
from PIL import Image

from studies.problem.making import make_problem
from studies.scene.reading import scene_from_dict


FPS, FRAMES = 20.0, 7
SIZE = (40, 48)


def tables(**more):
    """Return the tables of a scene of a cube whose E is free; the film is in `film`."""
    return {
        "bodies": {
            "cube": {
                "kind": "soft",
                "mesh": "box",
                "size": [0.2, 0.2, 0.2],
                "cells": [2, 2, 2],
                "position": [0.0, 0.13, 0.0],
                "velocity": [0.2, -0.5, 0.0],
                "E": 2e4,
                "nu": 0.3,
                "look": {"color": [0.8, 0.4, 0.2], "smooth": False},
            }
        },
        "obstacles": {"floor": {"kind": "plane", "friction": 0.3}},
        "cameras": {"front": {"eye": [0.3, 0.3, 0.9], "target": [0.0, 0.1, 0.0], "fov_y": 30.0}},
        "lights": {"sun": {"direction": [1.0, 2.0, 1.5]}},
        # without seams, fewer directions of differences cross the jumps of a picture
        "observations": {"film": {"video": "film", "fps": FPS, "downsample": 1, "seams": False}},
        "free": {"cube.E": {"start": 1.5e4, "bounds": [1e3, 1e6]}},
        **more,
    }


def write_film(folder, **more):
    """Write the film of the scene at its own values into `folder`/film; return the images."""
    film = folder / "film"
    film.mkdir()
    height, width = SIZE
    ramp = np.linspace(0, 255, width).astype(np.uint8)  # so that nothing is still
    for k in range(FRAMES):
        pixels = np.zeros((height, width, 3), np.uint8) + np.roll(ramp, k)[:, None]
        Image.fromarray(pixels).save(film / f"{k:03d}.png")
    given = tables(**more)
    given["free"] = {"cube.E": {"bounds": [1e3, 1e6]}}
    given["bodies"]["cube"]["look"]["fit"] = False
    given["cameras"]["front"]["fit"] = False
    given["observations"]["film"]["background"] = {"color": [0.2, 0.3, 0.4]}
    problem = make_problem(scene_from_dict(given, folder)).problem
    images = problem.predicted_rows(problem.parameters.start)
    (observer,) = problem.observers
    frames = observer.as_images(images)
    for k, frame in enumerate(frames):
        levels = np.rint(255.0 * np.clip(frame[..., :3], 0.0, 1.0)).astype(np.uint8)
        Image.fromarray(levels).save(film / f"{k:03d}.png")
    return frames


def problem_of(folder, **more):
    """Return the problem of the scene whose film is in `folder`."""
    return make_problem(scene_from_dict(tables(**more), folder)).problem


def shifted(problem, rng, size=0.03):
    """Return a theta beside the start."""
    return problem.parameters.start + size * rng.standard_normal(problem.parameters.size)


__all__ = ["FPS", "FRAMES", "SIZE", "problem_of", "replace", "shifted", "tables", "write_film"]
