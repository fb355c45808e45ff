"""The four terms of the tangent of an image, against a reference with four copies of the scene.

The slow reference draws coverage from one copy, depth from another, barycentrics from a third
and shading from a fourth; moving one copy alone is one term. Its differences in longdouble
with h = 1e-6, extrapolated once, have errors of eps/h = 1e-13 and h^4/sigma^2 = 1e-19.
"""

import numpy as np
import pytest

from adjoint.render.soft_raster import rasterize_jvp, record_images
from adjoint.render.terms import Term, rasterize_jvp_terms
from render.blending import Over, Softmax
from tests.reference.soft_raster import blend_over, blend_softmax, gather_faces, pixel_row
from tests.render.scenes import camera, rounded, soft, two_tetrahedra


SIZE = (16, 20)
BLENDS = [Over(), Softmax()]


def random_tangents(rng, problem):
    """A tangent of everything."""
    return {path: rng.normal(size=shape) for path, shape in record_images(*problem).shapes.items()}


def problem_of(rng, blend, is_rounded=False):
    scene, vertices = two_tetrahedra(rng)
    scene = rounded(scene) if is_rounded else scene
    return scene, camera(near=1.0, far=9.0), soft(blend=blend, gamma=0.05), vertices, SIZE


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("is_rounded", [False, True])
def test_the_terms_add_up_to_the_tangent(rng, blend, is_rounded):
    problem = problem_of(rng, blend, is_rounded)
    tangents = random_tangents(rng, problem)
    images, terms = rasterize_jvp_terms(*problem, tangents)
    expected_images, expected = rasterize_jvp(*problem, tangents)
    np.testing.assert_array_equal(images, expected_images)
    assert set(terms) == set(Term)
    scale = max(np.abs(term).max() for term in terms.values())
    np.testing.assert_allclose(sum(terms.values()), expected, rtol=0, atol=1e-13 * scale)


def four_copies(objects, lights, lens, raster, moves):
    """The image in which each term sees vertices of its own, by Term in `moves`."""
    dtype = np.longdouble

    def seen(term):
        moved = [{**mesh, "vertices": x} for mesh, x in zip(objects, moves[term], strict=True)]
        return gather_faces(moved, lights, lens, raster, dtype)

    faces = {term: seen(term) for term in Term}
    corners, depths, *_ = faces[Term.BARYCENTRICS]
    painted = (corners, depths, *faces[Term.SHADING][2:])
    blend = {"over": blend_over, "softmax": blend_softmax}[raster["blend"]]
    rows = []
    for row in range(SIZE[0]):
        exponent, _, _ = pixel_row(faces[Term.COVERAGE], lens, raster, row, SIZE)
        _, z, _ = pixel_row(faces[Term.DEPTH], lens, raster, row, SIZE)
        _, _, color = pixel_row(painted, lens, raster, row, SIZE)
        rows.append(blend(exponent, z, color, raster, lens))
    return np.stack(rows)


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("is_rounded", [False, True])
def test_each_term_is_the_change_of_one_copy(rng, blend, is_rounded):
    problem = scene, view, rasterizer, vertices, _ = problem_of(rng, blend, is_rounded)
    tangents = {f"{name}.vertices": rng.normal(size=x.shape) for name, x in vertices.items()}
    _, terms = rasterize_jvp_terms(*problem, tangents)
    objects = [
        {key: getattr(mesh, key) for key in ("faces", "face_colors", "vertex_colors")}
        | {key: getattr(mesh.material, key) for key in ("ambient", "diffuse")}
        | {"smooth_normals": mesh.smooth_normals}
        for mesh in scene.objects.values()
    ]
    lights = [vars(light) for light in scene.lights.values()]
    lens = {key: getattr(view, key) for key in ("eye", "target", "up", "near", "far", "fov_y")}
    raster = {key: getattr(rasterizer, key) for key in ("sigma", "gamma", "epsilon", "background")}
    raster |= {"blend": type(blend).__name__.lower()}
    rest = [np.asarray(x, np.longdouble) for x in vertices.values()]
    for term in Term:

        def image(step, term=term):
            moved = [x + step * t for x, t in zip(rest, tangents.values(), strict=True)]
            moves = dict.fromkeys(Term, rest) | {term: moved}
            return four_copies(objects, lights, lens, raster, moves)

        h = np.longdouble(1e-6)
        near, far = ((image(k * h) - image(-k * h)) / (2 * k * h) for k in (1, 2))
        expected = np.asarray((4 * near - far) / 3, float)
        if term is Term.DEPTH and isinstance(blend, Over):
            assert (terms[term] == 0.0).all()
            continue
        assert np.abs(expected).max() > 0.02
        scale = np.abs(expected).max()
        np.testing.assert_allclose(terms[term], expected, rtol=0, atol=1e-10 * scale)


def test_a_parameter_that_is_no_place_moves_one_term(rng):
    problem = problem_of(rng, Softmax())
    only = {
        "rasterizer.sigma": Term.COVERAGE,
        "rasterizer.gamma": Term.DEPTH,
        "rasterizer.epsilon": Term.DEPTH,
        "rasterizer.background": Term.SHADING,
        "sun.direction": Term.SHADING,
        "left.diffuse": Term.SHADING,
        "right.vertex_colors": Term.SHADING,
    }
    shapes = record_images(*problem).shapes
    for path, mover in only.items():
        _, terms = rasterize_jvp_terms(*problem, {path: rng.normal(size=shapes[path])})
        assert [term for term in Term if terms[term].any()] == [mover], path


def test_every_frame_has_its_terms(rng):
    scene, view, rasterizer, vertices, size = problem_of(rng, Over())
    moving = {name: np.stack([x, x + 0.1]) for name, x in vertices.items()}
    tangents = {"left.vertices": rng.normal(size=moving["left"].shape)}
    images, terms = rasterize_jvp_terms(scene, view, rasterizer, moving, size, tangents)
    assert images.shape == (2, *SIZE, 4)
    alone = {name: x[1] for name, x in moving.items()}
    last_tangents = {"left.vertices": tangents["left.vertices"][1]}
    _, last = rasterize_jvp_terms(scene, view, rasterizer, alone, size, last_tangents)
    for term in Term:
        np.testing.assert_array_equal(terms[term][1], last[term])


def test_several_cameras_are_refused(rng):
    scene, view, rasterizer, vertices, size = problem_of(rng, Over())
    with pytest.raises(TypeError, match=r"`camera` must be one camera, got list"):
        rasterize_jvp_terms(scene, [view], rasterizer, vertices, size, {})
