"""`hvp`: symmetric products with Hessians of soft bodies, springs, a pendulum and pictures."""

import re

import numpy as np
import pytest

import adjoint
from adjoint.render.soft_raster import record_images
from adjoint.rollout import record
from adjoint.verify.dot_test import symmetry_test
from adjoint.verify.taylor_test import taylor_test
from adjsim.forces.springs import Springs
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.worlds import stack
from render.camera import Camera
from render.scene import DirectionalLight, Mesh, Scene
from render.soft_raster import SoftRasterizer
from tests.physics import sliding_box


# Levels end at an estimated error of 1e-10, which is that of a lower order. Measured are 1e-12,
# and 3e-11 for pictures.
SYMMETRIC = 1e-9


class Case:
    """A rollout with a loss of its frames, and the paths that its Hessian is of."""

    eps0 = 1e-2

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
    forces = {"net": Springs([(i, j) for i in range(6) for j in range(i)], 50.0, 0.8, 0.3)}
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

    case = Case(run, loss, cotangents, ["solid.mu", "state.v"])
    case.eps0 = 0.05  # a sum over pixels has more noise
    return case


CASES = {f.__name__: f for f in (soft_body, springs, pendulum, pictures)}


@pytest.fixture(scope="module", params=list(CASES))
def case(request):
    return CASES[request.param]()


def test_a_product_with_the_hessian_is_symmetric(case):
    test = symmetry_test(case.hvp, case.x, n_pairs=1, tolerance=SYMMETRIC)
    assert test.passed, test.table()


def test_the_remainder_with_the_hessian_falls_by_eight_for_each_halving(case):
    test = taylor_test(case.f, case.gradient, case.x, hvp=case.hvp, eps0=case.eps0)
    assert test.passed, test.table()
    assert 2.9 <= test.slope2 < 3.5, test.table()


def test_a_product_takes_eight_to_twenty_gradients(case, rng):
    calls = []

    def counted(trajectory):
        calls.append(trajectory)
        return case.cotangents(trajectory)

    direction = {path: rng.standard_normal(np.shape(value)) for path, value in case.x.items()}
    scale = {path: 0.1 * np.abs(value).max() for path, value in case.x.items()}
    case.run.hvp({path: scale[path] * values for path, values in direction.items()}, counted)
    assert 8 <= len(calls) <= 20


@pytest.fixture(scope="module")
def swing():
    return pendulum()


def test_a_product_has_the_rows_that_are_wanted(swing):
    direction = {"length": 0.3}
    (path,) = swing.hvp(direction)
    rows = swing.run.hvp(direction, swing.cotangents, wrt=["state.angle", "length"])
    assert path == "length"
    assert list(rows) == ["state.angle", "length"]


def test_one_array_is_the_cotangent_of_the_first_field(swing):
    direction = {"length": 0.3}
    product = swing.run.hvp(direction, lambda run: 3.0 * np.square(run.angle))
    assert product == swing.hvp(direction)


@pytest.mark.parametrize(
    ("direction", "error", "message"),
    [
        ({"lenght": 1.0}, ValueError, "Unknown parameter `lenght`. Did you mean `length`?"),
        ({"length": [1.0, 2.0]}, ValueError, "`tangents['length']` must have shape (), got (2,)"),
        ({"length": np.nan}, ValueError, "must be finite"),
        ({}, ValueError, "`direction` must name at least one parameter, got none."),
        (1.0, TypeError, "must be a mapping"),
    ],
)
def test_a_direction_that_does_not_fit_is_refused(swing, direction, error, message):
    with pytest.raises(error, match=re.escape(message)):
        swing.hvp(direction)


def test_a_direction_across_a_bound_is_refused():
    run = record(SimplePendulum(1.3, damping=0.0), PendulumState(0.5), 1e-2, 10)
    with pytest.raises(ValueError, match="`direction` must lead to values that are in range"):
        run.hvp({"damping": 1.0}, lambda frames: 2.0 * frames.angle)


def test_cotangents_of_the_wrong_shape_are_refused_at_once(swing):
    calls = []

    def wrong(frames):
        calls.append(frames)
        return np.zeros(7)

    with pytest.raises(ValueError, match="`adj_angle` must have shape"):
        swing.run.hvp({"length": 1.0}, wrong)
    assert len(calls) == 1


def test_a_batch_is_refused():
    model, state = sliding_box(np.random.default_rng(5), 3)
    run = record(stack([model, model]), [state, state], 3e-4, 3)
    with pytest.raises(TypeError, match="`hvp` must be of one world"):
        run.hvp({}, lambda frames: frames)


def cubic(x):
    return 3.0 * np.square(x)


def test_a_product_of_any_gradient():
    x, d = np.array([1.0, -2.0]), np.array([0.5, 0.25])
    np.testing.assert_allclose(adjoint.hvp(cubic, x, d), 6.0 * x * d, rtol=1e-12)
    product = adjoint.hvp(lambda p: {k: cubic(v) for k, v in p.items()}, {"a": x, "b": x}, {"b": d})
    np.testing.assert_allclose(product["b"], 6.0 * x * d, rtol=1e-12)
    np.testing.assert_array_equal(product["a"], 0.0)


def test_a_kink_far_inside_the_first_step_is_stepped_around():
    # (x + |x|) / 2 has slope 1 on the right: at 1e-3 from the kink, steps of 1e-2 reach over it.
    product = adjoint.hvp(lambda x: np.maximum(x, 0.0), np.array(1e-3), np.array(1.0), scale=1.0)
    np.testing.assert_allclose(product, 1.0, rtol=1e-9)


def test_a_gradient_that_jumps_is_warned_of():
    with pytest.warns(UserWarning, match="product with the Hessian is known to"):
        adjoint.hvp(lambda x: np.sign(x) + x, np.array(0.0), np.array(1.0))


def test_a_gradient_that_is_none_far_away_is_taken_nearer():
    def near(x):
        if abs(x - 1.0) > 1e-3:
            raise FloatingPointError("blew up")
        return cubic(x)

    np.testing.assert_allclose(adjoint.hvp(near, np.array(1.0), np.array(1.0)), 6.0, rtol=1e-9)


def test_a_gradient_that_is_not_finite_anywhere_is_refused():
    with pytest.raises(FloatingPointError, match="gradient is not finite beside x"):
        adjoint.hvp(lambda x: x + np.nan, np.array(1.0), np.array(1.0))


def test_the_verifiers_refuse_a_wrong_product(rng):
    A = rng.standard_normal((4, 4))
    x = rng.standard_normal(4)

    def f(x):
        return float(np.sum(x**3) + x @ A @ x)

    def gradient(x):
        return cubic(x) + (A + A.T) @ x

    def right(d):
        return 6.0 * x * d + (A + A.T) @ d

    assert taylor_test(f, gradient, x, hvp=right).passed
    assert adjoint.symmetry_test(right, x, tolerance=1e-14).passed
    wrong = taylor_test(f, gradient, x, hvp=lambda d: 1.001 * right(d))
    assert "of R2 below 2.9" in wrong.reason
    assert "residual" in adjoint.symmetry_test(lambda d: A @ d, x).reason
