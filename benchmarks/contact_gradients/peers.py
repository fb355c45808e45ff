"""Bodies that meet, in other packages: the value, and its derivatives.

In JAX and Taichi the few lines of the scene are ours, and automatic differentiation is theirs.
Newton has contact of its own, of particles and of rigid bodies, and works in float32. It takes the
normals of rigid contacts, and where they are in the bodies, as constants of the derivative
(newton-physics/newton, pull request 2164).
"""

from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from benchmarks.contact_gradients.problems import Problem, Values
from benchmarks.contact_gradients.two_bodies import DISTANCE, Balls, BlockOnBlock, RodOnEdge


Result = tuple[float, np.ndarray]


def jax_balls(balls: Balls, p: Values, rate: float, n_steps: int) -> Result:
    """Return the value and its derivatives by the parameters from JAX, in float64."""
    import jax  # pyright: ignore[reportMissingImports]
    import jax.numpy as jnp  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)
    dt, k = balls.end / n_steps, 0.5 * rate**2

    def step(state: tuple, _: None) -> tuple:
        x, v = state
        d = x[1:] - x[:-1]
        s = jnp.linalg.norm(d, axis=1, keepdims=True)
        push = k * jnp.maximum(0.0, DISTANCE - s) * d / s
        v = v.at[1:].add(dt * push).at[:-1].add(-dt * push)
        return (x + dt * v, v), None

    @jax.jit
    def value(x: jnp.ndarray, v: jnp.ndarray) -> jnp.ndarray:
        return jax.lax.scan(step, (x, v), None, length=n_steps)[0][0][-1, balls.axis]

    place, by = jax.value_and_grad(value, argnums=(0, 1))(*map(jnp.asarray, balls.places(p)))
    return float(place), derivatives(balls, *map(np.asarray, by))


def taichi_balls(balls: Balls, p: Values, rate: float, n_steps: int) -> Result:
    """Return the same from Taichi, in float64."""
    import taichi as ti  # pyright: ignore[reportMissingImports]

    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level=ti.ERROR)
    starts = balls.places(p)
    n, axis = len(starts[0]), balls.axis
    dt, k, reach = balls.end / n_steps, 0.5 * rate**2, DISTANCE
    x, v, f = (ti.Vector.field(2, ti.f64, (n_steps + 1, n), needs_grad=True) for _ in range(3))
    value = ti.field(ti.f64, (), needs_grad=True)

    def touch(t: int):
        for i in range(n - 1):
            d = x[t, i + 1] - x[t, i]
            s = d.norm()
            push = k * ti.max(0.0, reach - s) / s * d
            f[t, i + 1] += push
            f[t, i] -= push

    def step(t: int):
        for i in range(n):
            v[t + 1, i] = v[t, i] + dt * f[t, i]
            x[t + 1, i] = x[t, i] + dt * v[t + 1, i]

    def read():
        value[None] += x[n_steps, n - 1][axis]

    touch.__annotations__ = step.__annotations__ = {"t": ti.i32}
    kernels, last = (ti.kernel(touch), ti.kernel(step)), ti.kernel(read)
    for i in range(n):
        x[0, i], v[0, i] = (each[i] for each in starts)
    with ti.ad.Tape(value):
        for t in range(n_steps):
            for kernel in kernels:
                kernel(t)
        last()
    by = [np.array([[*each.grad[0, i]] for i in range(n)]) for each in (x, v)]
    place = float(value[None])
    ti.reset()
    return place, derivatives(balls, *by)


def newton_particles(balls: Balls, p: Values, rate: float, n_steps: int) -> Result:
    """Return the same from Newton: particles, its semi-implicit solver and its tape."""
    import newton  # pyright: ignore[reportMissingImports]
    import warp as wp  # pyright: ignore[reportMissingImports]

    wp.config.quiet = True
    with wp.ScopedDevice("cpu"):
        builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
        for x, v in zip(*balls.places(p), strict=True):
            builder.add_particle(wp.vec3(*x, 0.0), wp.vec3(*v, 0.0), 1.0, radius=DISTANCE / 2)
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
                model.particle_grid.build(before.particle_q, DISTANCE)
                solver.step(before, after, control, None, balls.end / n_steps)
        last = states[-1].particle_q
        adj_x = np.zeros((len(last), 3), np.float32)
        adj_x[-1, balls.axis] = 1.0
        tape.backward(grads={last: wp.array(adj_x, dtype=wp.vec3)})
        by = (a.grad.numpy() for a in (states[0].particle_q, states[0].particle_qd))
        return float(last.numpy()[-1, balls.axis]), derivatives(balls, *by)


