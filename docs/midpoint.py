"""The explicit midpoint rule: a time step that adjsim does not have, with adjoint and tangent."""

from dataclasses import dataclass

from adjoint.steps.field_step import FieldSweep, FieldTangent, FieldTwin
from adjoint.system_registry import register_step
from adjsim.steps.field_step import FieldStep, FieldStepper
from adjsim.tiles.loop_arrays import States


class MidpointStepper(FieldStepper):
    """Takes a half step, and a whole one with the slope that it finds there."""

    def middle(self, k, x, v):
        """Return the state in the middle of step k."""
        h = 0.5 * self.dt
        return x + h * v, v + h * self.acceleration(k, x, v)

    def end(self, k, before):
        """Return the state at the end of step k."""
        xm, vm = self.middle(k, before.x, before.v)  # (1)
        am = self.acceleration(k, xm, vm)  # (2)
        return States(before.x + self.dt * vm, before.v + self.dt * am, before.p)  # (3)


@dataclass(frozen=True)
class Midpoint(FieldStep):
    """x' = x + dt v_m, v' = v + dt a(x_m, v_m): explicit, of second order."""

    STEPPER = MidpointStepper


class MidpointSweep(FieldSweep):
    """Undoes it."""

    def undo_step(self, k, before, end):
        """Turn the cotangents of the end of step k into those of its start."""
        dt, adj, s = self.taker.dt, self.adj, self.taker
        xm, vm = s.middle(k, before.x, before.v)
        # (3) x' = x + dt v_m, v' = v + dt a_m
        adj_x, adj_v, adj_vm, adj_am = adj.x.copy(), adj.v.copy(), dt * adj.x, dt * adj.v
        # (2) a_m = a(x_m, v_m)
        adj_xm, more = self.undo_acceleration(k, xm, vm, adj_am)
        adj_vm += more
        # (1) x_m = x + dt/2 v, v_m = v + dt/2 a(x, v)
        h = 0.5 * dt
        by_x, by_v = self.undo_acceleration(k, before.x, before.v, h * adj_vm)
        adj.x[:] = adj_x + adj_xm + by_x
        adj.v[:] = adj_v + adj_vm + h * adj_xm + by_v


class MidpointTangent(FieldTangent):
    """Pushes a tangent through it."""

    def pushed(self, k, before, end, tan):
        """Return the tangent of the end of step k."""
        s, h = self.stepper, 0.5 * self.stepper.dt
        x, v = before.x, before.v
        tan_xm = tan.x + h * tan.v  # (1)
        tan_vm = tan.v + h * self.push_acceleration(k, (x, v), (tan.x, tan.v))
        tan_am = self.push_acceleration(k, s.middle(k, x, v), (tan_xm, tan_vm))  # (2)
        return States(tan.x + s.dt * tan_vm, tan.v + s.dt * tan_am, tan.p)  # (3)


register_step(Midpoint, FieldTwin(MidpointSweep, MidpointTangent))
