"""A rigid slab on a slope: it sticks or slides, where it stops, and how light it may be.

All four vertices at the bottom touch; once the slab has settled their pressures add up to
m g cos(angle), however friction at the bottom tilts it, so while all of them slip

    a = g (sin(angle) - mu cos(angle))

and in stick it creeps at m g sin(angle)/(4 k_f). Friction at the bottom bears on the lower
vertices and lifts the upper ones by a share of height tan(angle)/length = 5 %: so much
before mu these begin to slip, and the slab creeps a little faster. On the level it stops after
(v^2 + v_s^2)/(2 mu g), v_s = mu m g/(4 k_f), in continuous time: Coulomb's v^2/(2 mu g) and
the bias of the model. The scheme is another dt v/2 off.
"""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from adjoint.rollout import record
from adjoint.verify.gradcheck import gradcheck
from adjsim.contact_margins import contact_margins
from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.meshes.shapes import shape
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout


G, MU = 9.81, 0.4
SIZE = np.array([0.3, 0.04, 0.2])  # of the slab [m]
K_E, K_D, K_F = 5e3, 20.0, 50.0  # of each vertex of a slab of one kilogram


def slab(mass):
    """A slab of a given mass, and a point above its middle."""
    cube = shape("cube")
    points = cube.points / np.abs(cube.points).max() * SIZE / 2
    named = {"middle": BodyPoint(), "top": [0.02, SIZE[1] / 2, 0.01]}
    return RigidBodies(TriangleMesh(points, cube.faces), mass=mass, points=named)


def scene(angle, speed, *, mass=1.0, mu=MU, **forces):
    """The slab on a slope as deep in it as it will be, with its stiffness scaled to its mass."""
    turn = Rotation.from_euler("z", -angle)
    down, up = turn.apply([1, 0, 0]), turn.apply([0, 1, 0])
    slope = HalfSpaceContact(
        up, acts_on="slab", stiffness=mass * K_E, damping=mass * K_D,
        friction_stiffness=mass * K_F, friction=mu,
    )  # fmt: skip
    deep = G * np.cos(angle) / (4 * K_E)
    start = BodyState((SIZE[1] / 2 - deep) * up, turn.as_quat(), speed * down)
    model = Model(
        forces={"slope": slope, **forces}, gravity=(0, -G, 0), bodies={"slab": slab(mass)}
    )
    return model, State(bodies={"slab": start}), down


