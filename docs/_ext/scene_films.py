"""Films of bundled scenes, for the first page and the page of scenes, and pictures of the scenes on
the pages of scene files, as their hidden values have them.

    python docs/_ext/scene_films.py [NAME ...]      # some of SCENES, or pages; without one all
    python docs/_ext/scene_films.py control-walker=RUN      # of a scene that controls

A film shows what a search is given, with obstacles as wire. Scenes that control are given one
picture: their film is the answer of a run folder.
"""

import hashlib
import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image
from scene_schema import ENTRY, PAGES
from scipy.spatial.transform import Rotation

from render.scene import Scene
from render.soft_raster import SoftRasterizer, rasterize, softness
from studies.problem.joint_marks import marked, seen_by
from studies.problem.observers import NODES, surfaces
from studies.problem.twin import hidden_scene, true_values
from studies.reports.preview.overlay import draw_overlays, overlays
from studies.reports.preview.shots import GREY, Shot, places_at
from studies.runs.media import as_float, as_uint8, write_jpeg, write_video
from studies.scene.building import build
from studies.scene.cameras import make_camera
from studies.scene.drawing import instance_of
from studies.scene.files import find_scene
from studies.scene.reading import read_scene, scene_from_dict
from studies.scene.steps import longest_step


STATIC, PICTURES = (ENTRY.parent / "_static" / name for name in ("scenes", "scene_files"))
SCENES = (
    "beam", "ball-stiffness", "bounce", "rigid-contact", "two-balls",
    "draped-cloth", "cloth-velocity", "cradle", "links", "control-arm",
    "pendulum", "double-pendulum", "control-walker", "control-jellyfish", "folded-towel", "shape",
    "tensile-test", "indentation",
)  # fmt: skip
SIZE = (216, 324)  # of a film [pixels]
FRAMES, FPS = 48, 24.0
PANEL, PANELS, GAP = (240, 300), 3, 6  # of a picture on a page
BLOCK = re.compile(r"^```toml\n(title = .*?)^```", re.MULTILINE | re.DOTALL)
SOFT = 0.4  # width of soft edges [pixels]


def answer(run, values):
    """Return the numbers that a run ended at, by path."""
    with np.load(run / "parameters.npz") as arrays:
        estimate = arrays["estimate"]
    paths = list(read_scene(run / "study.toml").free)
    ends = np.cumsum([np.size(values[path].value) for path in paths])
    parts = np.split(estimate, ends[:-1])
    return {p: x.reshape(np.shape(values[p].value)) for p, x in zip(paths, parts, strict=True)}


def shots_of(file, size, n, run=None):
    """Return n shots of a scene over its time, each with its marks; around it if nothing moves."""
    file = instance_of(file, seed=0)
    built = build(hidden_scene(file))
    simulate = next(
        (
            observation.simulate
            for observation in file.observations.values()
            if observation.simulate
        ),
        None,
    )
    duration = getattr(simulate, "duration", None)
    duration = (file.world.duration or 1.0) if duration is None else duration
    times = np.linspace(0.0, duration, n if duration else 1)
    values = answer(run, built.values) if run else true_values(file, built.values)
    moved, _ = places_at(built, longest_step(file.world), times, values=values or {})
    places, nodes = surfaces(moved), moved.get(NODES)
    everywhere = {body: x.reshape(1, -1, 3) for body, x in places.items()}
    name, spec = next(iter(file.cameras.items()))
    specs = [spec] * n
    if not any(np.ptp(x, axis=0).any() for x in places.values()):
        turns = Rotation.from_rotvec(np.outer(2.0 * np.pi * np.arange(n) / n, spec.up))
        away = turns.apply(np.subtract(spec.eye, spec.target)) + spec.target
        specs = [replace(spec, eye=tuple(eye)) for eye in away.tolist()]
    film = next(iter(file.films.values()), None)
    color = film.background.color if film and film.background else None
    plate = np.array(GREY if color is None else color)
    scene = Scene({body: built.meshes[body] for body in places}, built.lights)
    drawing = SoftRasterizer(sigma=softness(SOFT, size[0]), seamless=True)
    for k, camera_table in enumerate(specs):
        at = min(k, len(times) - 1)
        now = {body: x[at : at + 1] for body, x in places.items()}
        camera = make_camera(name, camera_table, size, spec.target)
        images = rasterize(scene, camera, drawing, now, size)
        moment = times[at : at + 1]
        here = None if nodes is None else nodes[at : at + 1]
        shot = Shot(name, camera, None, np.arange(1), moment, images, now, scene, plate, here)
        # Axes and floors are as large as the motion.
        yield shot, overlays(file, built, replace(shot, places=everywhere)), built.joints


def drawn(shot, marks, joints):
    """Return the picture of a shot over its obstacles, with the other marks over it, of 8 bits."""
    obstacles = [mark for mark in marks if mark.name.startswith("obstacles.")]
    others = [mark for mark in marks if mark not in obstacles]
    plate = as_uint8(np.broadcast_to(shot.plate, (*shot.size, 3)))
    behind = as_float(draw_overlays(plate, obstacles, 0, shot))
    over = shot.images[0, ..., :3] + (1.0 - shot.images[0, ..., 3:]) * behind
    places = {name: points[0] for name, points in shot.places.items()}
    picture = marked(as_uint8(over), joints, places, seen_by(shot.camera, shot.size))
    return draw_overlays(picture, others, 0, shot)


def write_film(name, run=None):
    """Write the film of a bundled scene, and its picture for those who want no motion."""
    frames = np.stack([
        drawn(shot, [mark for mark in marks if mark.name.startswith("obstacles.")], {})
        for shot, marks, _ in shots_of(read_scene(find_scene(name)), SIZE, FRAMES, run)
    ])  # fmt: skip
    write_video(STATIC / f"{name}.mp4", frames, FPS, crf=30)
    write_jpeg(STATIC / f"{name}.jpg", frames[FRAMES // 2])


def digest(tables):
    """Return what tells whether a picture is of a scene as its page has it."""
    return hashlib.sha256(repr(tables).encode()).hexdigest().encode()


def write_picture(name, tables):
    """Write the picture of a scene on a page: its beginning, its middle and its end."""
    scene = scene_from_dict(tables)
    n = 1 if scene.world.motion == "equilibrium" else PANELS
    panels = [
        np.pad(drawn(*shot), [(0, 0), (0, GAP), (0, 0)], constant_values=255)
        for shot in shots_of(scene, PANEL, n)
    ]
    picture = Image.fromarray(np.hstack(panels)[:, :-GAP])
    picture.save(PICTURES / f"{name}.jpg", quality=85, comment=digest(tables))


def scenes_of_pages():
    """Return the tables of the scene that a page of scene files begins with, by its name."""
    blocks = {name: BLOCK.search(page) for name, page in PAGES.items()}
    return {name: tomllib.loads(block[1]) for name, block in blocks.items() if block}


if __name__ == "__main__":
    pages = scenes_of_pages()
    for argument in sys.argv[1:] or [*SCENES, *pages]:
        name, _, run = argument.partition("=")
        if name in pages:
            write_picture(name, pages[name])
        else:
            write_film(name, Path(run) if run else None)
