from types import SimpleNamespace

import numpy as np
import pytest

from adjsim.meshes.grid import box_tets
from render.scene import Mesh
from studies.filming import Pulled, Skin, Still, Subject, make_filming


SETTINGS = {
    "camera": {"eye": [1.5, 1.2, 2.5], "target": [0.5, 0.5, 0.5], "fov_y": 45.0},
    "image": {
        "height": 20, "width": 24, "softness": 1.0, "background": [0.1, 0.2, 0.3],
        "light": [0.4, 1.0, 0.7],
    },
}  # fmt: skip
MESH = box_tets((1, 1, 1))
SURFACE = MESH.surface()
MOTION = SimpleNamespace(frames=np.arange(2), dtype="float64", length=1.5)


class Stretched(Subject):
    """The box, as long as a value of the system says."""

    def vertices(self, motion, run):
        return motion.length * run.x[:, SURFACE.nodes]

    def vertices_jvp(self, motion, run, tan_run, tangents):
        moved = motion.length * tan_run.x[:, SURFACE.nodes]
        return moved + tangents["length"] * run.x[:, SURFACE.nodes]

    def vertices_vjp(self, motion, run, adj_vertices):
        adj_x = np.zeros_like(run.x)
        adj_x[:, SURFACE.nodes] = motion.length * adj_vertices
        return Pulled({"x": adj_x}, {"length": np.vdot(adj_vertices, run.x[:, SURFACE.nodes])})


def filming():
    drawn = Mesh(SURFACE.local_faces)
    skin = Skin.of_nodes(SURFACE.nodes, MESH.n_points, offset=(-0.2, 0.1, 0.0))
    wall = np.array([[-1.0, -1.0, -0.5], [2.0, -1.0, -0.5], [0.0, 2.0, -0.5]])
    objects = {
        "box": (drawn, skin),
        "wall": (Mesh(np.array([[0, 1, 2]])), Still(wall)),
        "long": (drawn, Stretched()),
    }
    return make_filming(SETTINGS, objects)


def run(rng):
    return SimpleNamespace(x=MESH.points + 0.05 * rng.normal(size=(2, MESH.n_points, 3)))


def test_several_things_are_in_one_picture(rng):
    whole = filming()
    images = whole.shoot(MOTION, run(rng))
    assert images.shape == (2, 20, 24, 4)
    meshes = whole.meshes(MOTION, run(rng))
    assert list(meshes) == ["box", "wall", "long"]
    assert meshes["wall"][1].shape == (2, 3, 3)


def test_images_that_are_recorded_are_those_that_are_shot(rng):
    whole, here = filming(), run(rng)
    filmed = whole.record(MOTION, here)
    assert np.array_equal(filmed.images, whole.shoot(MOTION, here))
    adj = rng.normal(size=filmed.images.shape)
    once, again = filmed.vjp(adj), whole.vjp(MOTION, here, adj)
    assert np.abs(once.frames["x"]).max() > 0.0
    assert all(np.array_equal(once.frames[key], again.frames[key]) for key in again.frames)


def test_the_tangent_is_the_slope_of_the_images(rng):
    whole, here = filming(), run(rng)
    tan = SimpleNamespace(x=rng.normal(size=here.x.shape))
    _, tan_images = whole.jvp(MOTION, here, tan, {"length": 0.7})
    h = 1e-6
    ahead, behind = (
        whole.shoot(
            SimpleNamespace(**{**vars(MOTION), "length": MOTION.length + s * h * 0.7}),
            SimpleNamespace(x=here.x + s * h * tan.x),
        )
        for s in (1.0, -1.0)
    )
    # h^2 times a third derivative of edges one pixel wide, and rounding over h; a pixel where
    # two faces swap their order jumps, so most, not all, are compared
    error = np.abs((ahead - behind) / (2.0 * h) - tan_images)
    assert np.quantile(error, 0.99) < 1e-6 * np.abs(tan_images).max()


def test_tangent_and_adjoint_are_transposes_in_the_frames_and_in_values(rng):
    whole, here = filming(), run(rng)
    tan = SimpleNamespace(x=rng.normal(size=here.x.shape))
    _, tan_images = whole.jvp(MOTION, here, tan, {"length": 0.7})
    adj = rng.normal(size=tan_images.shape)
    pulled = whole.vjp(MOTION, here, adj)
    right = np.vdot(tan.x, pulled.frames["x"]) + 0.7 * pulled.values["length"]
    assert np.vdot(tan_images, adj) == pytest.approx(right, rel=1e-10)
    assert pulled.values["length"] != 0.0


def test_float32_positions_stay_float32(rng):
    here = SimpleNamespace(x=run(rng).x.astype(np.float32))
    skin = Skin.of_nodes(SURFACE.nodes, MESH.n_points, offset=0.1)
    assert skin.vertices(MOTION, here).dtype == np.float32
    still = Still(np.zeros((3, 3)))
    assert still.vertices(SimpleNamespace(**{**vars(MOTION), "dtype": "float32"}), here).dtype == (
        np.float32
    )
