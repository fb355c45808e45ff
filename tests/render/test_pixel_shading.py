import numpy as np
import pytest

from adjoint.render.pixel_shading import pixel_color_jvp, pixel_color_vjp
from render.face_setup import PackedScene
from render.pixel_shading import pixel_color
from tests.render.elements import check_element


W = (0.2, 0.5, 0.3)
NORMALS = ((0.6, 0.0, 0.8), (0.0, 0.6, 0.8), (-0.6, 0.48, 0.64))
COLORS = ((0.9, 0.2, 0.4), (0.3, 0.8, 0.1), (0.5, 0.6, 0.7))
LIGHTS = ((0.3, 0.5, 0.9), (-0.4, 0.2, 0.7)), ((1.0, 0.9, 0.8), (0.2, 0.3, 0.5))
AMBIENT, DIFFUSE = (0.3, 0.2, 0.1), (0.5, 0.6, 0.7)


def scene(colors, ambient, diffuse, directions, lights, sky=()):
    return PackedScene(
        faces=np.array([[0, 1, 2]]),
        smooth=np.array([True]),
        rounded=np.array([True]),
        owner=np.array([0]),
        vertex_colors=np.array(colors),
        face_colors=np.zeros((1, 3)),
        ambient=np.array([ambient]),
        diffuse=np.array([diffuse]),
        directions=np.array(directions, float).reshape(-1, 3),
        lights=np.array(lights, float).reshape(-1, 3),
        harmonics=np.array(sky, float).reshape(-1, 3),
        background=np.zeros(3),
    )


def zeros(like):
    return PackedScene(*(np.zeros_like(value) for value in like))


def test_a_pixel_is_shaded_by_the_mean_normal_and_the_mean_colour():
    n = sum(w * np.array(normal) for w, normal in zip(W, NORMALS, strict=True))
    n = n / np.linalg.norm(n)
    C = sum(w * np.array(color) for w, color in zip(W, COLORS, strict=True))
    shade = np.array(AMBIENT)
    for m, L in zip(*map(np.array, LIGHTS), strict=True):
        shade = shade + L * np.array(DIFFUSE) * max(0.0, n @ m / np.linalg.norm(m))
    found = pixel_color(0, W, np.array(NORMALS), scene(COLORS, AMBIENT, DIFFUSE, *LIGHTS))
    np.testing.assert_allclose(found, shade * C, rtol=1e-15)


@pytest.mark.parametrize("in_sky", [False, True])
def test_the_twins_of_the_colour_of_a_pixel_are_its_derivatives(rng, in_sky):
    sky = tuple(map(tuple, rng.uniform(0.1, 0.5, (9, 3)))) if in_sky else ()
    light = (sky,) if in_sky else (AMBIENT, DIFFUSE, *LIGHTS)

    def seen(colors, light):
        dark = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (), ())
        return scene(colors, *dark, light[0]) if in_sky else scene(colors, *light)

    def color(w, normals, colors, *light):
        return pixel_color(0, w, np.array(normals), seen(colors, light))

    def jvp(a, t):
        primal, tangent = seen(a[2], a[3:]), seen(t[2], t[3:])
        return pixel_color_jvp(0, a[0], np.array(a[1]), primal, t[0], np.array(t[1]), tangent)

    def vjp(a, adj):
        primal = seen(a[2], a[3:])
        own, slots = zeros(primal), np.zeros((1, 27))
        adj_w = pixel_color_vjp(0, a[0], np.array(a[1]), primal, adj, own, 0, slots, 0)
        lit = (own.harmonics,) if in_sky else (own.ambient, own.diffuse, own.directions, own.lights)
        return (
            adj_w,
            tuple(slots[0, 18:]),
            tuple(slots[0, 9:18]),
            *(tuple(np.ravel(part)) for part in lit),
        )

    check_element(rng, color, jvp, vjp, (W, NORMALS, COLORS, *light))
