"""The sliding block in JAX: jitted lax.scan, reverse by value_and_grad, float32."""

from functools import partial
from typing import Any

import jax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import numpy as np

from adjsim.forces.neo_hookean import rest_shape
from benchmarks.peers import PeerRun
from benchmarks.timing.scenes import FLOOR, SINK, Body


F32 = np.float32


def prepare(block: Body, n_steps: int, threads: int) -> PeerRun:
    """Return the rollout and its gradient by mu, lam, x and v, compiled by XLA.

    XLA takes all cores, or the GPU if it knows one; `threads` is not used.
    """
    del threads
    rollout = partial(_rollout, _constants(block), n_steps)
    forward = jax.jit(rollout)
    gradient = jax.jit(
        jax.value_and_grad(lambda *args: 0.5 * jnp.sum(rollout(*args)[0] ** 2), (0, 1))
    )
    force = block.model.forces["block"]
    start = tuple(jnp.asarray(a, F32) for a in (block.state.x, block.state.v))
    ones = np.ones(block.n_tets)
    moduli = tuple(jnp.asarray(a * ones, F32) for a in (force.mu, force.lam))  # pyright: ignore
    last: dict[str, Any] = {}

    def run_forward() -> None:
        last["x"] = jax.block_until_ready(forward(start, moduli))[0]

    def run_gradient() -> None:
        last["grad"] = jax.block_until_ready(gradient(start, moduli))[1]

    return PeerRun(
        run_forward,
        lambda: np.asarray(last["x"]),
        run_gradient,
        lambda: np.asarray(last["grad"][1][0]),
    )


def _constants(block: Body) -> dict[str, Any]:
    """Return the arrays that no gradient is taken of, components first."""
    tets, n_nodes = np.asarray(block.mesh.tets), block.model.n_nodes
    B, volume = rest_shape(block.mesh.points, tets)
    return {
        "tets": tets.T,
        "flat": tets.T.ravel(),  # slot: corner * n_tets + tetrahedron
        "n_nodes": n_nodes,
        "B": [[jnp.asarray(B[:, i, j], F32) for j in range(3)] for i in range(3)],
        "V": jnp.asarray(volume, F32),
        "w": jnp.asarray(block.model.inverse_mass, F32),
        "g": [F32(g) for g in block.model.gravity],
        "dt": F32(block.dt),
    }


def _rollout(c: dict[str, Any], n_steps: int, start: tuple, moduli: tuple) -> tuple:
    def step(state: tuple, _: None) -> tuple:
        x, v = state
        f, p = _tet_forces(c, x, *moduli), _contact(x, v)
        v = [v[d] + c["dt"] * (c["w"] * (f[d] + p[d]) + c["g"][d]) for d in range(3)]
        return ([x[d] + c["dt"] * v[d] for d in range(3)], v), None

    components = tuple([a[:, d] for d in range(3)] for a in start)
    (x, v), _ = jax.lax.scan(step, components, None, length=n_steps)
    return jnp.stack(x, 1), jnp.stack(v, 1)


def _tet_forces(c: dict[str, Any], x: list, mu: Any, lam: Any) -> list:
    """Return the three components of the force on every node; PHYSICS as in adjsim."""
    r, B = range(3), c["B"]
    corner = [[x[d][c["tets"][k]] for d in r] for k in range(4)]
    Ds = [[corner[k + 1][i] - corner[0][i] for k in r] for i in r]
    F = [[sum(Ds[i][k] * B[k][j] for k in r) for j in r] for i in r]
    C = [_cross(F[1], F[2]), _cross(F[2], F[0]), _cross(F[0], F[1])]
    J = sum(F[0][i] * C[0][i] for i in r)
    I_C = sum(F[i][j] * F[i][j] for i in r for j in r)
    s = mu * c["V"] * (I_C / (I_C + 1))
    p = lam * c["V"] * (J - 1 - F32(0.75) * mu / lam)
    P = [[s * F[i][j] + p * C[i][j] for j in r] for i in r]
    H = [[-sum(P[i][k] * B[j][k] for k in r) for j in r] for i in r]
    total = []
    for i in r:
        slots = jnp.concatenate([-(H[i][0] + H[i][1] + H[i][2]), *H[i]])
        total.append(jax.ops.segment_sum(slots, c["flat"], num_segments=c["n_nodes"]))
    return total


def _cross(a: list, b: list) -> list:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _contact(x: list, v: list) -> list:
    """Return the floor's force on every node."""
    k_e, k_d = F32(FLOOR["stiffness"]), F32(FLOOR["damping"])
    k_f, mu = F32(FLOOR["friction_stiffness"]), F32(FLOOR["friction"])
    depth = F32(SINK) - x[1]
    p = jnp.where(depth > 0, k_e * depth + k_d * jnp.maximum(0, -v[1]), 0)
    square = v[0] * v[0] + v[2] * v[2]
    speed = jnp.sqrt(jnp.where(square > 0, square, 1))
    q = jnp.where((square == 0) | (k_f * speed <= mu * p), k_f, mu * p / speed)
    q = jnp.where(depth > 0, q, 0)
    return [-q * v[0], p, -q * v[2]]
