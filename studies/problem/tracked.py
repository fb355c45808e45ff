"""Tracked points and states as observers: where on a body each point is."""

from typing import Any

import numpy as np
import scipy.sparse

from render.posed_camera import PosedCamera
from studies.problem.observations.points import PointData, read_points, read_states
from studies.problem.points import PointObserver
from studies.problem.start import start_surfaces
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.building import Built


PIXEL, MILLIMETRE = 1.0, 1e-3  # default standard deviations
NEAR = 0.05  # part of a body's size: how far from its surface a point may be


def point_observer(
    name: str,
    one: declared.Points,
    built: Built,
    seen_by: tuple[str, PosedCamera, tuple[int, int]] | None,
    *,
    center: np.ndarray,
    spec: declared.Camera | None = None,
    data: PointData | None = None,
) -> PointObserver:
    """Return tracked points as an observer.

    Of points in pixels, `seen_by` is path, camera and size of the picture, and `spec` is the camera
    as it is declared, whose distortion is taken off; the camera looks at points minus `center`.
    `data` stands in for the file where points are still to be simulated.
    """
    if data is None:
        size = None if seen_by is None else seen_by[2]
        data = read_points(one, spec, size, f"observations.{name}")
    if one.body not in built.subjects:
        raise StudyError(
            f"`observations.{name}.body` must be a body with a surface, got {one.body!r}. Known: "
            f"{', '.join(built.subjects)}."
        )
    surface = start_surfaces(built)[one.body]
    faces = np.asarray(built.meshes[one.body].faces)
    places = _places(name, one, data, seen_by, center=center, surface=surface, faces=faces)
    path, camera, picture = seen_by or ("", None, (1, 1))
    return PointObserver(
        name,
        one.weight,
        data.times,
        one.start,
        np.arange(len(data.times)),
        data.values,
        one.error or (MILLIMETRE if camera is None else PIXEL),
        on_surface(name, surface, faces, places),
        one.body,
        camera,
        path,
        center,
        picture,
    )


def state_observer(
    name: str, one: declared.States, built: Built, times: np.ndarray | None = None
) -> PointObserver:
    """Return positions of all nodes of a body as an observer; with `times`, still to be simulated.

    Or their centre of mass, with the masses of the scene.
    """
    if one.body not in built.nodes:
        raise StudyError(
            f"`observations.{name}.body` must be a body with nodes, got {one.body!r}. Known: "
            f"{', '.join(built.nodes) or 'none'}."
        )
    n_nodes = len(built.state.x)
    rows = np.arange(n_nodes)[built.nodes[one.body]]
    mass = built.system.parameters()["mass"][rows]
    n = 1 if one.center else len(rows)
    if times is None:
        data = read_states(one, f"observations.{name}")
    else:
        data = PointData((), times, np.zeros((len(times), n, 3)))
    if data.values.shape[1] != n:
        whose = (
            "one place, its centre of mass"
            if one.center
            else f"the {n} nodes of `bodies.{one.body}`"
        )
        raise StudyError(
            f"`observations.{name}.file` must have {whose}, got {data.values.shape[1]}: `x` is "
            "(n_times, n_nodes, 3)."
        )
    weights = mass / mass.sum() if one.center else np.ones(n)
    entries = (weights, (np.zeros_like(rows) if one.center else np.arange(n), rows))
    matrix = scipy.sparse.csr_array(entries, shape=(n, n_nodes))
    return PointObserver(
        name,
        one.weight,
        data.times,
        one.start,
        np.arange(len(data.times)),
        data.values,
        one.error,
        matrix,
        "",
    )


