"""What the studies of pictures look at: a mesh by name or from a file, and cameras around it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.meshes.files import read_mesh
from adjsim.meshes.shapes import SHAPES, shape
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from render.orbit_camera import OrbitCamera
from render.scene import Mesh
from render.textured_files import read_textured
from studies.errors import StudyError


def find_mesh(table: Mapping[str, Any], instance: int, key: str = "mesh") -> TriangleMesh:
    """Return the mesh of the settings' table `mesh`; instance k has the k-th of its shapes.

    It lies around the origin and reaches as far as `radius`.

    Raises
    ------
    StudyError
        If there is no such shape or file, or what is in it is no mesh.
    """
    name = _name(table, instance, key)
    if not Path(name).suffix:
        try:
            return shape(name, table["radius"])
        except ValueError as error:
            raise StudyError(f"`{key}.shapes`: {error} Or give a mesh file.") from error
    try:
        read = read_mesh(name)
    except OSError as error:
        raise StudyError(f"`{key}.shapes`: there is no file {name} that can be read.") from error
    except ValueError as error:
        raise StudyError(f"`{key}.shapes`: {str(error).removeprefix('`mesh`: ')}") from error
    if isinstance(read, TetMesh):
        surface = read.surface()
        read = TriangleMesh(read.points[surface.nodes], surface.local_faces)
    return TriangleMesh(placed(read.points, table["radius"]), read.faces)


def find_textured(table: Mapping[str, Any], instance: int) -> tuple[np.ndarray, Mesh]:
    """Return points and mesh as `find_mesh` finds them; an .obj file brings its texture, if any.

    Raises
    ------
    StudyError
        As `find_mesh`, or if the material or the picture of an .obj file cannot be read.
    """
    name = _name(table, instance, "mesh")
    if Path(name).suffix.lower() != ".obj":
        mesh = find_mesh(table, instance)
        return mesh.points, Mesh(mesh.faces)
    try:
        points, seen = read_textured(name)
    except (OSError, ValueError) as error:
        raise StudyError(f"`mesh.shapes`: {str(error).removeprefix('`mesh`: ')}") from error
    return placed(points, table["radius"]), seen


def placed(points: np.ndarray, radius: float) -> np.ndarray:
    """Return points moved around the origin, the farthest of them `radius` away."""
    about = points - (points.min(axis=0) + points.max(axis=0)) / 2.0
    return about * (radius / np.linalg.norm(about, axis=1).max())


def _name(table: Mapping[str, Any], instance: int, key: str) -> str:
    """Return which shape or file an instance has."""
    names = table["shapes"]
    checks.positive(f"{key}.radius", table["radius"])
    if not names:
        raise StudyError(f"`{key}.shapes` must name at least one of {', '.join(SHAPES)}.")
    return names[instance % len(names)]


def cameras_around(table: Mapping[str, Any]) -> tuple[OrbitCamera, ...]:
    """Return cameras spread evenly around the origin, by the settings' table `camera`.

    The k-th of n is at azimuth + 360 k/n degrees and takes the k-th of `elevations` in turn.
    """
    checks.positive("camera.distance", table["distance"])
    count = checks.positive("camera.views", table["views"])
    elevations = checks.array("camera.elevations", table["elevations"], ("n_elevations",))
    if not elevations.size:
        raise StudyError("`camera.elevations` must hold at least one angle.")
    return tuple(
        OrbitCamera(
            table["distance"],
            elevations[k % len(elevations)],
            table["azimuth"] + 360.0 * k / count,
            fov_y=table["fov_y"],
        )
        for k in range(count)
    )


def require_outside(
    settings: Mapping[str, Any], mesh: str = "mesh", camera: str = "camera"
) -> None:
    """Complain of a camera that comes as near to the origin as a mesh around it reaches.

    `mesh` and `camera` are the tables of the settings with `radius` and `distance`.
    """
    radius, distance = settings[mesh]["radius"], np.min(settings[camera]["distance"])
    if not distance > radius:
        raise StudyError(
            f"`{camera}.distance` must be more than `{mesh}.radius` = {radius:g}, or the camera "
            f"may stand inside the mesh, got {distance:g}."
        )


def view_names(cameras: tuple[OrbitCamera, ...]) -> tuple[str, ...]:
    """Return what the pictures of cameras around a scene are called."""
    return tuple(f"{one.azimuth % 360.0:.0f}°, {one.elevation:+.0f}°" for one in cameras)


def place_colors(points: np.ndarray) -> np.ndarray:
    """Return a colour for each point that tells where it is, (n, 3): its place in the box."""
    low, high = points.min(axis=0), points.max(axis=0)
    return 0.15 + 0.7 * (points - low) / np.where(high > low, high - low, 1.0)
