"""The sliding block in Taichi: several steps unrolled in one kernel, forward, float32.

Sums over nodes read slots, as ours do: without atomics it is Taichi's fastest way here.
"""

from typing import Any

import numpy as np
import taichi as ti  # pyright: ignore[reportMissingImports]

from adjsim.forces.neo_hookean import rest_shape
from studies.peers import PeerRun, node_slots
from studies.timing_scenes import FLOOR, SINK, Block


UNROLLED = 4  # steps in one kernel: a launch costs about 30 us, compiling about a second a step
K_E, K_D = FLOOR["stiffness"], FLOOR["damping"]
K_F, FRICTION = FLOOR["friction_stiffness"], FLOOR["friction"]
_started: set[int] = set()


def prepare(block: Block, n_steps: int, threads: int) -> PeerRun:
    """Return the rollout; its number of steps is rounded down to whole kernels."""
    if not _started:
        ti.init(arch=ti.cpu, cpu_max_num_threads=threads, default_fp=ti.f32, log_level=ti.ERROR)
        _started.add(threads)
    world = TaichiBlock(block)
    n_calls = n_steps // UNROLLED

    def forward() -> None:
        for _ in range(n_calls):
            world.steps()
        ti.sync()

    return PeerRun(forward, world.x.to_numpy, reset=world.reset)


def whole_steps(n_steps: int) -> int:
    """Return a number of steps near `n_steps` that the kernels can do."""
    return max(1, n_steps // UNROLLED) * UNROLLED


@ti.data_oriented
class TaichiBlock:
    """Fields and kernel of one block."""

    def __init__(self, block: Block) -> None:
        tets, self.n, self.nt = block.mesh.tets, block.model.n_nodes, block.n_tets
        force = block.model.forces["block"]
        B, volume = rest_shape(block.mesh.points, tets)
        ptr, slots = node_slots(tets, self.n)
        self.mu, self.lam = float(force.mu), float(force.lam)  # pyright: ignore
        self.dt, self.g = block.dt, [float(g) for g in block.model.gravity]
        self.start = [np.asarray(a, np.float32) for a in (block.state.x, block.state.v)]
        self.x, self.v = (ti.Vector.field(3, ti.f32, self.n) for _ in range(2))
        self.slots = ti.Vector.field(3, ti.f32, 4 * self.nt)
        self.tets = self._field(ti.Vector.field(4, ti.i32, self.nt), tets)
        self.B = self._field(ti.Matrix.field(3, 3, ti.f32, self.nt), B)
        self.V = self._field(ti.field(ti.f32, self.nt), volume)
        self.w = self._field(ti.field(ti.f32, self.n), block.model.inverse_mass)
        self.ptr = self._field(ti.field(ti.i32, self.n + 1), ptr)
        self.slots_of = self._field(ti.field(ti.i32, 4 * self.nt), slots)

    @staticmethod
    def _field(field: Any, values: np.ndarray) -> Any:
        whole = np.issubdtype(values.dtype, np.integer)
        field.from_numpy(values.astype(np.int32 if whole else np.float32))
        return field

    def reset(self) -> None:
        """Set the initial state."""
        self.x.from_numpy(self.start[0])
        self.v.from_numpy(self.start[1])
        ti.sync()

    @ti.func
    def write_forces(self, e):
        """Write the forces on the corners of tetrahedron e into its slots."""
        q = self.tets[e]
        x0 = self.x[q[0]]
        Ds = ti.Matrix.cols([self.x[q[1]] - x0, self.x[q[2]] - x0, self.x[q[3]] - x0])
        B = self.B[e]
        F = Ds @ B
        r0 = ti.Vector([F[0, 0], F[0, 1], F[0, 2]])
        r1 = ti.Vector([F[1, 0], F[1, 1], F[1, 2]])
        r2 = ti.Vector([F[2, 0], F[2, 1], F[2, 2]])
        C = ti.Matrix.rows([r1.cross(r2), r2.cross(r0), r0.cross(r1)])
        I_C, J = F.norm_sqr(), r0.dot(r1.cross(r2))
        s = self.mu * (I_C / (I_C + 1.0))
        p = self.lam * (J - 1.0 - 0.75 * self.mu / self.lam)
        H = -self.V[e] * (s * F + p * C) @ B.transpose()
        f1 = ti.Vector([H[0, 0], H[1, 0], H[2, 0]])
        f2 = ti.Vector([H[0, 1], H[1, 1], H[2, 1]])
        f3 = ti.Vector([H[0, 2], H[1, 2], H[2, 2]])
        self.slots[4 * e] = -(f1 + f2 + f3)
        self.slots[4 * e + 1] = f1
        self.slots[4 * e + 2] = f2
        self.slots[4 * e + 3] = f3

    @ti.func
    def contact(self, x, v):
        """Return the floor's force on a node."""
        f = ti.Vector([0.0, 0.0, 0.0])
        depth = SINK - x[1]
        if depth > 0.0:
            p = K_E * depth + K_D * ti.max(0.0, -v[1])
            s = ti.sqrt(v[0] * v[0] + v[2] * v[2])
            k = K_F
            if K_F * s > FRICTION * p:
                k = FRICTION * p / s
            f = ti.Vector([-k * v[0], p, -k * v[2]])
        return f

    @ti.kernel
    def steps(self):
        """Run `UNROLLED` steps."""
        for _ in ti.static(range(UNROLLED)):
            for e in range(self.nt):
                self.write_forces(e)
            for i in range(self.n):
                f = self.contact(self.x[i], self.v[i])
                for k in range(self.ptr[i], self.ptr[i + 1]):
                    f += self.slots[self.slots_of[k]]
                self.v[i] += self.dt * (self.w[i] * f + ti.Vector(self.g))
                self.x[i] += self.dt * self.v[i]
