"""Toy scenes that every CUDA check shares: all kinds of force, and worlds that differ.

A force that brings an example with it (`adjoint/forces/registry.py`) is in none of them.
"""

import dataclasses
from unittest.mock import patch

import numpy as np

from adjoint.forces.registry import examples
from adjoint.rollout import record, rollout_jvp
from adjsim.courses import Signal
from adjsim.engine import cuda_teams, patches
from adjsim.forces.box import BoxContact
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.external import ExternalForces
from adjsim.forces.grip import Grip
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.hinges import Hinges
from adjsim.forces.lift_drag import LiftDrag
from adjsim.forces.linear_drag import LinearDrag
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.forces.sphere import SphereContact
from adjsim.forces.springs import Springs
from adjsim.joints.driven import HingeJoint, SliderJoint
from adjsim.joints.joint import BallJoint, WeldJoint
from adjsim.joints.pins import Pins
from adjsim.meshes.grid import box_tets
from adjsim.meshes.shapes import shape
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.tiles.assembly import TILE
from adjsim.worlds import stack


DT, N_STEPS, FRAMES = 1e-4, 4, (0, 2, 4)
REST = "core.rest_positions"  # with it all worlds of the toy scene use the same three kernels


def toy():
    """A viscous and an elastic cube that share nodes, one corner pinned, on a rough floor."""
    rng = np.random.default_rng(7)
    mesh = box_tets(cells=(1, 1, 1), size=(0.1, 0.1, 0.1))
    n = len(mesh.points)
    series = 0.01 * rng.standard_normal((N_STEPS, len(mesh.tets)))
    signal = Signal([0.0, 2.5], [0.1, -0.1])
    faces = mesh.surface().faces
    body = NeoHookeanTets(
        mesh.tets, mesh.points, 1e4, 2e4, viscosity=2.0, actuation=series, density=1000.0
    )
    path = [0.02, 0.03, 0.0] + 1e-3 * rng.standard_normal((N_STEPS, 3))
    spin = Signal([0.0, 2.5], rng.standard_normal((2, 3)))
    rough = {"damping": 1.0, "friction_stiffness": 20.0, "radius": 0.02}
    rough["friction"] = np.where(np.isin(np.arange(n), (0, 3, 5)), 5.0, 0.005)
    smooth = {name: value for name, value in rough.items() if name != "damping"}
    smooth["dissipation"] = 0.5  # [s/m]
    cubic = {name: value for name, value in rough.items() if name != "damping"}
    cubic |= {"cubic_stiffness": 1e7, "cubic_dissipation": 1e-4, "deepest": 0.02}
    forces = {
        "body": body,
        "core": NeoHookeanTets(mesh.tets[:2], mesh.points, 2e4, 3e4),
        "net": Springs(mesh.tets[:, :2], 1e3, damping=3.0, rest_positions=mesh.points),
        "skin": NeoHookeanTriangles(faces, mesh.points, 30.0, 50.0, 0.01, density=0.5),
        "patch": NeoHookeanTriangles(faces[:3], mesh.points, 20.0, 40.0, actuation=signal),
        "air": LiftDrag(faces, 0.5, 1.0, 3.0 * rng.standard_normal((N_STEPS, len(faces), 3))),
        "drag": LinearDrag(np.arange(1.0, n), np.arange(1, n)),
        "bend": Hinges(mesh.tets[:3], mesh.points, 0.5, actuation=0.2),
        "damped": Hinges(mesh.tets[3:], mesh.points, 0.5, damping=0.01, actuation=-0.2),
        "push": ExternalForces([0, 3, 3], (1.0, -2.0, 0.5), window=(1, 3)),
        "floor": HalfSpaceContact(
            normal=(0.1, 1.0, 0.2),
            height=0.03,
            stiffness=1e4,
            damping=1.0,
            friction_stiffness=100.0,
            friction=np.where(np.arange(n) % 2, 0.02, 5.0),
        ),
        "ball": SphereContact(path, 0.06, angular_velocity=spin, **rough),
        "crate": BoxContact([0.115, 0, 0.06], 0.1 * path, [0.02, 0.04, 0.06], path, **cubic),
        "rod": CapsuleContact([0.0, 0.11, 0.06], [1.5, 0.1, 0.2], 0.05, 0.03, **smooth),
    }
    x = mesh.points * 1.05
    v = 0.3 * rng.standard_normal((n, 3))
    adj = rng.standard_normal((len(FRAMES), n, 3))
    rigid, poses, rough = stones(rng)
    model = Model(None, forces | rough, pinned=np.arange(n) == n - 1, bodies=rigid)
    return model, State(x, v, poses), adj


