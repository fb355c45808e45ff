"""Rods and bobs as a subject of films: tangents and cotangents of their vertices."""

from types import SimpleNamespace

import numpy as np

from adjsim.reduced.double_pendulum import DoublePendulum
from adjsim.reduced.pendulum import PendulumTrajectory
from render.pendulum import RodsAndBobs
from studies.scene.filming import HangingRods


def test_rods_hang_where_the_system_has_them(rng):
    subject = HangingRods(RodsAndBobs([0.2, 0.2], 0.05))
    system = DoublePendulum(length=[1.0, 0.8], mass=[1.0, 1.0], damping=[0.0, 0.0], gravity=9.8)
    motion, angle = SimpleNamespace(system=system, dtype="float64"), rng.normal(size=(3, 2))
    run = PendulumTrajectory(np.arange(3), 0.1, angle, np.zeros_like(angle))
    tangent = PendulumTrajectory(np.arange(3), 0.1, rng.normal(size=(3, 2)), run.rate)
    tangents = {"length": rng.normal(size=2), "gravity": 1.0}
    tan = subject.vertices_jvp(motion, run, tangent, tangents)
    adj = rng.normal(size=tan.shape)
    pulled = subject.vertices_vjp(motion, run, adj)
    back = np.vdot(pulled.frames["angle"], tangent.angle)
    back += np.vdot(pulled.values["length"], tangents["length"])
    np.testing.assert_allclose(np.vdot(adj, tan), back, rtol=1e-12)
    still = subject.vertices_jvp(motion, run, tangent, {"gravity": 1.0})
    assert not np.array_equal(still, tan)