def newton_bodies(balls: Balls, p: Values, rate: float, n_steps: int) -> Result:
    """Return the same from Newton: rigid spheres, its collisions, solver and tape."""
    import warp as wp  # pyright: ignore[reportMissingImports]

    places, speeds = (np.pad(each, ((0, 0), (0, 1))) for each in balls.places(p))
    inertia = wp.mat33(*np.diag([0.01] * 3).ravel())

    def build(builder: Any) -> None:
        for x in places:
            at = wp.transform(wp.vec3(*x), wp.quat_identity())
            body = builder.add_body(xform=at, mass=1.0, inertia=inertia)
            builder.add_shape_sphere(body, radius=DISTANCE / 2, cfg=smooth(builder, 0.5 * rate**2))

    motion = newton_rigid(build, speeds, (len(places) - 1, balls.axis), end=balls.end, n=n_steps)
    return motion.value, derivatives(balls, motion.adj_q, motion.adj_v)


def newton_rod(rod: RodOnEdge, p: Values, rate: float, n_steps: int) -> Result:
    """Return height of the rod and its derivatives from Newton: two capsules that cross."""
    import warp as wp  # pyright: ignore[reportMissingImports]

    I = rod.A**2 / 3
    along_x = wp.quat_from_axis_angle(wp.vec3(0.0, 1.0, 0.0), np.pi / 2)
    bodies = (
        ((0.0, p["height"], 0.0), 1.0, (0.1 * I, I, I), rod.A, along_x),
        ((p["place"], -2 * rod.RADIUS, 0.0), p["mass"], (1, 1, 1), 0.5, wp.quat_identity()),
    )

    def build(builder: Any) -> None:
        for x, mass, inertia, half, turn in bodies:
            body = builder.add_body(
                xform=wp.transform(wp.vec3(*x), wp.quat_identity()), mass=mass,
                inertia=wp.mat33(*np.diag(inertia).ravel()),
            )  # fmt: skip
            builder.add_shape_capsule(
                body, xform=wp.transform(wp.vec3(), turn), radius=rod.RADIUS, half_height=half,
                cfg=smooth(builder, rate**2 * rod.effective_mass(rod.start)),
            )  # fmt: skip

    speeds = np.array([[0.0, -p["speed"], 0.0], [0.0, 0.0, 0.0]])
    motion = newton_rigid(build, speeds, (0, 1), end=rod.end, n=n_steps)
    x, v, w = motion.adj_q, motion.adj_v, motion.adj_inverse_masses
    return motion.value, np.array([x[0, 1], -v[0, 1], x[1, 0], -w[1] / p["mass"] ** 2])


def newton_blocks(blocks: BlockOnBlock, p: Values, rate: float, n_steps: int) -> Result:
    """Return place of the lower block and its derivatives from Newton: two boxes on a plane.

    A contact has the mean of both coefficients of friction: the upper box has twice ours, and the
    lower one and the floor have 0.
    """
    import warp as wp  # pyright: ignore[reportMissingImports]

    above, below = blocks.depths(p, rate)
    below *= 3  # four corners of k/4 on the floor, where ours has three of k
    bodies = (
        (0.22 - above - below, 1.0, (0.01, 0.01, 0.01), (0.1, 0.02, 0.1), 2 * p["friction"]),
        (0.1 - below, p["mass"], (2, 4, 2), (2.0, 0.1, 1.0), 0.0),
    )

    def build(builder: Any) -> None:
        for y, mass, inertia, (hx, hy, hz), mu in bodies:
            body = builder.add_body(
                xform=wp.transform(wp.vec3(0.0, y, 0.0), wp.quat_identity()), mass=mass,
                inertia=wp.mat33(*np.diag(inertia).ravel()),
            )  # fmt: skip
            shape = smooth(builder, rate**2 / 4, kf=rate / 4, mu=mu)
            builder.add_shape_box(body, hx=hx, hy=hy, hz=hz, cfg=shape)
        floor = smooth(builder, rate**2 / 4)
        builder.add_shape_plane(plane=(0.0, 1.0, 0.0, 0.0), width=0.0, length=0.0, cfg=floor)

    speeds = np.array([[p["speed"], 0.0, 0.0], [0.0, 0.0, 0.0]])
    motion = newton_rigid(build, speeds, (1, 0), end=blocks.end, n=n_steps, gravity=p["gravity"])
    by_above = -motion.adj_q[0, 1]
    by_below = by_above - motion.adj_q[1, 1]
    by_gravity = -motion.adj_gravity[0, 1] + (by_above * above + by_below * below) / p["gravity"]
    by_mass = -motion.adj_inverse_masses[1] / p["mass"] ** 2 + by_below * below / (1 + p["mass"])
    by_friction = 2 * motion.adj_frictions[0]
    return motion.value, np.array([motion.adj_v[0, 0], by_friction, by_gravity, by_mass])


