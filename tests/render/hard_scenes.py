"""Scenes that break renderers, of closed meshes, so that faces share edges.

Faces thin on the screen, from the side or slivers, lie along rows of pixel centres: there alone
are their barycentrics not clipped.
"""

from dataclasses import replace

import numpy as np

from render.scene import DirectionalLight, Material, Mesh, Scene
from tests.reference.soft_raster import gather_faces, pixel_row, project, view_axes
from tests.render.scenes import TETRAHEDRON, camera, fitted, plain, soft, two_tetrahedra


OCTAHEDRON = np.array(
    [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]]
)
THINNESS = (1e-2, 1e-4, 4e-6)  # height of thin faces on the screen
SHAPES = {"wide": (1, 300), "high": (300, 1), "one": (1, 1)}
THIN = ("edge on", "slivers")
SCENES = ("intersecting", *THIN, "behind", "far", "crowd", *SHAPES)


def ring(m, n):
    """Faces of a grid of m x n vertices that closes in both directions, a torus."""
    i, j = np.indices((m, n)).reshape(2, -1)
    a, b = i * n + j, (i + 1) % m * n + j
    c, d = (i + 1) % m * n + (j + 1) % n, i * n + (j + 1) % n
    return np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])


def lit(rng, bodies):
    """A scene of bodies (faces, vertices) with vertex colours, and its vertices."""
    material = Material((0.2, 0.3, 0.25), (0.7, 0.6, 0.8))
    objects = {
        name: Mesh(faces, vertex_colors=rng.random((len(x), 3)), material=material)
        for name, (faces, x) in bodies.items()
    }
    lights = {  # from both sides: each face has one of them
        "sun": DirectionalLight((0.2, 0.5, 1.0), (1.0, 0.9, 0.8)),
        "lamp": DirectionalLight((-0.1, -0.6, -1.0), (0.2, 0.3, 0.5)),
    }
    return Scene(objects, lights), {name: x for name, (_, x) in bodies.items()}


def at_screen(view, x, y, depth):
    """The point that a camera sees at x, y on the screen at this depth."""
    lens = {key: getattr(view, key) for key in ("eye", "target", "up")}
    right, up, forward = view_axes(lens)
    slope = np.tan(np.radians(view.fov_y / 2))
    return np.asarray(view.eye) + depth * (forward + slope * (x * right + y * up))


def thin_bodies(rng, name, view, n_rows):
    """Tetrahedra each with one face thin on the screen, along the centres of a row of samples."""
    bodies, lens = {}, {key: getattr(view, key) for key in ("eye", "target", "up")}
    for k, thin in enumerate(THINNESS):
        y = 1 - (2 * (n_rows // 2 + k - 1) + 1) / n_rows
        left, right, apex = rng.uniform([-1.5, 1.1, 0.0], [-1.1, 1.5, 0.2])
        z = rng.uniform(3.2, 3.8, 3)
        a = at_screen(view, left, y - 0.4 * thin, z[0])
        b = at_screen(view, right, y - 0.3 * thin, z[1])
        c = at_screen(view, apex, y + 0.6 * thin, z[2])
        if name == "slivers":  # beside the middle of the edge ab
            c = (a + b) / 2 + 1.3 * thin * view_axes(lens)[1]
        d = at_screen(view, rng.uniform(-0.5, 0.5), y - 0.5 / n_rows, 4.2)
        bodies[f"thin {k}"] = (TETRAHEDRON, np.stack([a, b, c, d]))
    return bodies


def hard_problem(name, rng, mode, size=None):
    """Scene, camera, rasterizer and vertices by the scene's name, and the size of its image."""
    if name in SHAPES:
        size = size or SHAPES[name]
        scene, vertices = two_tetrahedra(rng)
        view, raster = fitted(size, **({"sigma": 0.3} if name == "one" else {}), **mode)
        return (scene, view, raster, vertices), size
    size = size or ((3, 4) if name == "crowd" else (10, 13))
    view, raster = camera(), soft(**{"sigma": 0.1 / size[0] ** 2, **mode})
    n_rows = size[0] * raster.supersample
    bodies = {k: (OCTAHEDRON, rng.normal(scale=0.6, size=(6, 3))) for k in ("first", "second")}
    if name == "crowd":
        bodies = {"first": (ring(12, 13), rng.normal(scale=0.6, size=(156, 3)))}
    elif name in THIN:
        x = bodies["first"][1] - [0.0, 0.0, 2.0]
        bodies = {"first": (OCTAHEDRON, x), **thin_bodies(rng, name, view, n_rows)}
    elif name == "behind":  # one vertex behind the eye, one between it and near
        bodies["first"][1][0] = (0.3, 0.4, 4.0)
        bodies["second"][1][0] = (0.3, 0.4, 3.45)
    elif name == "far":
        view = replace(view, far=3.9)
        for _, x in bodies.values():  # one vertex beyond far, the others before it
            x[:, 2] *= 0.3
            x[0, 2] = -0.8
    scene, vertices = lit(rng, bodies)
    return (scene, view, raster, vertices), size


def all_corners(problem):
    """Corners (n_faces, 3, 3) of all faces of a scene."""
    scene, _, _, vertices = problem
    return np.concatenate([vertices[k][mesh.faces] for k, mesh in scene.objects.items()])


def is_what_it_says(name, problem):
    """Whether the scene has what it is named after, and something else that is seen."""
    _, view, _, _ = problem
    corners = all_corners(problem)
    lens = {key: getattr(view, key) for key in ("eye", "target", "up", "fov_y")}
    screen, depth = project(corners.reshape(-1, 3), lens)
    screen, depth = screen.reshape(-1, 3, 2), depth.reshape(-1, 3)
    if name == "behind":
        return depth.min() < 0 and (depth > view.near).all(axis=1).sum() >= 4
    if name == "far":
        within = (depth > view.near) & (depth < view.far)
        across = (depth > view.far).any(axis=1) & within.any(axis=1)
        return within.all(axis=1).sum() >= 3 and across.sum() >= 3
    if name in THIN:
        e, f = screen[:, 1] - screen[:, 0], screen[:, 2] - screen[:, 0]
        area = np.abs(e[:, 0] * f[:, 1] - e[:, 1] * f[:, 0])
        normal = np.linalg.norm(np.cross(*(corners[:, k] - corners[:, 0] for k in (1, 2))), axis=1)
        is_thin = area < 3 * THINNESS[-1]
        return is_thin.any() and (normal[is_thin] < 10 * THINNESS[-1]).all() == (name == "slivers")
    if name == "crowd":
        objects, _, lens, raster = plain(*problem)
        raster |= {"blend": "over", "seamless": False}
        faces = gather_faces(list(objects.values()), [], lens, raster, float)
        exponent, _, _ = pixel_row(faces, lens, raster, 0, (1, 1))
        return (exponent > np.log(1e-4)).sum() >= 200
    return name != "intersecting" or piercings(corners) >= 10


def piercings(corners):
    """How many times an edge passes through a face that it does not touch."""
    count = 0
    for a, b, c in corners:
        for p, q in ((face[k - 1], face[k]) for face in corners for k in range(3)):
            side = [np.dot(np.cross(b - a, c - a), s - a) for s in (p, q)]
            turn = [np.dot(np.cross(u - p, v - p), q - p) for u, v in ((a, b), (b, c), (c, a))]
            touches = any((s == corner).all() for s in (p, q) for corner in (a, b, c))
            count += not touches and side[0] * side[1] < 0 and len(set(np.sign(turn))) == 1
    return count
