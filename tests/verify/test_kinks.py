"""The distance to the nearest kink is right, is reported, and keeps the checks inside it."""

import dataclasses

import numpy as np
import pytest

from adjoint import gradcheck, kink_distance, rollout_margins, taylor_test
from adjoint.rollout import record
from adjoint.verify.coverage import Coverage, check_system
from adjoint.verify.systems.pixel_margins import _felt_places, _pixel_margins
from adjsim.contact_margins import contact_margins, nearest_touch
from adjsim.forces.box import BoxContact
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.sphere import SphereContact
from adjsim.model import Model, State
from adjsim.rollout import rollout
from adjsim.rotations import rotation_matrix
from render.soft_raster import SoftRasterizer


AWAY = 1e-3  # of the kink of the toy from its point


def f(x):
    """Smooth but for a step where x[0] = 1 + AWAY."""
    return float(np.sin(x).sum() + (x[0] > 1.0 + AWAY))


def margins(x):
    return np.array([x[0] - 1.0 - AWAY, np.nan, 7.0])


X = np.array([1.0, 2.0])


def test_the_distance_is_that_along_the_steepest_direction_looked_along():
    kink = kink_distance(margins, X, gradient=[1.0, 0.0], scale=np.ones(2))
    assert kink == pytest.approx(AWAY, rel=1e-6)
    # In units of a scale ten times as large it is a tenth.
    wide = kink_distance(margins, X, gradient=[1.0, 0.0], scale=np.full(2, 10.0))
    assert wide == pytest.approx(AWAY / 10.0, rel=1e-6)
    assert kink_distance(lambda x: 0.0 * x + 3.0, X) == np.inf
    assert kink_distance(lambda x: np.nan * x, X) == np.inf
    named = kink_distance(lambda p: margins(p["x"]), {"x": X}, gradient={"x": [1.0, 0.0]},
                          scale={"x": np.ones(2)})  # fmt: skip
    assert named == pytest.approx(AWAY, rel=1e-6)


def test_the_checks_report_the_kink_and_stay_inside_it():
    gradient, ones = np.cos(X), np.ones(2)
    kink = kink_distance(margins, X, gradient=gradient, scale=ones)
    assert not gradcheck(f, gradient, X, scale=ones, step=0.01).passed
    assert not taylor_test(f, gradient, X, scale=ones, n_halvings=4).passed
    for check in (
        gradcheck(f, gradient, X, scale=ones, step=0.01, kink=kink),
        taylor_test(f, gradient, X, scale=ones, n_halvings=4, kink=kink),
    ):
        assert check.passed
        assert check.kink == kink
        assert check.to_dict()["kink"] == kink
        assert f"nearest kink      {kink:.1e}" in check.table().replace("kink 1", "kink      1")
    assert gradcheck(f, gradient, X).to_dict()["kink"] is None


@pytest.mark.parametrize("check", [gradcheck, taylor_test])
def test_on_a_kink_nothing_is_claimed(check):
    outcome = check(f, np.cos(X), X, kink=0.0)
    assert not outcome.passed
    assert outcome.reason.startswith("x lies on a kink")
    with pytest.raises(ValueError, match="`kink` must not be negative, got -1"):
        check(f, np.cos(X), X, kink=-1.0)


# Every shape comes down on a resting node, turned, at 0.1 m per step.
N_STEPS, DT, SPEED = 8, 0.1, 1.0
TURN = np.array([0.3, -0.2, 0.5])
UP = rotation_matrix(TURN)[:, 1]
SHAPES = {
    "half-space": (HalfSpaceContact, {}, 0.0),
    "sphere": (SphereContact, {"sphere_radius": 0.3}, 0.3),
    "box": (BoxContact, {"rotation": TURN, "half_extents": (0.2, 0.3, 0.4)}, 0.3),
    "capsule": (CapsuleContact, {"rotation": TURN, "half_length": 0.1, "capsule_radius": 0.2}, 0.3),
}


