"""The block in Newton: semi-implicit solver, launches captured in a graph, float32.

Its contact is another than ours, so both fall freely here.
"""

from itertools import pairwise

import newton  # pyright: ignore[reportMissingImports]
import numpy as np
import warp as wp  # pyright: ignore[reportMissingImports]

from benchmarks.peers import PeerRun
from benchmarks.timing.scenes import LAM, MU, Body


HAS_FLOOR = False
MAX_STEPS = 400  # every step is recorded from Python once, before it is timed
RADIUS = 1e-6  # of a particle [m]: no contact between particles


def prepare(block: Body, n_steps: int, threads: int) -> PeerRun:
    """Return the captured rollout, and the captured rollout with its tape run back.

    Warp runs CPU kernels on one thread, however many `threads` there are; 0 is the GPU.
    """
    device = "cpu" if threads else "cuda:0"
    with wp.ScopedDevice(device):
        model = _model(block, device)
        solver = newton.solvers.SolverSemiImplicit(model, enable_tri_contact=False)
        states, control = [model.state() for _ in range(n_steps + 1)], model.control()
        states[0].particle_q.assign(np.asarray(block.state.x, np.float32))

        def rollout() -> None:
            for before, after in pairwise(states):
                before.clear_forces()
                solver.step(before, after, control, None, block.dt)

        with wp.Tape() as tape:
            rollout()
        last = states[-1].particle_q
        seed = wp.array(last.numpy(), dtype=wp.vec3)  # the gradient of sum(x^2)/2
        tape.backward(grads={last: seed})
        with wp.ScopedCapture() as forward:
            rollout()
        with wp.ScopedCapture() as both:
            rollout()
            tape.zero()
            tape.backward(grads={last: seed})

    return PeerRun(
        lambda: _launch(forward.graph),
        last.numpy,
        lambda: _launch(both.graph),
        lambda: model.tet_materials.grad.numpy()[:, 0],
    )


def _launch(graph: object) -> None:
    wp.capture_launch(graph)
    wp.synchronize()


def _model(block: Body, device: str) -> "newton.Model":
    builder = newton.ModelBuilder(up_axis=newton.Axis.Y, gravity=tuple(block.model.gravity))
    builder.add_particles(
        pos=[wp.vec3(*map(float, x)) for x in block.mesh.points],
        vel=[wp.vec3(*map(float, v)) for v in block.state.v],
        mass=[float(m) for m in block.model.mass],
        radius=[RADIUS] * block.model.n_nodes,
    )
    for tet in block.mesh.tets:
        builder.add_tetrahedron(*map(int, tet), k_mu=MU, k_lambda=LAM, k_damp=0.0)
    model = builder.finalize(device=device, requires_grad=True)
    model.particle_grid = None
    return model
