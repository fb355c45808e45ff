"""How far surfaces are from touching, slipping, and from other faces, edges and corners."""

from dataclasses import replace

import numpy as np
import pytest

from adjoint.rollout import rollout_jvp
from adjoint.verify.contract import relative, vectors
from adjsim.contact_margins import contact_margins, nearest_touch
from adjsim.forces.acted_rows import ActedRows
from adjsim.meshes.ball import ball_tets
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State, Trajectory
from adjsim.pairs.closest import EDGES, closest
from adjsim.pairs.surface_contact import SurfaceContact
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from tests.pairs.scenes import DT, N_STEPS, nets


SQUARE = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
TWO_FACES = [[0, 1, 2], [0, 2, 3]]  # with the diagonal x = y between them
LAW = {
    "radius": 0.06, "other_radius": 0.04, "stiffness": 100.0, "friction_stiffness": 4.0,
    "friction": 0.5,
}  # fmt: skip


def states(force, x, v=None):
    """Margins of a contact of nodes in several states, (n, n_nodes, 3)."""
    x = np.asarray(x, float)
    v = np.zeros_like(x) if v is None else np.broadcast_to(v, x.shape)
    model = Model(np.ones(x.shape[1]), {"touch": force})
    return contact_margins(model, Trajectory(np.arange(len(x)), 1.0, x, v))["touch"]


def over(tips, below=SQUARE, u=(0.0, 0.0, 0.0), **law):
    """Margins of one vertex above two faces, with the velocity u; the others are far away."""
    tips = np.atleast_2d(tips)
    triangle = tips[:, None] + np.array([[0, 0, 0], [0.3, 0.1, 1.0], [-0.1, 0.3, 1.0]])
    x = np.concatenate([np.broadcast_to(below, (len(tips), 4, 3)), triangle], axis=1)
    v = np.zeros((7, 3))
    v[4:] = u
    law = {"dissipation": 0.5, **LAW, **law}
    force = SurfaceContact(triangles=TWO_FACES, other_triangles=[[4, 5, 6]], **law)
    margins = states(force, x, v)
    assert not (np.delete(margins.touch, 4, axis=1) > 0.0).any()
    return margins


def test_a_vertex_apart_is_as_far_from_touching_as_the_surface_is_beyond_the_radii():
    margins = over([[0.6, 0.3, 0.15], [1.03, 0.5, 0.14], [0.6, 0.3, 0.2001]], u=(0.0, 0.0, -2.0))
    np.testing.assert_array_equal(margins.nodes, np.arange(7))
    expected = [0.1 - 0.15, 0.1 - np.hypot(0.03, 0.14), np.nan]
    np.testing.assert_allclose(margins.touch[:, 4], expected)
    np.testing.assert_allclose(margins.leaving[:2, 4], [-2.0, -2.0 * 0.14 / np.hypot(0.03, 0.14)])
    assert np.isfinite(margins.all()).sum() == 2  # nothing but the touch


@pytest.mark.parametrize(
    ("law", "damping", "pressure"),
    [
        ({}, -0.2 - 1.0 / 0.5, 100.0 * 0.03 * (1.0 + 0.5 * 0.2)),
        ({"dissipation": None, "damping": 3.0}, -0.2, 100.0 * 0.03 + 3.0 * 0.2),
        ({"dissipation": None}, np.nan, 100.0 * 0.03),
        (
            {
                "stiffness": None,
                "dissipation": None,
                "cubic_stiffness": 1e6,
                "cubic_dissipation": 3e-3,
            },
            np.nan,
            1e6 * 0.03**3 * (1.0 + 2.0 / np.sqrt(13.0)),  # w = -2/3
        ),
    ],
)
def test_a_vertex_that_nearly_slips_is_as_far_as_the_law_says(law, damping, pressure):
    margins = over([0.6, 0.3, 0.07], u=(0.3, 0.4, -0.2), **law)
    slip = 4.0 * 0.5 - 0.5 * pressure
    numbers = [margins.touch, margins.leaving, margins.damping, margins.slip]
    np.testing.assert_allclose([number[0, 4] for number in numbers], [0.03, -0.2, damping, slip])
    np.testing.assert_allclose(margins.shape[0, 4, :2], [0.03, slip])
    np.testing.assert_allclose(abs(margins.shape[0, 4, 2]), 0.3 / np.sqrt(2.0))  # to the diagonal
    held = over([0.6, 0.3, 0.07], u=(0.03, 0.04, 0.0), **law)
    at_rest = 1e6 * 0.03**3 if "cubic_stiffness" in law else 3.0
    assert held.slip[0, 4] == pytest.approx(4.0 * 0.05 - 0.5 * at_rest)
    assert np.isfinite(margins.all()).sum() + np.isnan(damping) == 6


