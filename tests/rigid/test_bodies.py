"""What bodies weigh and where their points are; the twins of that; bad input."""

import numpy as np
import pytest

from adjoint.rigid.bodies import pack_params_vjp
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.rigid.bodies import BodyPoint, RigidBodies, arms_jvp, pack_params_jvp
from adjsim.rigid.mass_properties import from_six, mass_properties
from tests.rigid.scenes import BOX_FACES, CORNERS, box, lump


INERTIA = np.array([2e-3, 3e-3, 2.5e-3, 2e-4, -3e-4, 1e-4])
OPEN = TriangleMesh(CORNERS, BOX_FACES[:-1])


@pytest.fixture
def meshes(rng):
    return [box(), lump(rng), lump(rng)]


def weights(rng, kind):
    """Arguments of RigidBodies that say what three bodies weigh."""
    each = rng.uniform(0.5, 2.0, 3)
    turned = INERTIA * rng.uniform(0.9, 1.1, (3, 1))
    return {
        "one density": {"density": 700.0},
        "densities": {"density": 700.0 * each},
        "one mass": {"mass": 0.5},
        "masses": {"mass": each},
        "mass and one inertia": {"mass": each, "inertia": INERTIA},
        "density and inertias": {"density": 700.0, "inertia": turned},
        "one drag": {"mass": each, "drag_rate": 0.5},
        "drags": {"density": 700.0, "drag_rate": each},
    }[kind]


KINDS = [
    "one density",
    "densities",
    "one mass",
    "masses",
    "mass and one inertia",
    "density and inertias",
    "one drag",
    "drags",
]


def test_a_density_gives_mass_and_inertia_and_a_mass_the_inertia_too(meshes):
    solids = [mass_properties(mesh) for mesh in meshes]
    rho = np.array([500.0, 600.0, 700.0])
    dense = RigidBodies(meshes, density=rho)
    m = rho * [solid.volume for solid in solids]
    np.testing.assert_allclose(dense.masses, m, rtol=1e-14)
    expected = [r * solid.inertia for r, solid in zip(rho, solids, strict=True)]
    np.testing.assert_allclose(dense.inertias, expected, rtol=1e-14)
    heavy = RigidBodies(meshes, mass=m)
    np.testing.assert_allclose(heavy.packed_params, dense.packed_params, rtol=1e-13)
    assert set(dense.parameters()) == {"density", "vertices"}
    assert set(heavy.parameters()) == {"mass", "vertices"}


@pytest.mark.parametrize("kind", KINDS)
def test_packed_rows_are_inverse_mass_inertia_and_its_inverse(rng, meshes, kind):
    bodies = RigidBodies(meshes, **weights(rng, kind))
    packed = bodies.packed_params
    np.testing.assert_allclose(packed[:, 0] * bodies.masses, 1.0, rtol=1e-14)
    product = from_six(packed[:, 1:7]) @ from_six(packed[:, 7:13])
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(3), (3, 3, 3)), atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_the_twins_of_the_packing(rng, meshes, kind):
    points = {"tip": [0.1, 0.2, 0.3], "middle": BodyPoint(body=1), "edge": BodyPoint([0, 1, 0], 2)}
    bodies, step = RigidBodies(meshes, **weights(rng, kind), points=points), 1e-6
    tangents = {k: v * rng.standard_normal(v.shape) for k, v in bodies.parameters().items()}
    ahead, behind = (
        bodies.with_values(
            {k: v + sign * step * tangents[k] for k, v in bodies.parameters().items()}
        )
        for sign in (1, -1)
    )
    pushed, moved = pack_params_jvp(bodies, tangents), arms_jvp(bodies, tangents)
    slopes = (ahead.packed_params - behind.packed_params) / (2 * step)
    scales = np.abs(slopes).max(axis=0)
    scales[13] = scales[13] or 1.0  # without a drag
    np.testing.assert_allclose(pushed / scales, slopes / scales, rtol=0, atol=1e-7)
    np.testing.assert_allclose(moved, (ahead.arms - behind.arms) / (2 * step), rtol=0, atol=1e-9)
    adj, adj_arms = rng.standard_normal(pushed.shape), rng.standard_normal(moved.shape)
    pulled = pack_params_vjp(bodies, adj, adj_arms)
    assert {k: v.shape for k, v in pulled.items()} == {k: v.shape for k, v in tangents.items()}
    terms = np.concatenate([np.ravel(pulled[name] * tangents[name]) for name in tangents])
    left = np.concatenate([np.ravel(pushed * adj), np.ravel(moved * adj_arms)])
    assert abs(left.sum() - terms.sum()) <= 1e-13 * (np.abs(left).sum() + np.abs(terms).sum())


def test_points_are_about_the_centre_of_mass_body_after_body(meshes):
    points = {"a": BodyPoint([1.0, 0, 0], 1), "b": [0.0, 1.0, 0], "c": BodyPoint([0, 0, 1.0], 1)}
    bodies = RigidBodies(meshes, mass=1.0, points=points)
    assert (bodies.n_bodies, bodies.n_points) == (3, 27)
    np.testing.assert_array_equal(bodies.point_ptr, [0, 9, 19, 27])
    np.testing.assert_array_equal(bodies.hull, [*range(8), *range(9, 17), *range(19, 27)])
    np.testing.assert_array_equal(bodies.faces[12:24], meshes[1].faces + 8)
    rows = {name: bodies.point_row(name) for name in points}
    assert rows == {"b": 8, "a": 17, "c": 18}
    np.testing.assert_array_equal(bodies.arms[17], [1.0, 0, 0] - bodies.centers[1])
    np.testing.assert_array_equal(bodies.arms[8], [0, 1.0, 0] - bodies.centers[0])
    hull = bodies.arms[bodies.hull[8:16]] + bodies.centers[1]
    np.testing.assert_allclose(hull, meshes[1].points, atol=1e-16)
    with pytest.raises(ValueError, match=r"Unknown body point `bb`. Did you mean `b`"):
        bodies.point_row("bb")