def _places(
    name: str,
    one: declared.Points,
    data: PointData,
    seen_by: tuple[str, PosedCamera, tuple[int, int]] | None,
    *,
    center: np.ndarray,
    surface: np.ndarray,
    faces: np.ndarray,
) -> np.ndarray:
    """Return where every point is on the body at its start, (n_points, 3) [m]."""
    places = np.zeros((len(data.names), 3))
    for k, point in enumerate(data.names):
        if point in one.at:
            places[k] = one.at[point]
            continue
        row = int(np.argmax(np.isfinite(data.values[:, k, 0])))
        first, late = data.values[row, k], one.start + data.times[row]
        if late > 1.01 * np.diff(data.times).min(initial=np.inf):
            raise StudyError(
                f"`observations.{name}`: point {point!r} is first seen at {late:.4g} s, when its "
                f"body has moved. Say where it is at the start by `at.{point} = [x, y, z]`."
            )
        if seen_by is None:
            places[k] = first
        else:
            _, camera, size = seen_by
            hit = first_hit(camera, size, first, surface=surface - center, faces=faces)
            if hit is None:
                raise StudyError(
                    f"`observations.{name}`: point {point!r} begins at pixel "
                    f"({first[0]:.1f}, {first[1]:.1f}), where the camera does not see "
                    f"`bodies.{one.body}`. Say where it is by `at.{point} = [x, y, z]`, or check "
                    "the camera."
                )
            places[k] = hit + center
    return places


def on_surface(
    name: str, surface: np.ndarray, faces: np.ndarray, places: np.ndarray
) -> scipy.sparse.csr_array:
    """Return W, (n_points, n_vertices), whose rows weigh the corners of the nearest triangle."""
    import pyvista

    mesh = pyvista.PolyData.from_regular_faces(surface, faces)
    found: Any = mesh.find_closest_cell(places, return_closest_point=True)
    cells, nearest = found
    corners = faces[np.atleast_1d(cells)]
    size = float(np.linalg.norm(np.ptp(surface, axis=0)))
    far = np.linalg.norm(nearest - places, axis=1)
    if (far > NEAR * size).any():
        k = int(np.argmax(far))
        raise StudyError(
            f"`observations.{name}` must have points on its body at the start, but one is at "
            f"{places[k].round(4).tolist()} m, {far[k]:.3g} m away from it. Check units and pose "
            "of the points and the body, or say where they are by `at`."
        )
    weights = _barycentric(surface[corners], nearest)
    rows = np.repeat(np.arange(len(places)), 3)
    shape = (len(places), len(surface))
    return scipy.sparse.csr_array((weights.ravel(), (rows, corners.ravel())), shape=shape)


def _barycentric(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return weights (n, 3) of corners (n, 3, 3) that sum up to points (n, 3) in their planes."""
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    d = points - corners[:, 0]
    aa, ab, bb = (np.einsum("ij,ij->i", p, q) for p, q in ((a, a), (a, b), (b, b)))
    da, db = np.einsum("ij,ij->i", d, a), np.einsum("ij,ij->i", d, b)
    area = np.maximum(aa * bb - ab**2, np.finfo(float).tiny)
    u, v = (bb * da - ab * db) / area, (aa * db - ab * da) / area
    return np.stack([1.0 - u - v, u, v], axis=1)


def first_hit(
    camera: PosedCamera,
    size: tuple[int, int],
    pixel: np.ndarray,
    *,
    surface: np.ndarray,
    faces: np.ndarray,
) -> np.ndarray | None:
    """Return where the ray through a pixel (u, v) first meets a surface, (3,) [m]; None: nowhere.

    Source: Moeller & Trumbore, Fast, minimum storage ray/triangle intersection, 1997.
    """
    height, width = size
    f_x, k, c_x, f_y, c_y = camera.optics.numbers()
    s_x = (2.0 * pixel[0] + 1 - width) / height
    s_y = (height - 1 - 2.0 * pixel[1]) / height
    y = (s_y - c_y) / f_y
    x = (s_x - c_x - k * y) / f_x
    eye, axes = camera.pose()
    ray = np.array([x, y, 1.0]) @ axes
    origin, a, b = (
        surface[faces[:, 0]],
        *(surface[faces[:, i]] - surface[faces[:, 0]] for i in (1, 2)),
    )
    p = np.cross(ray, b)
    area = np.einsum("ij,ij->i", a, p)
    with np.errstate(divide="ignore", invalid="ignore"):
        d = eye - origin
        u = np.einsum("ij,ij->i", d, p) / area
        q = np.cross(d, a)
        v = q @ ray / area
        depth = np.einsum("ij,ij->i", b, q) / area
    is_hit = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (depth > 0.0)
    if not is_hit.any():
        return None
    return eye + depth[is_hit].min() * ray
