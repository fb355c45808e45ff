"""A soft ball is thrown and Mitsuba draws where it lands: which velocity leads to a picture?"""

import drjit as dr
import mitsuba as mi
import numpy as np

from adjoint import record
from adjsim import Model, State
from adjsim.forces import HalfSpaceContact, NeoHookeanTets
from adjsim.meshes import ball_tets


mi.set_variant("llvm_ad_rgb")  # needs LLVM as a shared library, e.g. Debian's libllvm19
mesh = ball_tets(3, radius=0.1, center=(-0.2, 0.2, 0.0))
surface = mesh.surface()
ball = NeoHookeanTets(mesh.tets, mesh.points, mu=2e4, lam=4e4, density=500.0)
floor = HalfSpaceContact((0.0, 1.0, 0.0), stiffness=50.0, damping=0.02)
model = Model(forces={"ball": ball, "floor": floor})


def throw(velocity):
    """Return the record of the motion that begins with a velocity (3,)."""
    return record(model, State(mesh.points, np.tile(velocity, (len(mesh.points), 1))), 2e-4, 1000)


shape = mi.Mesh("ball", len(surface.nodes), len(surface.faces), has_vertex_normals=True)
arrays = mi.traverse(shape)
arrays["vertex_positions"] = mesh.points[surface.nodes].astype(np.float32).ravel()
arrays["faces"] = surface.local_faces.astype(np.uint32).ravel()
arrays.update()
look = mi.ScalarTransform4f().look_at([0.0, 0.3, 1.5], [0.0, 0.1, 0.0], [0.0, 1.0, 0.0])
film = {"type": "hdrfilm", "width": 48, "height": 36, "sample_border": True}
scene = mi.load_dict({
    "type": "scene",
    "integrator": {"type": "direct_projective", "sppi": 0, "guiding": "none"},
    "sensor": {"type": "perspective", "fov": 35.0, "to_world": look, "film": film},
    "sun": {"type": "directional", "direction": [-1.0, -1.0, -1.0], "irradiance": 3.0},
    "ball": shape,
})  # fmt: skip
params, VERTICES = mi.traverse(scene), "ball.vertex_positions"


def picture(x, target=None, seed=0):
    """Return the picture of nodes (n_nodes, 3); with a target the loss and its gradient in them."""
    params[VERTICES] = mi.Float(x[surface.nodes].ravel())
    dr.enable_grad(params[VERTICES])
    params.update()
    image = mi.render(scene, params, spp=32, seed=seed)
    if target is None:
        return np.array(image)
    loss = dr.mean(dr.square(image - mi.TensorXf(target)), axis=None)
    dr.backward(loss)
    adj_x = np.zeros_like(x)
    adj_x[surface.nodes] = np.array(dr.grad(params[VERTICES])).reshape(-1, 3)
    return float(loss.array[0]), adj_x


def loss_and_gradient(velocity, target, seed=0):
    """Return the loss of a throw and its gradient by the velocity, (3,)."""
    run = throw(velocity)
    loss, adj_x = picture(run.trajectory.x[-1], target, seed)
    return loss, run.vjp(adj_x[None], wrt=["state.v"])["state.v"].sum(axis=0)


def found(target, n_steps):
    """Return the velocity whose picture is like a target [m/s]."""
    velocity = np.array([1.2, 0.2, 0.0])
    for step in range(n_steps):
        _, gradient = loss_and_gradient(velocity, target, seed=step)
        velocity -= 0.08 * 0.9**step * gradient / np.linalg.norm(gradient)
    return velocity


if __name__ == "__main__":
    target = picture(throw([1.5, 0.5, 0.0]).trajectory.x[-1], seed=1000)
    print(found(target, 40).round(3), "m/s (true: 1.5 0.5 0)")