def test_only_a_bent_surface_has_a_place_that_changes_between_its_faces():
    way = np.linspace(0.02, -0.02, 42)
    tips = np.column_stack([0.5 + way, 0.5 - way, np.full(42, 0.05)])
    flat = over(tips).shape[:, 4, 2]
    assert (np.sign(flat) == np.sign(flat[0])).all()
    assert np.abs(flat).min() > 0.4
    # Folded along the diagonal by a slope of 0.1: places are face, edge, face.
    fold = SQUARE - 0.1 * np.array([0.0, 0.0, 1.0]) * np.abs(SQUARE[:, :1] - SQUARE[:, 1:2])
    bent = over(tips, fold).shape[:, 4, 2]
    assert (np.diff(np.sign(bent)) != 0.0).sum() == 2
    angle = np.arctan(0.1 * np.sqrt(2.0))
    across = np.sqrt(2.0) * way  # from the diagonal
    edge = np.abs(across * np.cos(angle)) - 0.05 * np.sin(angle)
    outside = edge > 0.0
    np.testing.assert_allclose(np.abs(bent)[outside], edge[outside], atol=1e-12)


def crossed(height, end=0.1):
    """Margins of two edges at right angles, of which one ends `end` behind the crossing."""
    below = np.array([[-1, 0, 0], [1, 0, 0], [0, 0, -1.0]])
    above = np.array([[0, -1, height], [0, end, height], [0, -0.5, 1.0]])
    force = SurfaceContact(triangles=[[0, 1, 2]], other_triangles=[[3, 4, 5]], **LAW)
    return states(force, np.concatenate([below, above])[None])


def test_two_edges_touch_where_they_are_near_and_their_window_is_open():
    assert crossed(0.15).touch[0, 0] == pytest.approx(-0.05)
    assert crossed(0.08).touch[0, 0] == pytest.approx(0.02)
    assert crossed(0.15, end=-0.07).touch[0, 0] == pytest.approx(-0.07)
    # The window opens without a kink: nothing is near there.
    assert crossed(0.08, end=0.004).touch[0, 0] == pytest.approx(0.02)
    assert np.isnan(crossed(0.08, end=-0.01).touch[0, 0])
    parallel = np.array([[0, 0, 0], [1, 0, 0], [0.5, 0, -1], [0.2, 0, 0.09], [0.8, 0, 0.09]])
    force = SurfaceContact(triangles=[[0, 1, 2]], other_triangles=[[3, 4, 5]], **LAW)
    margins = states(force, np.concatenate([parallel, [[0.5, 0.0, 1.0]]])[None])
    np.testing.assert_allclose(margins.touch[0, [3, 4]], 0.01)
    assert (margins.touch > 0.0).sum() == 2


def balls(gap):
    """Two rigid balls, of which vertices on the axis face each other."""
    ball = ball_tets(2, radius=0.1)
    mesh = TriangleMesh(ball.points[ball.surface().nodes], ball.surface().local_faces)
    n = len(mesh.points)
    tip = np.abs(mesh.points[:, 0]).max()
    touch = SurfaceContact(
        triangles=mesh.faces, other_triangles=mesh.faces + n, radius=0.01, other_radius=0.005,
        acts_on="balls",
    )  # fmt: skip
    bodies = RigidBodies([mesh, mesh], density=500.0)
    centers = [[0.0, 0.0, 0.0], [2.0 * tip + 0.015 + gap, 0.0, 0.0]]
    start = BodyState(position=centers, velocity=[[0.0] * 3, [-1.0, 0.0, 0.0]])
    model = Model(bodies={"balls": bodies}, forces={"touch": touch}, gravity=(0.0, 0.0, 0.0))
    return model, State(bodies={"balls": start})


def test_two_balls_that_nearly_touch_are_as_near_as_their_gap():
    model, state = balls(0.004)
    dt = 1e-3
    touch = nearest_touch(model, rollout(model, state, dt, 3, frames=range(4)))
    assert touch is not None
    assert (touch.force, touch.step) == ("touch", 3)
    assert touch.distance == pytest.approx(0.001, rel=1e-9)
    assert touch.speed == pytest.approx(1.0)
    # By less they may start nearer, and touch in the same step; by more, not.
    for share, touches in ((0.99, False), (1.01, True)):
        moved = balls(0.004 - share * touch.distance)
        run = rollout(*moved, dt, 3, frames=range(4))
        assert (contact_margins(moved[0], run)["touch"].touch > 0.0).any() == touches
    far = balls(0.1)
    assert nearest_touch(far[0], rollout(*far, dt, 3, frames=range(4))) is None