def coming(shape, offset=0.0):
    """A node at the origin; the surface before it is 0.57 m away, and less by `offset`."""
    cls, sizes, size = SHAPES[shape]
    gap = 0.57 - offset - SPEED * DT * np.arange(N_STEPS)
    if cls is HalfSpaceContact:
        pose = {"normal": UP, "height": -gap}
    else:
        pose = {"center": -(gap + size)[:, None] * UP, "velocity": SPEED * UP, **sizes}
    contact = cls(stiffness=50.0, damping=1.0, **pose)
    return Model([1.0], {"it": contact}, gravity=(0, 0, 0)), State(np.zeros((1, 3)))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_nearest_touch_of_a_moving_obstacle_moves_where_it_says(shape):
    model, state = coming(shape)
    touch = nearest_touch(model, rollout(model, state, DT, N_STEPS, frames=range(N_STEPS)))
    assert (touch.node, touch.step) == (0, 6)  # 0.57 - 0.6 is first inside, by 0.03
    assert touch.distance == pytest.approx(0.03, rel=1e-9)
    if shape != "half-space":  # the path of a height is told to no velocity
        assert touch.speed == pytest.approx(SPEED, rel=1e-12)

    def touched(offset):
        moved, start = coming(shape, offset)
        steps = rollout(moved, start, DT, N_STEPS, frames=range(N_STEPS))
        return int(np.argmax(contact_margins(moved, steps)["it"].touch[:, 0] > 0.0))

    assert [touched(-share * touch.distance) for share in (0.99, 1.01)] == [6, 7]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_gradient_through_a_moving_obstacle_is_checked_inside_its_kink(shape):
    model, state = coming(shape)
    path = "it.height" if shape == "half-space" else "it.center"
    values = {path: model.parameters()[path], "state.x": state.x}

    def loss(changed):
        moved, start = model.with_values(state, changed)
        return float(np.square(rollout(moved, start, DT, N_STEPS).x - 0.3).sum())

    run = record(model, state, DT, N_STEPS)
    gradient = run.vjp(2.0 * (run.trajectory.x - 0.3), wrt=list(values))
    scale = {name: np.ones(np.shape(value)) for name, value in values.items()}
    margins = rollout_margins(model, state, DT, N_STEPS)
    kink = kink_distance(margins, values, gradient=gradient, scale=scale)
    assert 1e-3 < kink < 1.0
    check = gradcheck(loss, gradient, values, scale=scale, kink=kink, n_directions=10)
    assert check.passed, check.table()
    assert taylor_test(loss, gradient, values, scale=scale, kink=kink).passed


def test_a_model_without_contact_has_no_kink():
    model, state = Model([1.0]), State(np.zeros((1, 3)))
    margins_at = rollout_margins(model, state, DT, N_STEPS)
    assert margins_at({"gravity": np.array([0.0, -9.8, 0.0])}).size == 0
    assert kink_distance(margins_at, {"gravity": np.array([0.0, -9.8, 0.0])}) == np.inf


def test_the_table_names_the_nearest_touch_of_a_system_with_contact():
    checked = check_system("contact/sphere-moving")
    assert checked.event.startswith("nearest touch: point ")
    assert " m away, " in checked.event
    table = Coverage(tuple(checked.cells), (), {"contact/sphere-moving": checked.event})
    assert f"contact/sphere-moving: {checked.event}" in table.table()
    assert table.to_dict()["events"] == {"contact/sphere-moving": checked.event}
    assert check_system("loss/mse").event == ""
    assert dataclasses.replace(table, events={}).passed


def test_faces_swap_where_the_depth_of_their_lens_says():
    # At the middle the corners count a third each: their mean depth is 3, the harmonic one 1.8.
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [0.0, 2.0]])
    depths = np.array([[1.0, 2.0, 6.0], [3.001, 3.001, 3.001]])
    triangles, soft = np.stack([np.column_stack([corners, z]) for z in depths]), SoftRasterizer()
    for is_orthographic, ahead in ((True, 3.0 - 3.001), (False, 1.8 - 3.001)):
        places = _felt_places(triangles, soft, (1, 1))
        margins = _pixel_margins(triangles, places, soft, is_orthographic=is_orthographic)
        assert margins[-1] == pytest.approx(ahead, rel=1e-9)
