"""A tensile test of a bar by quadratic hexahedra, as a testing machine would measure it."""

import json
import shutil
import tomllib
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from benchmarks.films import meshes
from benchmarks.films.solver_bricks import Bricks, bricks


SCENE = Path(__file__).with_name("pulled-bar.toml")
SIZE, CELLS = (0.15, 0.02, 0.02), (20, 3, 3)  # [m]
GRADED = 0.6  # how much shorter cells of the mesh that is fitted become towards the jaws
TRUTH = {"bar.E": 1.2e6, "bar.nu": 0.35}


def pull(E: float, nu: float, way: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return nodes, where they rest, (n_loads, n, 3) [m], and the force, (n_loads,) [N].

    The jaw has gone this way at each load, (n_loads,) [m].
    """
    points, cells = bricks(SIZE, CELLS)
    ends = np.abs(points[:, 0]) > 0.499 * SIZE[0]
    jaw = ends & (points[:, 0] > 0.0)
    solid, x, along = Bricks(points, cells, E, nu), points, points[:, 0] / SIZE[0] + 0.5
    frames, forces = [], []
    for step in np.diff(way, prepend=0.0):
        x = solid.rest_under(x + np.outer(step * along, [1.0, 0.0, 0.0]), ends)
        frames.append(x)
        forces.append(solid.forces(x)[jaw, 0].sum())
    return points, np.array(frames), np.array(forces)


def make_pulled(folder: Path, seed: int = 0) -> None:
    """Write mesh, load.csv, markers.csv, scene.toml and truth.json, noise in what is measured."""
    folder.mkdir(parents=True, exist_ok=True)
    scene = tomllib.loads(SCENE.read_text())
    grip, markers = scene["grips"]["jaw"]["path"], scene["observations"]["markers"]
    times = np.linspace(0.0, grip["times"][-1], 11)[1:]
    points, frames, forces = pull(
        TRUTH["bar.E"], TRUTH["bar.nu"], times / times[-1] * grip["positions"][-1][0]
    )
    rng = np.random.default_rng(seed)
    forces = forces + rng.normal(scale=scene["observations"]["cell"]["error"], size=len(forces))
    names = [*markers["at"]]
    places = frames[:, KDTree(points).query([*markers["at"].values()])[1]]
    places = places + rng.normal(scale=markers["error"], size=places.shape)
    rows = [f"{t:g},{force:.6g}" for t, force in zip(times, forces, strict=True)]
    (folder / "load.csv").write_text("\n".join(["time,force", *rows]) + "\n")
    rows = [
        ",".join([f"{t:g}", name, *(f"{coordinate:.7g}" for coordinate in place)])
        for t, frame in zip(times, places, strict=True)
        for name, place in zip(names, frame, strict=True)
    ]
    (folder / "markers.csv").write_text("\n".join(["time,point,x,y,z", *rows]) + "\n")
    nodes, tets = meshes.box(SIZE, CELLS)
    along = np.sin(np.pi * nodes[:, 0] / SIZE[0]) * SIZE[0] / 2
    nodes[:, 0] += GRADED * (along - nodes[:, 0])
    meshes.save(folder / "bar.vtu", nodes, tets)
    shutil.copy(SCENE, folder / "scene.toml")
    start = {path: scene["bodies"]["bar"][path.split(".")[1]] for path in TRUTH}
    truth = {"name": "pulled-bar", "parameters": TRUTH, "start": start, "law": "same"}
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))
