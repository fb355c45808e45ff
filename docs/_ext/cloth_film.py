"""The film of the thrown cloth: all that the search tried, one after the other.

adjsim run control-cloth 'bodies.cloth.cells=[24,24]' --out RUN
python docs/_ext/cloth_film.py RUN
"""

import sys
from pathlib import Path

import numpy as np

from render.camera import Camera
from render.scene import DirectionalLight, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.problem.forward import simulate
from studies.runs.media import as_uint8, write_jpeg, write_video
from studies.scene.drawing import instance_of
from studies.scene.reading import read_scene


STATIC = Path(__file__).resolve().parents[1] / "_static"
TRIES = (0, 1, 2, 3, -1)  # evaluations that are shown
FRAMES, FPS, SIZE = 24, 24, (400, 480)
HELD = 8  # frames at the end of each
VIEW = Camera(eye=(2.5, 3.0, 9.5), target=(-1.3, -0.3, 0.0), fov_y=58.0)
COLORS = {"goal": (0.35, 0.5, 0.75), "cloth": (0.95, 0.4, 0.25)}


def squares(file):
    """Return a grey level for each triangle: light and dark squares of two by two cells."""
    rows, columns = np.indices(file.bodies["cloth"].cells) // 2
    return np.repeat(np.where((rows + columns).ravel() % 2, 1.0, 0.75), 2)


def main(run):
    """Write the film, and a picture of the last flight."""
    file = instance_of(read_scene(run / "study.toml"), 0)
    with np.load(run / "parameters.npz") as arrays:
        tries, hidden = arrays["history"][list(TRIES)], arrays["truth"]
    times = np.linspace(0.0, file.world.duration, FRAMES)
    goal = simulate(file, times, {"cloth.velocity": hidden}).surfaces["cloth"][-1]
    frames = []
    for velocity in tries:
        moved = simulate(file, times, {"cloth.velocity": velocity})
        faces = moved.built.meshes["cloth"].faces
        meshes = {
            name: Mesh(faces, face_colors=np.outer(squares(file), color))
            for name, color in COLORS.items()
        }
        pictures = rasterize(
            Scene(meshes, {"sun": DirectionalLight((0.3, 1.0, 0.4))}),
            VIEW,
            SoftRasterizer(sigma=2e-6, seamless=True, background=(0.93, 0.94, 0.97)),
            {"goal": goal, "cloth": moved.surfaces["cloth"]},
            SIZE,
        )
        frames += [*pictures, *[pictures[-1]] * HELD]
    frames = as_uint8(np.array(frames)[..., :3])
    write_video(STATIC / "cloth.mp4", frames, FPS, crf=26)
    write_jpeg(STATIC / "cloth.jpg", frames[-HELD - 8])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