@pytest.fixture(scope="module")
def sliding():
    """Two nets that slide over each other."""
    model, state = nets()
    return model, state, rollout(model, state, DT, N_STEPS, frames=range(N_STEPS))


def test_no_search_no_skin_and_no_thread_changes_a_margin(sliding):
    model, state, run = sliding
    expected = contact_margins(model, run)["touch"]
    assert (expected.touch > 0.0).sum() > 100
    alone = [
        contact_margins(model, Trajectory(run.steps[[k]], run.dt, run.x[[k]], run.v[[k]]))
        for k in range(50, 90)
    ]
    other = replace(model.forces["touch"], skin=0.2)
    wide = replace(model, forces={**model.forces, "touch": other})
    threads = rollout(wide, state, DT, N_STEPS, frames=range(N_STEPS), threads=2)
    margins = contact_margins(wide, threads)["touch"]
    for name in ("touch", "leaving", "damping", "slip", "shape"):
        values = getattr(expected, name)
        np.testing.assert_array_equal(getattr(margins, name), values)
        parts = [getattr(single["touch"], name)[0] for single in alone]
        np.testing.assert_array_equal(parts, values[50:90])


@pytest.mark.parametrize(("first", "touches_itself"), [(60, False), (70, False), (60, True)])
def test_the_force_is_smooth_wherever_no_margin_changes_its_sign_and_nowhere_else(
    sliding, first, touches_itself
):
    """By the trapezoidal rule along a line in the space of states, whose error is h^3, or h^2."""
    model, state, run = sliding
    touch = model.forces["touch"]
    if touches_itself:  # surface that touches itself
        faces = np.concatenate([touch.triangles, touch.other_triangles])
        surface = {"triangles": faces, "other_triangles": None, "other_radius": None}
        touch = replace(touch, **surface, radius=0.0175, rest_positions=state.x)
    alone = replace(model, forces={"touch": touch}, gravity=(0.0, 0.0, 0.0))
    (x, v), n, h = (run.x[[first, first + 4]], run.v[[first, first + 4]]), 600, 1e-4
    dx, dv = x[1] - x[0], v[1] - v[0]
    along = np.linspace(0.0, 1.0, n + 1)[:, None, None]
    line = Trajectory(np.arange(n + 1), 1.0, x[0] + along * dx, v[0] + along * dv)
    signs = by_state(contact_margins(alone, line)["touch"]) > 0.0
    events = (signs[1:] != signs[:-1]).any(axis=1)
    f, slope = [], []
    for at, u in zip(line.x, line.v, strict=True):
        tangents = {"state.x": dx, "state.v": dv}
        end, tan = rollout_jvp(alone, State(at, u), h, 1, tangents)
        f.append((end.v[-1] - u) / h)
        slope.append((tan.v[-1] - dv) / h)
    f, slope = np.array(f), np.array(slope)
    errors = np.abs(np.diff(f, axis=0) - 0.5 / n * (slope[1:] + slope[:-1])).max(axis=(1, 2))
    assert 10 < events.sum() < n // 4
    # Signs change where the window of two edges opens, too, which is smooth. Edges that touch while
    # their window is nearly closed have a weak kink.
    kinks = errors[events & ~windows_open(alone.forces["touch"], line.x)]
    assert len(kinks) > 10
    assert kinks.min() > errors[~events].max()
    assert (kinks > 100.0 * errors[~events].max()).mean() > 0.9


def windows_open(force, x):
    """Whether the window of two edges that are near each other opens or closes after a state."""
    bound = force.bind(ActedRows.of_nodes(x.shape[1]), "touch")
    pairs = bound.find(x[len(x) // 2], 3.0 * force.thickness)
    edges = pairs.rows[pairs.numbers[:, 0] == EDGES]
    inside, near = np.zeros((2, len(x), len(edges)), bool)
    for k, at in enumerate(x):
        for m, ends in enumerate(at[edges]):
            p = closest(float(EDGES), vectors(relative(ends)))
            inside[k, m] = 0.0 < p.a_1 < 1.0 and 0.0 < p.a_2 < 1.0
            near[k, m] = np.linalg.norm(p.r) < force.thickness
    return ((inside[1:] != inside[:-1]) & near[1:] & near[:-1]).any(axis=1)


def by_state(margins):
    """Return all margins of each state, (n_states, n)."""
    acts = margins.acts[..., None]
    parts = np.stack([margins.damping, margins.slip, *np.moveaxis(margins.shape, -1, 0)], axis=-1)
    both = np.concatenate([margins.touch[..., None], np.where(acts, parts, np.nan)], axis=-1)
    return both.reshape(len(both), -1)