def tetrahedron():
    """A corner of a cube."""
    corners = [[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]
    return TriangleMesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def stones(rng):
    """Two sets of bodies beside the cubes, three bodies in all, of which two touch the floor."""
    bodies = {
        "pair": RigidBodies([tetrahedron()] * 2, density=[900.0, 700.0], drag_rate=[3.0, 5.0]),
        "stone": RigidBodies(tetrahedron(), mass=0.1, inertia=[2e-4, 3e-4, 4e-4, 1e-5, 0.0, 2e-5]),
    }
    x, omega = [[0.5, 0.05, 0.0], [0.5, 0.5, 0.0]], 3.0 * rng.standard_normal((2, 3))
    states = {
        "pair": BodyState(x, rng.standard_normal((2, 4)), [[0.1, -0.5, 0], [0.3, -0.2, 0]], omega),
        "stone": BodyState([0.0, 0.03, 1.0], angular_velocity=[1.0, 200.0, -3.0]),
    }
    law = {"stiffness": 1e3, "damping": 1.0, "friction_stiffness": 10.0}
    forces = {
        f"under_{name}": HalfSpaceContact(
            height=0.08,
            acts_on=name,
            friction=np.where(np.arange(len(rigid.hull)) % 2, 0.005, 5.0),
            **law,
        )
        for name, rigid in bodies.items()
    }
    law = {"stiffness": 50.0, "dissipation": 0.5, "friction_stiffness": 1.0}
    friction = np.where(np.arange(12) % 2, 0.005, 5.0)
    forces["nose"] = BoxContact(
        (0.1, 0.05, 0.02), (0.3, 0.2, 0.1), (0.5, 0.5, 0.6), fixed_to="pair.1", friction=friction,
        acts_on=("nodes", "stone"), velocity=(0.1, 0.2, 0.3), **law,
    )  # fmt: skip
    law = {"cubic_stiffness": 1e5, "cubic_dissipation": 1e-3, "deepest": 0.02}
    forces["rolling"] = HalfSpaceContact(
        height=0.4, radius=[0.2, 0.35], friction=[0.3, 1e-5], friction_stiffness=1.0,
        balls=("pair.1", "stone"), **law,
    )  # fmt: skip
    forces["meeting"] = SphereContact(
        sphere_radius=0.8, radius=0.7, friction=[0.3, 1e-5], friction_stiffness=1.0,
        balls=("pair.1", "pair.0"), fixed_to="stone", **law,
    )  # fmt: skip
    return bodies, states, forces | joints(rng)


def joints(rng):
    """Joints of every class between the stones and to the world, off from where they hold."""
    point = {"stiffness": 20.0, "damping": 0.5, "anchor_a": 0.1 * rng.standard_normal(3)}
    frame = {**point, "angular_stiffness": 0.2, "angular_damping": 0.001}
    frame |= {"rotation_a": rng.standard_normal(3), "rotation_b": rng.standard_normal(3)}
    push = {"viscous_friction": 0.01, "dry_friction": 0.1, "friction_width": 1.0}
    push |= {"limit_stiffness": 0.3, "spring_stiffness": 0.2}
    # The one beyond its upper limit, the other below its lower one.
    angles = {"lower": [-0.1, 2.5], "upper": [0.1, 3.14]}
    lengths = {"lower": [-0.1, 0.01], "upper": [0.005, 0.1]}
    wave = rng.standard_normal((N_STEPS, 2))
    return {
        "pin": Pins([(0, 9), (1, 2)], 50.0, 0.3, acts_on=("nodes", "pair")),
        "cup": BallJoint((None, "stone"), **point),
        "weld": WeldJoint(("stone", "pair.1"), **frame),
        "hinges": HingeJoint(
            [("pair.0", "stone"), ("pair.1", "pair.0")], motor=wave, **frame, **push, **angles
        ),
        "rail": SliderJoint(
            [(None, "pair.0"), (None, "pair.1")], motor=0.3, **frame, **push, **lengths
        ),
    }


def everything(device, dtype=np.float64):
    """Frames, every gradient and a tangent of the toy scene on a device, by name."""
    model, state, adj = toy()
    options = {"frames": FRAMES, "device": device, "dtype": dtype}
    run = record(model, state, DT, N_STEPS, **options)
    turned = run.trajectory.bodies  # cotangents as large as the states themselves
    out = {f"vjp {path}": g for path, g in run.vjp(adj, 0.1 * adj, bodies=turned).items()}
    tangents = {"body.mu": 1e3, "net.damping": 1.0, "state.x": 0.01 * adj[0], "body.density": 100.0}
    tangents["core.rest_positions"] = 0.01 * adj[1]
    tangents |= {"skin.lam": 5.0, "patch.mu": 2.0, "air.drag": 0.1}
    tangents |= {"bend.actuation": 0.1, "damped.stiffness": 0.1, "push.force": np.ones(3)}
    tangents |= {"ball.sphere_radius": 0.1, "crate.center": [0.1] * 3, "rod.half_length": 0.1}
    tangents |= {"pair.density": [9.0, 3.0], "pair.rotation": 0.1 * np.ones((2, 3))}
    tangents["pair.drag_rate"] = [1.0, 2.0]
    tangents |= {"stone.inertia": 1e-5 * np.arange(6.0), "stone.velocity": [[1.0, 2.0, 3.0]]}
    tangents["floor.friction"] = np.ones(model.n_nodes)
    tangents |= {"hinges.motor": np.ones((N_STEPS, 2)), "rail.rotation_b": np.ones(3)}
    tangents |= {"weld.anchor_a": 0.1 * np.ones(3), "cup.damping": 0.1, "pin.stiffness": 10.0}
    tangents["drag.rate"] = np.ones(model.n_nodes - 1)
    tangents["stone.vertices"] = 0.01 * adj[0, :4]
    states, tangent = rollout_jvp(model, state, DT, N_STEPS, tangents, **options)
    budget = record(model, state, DT, N_STEPS, checkpoint="4kB", **options)
    out |= {f"4kB {path}": g for path, g in budget.vjp(adj, 0.1 * adj, bodies=turned).items()}
    for name in model.bodies:
        for key, value in vars(states.bodies[name]).items():
            out |= {f"{name}.{key}": value, f"jvp {name}.{key}": vars(tangent.bodies[name])[key]}
    out |= two_worlds(model, state, adj, options) | free_bodies(model, state, options)
    out |= marked_world(model, state, adj, options)
    return out | {"x": run.trajectory.x, "v": states.v, "jvp x": tangent.x, "jvp v": tangent.v}


def free_bodies(model, state, options):
    """The bodies without nodes and forces: all arrays of both are empty."""
    free = Model(bodies=model.bodies), State(bodies=state.bodies)
    run = record(*free, DT, N_STEPS, **options)
    out = {f"free {name}": poses.position for name, poses in run.trajectory.bodies.items()}
    turning = {
        name: {"position": poses.position, "angular_velocity": poses.angular_velocity}
        for name, poses in run.trajectory.bodies.items()
    }
    wrt = ("gravity", "stone.inertia", "pair.angular_velocity", "stone.velocity")
    grads = run.vjp(bodies=turning, wrt=wrt)
    return out | {f"free vjp {path}": grad for path, grad in grads.items()}


def two_worlds(model, state, adj, options):
    """A batch of the toy scene and one with another gravity and fewer forces in time."""
    light = dataclasses.replace(model.forces["body"], actuation=0.01)
    forces = {**model.forces, "body": light}
    worlds = [model, dataclasses.replace(model, forces=forces, gravity=(1.0, -3.0, 2.0))]
    batch, states = stack(worlds), [state, state]
    run = record(batch, states, DT, N_STEPS, **options)
    turned = [frames.bodies for frames in run.trajectory]
    wrt = ("gravity", "body.actuation", "pair.density", "under_stone.friction", "state.v", REST)
    grads = run.vjp([adj, 0.5 * adj], None, bodies=turned, wrt=wrt)
    tangents = [{"gravity": np.ones(3)}, {"gravity": [2.0, 0.0, 1.0], REST: 0.01 * adj[0]}]
    _, tans = rollout_jvp(batch, states, DT, N_STEPS, tangents, **options)
    out = {}
    for k, (frames, grad, tan) in enumerate(zip(run.trajectory, grads, tans, strict=True)):
        out |= {f"world {k} x": frames.x, f"world {k} jvp x": tan.x}
        out |= {f"world {k} jvp stone": tan.bodies["stone"].position}
        out |= {f"world {k} vjp {path}": value for path, value in grad.items()}
    return out


def many_worlds(device, dtype=np.float64):
    """Frames, gradients and tangents of worlds that differ, by blocks and by the whole grid.

    In blocks rest shapes are free. On the grid a patch is a tile: a world's nodes are in several.
    """
    rest = ("soft.rest_positions",)
    blocks = _many_worlds(device, dtype, rest)
    tiles = patch.multiple(patches, ELEMENTS=TILE, SMALL_PATCH=TILE)
    with patch.object(cuda_teams, "MOST_ELEMENTS", 0), tiles:
        grid = _many_worlds(device, dtype)
    teams = {"blocks": blocks, "grid": grid, "example": example_worlds(device, dtype)}
    return {f"{team} {name}": value for team, out in teams.items() for name, value in out.items()}


def own_nodes(device, dtype=np.float64):
    """Frames, gradients of two led blocks on a floor; on the grid patches advance their nodes."""
    rng, mesh = np.random.default_rng(5), box_tets(cells=(3, 3, 2), size=(0.3, 0.3, 0.2))
    soft, led = NeoHookeanTets(mesh.tets, mesh.points, 1e4, 2e4), [2, 31, 7, 40]
    path = mesh.points[led] + 1e-3 * rng.standard_normal((N_STEPS, 4, 3))
    worlds = [
        Model(
            soft.lumped_mass(1000.0),
            {
                "soft": soft,
                "grip": Grip(led, path),
                "floor": HalfSpaceContact(
                    height=height, stiffness=1e3, damping=1.0, friction=0.5, friction_stiffness=20.0
                ),
            },
            gravity=(height, 0.0, -9.81),
        )
        for height in (0.0, 0.05)
    ]
    states = [State(mesh.points, rng.standard_normal(mesh.points.shape)) for _ in worlds]
    with patch.object(cuda_teams, "MOST_ELEMENTS", 0):
        run = record(stack(worlds), states, DT, N_STEPS, frames=FRAMES, device=device, dtype=dtype)
        adj = [rng.standard_normal(frames.x.shape) for frames in run.trajectory]
        grads = run.vjp(adj, wrt=("soft.mu", "floor.friction", "grip.positions", "state.v"))
    out = {}
    for k, (frames, grad) in enumerate(zip(run.trajectory, grads, strict=True)):
        out |= {f"{k} x": frames.x, f"{k} v": frames.v}
        out |= {f"{k} vjp {path}": value for path, value in grad.items()}
    return out


def _many_worlds(device, dtype, rest=()):
    rng = np.random.default_rng(3)
    worlds = [small_world(rng, n) for n in (1, 0, 2, 3)]
    models, states = stack([model for model, _ in worlds]), [state for _, state in worlds]
    options = {"frames": FRAMES, "device": device, "dtype": dtype}
    run = record(models, states, DT, N_STEPS, checkpoint="90kB", **options)
    adj = [rng.standard_normal(trajectory.x.shape) for trajectory in run.trajectory]
    turned = [trajectory.bodies for trajectory in run.trajectory]
    wrt = ("gravity", "state.x", "soft.mu", "net.damping", "floor.friction", "floor.stiffness")
    wrt += ("ball.vertices", "ball.density", "ball.angular_velocity", *rest)
    grads = run.vjp(adj, [0.1 * adj_x for adj_x in adj], bodies=turned, wrt=wrt)
    tangents = [
        {"state.v": 0.1 * adj_x[0], "gravity": np.ones(3)}
        | {"ball.vertices": 0.01 * model.bodies["ball"].vertices}
        | dict.fromkeys(rest if "soft" in model.forces else (), 0.01 * adj_x[0])
        for adj_x, (model, _) in zip(adj, worlds, strict=True)
    ]
    _, tans = rollout_jvp(models, states, DT, N_STEPS, tangents, **options)
    out = {}
    for k, (trajectory, grad, tan) in enumerate(zip(run.trajectory, grads, tans, strict=True)):
        out |= {f"{k} x": trajectory.x, f"{k} jvp x": tan.x}
        out |= {f"{k} ball": trajectory.bodies["ball"].position}
        out |= {f"{k} jvp ball": tan.bodies["ball"].position}
        out |= {f"{k} vjp {path}": value for path, value in grad.items()}
    return out


def example_worlds(device, dtype=np.float64):
    """Frames, every gradient and a tangent of the examples that forces bring, as worlds."""
    rng, out = np.random.default_rng(4), {}
    scenes = {name: build(N_STEPS) for name, build in examples().items()}
    models, states = ([getattr(s, key) for s in scenes.values()] for key in ("model", "state"))
    options = {"frames": FRAMES, "device": device, "dtype": dtype}
    run = record(stack(models), states, DT, N_STEPS, **options)
    adj = [rng.standard_normal(world.x.shape) for world in run.trajectory]
    points = [scene.parameters().items() for scene in scenes.values()]
    tangents = [
        {path: 0.1 * value * rng.standard_normal(value.shape) for path, value in point}
        for point in points
    ]
    _, tans = rollout_jvp(stack(models), states, DT, N_STEPS, tangents, **options)
    for name, world, grads, tan in zip(scenes, run.trajectory, run.vjp(adj), tans, strict=True):
        out |= {f"{name} x": world.x, f"{name} jvp x": tan.x}
        out |= {f"{name} vjp {path}": value for path, value in grads.items()}
    return out


def small_world(rng, n):
    """A soft block of n by 1 by 1 cells on a net of springs, or the net alone, and a ball.

    The ball, a small tetrahedron where n is even and else of many points, lies on a rough floor.
    """
    mesh = box_tets(cells=(max(n, 1), 1, 1), size=(0.1 * max(n, 1), 0.1, 0.1))
    forces = {"net": Springs(mesh.tets[:, :2], 1e3, damping=3.0, rest_positions=mesh.points)}
    if n:
        forces["soft"] = NeoHookeanTets(mesh.tets, mesh.points, 1e4, 2e4, viscosity=2.0)
    ball = shape("sphere", 0.1) if n % 2 else tetrahedron()
    forces["floor"] = HalfSpaceContact(
        acts_on="ball",
        height=0.0,
        stiffness=1e3,
        damping=1.0,
        friction_stiffness=10.0,
        friction=0.3,
    )
    bodies = {"ball": RigidBodies(ball, density=900.0)}
    mass = 0.01 * rng.uniform(1.0, 2.0, len(mesh.points))
    model = Model(mass, forces, gravity=rng.standard_normal(3), bodies=bodies)
    height = 0.09 if n % 2 else 0.02
    poses = {"ball": BodyState([0.5, height, 0.0], None, [[0.3, -0.5, 0.0]], [[1.0, 2.0, 3.0]])}
    x = 1.05 * mesh.points
    return model, State(x, 0.3 * rng.standard_normal(x.shape), poses)


def marked_world(model, state, adj, options):
    """A batch of the toy scene and one with a node so fast that it diverges, which is marked."""
    v = np.array(state.v)
    v[3] = float(np.finfo(options["dtype"]).max) ** 0.65
    batch, states = stack([model, model]), [State(state.x, v, state.bodies), state]
    with np.errstate(all="ignore"):  # the simulator's steps are NumPy's
        run = record(batch, states, DT, N_STEPS, on_divergence="mark", **options)
        grads = run.vjp([None, adj], wrt=("state.x", "body.mu", REST))
        tangents = [{"gravity": np.ones(3), REST: 0.01 * adj[0]}] * 2
        _, tans = rollout_jvp(batch, states, DT, N_STEPS, tangents, on_divergence="mark", **options)
    lost, kept = run.trajectory
    assert kept.diverged is tans[1].diverged is None
    assert all(np.isnan(value).all() for value in grads[0].values())
    return {
        "marked in step": np.array([1.0 + lost.diverged, 1.0 + tans[0].diverged]),
        "marked frames": 1.0 * np.isnan(lost.x).any(axis=(1, 2)),
        "beside a marked world x": kept.x,
        "beside a marked world jvp x": tans[1].x,
        **{f"beside a marked world vjp {path}": value for path, value in grads[1].items()},
    }
