"""Toy scenes of surfaces that touch, whose pairs are found again and again."""

import numpy as np

from adjoint.rollout import record, rollout_jvp
from adjsim.meshes.shapes import shape
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from adjsim.pairs.surface_contact import SurfaceContact
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.worlds import stack
from tests.pairs.scenes import nets


DT, N_STEPS = 1e-3, 30
FRAMES = (15, 30)


def close_nets(**changes):
    """The two nets shortly before they touch."""
    model, state = nets(**changes)
    x = np.array(state.x)
    x[25:, 2] -= 0.02
    return model, State(x, state.v)


def stone_on_nets():
    """The two nets, close to each other, and a cube that falls on the upper one."""
    model, state = close_nets(skin=0.01)
    cube = shape("cube")
    mesh = TriangleMesh(0.08 * cube.points / np.abs(cube.points).max(), cube.faces)
    n, upper = model.n_nodes, model.forces["touch"].other_triangles
    strike = SurfaceContact(
        triangles=upper, other_triangles=cube.faces + n, radius=0.015, other_radius=0.02,
        stiffness=500.0, damping=0.5, friction_stiffness=0.5, friction=0.3, skin=0.02,
        acts_on=("nodes", "stone"),
    )  # fmt: skip
    bodies = {"stone": RigidBodies(mesh, density=100.0)}
    poses = {"stone": BodyState([0.02, 0.01, 0.145], None, [[0.0, 0.1, -2.0]], [[1.0, -2.0, 0.5]])}
    forces = {**model.forces, "strike": strike}
    both = Model(model.mass, forces, gravity=model.gravity, bodies=bodies)
    return both, State(state.x, state.v, poses)


def surfaces(device, dtype=np.float64):
    """Frames, gradients and tangents of the scene alone, and beside nets alone, by name."""
    rng = np.random.default_rng(5)
    model, state = stone_on_nets()
    options = {"frames": FRAMES, "device": device, "dtype": dtype}
    adj = rng.standard_normal((2, len(FRAMES), model.n_nodes, 3))
    run = record(model, state, DT, N_STEPS, checkpoint="20kB", **options)
    turned = run.trajectory.bodies
    out = {"x": run.trajectory.x, "stone": turned["stone"].position}
    out |= {f"vjp {path}": g for path, g in run.vjp(*adj, bodies=turned).items()}
    tangents = {"touch.radius": 0.001, "touch.friction": 0.1, "strike.stiffness": 50.0}
    tangents |= {"strike.damping": 0.1, "state.v": adj[0, 0], "stone.velocity": [[0.1, 0.2, 0.3]]}
    states, tangent = rollout_jvp(model, state, DT, N_STEPS, tangents, **options)
    out |= {"again x": states.x, "jvp x": tangent.x, "jvp stone": tangent.bodies["stone"].position}
    models, starts = zip(close_nets(), (model, state), close_nets(turn=0.7), strict=True)
    run = record(stack(models), starts, DT, N_STEPS, **options)
    grads = run.vjp([adj[0]] * 3, wrt=("touch.radius", "touch.stiffness", "state.x"))
    for k, (trajectory, grad) in enumerate(zip(run.trajectory, grads, strict=True)):
        out |= {
            f"{k} x": trajectory.x,
            **{f"{k} vjp {path}": value for path, value in grad.items()},
        }
    return out
