"""Mistakes in a user's script that a type checker finds, each marked with the rule that finds it.

Nothing runs this: basedpyright checks it with the packages, and complains of a mark that no longer
hides an error.
"""
# pyright: reportUnnecessaryTypeIgnoreComment=error

from adjoint import record, record_images
from adjsim import Model, State, rollout
from adjsim.forces import NeoHookeanTets
from adjsim.meshes import box_tets, shape
from render import Camera, DirectionalLight, Mesh, Scene, SoftRasterizer, rasterize


mesh = box_tets(cells=(4, 1, 1), size=(1.0, 0.2, 0.2))
beam = NeoHookeanTets.from_young(mesh.tets, mesh.points, youngs_modulus=5e4, poisson_ratio=0.4)
model = Model(mass=beam.lumped_mass(1000.0), forces={"beam": beam})
state = State(mesh.points)
Model(mas=1.0, forces={"beam": beam})  # pyright: ignore[reportCallIssue]
record(model, state, dt="1e-4", n_steps=5)  # pyright: ignore[reportArgumentType]
record(model, state, dt=1e-4, n_steps=500.5)  # pyright: ignore[reportArgumentType]
record(state, model, dt=1e-4, n_steps=5)  # pyright: ignore[reportArgumentType]
rollout(model, state, 1e-4, 5, frames=3)  # pyright: ignore[reportArgumentType]
run = record(model, state, dt="auto", n_steps=5)
wrong = run.trajectory.positions  # pyright: ignore[reportAttributeAccessIssue]
gradient = run.vjp(run.trajectory.x)
wrong = gradient["beam.mu"].upper()  # pyright: ignore[reportAttributeAccessIssue]
wrong = gradient.beam  # pyright: ignore[reportAttributeAccessIssue]

ball = shape("sphere", radius=1.0)
vertices = {"ball": ball.points}
scene = Scene({"ball": Mesh(ball.faces)}, {"sun": DirectionalLight((1.0, 2.0, 1.5))})
camera = Camera(eye=(0.0, 0.5, 4.0), target=(0.0, 0.0, 0.0), fov_y=45.0)
Camera(eye=(0.0, 0.5, 4.0), target=(0.0, 0.0, 0.0), fovy=45.0)  # pyright: ignore[reportCallIssue]
rasterizer = SoftRasterizer(sigma="1e-4")  # pyright: ignore[reportArgumentType]
rasterize(scene, camera, rasterizer, vertices)  # pyright: ignore[reportCallIssue]
drawn = record_images(scene, camera, rasterizer, vertices, (8, 8))
wrong = drawn.vjp(drawn.images)["ball.vertices"].upper()  # pyright: ignore[reportAttributeAccessIssue]
