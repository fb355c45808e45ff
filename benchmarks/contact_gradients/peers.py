"""The two balls in other packages: where the second ball is, and its derivatives.

In JAX and Taichi the few lines of the scene are ours, and automatic differentiation is theirs. Both
move two balls, where our engine has centre of mass and relative position: that the results agree
to rounding checks the reduction too. Newton has particle contact of its own and works in float32.
"""

from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise

import numpy as np

from benchmarks.contact_gradients.problems import TwoBalls, Values


Result = tuple[float, np.ndarray]


def jax_balls(p: Values, rate: float, end: float, n_steps: int) -> Result:
    """Return the value and its derivatives by x1, x2, v1, v2 from JAX, in float64."""
    import jax  # pyright: ignore[reportMissingImports]
    import jax.numpy as jnp  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)
    dt, k = end / n_steps, 0.5 * rate**2

    def step(state: tuple, _: None) -> tuple:
        x, v = state
        push = k * jnp.maximum(0.0, TwoBalls.DISTANCE - (x[1] - x[0]))
        v = v + dt * push * jnp.array([-1.0, 1.0])
        return (x + dt * v, v), None

    @jax.jit
    def value(start: jnp.ndarray) -> jnp.ndarray:
        return jax.lax.scan(step, (start[:2], start[2:]), None, length=n_steps)[0][0][1]

    found, gradient = jax.value_and_grad(value)(jnp.array([p[n] for n in ("x1", "x2", "v1", "v2")]))
    return float(found), np.asarray(gradient)


def taichi_balls(p: Values, rate: float, end: float, n_steps: int) -> Result:
    """Return the same from Taichi, in float64."""
    import taichi as ti  # pyright: ignore[reportMissingImports]

    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level=ti.ERROR)
    dt, k, reach = end / n_steps, 0.5 * rate**2, TwoBalls.DISTANCE
    x, v = (ti.field(ti.f64, (n_steps + 1, 2), needs_grad=True) for _ in range(2))
    value = ti.field(ti.f64, (), needs_grad=True)

    def step(t: int):
        for i in range(2):
            push = k * ti.max(0.0, reach - (x[t, 1] - x[t, 0]))
            v[t + 1, i] = v[t, i] + dt * push * (2 * i - 1)
            x[t + 1, i] = x[t, i] + dt * v[t + 1, i]

    def read():
        value[None] += x[n_steps, 1]

    step.__annotations__ = {"t": ti.i32}
    kernel, last = ti.kernel(step), ti.kernel(read)
    for i in range(2):
        x[0, i], v[0, i] = p[f"x{i + 1}"], p[f"v{i + 1}"]
    with ti.ad.Tape(value):
        for t in range(n_steps):
            kernel(t)
        last()
    gradient = [x.grad[0, 0], x.grad[0, 1], v.grad[0, 0], v.grad[0, 1]]
    found = float(value[None])
    ti.reset()
    return found, np.array(gradient)


def newton_balls(p: Values, rate: float, end: float, n_steps: int) -> Result:
    """Return the same from Newton: two particles, its semi-implicit solver and its tape."""
    import newton  # pyright: ignore[reportMissingImports]
    import warp as wp  # pyright: ignore[reportMissingImports]

    wp.config.quiet = True
    dt = end / n_steps
    with wp.ScopedDevice("cpu"):
        builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
        for i in (1, 2):
            builder.add_particle(
                wp.vec3(p[f"x{i}"], 0.0, 0.0), wp.vec3(p[f"v{i}"], 0.0, 0.0), 1.0,
                radius=TwoBalls.DISTANCE / 2,
            )  # fmt: skip
        model = builder.finalize(requires_grad=True)
        model.particle_ke, model.particle_kd = 0.5 * rate**2, 0.0
        model.particle_kf = model.particle_mu = model.particle_cohesion = 0.0
        solver = newton.solvers.SolverSemiImplicit(model)
        states, control = [model.state() for _ in range(n_steps + 1)], model.control()
        # A grid for each step: the tape keeps which grid a kernel asked, not what was in it. With
        # one for all, the reverse looks for neighbours among the last positions.
        grids = [wp.HashGrid(8, 8, 8) for _ in range(n_steps)]
        with wp.Tape() as tape:
            for (before, after), model.particle_grid in zip(pairwise(states), grids, strict=True):
                before.clear_forces()
                model.particle_grid.build(before.particle_q, TwoBalls.DISTANCE)
                solver.step(before, after, control, None, dt)
        last = states[-1].particle_q
        tape.backward(grads={last: wp.array([(0, 0, 0), (1, 0, 0)], dtype=wp.vec3)})
        x, v = (
            tape.gradients[a].numpy()[:, 0] for a in (states[0].particle_q, states[0].particle_qd)
        )
        return float(last.numpy()[1, 0]), np.concatenate([x, v])


PEERS: dict[str, Callable[[Values, float, float, int], Result]] = {
    "jax": jax_balls, "taichi": taichi_balls, "newton": newton_balls
}  # fmt: skip


def installed() -> list[str]:
    """Return the names of the peers that can be imported."""
    return [name for name in PEERS if find_spec(name)]
