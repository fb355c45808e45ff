import numpy as np
import pytest

from adjoint.render.faces.face_setup import FaceTangents
from adjoint.render.raster.pixel_shading import (
    add_corners,
    face_light_vjp,
    no_corners,
    pixel_color_jvp,
    pixel_color_vjp,
    write_corners,
)
from adjoint.render.textures import empty_records
from render.faces.face_setup import Faces, PackedScene
from render.raster.pixel_shading import face_light, pixel_color
from tests.render.elements import check_element


W = (0.2, 0.5, 0.3)
NORMALS = ((0.6, 0.0, 0.8), (0.0, 0.6, 0.8), (-0.6, 0.48, 0.64))
TOWARDS = ((0.4, -0.2, 2.0), (-0.3, 0.2, 2.2), (0.1, 0.5, 1.9))
COLORS = ((0.9, 0.2, 0.4), (0.3, 0.8, 0.1), (0.5, 0.6, 0.7))
LIGHTS = ((2 / 7, 3 / 7, 6 / 7), (-0.48, 0.36, 0.8)), ((1.0, 0.9, 0.8), (0.2, 0.3, 0.5))
AMBIENT, DIFFUSE = (0.3, 0.2, 0.1), (0.5, 0.6, 0.7)
SPECULAR, SHININESS = (0.4, 0.3, 0.6), 3.5
MATERIAL = (AMBIENT, DIFFUSE, SPECULAR, SHININESS)
DARK = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0, (), ())


def scene(colors, ambient, diffuse, specular, shininess, directions, lights, sky=(), rounded=True):
    return PackedScene(
        faces=np.array([[0, 1, 2]]),
        smooth=np.array([True]),
        rounded=np.array([rounded]),
        by_pixel=np.array([True]),
        owner=np.array([0]),
        vertex_colors=np.array(colors),
        color_faces=np.array([[0, 1, 2]]),
        face_colors=np.zeros((1, 3)),
        ambient=np.array([ambient]),
        diffuse=np.array([diffuse]),
        specular=np.array([specular]),
        shininess=np.array([[shininess]]),
        directions=np.array(directions, float).reshape(-1, 3),
        lights=np.array(lights, float).reshape(-1, 3),
        harmonics=np.array(sky, float).reshape(-1, 3),
        background=np.zeros(3),
        uv=np.zeros((0, 2)),
        uv_faces=np.array([[-1, -1, -1]]),
        texels=np.zeros((0, 3)),
        images=np.zeros((1, 5), np.int64),
    )


def faces(kind, normals, towards):
    """What the face is shaded with: normals and vectors towards the eye of its corners."""
    parts = {name: np.empty((0, 3)) for name in kind._fields}
    parts |= {"shaded": np.reshape(normals, (1, 9)), "towards": np.array(towards)}
    return kind(**parts)


def zeros(like):
    return PackedScene(*(np.zeros_like(value) for value in like))


def color(w, normals, towards, seen):
    """Colour of the pixel, from what the corners have."""
    shading = faces(Faces, normals, towards)
    return pixel_color(0, w, face_light(0, shading, seen), shading, seen)


def by_hand(n, e, C):
    """Colour at the normal n and the direction e towards the eye, from the equations."""
    n, e = (np.asarray(v) / np.linalg.norm(v) for v in (n, e))
    rgb = np.array(AMBIENT) * C
    for l, L in zip(*map(np.array, LIGHTS), strict=True):
        r = 2 * (n @ l) * n - l
        rgb = rgb + L * np.array(DIFFUSE) * max(0.0, n @ l) * C
        rgb = rgb + L * np.array(SPECULAR) * max(0.0, r @ e) ** SHININESS
    return rgb


def mean(corners):
    return sum(w * np.array(corner) for w, corner in zip(W, corners, strict=True))


def test_a_pixel_is_shaded_by_the_mean_normal_the_mean_colour_and_from_the_mean_place():
    rgb = color(W, NORMALS, TOWARDS, scene(COLORS, *MATERIAL, *LIGHTS))
    expected = by_hand(mean(NORMALS), mean(TOWARDS), mean(COLORS))
    assert np.all(expected > np.array(AMBIENT) * mean(COLORS))
    np.testing.assert_allclose(rgb, expected, rtol=1e-14)


def test_a_face_with_one_normal_has_it_at_every_pixel():
    rgb = color(W, NORMALS, TOWARDS, scene(COLORS, *MATERIAL, *LIGHTS, rounded=False))
    expected = by_hand(NORMALS[0], mean(TOWARDS), mean(COLORS))
    np.testing.assert_allclose(rgb, expected, rtol=1e-14)


def test_without_a_highlight_the_place_of_the_eye_does_not_matter():
    matt = scene(COLORS, AMBIENT, DIFFUSE, SPECULAR, 0.0, *LIGHTS)
    nowhere = ((np.nan,) * 3,) * 3
    assert np.isfinite(color(W, NORMALS, nowhere, matt)).all()


@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("in_sky", [False, True])
def test_the_twins_of_the_colour_of_a_pixel_are_its_derivatives(rng, in_sky, rounded):
    sky = tuple(map(tuple, rng.uniform(0.1, 0.5, (9, 3)))) if in_sky else ()
    light = (sky,) if in_sky else (*MATERIAL, *LIGHTS)
    normals = NORMALS if rounded else (NORMALS[0],)

    def seen(colors, light):
        given = (*DARK, light[0]) if in_sky else light
        return scene(colors, *given, rounded=rounded)

    def corners(kind, a):
        return faces(kind, a[1] if rounded else a[1] * 3, a[2])

    def value(w, normals, towards, colors, *light):
        return color(w, normals if rounded else normals * 3, towards, seen(colors, light))

    def jvp(a, t):
        shading, tangents = corners(Faces, a), corners(FaceTangents, t)
        primal, tangent = seen(a[3], a[4:]), seen(t[3], t[4:])
        return pixel_color_jvp(0, a[0], t[0], shading, tangents, primal, tangent)

    def vjp(a, adj):
        primal, shading = seen(a[3], a[4:]), corners(Faces, a)
        adjoints, slots = zeros(primal), np.zeros((1, 36))
        light = face_light(0, shading, primal)
        records = empty_records(np, 0, np.float64)
        adj_w, adj_s, shared = pixel_color_vjp(
            0, a[0], light, shading, primal, adj, adjoints, 0, records, 0
        )
        for at, adj_corner in zip((9, 18, 27), shared, strict=True):
            write_corners(slots, 0, at, add_corners(no_corners(0.0), a[0], adj_corner))
        face_light_vjp(0, light, primal, adj_s, adjoints, 0, slots, 0)
        names = ("ambient", "diffuse", "specular", "shininess", "directions", "lights")
        return (
            adj_w,
            tuple(slots[0, 18:27]) if rounded else tuple(slots[0, 18:27].reshape(3, 3).sum(axis=0)),
            tuple(slots[0, 27:]),
            tuple(slots[0, 9:18]),
            *(
                tuple(np.ravel(getattr(adjoints, name)))
                for name in (("harmonics",) if in_sky else names)
            ),
        )

    check_element(rng, value, jvp, vjp, (W, normals, TOWARDS, COLORS, *light))