@pytest.mark.parametrize("excess", [-0.3, -0.1, -0.01, 0.01, 0.3])
@pytest.mark.parametrize("mass", [1.0, 1e-3])
def test_a_slab_sticks_or_slides_as_its_angle_says(excess, mass):
    angle, dt, n = np.arctan(MU * (1.0 + excess)), 5e-4, 8000
    model, state, down = scene(angle, 0.0, mass=mass)
    run = record(model, state, dt, n, frames=[n // 2, n])
    v_half, v_end = run.trajectory.bodies["slab"].velocity[:, 0] @ down
    adj = np.array([[0.0 * down], [down]])
    by_mu = run.vjp(bodies={"slab": {"velocity": adj}}, wrt=["slope.friction"])["slope.friction"]
    if excess < 0.0:  # the model creeps: its bias
        off = v_end / (G * np.sin(angle) / (4 * K_F)) - 1.0
        said = f"sticks, creeps at {v_end:.2e} m/s, off by {off:.1e}, dv/dmu = {by_mu:.1e}"
    else:
        off = (v_end - v_half) / (dt * (n - n // 2)) / (
            G * (np.sin(angle) - MU * np.cos(angle))
        ) - 1
        said = f"slides, acceleration off by {off:.1e}, dv/dmu = {by_mu:.3f}"
    print(f"\n{mass} kg, tan/mu - 1 = {excess:+}: {said}")
    if excess == -0.01:
        assert v_end == pytest.approx(v_half, rel=1e-9)  # the upper vertices slip
        assert 0.0 < off < 0.06
        assert by_mu < 0.0
    else:
        # The slab has settled by half of the time, to rounding of speeds of 1 over 0.08 m/s.
        assert abs(off) <= 1e-9
        assert by_mu < -1.0 if excess > 0 else abs(by_mu) < 1e-9


def test_a_slab_stops_after_the_way_of_coulomb_and_so_says_its_gradient():
    speed, dt, n = 2.0, 2e-4, 4000
    v_s = MU * G / (4 * K_F)
    coulomb, model_way = speed**2 / (2 * MU * G), (speed**2 + v_s**2) / (2 * MU * G)

    def way(mu=MU, v=speed):
        model, state, down = scene(0.0, v, mu=mu)
        return float(rollout(model, state, dt, n).bodies["slab"].position[0, 0] @ down)

    model, state, down = scene(0.0, speed)
    run = record(model, state, dt, n)
    adj = {"slab": {"position": down[None, None]}}
    gradient = run.vjp(bodies=adj, wrt=["slope.friction", "slab.velocity"])
    by = {"mu": gradient["slope.friction"], "speed": gradient["slab.velocity"][0] @ down}
    step = 1e-5
    measured = {
        "mu": (way(mu=MU + step) - way(mu=MU - step)) / (2 * step),
        "speed": (way(v=speed + step) - way(v=speed - step)) / (2 * step),
    }
    closed = {"mu": -coulomb / MU, "speed": speed / (MU * G)}
    end = run.trajectory.bodies["slab"]
    print(
        f"\nway {way():.6f} m, Coulomb's {coulomb:.6f}, bias {way() / coulomb - 1:+.1e}, of the "
        f"model's own {way() / model_way - 1:+.1e}; speed left {np.abs(end.velocity).max():.1e} m/s"
    )
    for name, slope in by.items():
        error, bias = slope / measured[name] - 1, slope / closed[name] - 1
        print(f"  d way/d {name}: {slope:+.6f}, derivative's error {error:+.1e}, bias {bias:+.1e}")
        assert abs(error) <= 1e-5
        assert abs(bias) <= 5e-3
    assert np.abs(end.velocity).max() < 1e-3
    assert abs(way() / model_way - 1) <= 1e-3


def test_the_mass_of_one_gram_is_found_from_a_known_impulse():
    # J = 1e-4 N s at the centre of mass: v = J/m, x = J/m (t - t_J), and dx/dm = -x/m.
    mass, dt, n, window = 1e-3, 1e-3, 500, (10, 20)
    force = np.array([0.01, 0.0, 0.0])
    push = ExternalForces("middle", force, window, acts_on="slab")
    model = Model(forces={"push": push}, gravity=(0, 0, 0), bodies={"slab": slab(mass)})
    run = record(model, State(bodies={"slab": BodyState([0, 0, 0])}), dt, n)
    x = run.trajectory.bodies["slab"].position[0, 0, 0]
    closed = force[0] / mass * dt**2 * sum(n - k for k in range(*window))
    gradient = run.vjp(bodies={"slab": {"position": np.array([[[1.0, 0, 0]]])}})
    off = gradient["slab.mass"] / (-closed / mass) - 1.0
    print(f"\n1 g: way {x:.6f} m, off by {x / closed - 1:.1e}; dx/dm off by {off:.1e}")
    assert x == pytest.approx(closed, rel=1e-12)
    assert abs(off) <= 1e-12


def test_gradients_at_one_gram_agree_with_differences():
    # Pushed at a point of its top while it slides: every parameter of body and contact.
    dt, n, mass = 2e-4, 30, 1e-3
    push = ExternalForces("top", [2e-3, -1e-3, 3e-3], (5, 25), acts_on="slab")
    model, state, _ = scene(0.1, 1.0, mass=mass, push=push)
    landing = {"slab.velocity": [[1.0, -0.4, 0.1]], "slab.angular_velocity": [[0.1, 0.3, -0.2]]}
    model, state = model.with_values(state, landing)
    paths = ["slab.mass", "push.force", "slab.velocity", "slab.angular_velocity", "slab.rotation"]
    paths += [f"slope.{name}" for name in ("stiffness", "damping", "friction", "normal")]
    parameters = {**model.parameters(), **model.state_parameters(state)}
    values = {path: parameters[path] for path in paths}
    adj = np.random.default_rng(6).standard_normal((1, 1, 3))
    cotangents = {"slab": {"position": adj, "angular_velocity": 1e-2 * adj}}
    gradient = record(model, state, dt, n).vjp(bodies=cotangents, wrt=paths)

    def loss(at):
        end = rollout(*model.with_values(state, {p: at[p] for p in paths}), dt, n).bodies["slab"]
        return float(np.vdot(adj, end.position) + 1e-2 * np.vdot(adj, end.angular_velocity))

    margins = contact_margins(model, rollout(model, state, dt, n, frames=range(n)))["slope"]
    assert ((margins.touch > 0) == (margins.touch[0] > 0)).all()
    inside = [margin[:, margins.touch[0] > 0] for margin in (margins.leaving, margins.slip)]
    assert all((np.sign(margin) == np.sign(margin[0])).all() for margin in inside)
    near = np.abs(margins.touch).min()
    check = gradcheck(loss, gradient, values, n_directions=20)
    print(f"\n1 g, {len(paths)} parameters, nearest touch {near:.1e} m away")
    print(check.table())
    assert check.passed, check.table()