def test_an_open_mesh_will_do_with_mass_inertia_and_centre():
    bodies = RigidBodies(OPEN, mass=2.0, inertia=INERTIA, center=[0.5, 0.5, 0.4])
    np.testing.assert_array_equal(bodies.arms[0], [-0.5, -0.5, -0.4])
    np.testing.assert_allclose(bodies.packed_params[0, :7], [0.5, *INERTIA], rtol=1e-15)


def test_points_alone_will_do_with_mass_and_inertia():
    points = np.array([[0.0, -0.1, 0.0], [0.1, 0.2, 0.3]])
    bodies = RigidBodies([points, box()], mass=2.0, inertia=INERTIA)
    np.testing.assert_array_equal(bodies.arms[:2], points)
    assert (len(bodies.hull), len(bodies.faces)) == (10, 12)
    np.testing.assert_array_equal(bodies.vertices, [*points, *box().points])
    single = RigidBodies(points, mass=2.0, inertia=INERTIA, center=[0.1, 0, 0])
    np.testing.assert_array_equal(single.arms, points - [0.1, 0, 0])
    moved = single.with_values({"vertices": 2.0 * points})
    np.testing.assert_array_equal(moved.arms, 2.0 * points - [0.1, 0, 0])
    for arguments in ({"density": 1.0, "inertia": INERTIA}, {"mass": 1.0}):
        with pytest.raises(ValueError, match=r"`meshes\[0\]` is points alone, .*`inertia`"):
            RigidBodies(points, **arguments)
    with pytest.raises(ValueError, match=r"`meshes\[0\]` must have shape \(n_points, 3\)"):
        RigidBodies(np.zeros((2, 2)), mass=1.0, inertia=INERTIA)
    with pytest.raises(ValueError, match=r"`vertices` must have shape \(2, 3\)"):
        single.with_values({"vertices": points[:1]})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Give either `density` or `mass`, got neither"),
        ({"density": 1.0, "mass": 1.0}, "Give either `density` or `mass`, got both"),
        ({"mass": 0.0}, "`mass` must be positive, got 0"),
        ({"density": -1.0}, "`density` must be positive"),
        ({"mass": [1.0, 2.0]}, r"`mass` must have shape \(\) or \(n_bodies,\) = \(1,\)"),
        ({"mass": 1.0, "inertia": [1.0, 1.0]}, r"`inertia` must have shape \(6,\) or"),
        ({"mass": 1.0, "inertia": [1, 1, 3, 0, 0, 0]}, "sum of the other two"),
        ({"mass": 1.0, "inertia": [1, 1, 1, 2, 0, 0]}, "positive definite"),
        ({"mass": 1.0, "drag_rate": -1.0}, "`drag_rate` must not be negative, got -1"),
        ({"mass": 1.0, "drag_rate": [1, 2]}, r"`drag_rate` must have shape \(\) or \(n_bodies,\)"),
        ({"mass": 1.0, "center": [0, 0, 0]}, "`center` must come with `inertia`"),
        ({"mass": 1.0, "points": {"tip": [0, 0]}}, r"`points\['tip'\]` must have shape"),
        ({"mass": 1.0, "points": {"": [0, 0, 0]}}, "`points` must have names, got ''"),
        (
            {"mass": 1.0, "points": {"tip": BodyPoint([0, 0, 0], 1)}},
            r"`points\['tip'\].body` must be 0 to 0, got 1",
        ),
    ],
)
def test_what_no_body_can_be_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        RigidBodies(box(), **arguments)


def test_meshes_are_refused_that_cannot_be_weighed():
    with pytest.raises(ValueError, match=r"`meshes\[1\]` must be closed"):
        RigidBodies([box(), OPEN], mass=1.0)
    inside_out = TriangleMesh(CORNERS, BOX_FACES[:, ::-1])
    with pytest.raises(ValueError, match=r"`meshes\[0\]` must face outwards"):
        RigidBodies(inside_out, density=1.0)
    with pytest.raises(ValueError, match=r"`meshes\[0\]` must be closed"):
        RigidBodies(OPEN, density=1.0, inertia=INERTIA, center=[0, 0, 0])  # no volume
    with pytest.raises(TypeError, match=r"`meshes` must be a TriangleMesh, .* got none"):
        RigidBodies([], mass=1.0)
    with pytest.raises(TypeError, match="one per body, got int, int"):
        RigidBodies([1, 2], mass=1.0)
    with pytest.raises(TypeError, match=r"`meshes` must be a TriangleMesh, .* got NoneType"):
        RigidBodies(None, mass=1.0)


def test_points_are_named_and_in_a_body_by_its_number():
    for wrong in (0.5, -1, True, "block"):
        with pytest.raises(ValueError, match=f"`body` must be a whole number .* got {wrong!r}"):
            BodyPoint(body=wrong)
    with pytest.raises(ValueError, match=r"`points\['a'\].body` must be 0 to 0, got 1"):
        RigidBodies(box(), mass=1.0, points={"a": BodyPoint(body=1)})
    with pytest.raises(TypeError, match=r"`points` must be a mapping, such as .*, got list"):
        RigidBodies(box(), mass=1.0, points=[(0.0, 0.0, 0.0)])
    with pytest.raises(ValueError, match=r"`points\['a'\]` must be an array of float64"):
        RigidBodies(box(), mass=1.0, points={"a": "tip"})
