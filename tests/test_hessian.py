"""`hvp`: symmetric products with Hessians of soft bodies, springs, a pendulum and pictures."""


import numpy as np
import pytest

from adjoint.render.soft_raster import record_images
from adjoint.rollout import record
from adjoint.verify.dot_test import symmetry_test
from adjoint.verify.taylor_test import taylor_test
from adjsim.forces.springs import Springs
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from render.camera import Camera
from render.scene import DirectionalLight, Mesh, Scene
from render.soft_raster import SoftRasterizer
from tests.physics import sliding_box


SYMMETRIC = 1e-9  # 1e-8 is asked for; what is measured is below 1e-10


class Case:
    """A rollout with a loss of its frames, and the paths that its Hessian is of."""

    def __init__(self, run, loss, cotangents, paths):
        self.run, self.loss, self.cotangents = run, loss, cotangents
        values = {**run.model.parameters(), **run.model.state_parameters(run.state)}
        self.x = {path: values[path] for path in paths}

    def hvp(self, direction):
        return self.run.hvp(direction, self.cotangents)

    def rerun(self, values):
        model, state = self.run.model.with_values(self.run.state, values)
        dt = self.run._stepper.dt
        return record(model, state, dt, self.run.n_steps, frames=self.run._steps, threads=1)

    def f(self, values):
        return self.loss(self.rerun(values).trajectory)

    def gradient(self, values):
        run = self.rerun(values)
        return run.vjp(**self.cotangents(run.trajectory), wrt=list(self.x))


def of_positions(run, paths, weight=1.0):
    """The loss sum of |x|^4 and of x dot v, which bends in either."""

    def loss(trajectory):
        x, v = trajectory.x, trajectory.v
        return float(np.sum(np.square(x) ** 2) + weight * np.sum(x * v))

    def cotangents(trajectory):
        x, v = trajectory.x, trajectory.v
        return {"adj_x": 4.0 * x**3 + weight * v, "adj_v": weight * x}

    return Case(run, loss, cotangents, paths)


def soft_body():
    model, state = sliding_box(np.random.default_rng(5), 30)
    run = record(model, state, 3e-4, 30, frames=[12, 30], threads=1)
    paths = ["solid.mu", "solid.viscosity", "floor.stiffness", "floor.friction", "state.v", "mass"]
    return of_positions(run, paths)


def springs():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((6, 3))
    edges = [(i, j) for i in range(6) for j in range(i)]
    forces = {"net": Springs(edges, 50.0, 0.8, 0.3)}
    model = Model(rng.uniform(0.5, 2.0, 6), forces)
    run = record(model, State(x, rng.standard_normal((6, 3))), 2e-3, 200, frames=[100, 200])
    return of_positions(run, ["mass", "net.stiffness", "net.rest_length", "state.x", "gravity"])


def pendulum():
    run = record(SimplePendulum(1.3, damping=0.1), PendulumState(2.5, 0.4), 5e-3, 400)

    def cotangents(trajectory):
        return {"adj_angle": 3.0 * np.square(trajectory.angle), "adj_rate": trajectory.angle * 0.0}

    def loss(trajectory):
        return float(np.sum(trajectory.angle**3))

    return Case(run, loss, cotangents, ["length", "damping", "state.angle", "state.rate"])


def pictures():
    model, state = sliding_box(np.random.default_rng(5), 30)
    skin = box_tets((2, 2, 2), (0.2, 0.1, 0.1)).surface().faces
    scene = Scene({"box": Mesh(skin, face_colors=np.tile((0.9, 0.4, 0.1), (len(skin), 1)))},
                  {"sun": DirectionalLight((0.3, 0.8, 0.5))})  # fmt: skip
    camera = Camera((0.35, 0.3, 0.6), (0.1, 0.05, 0.05), fov_y=25.0)
    raster = SoftRasterizer(sigma=1e-3, background=(0.1, 0.2, 0.3))
    run = record(model, state, 3e-4, 30, frames=[12, 30], threads=1)

    def drawn(trajectory):
        return record_images(scene, camera, raster, {"box": trajectory.x}, (24, 32), threads=1)

    def loss(trajectory):
        return float(np.square(drawn(trajectory).images).sum())

    def cotangents(trajectory):
        drawing = drawn(trajectory)
        pulled = drawing.vjp(2.0 * drawing.images, ["box.vertices"])
        return {"adj_x": pulled["box.vertices"]}

    return Case(run, loss, cotangents, ["solid.mu", "state.v"])


CASES = {f.__name__: f for f in (soft_body, springs, pendulum, pictures)}


@pytest.fixture(scope="module", params=list(CASES))
def case(request):
    return CASES[request.param]()


def test_a_product_with_the_hessian_is_symmetric(case):
    test = symmetry_test(case.hvp, case.x, n_pairs=2, tolerance=SYMMETRIC)
    assert test.passed, test.table()


def test_the_remainder_with_the_hessian_falls_by_eight_for_each_halving(case):
    test = taylor_test(case.f, case.gradient, case.x, hvp=case.hvp)
    assert test.passed, test.table()
    assert 2.9 <= test.slope2 < 3.5, test.table()