def smooth(builder: Any, stiffness: float, **friction: float) -> Any:
    """Return a shape without mass of its own or damping, and without friction by default."""
    options = {"kf": 0.0, "mu": 0.0} | friction
    return builder.ShapeConfig(
        density=0.0, ke=stiffness, kd=0.0, mu_torsional=0.0, mu_rolling=0.0, **options
    )


class NewtonRun(NamedTuple):
    """A value, its derivatives by poses and velocities, and those by what the model has."""

    value: float
    adj_q: np.ndarray
    adj_v: np.ndarray
    adj_inverse_masses: np.ndarray
    adj_frictions: np.ndarray
    adj_gravity: np.ndarray


def newton_rigid(
    build: Callable[[Any], None],
    speeds: np.ndarray,
    seen: tuple[int, int],
    *,
    end: float,
    n: int,
    gravity: float = 0.0,
) -> NewtonRun:
    """Return where a body is along an axis at the end, and its derivatives."""
    import newton  # pyright: ignore[reportMissingImports]
    import warp as wp  # pyright: ignore[reportMissingImports]

    wp.config.quiet = True
    with wp.ScopedDevice("cpu"):
        builder = newton.ModelBuilder(gravity=(0.0, -gravity, 0.0))
        build(builder)
        model = builder.finalize(requires_grad=True)
        solver = newton.solvers.SolverSemiImplicit(model, angular_damping=0.0)
        states, control = [model.state() for _ in range(n + 1)], model.control()
        states[0].body_qd.assign(np.pad(speeds, ((0, 0), (0, 3))))
        collisions = newton.CollisionPipeline(model, requires_grad=True)
        with wp.Tape() as tape:
            for before, after in pairwise(states):
                before.clear_forces()
                contacts = collisions.contacts()  # of this step: the reverse reads them
                collisions.collide(before, contacts)
                solver.step(before, after, control, contacts, end / n)
        last = states[-1].body_q
        adj_q = np.zeros((len(speeds), 7), np.float32)
        adj_q[seen] = 1.0
        tape.backward(grads={last: wp.array(adj_q, dtype=wp.transform)})
        start = (states[0].body_q, states[0].body_qd, model.body_inv_mass,
                 model.shape_material_mu, model.gravity)  # fmt: skip
        return NewtonRun(float(last.numpy()[seen]), *(each.grad.numpy() for each in start))


def derivatives(balls: Balls, adj_x: Any, adj_v: Any) -> np.ndarray:
    """Return derivatives by the parameters from those by places and velocities."""
    return np.array([*balls.by_parameters(adj_x, adj_v).values()])


BALLS: dict[str, Callable[[Any, Values, float, int], Result]] = {
    "jax": jax_balls,
    "taichi": taichi_balls,
    "newton, particles": newton_particles,
    "newton, rigid bodies": newton_bodies,
}


def peers_of(problem: Problem) -> dict[str, Callable[[Any, Values, float, int], Result]]:
    """Return the peers that have a problem and can be imported."""
    peers = BALLS
    if not isinstance(problem, Balls):
        solve = newton_rod if isinstance(problem, RodOnEdge) else newton_blocks
        peers = {"newton, rigid bodies": solve}
    return {name: solve for name, solve in peers.items() if find_spec(name.split(",")[0])}
