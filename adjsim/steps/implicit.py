r"""Implicit (backward) Euler: stable at any step size, and each step solves a system.

    M (v+ - v) = dt (f(x+, v+, theta_k) + M g),   x+ = x + dt v+                      (1)

on the nodes that are not pinned; pinned ones keep their velocity, or go where a grip leads them
(`adjsim/forces/grip.py`). Rigid bodies take such a step
too: `adjsim/steps/body_balance.py` has theirs, and the part of (2) that is theirs. It is of first
order, and takes energy out of what is faster than a step.

Newton's method from v+ = v, with the sparse factors of

    A = M - dt D - dt^2 K,   K = df/dx,   D = df/dv at (x+, v+)                       (2)

which is not symmetric with friction or viscosity. A serves again while the residual falls to less
than `SLOW` of what it was, and is made again where it does not. A step of Newton's is halved while
the residual grows or is not finite. Where no step helps, as where a cloth buckles, masses are added
until A is positive definite, and steps go on down the potential (`adjsim/descent.py`).

It has converged when no component of the residual is above `tolerance` times what the elements and
the weight do to the busiest node or body in dt, or above the rounding error of positions and
velocities. Moments are compared with the largest moment on a body.
A step starts from nothing but its own state: run again, it has the same bits. Pairs of surfaces
that touch are found again wherever the search is. Surfaces that go through each other, at the end
of a step or on a straight way to it, are an error.

Adjoint: `adjoint/steps/implicit.py`. Tests: `tests/steps/test_implicit.py`.
Source: Baraff & Witkin, Large steps in cloth simulation, SIGGRAPH 1998.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import scipy  # its parts are loaded where they are used: `import adjsim` needs none

from adjsim import checks
from adjsim.descent import MOST_HALVES, MOST_SHIFTS, OVERSHOOT, Descent
from adjsim.model import Model
from adjsim.rigid.implicit_step import UNKNOWNS
from adjsim.steps.body_balance import VELOCITIES, BodyBalance
from adjsim.steps.field_step import FieldStep, FieldStepper
from adjsim.steps.leads import Leads
from adjsim.system import RolloutError
from adjsim.tiles.element_kind import check_tangents
from adjsim.tiles.loop_arrays import States


if TYPE_CHECKING:
    import scipy.sparse
    from scipy.sparse.linalg import SuperLU


SLOW = 0.5  # of the residual before: factors that do no better are made again
LEAST_PART = 0.125  # of a step: where the residual falls only along less, it leads into a trap
PARTS = 0.5 ** np.arange(MOST_HALVES)
PIVOT = 0.1  # of the largest number in its column: a smaller diagonal is not divided by
ROUNDINGS = 16 * float(np.finfo(float).eps)  # of the largest position and velocity


@dataclass(frozen=True)
class ImplicitEuler(FieldStep):
    """A step that is stable at any size, for models of nodes and bodies on the CPU, in float64.

    It pays for stiff bodies, whose semi-implicit steps would have to be many.

    Parameters
    ----------
    tolerance : float
        The residual, of what acts at the busiest node or body.
    most_iterations : int
        Of Newton's method in a step, before it is an error.
    """

    tolerance: float = 1e-12
    most_iterations: int = 100

    IS_STABLE: ClassVar[bool] = True
    FORCES_AT_END: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.positive("tolerance", checks.number("tolerance", self.tolerance))
        checks.whole("most_iterations", self.most_iterations, 1)


class ImplicitStepper(FieldStepper):
    """Solves each step by Newton's method."""

    HAS_BODIES: ClassVar[bool] = True
    HAS_GRIPS: ClassVar[bool] = True

    def __init__(self, model: Model, step: ImplicitEuler, dt: float, n_steps: int) -> None:
        super().__init__(model, step, dt, n_steps)
        check_tangents(force.kind for force in model.forces.values())
        self.settings = step
        self.bodies = BodyBalance(self.field.stepper, dt)
        self.leads = Leads(self.packed.led)
        is_free = [np.repeat(self.is_free, 3), np.ones(UNKNOWNS * model.n_bodies, bool)]
        self.free = np.flatnonzero(np.concatenate(is_free))
        self.mass = np.where(self.is_free, model.mass, 0.0)[:, None]
        self.weight = self.mass * model.gravity
        # What resists a change of each unknown, (n,) [kg, kg m^2].
        self.inertia = np.concatenate([np.repeat(self.mass, 3), self.bodies.inertia])

    def end(self, k: int, before: States) -> States:
        """Return the state at the end of step k (1).

        Raises
        ------
        RolloutError
            If Newton's method does not converge.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return _Newton(self, k, before).run()

    def moved(self, k: int, before: States, u: np.ndarray) -> States:
        """Return the state at the end of step k with these unknowns: velocities of nodes, bodies.

        They are flat: v' of the nodes, then v' and omega' of the bodies.
        """
        x, n = before.x, self.model.n_nodes
        end = States(np.empty_like(x), np.empty_like(x), np.empty_like(before.p))
        end.v[:n] = u[: 3 * n].reshape(-1, 3)
        end.x[:n] = x[:n] + self.dt * end.v[:n]
        self.leads.put(k, self.dt, self.packed.series, x, end)
        self.bodies.end(before.p, u[3 * n :].reshape(-1, UNKNOWNS), end)
        return end

    def matrix(self, k: int, before: States, end: States) -> "scipy.sparse.csc_array":
        """Return A (2) of all unknowns at the end of step k; pinned nodes have no mass."""
        mass = scipy.sparse.diags_array(np.repeat(self.mass[:, 0], 3), format="csc").tocsc()
        field, dt = self.field, self.dt
        if not self.model.n_bodies:
            return (mass - field.matrix_at(end, dt * dt, dt, k)).tocsc()
        slopes = field.matrix_at(end, 1.0, 0.0, k), field.matrix_at(end, 0.0, 1.0, k)
        f = field.forces_at(end, k)
        return self.bodies.matrix(mass, slopes, f, before.p, end, field.still.tan)

    def solved(
        self, A: "scipy.sparse.csc_array", right: np.ndarray, trans: Literal["N", "T"]
    ) -> np.ndarray:
        """Return the solution of A or A^T for what is free, flat, 0 at pinned nodes."""
        out = np.zeros_like(right)
        out[self.free] = self.factors(A).solve(right[self.free], trans=trans)
        return out

    def factors(self, A: "scipy.sparse.csc_array") -> "SuperLU":
        """Return the factors of A at the free components."""
        from scipy.sparse.linalg import splu

        return splu(
            A[self.free][:, self.free].tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=PIVOT,
            options={"SymmetricMode": True},
        )  # fmt: skip


ImplicitEuler.STEPPER = ImplicitStepper


class _Newton:
    """Newton's method for the velocities at the end of step k."""

    def __init__(self, stepper: ImplicitStepper, k: int, before: States) -> None:
        n = stepper.model.n_nodes
        self.s, self.k, self.before = stepper, k, before
        start = np.concatenate([before.v[:n].ravel(), before.p[:, VELOCITIES].ravel()])
        self.u, self.end, self.r = self.at(start)
        self.is_moment = np.zeros(len(start), bool)
        self.is_moment[3 * n :].reshape(-1, UNKNOWNS)[:, 3:] = True
        self.rounding = np.zeros(2)  # of positions, in forces and moments of the residual
        forces, moments = self.limits().tolist()
        self.lever = moments / forces if forces and moments else 1.0  # [m]
        self.A: Any = None
        self.factor: SuperLU | None = None
        self.goes_down = False
        self.descent = Descent(stepper.inertia[stepper.free])

    def at(self, u: np.ndarray) -> tuple[np.ndarray, States, np.ndarray]:
        """Return u, the state at the end of a step with u, and the residual of (1), flat [N s]."""
        s, before, n = self.s, self.before, self.s.model.n_nodes
        end = s.moved(self.k, before, u)
        f = s.field.forces_at(end, self.k)
        f[:n][~s.is_free] = 0.0
        r = s.mass * (end.v[:n] - before.v[:n]) - s.dt * (f[:n] + s.weight)
        return u, end, np.concatenate([r.ravel(), s.bodies.balance(f, before.p, end.p).ravel()])

    def limits(self) -> np.ndarray:
        """Return what the forces and the moments of the residual may be, [N s] and [N m s]."""
        s, n = self.s, self.s.model.n_nodes
        acts = s.field.magnitudes_at(self.end, self.k)
        on_nodes = float(acts[:n].max(initial=0.0)) + float(np.abs(s.weight).max(initial=0.0))
        impulse = float(np.abs(s.mass * self.end.v[:n]).max(initial=0.0))
        on_bodies, momenta = s.bodies.magnitudes(acts[n:], self.end.p)
        allowed = s.settings.tolerance * s.dt * np.maximum([on_nodes, 0.0], on_bodies)
        rounded = ROUNDINGS * np.maximum([impulse, 0.0], momenta)
        return np.maximum(allowed, np.maximum(self.rounding, rounded))

    def run(self) -> States:
        """Step until it has converged."""
        largest = self.largest()
        for _ in range(self.s.settings.most_iterations):
            if (largest <= self.limits()).all():
                return self.end
            is_new = self.factor is None
            if is_new:
                self.factorise()
            if not self.goes_down:
                self.goes_down = self.take_step(halves=is_new) < LEAST_PART and is_new
            elif self.descend() == 0.0:
                break
            before, largest = largest, self.largest()
            if self.goes_down or (largest > SLOW * before).any():
                self.factor = None
        limits = self.limits()
        if (largest <= limits).all():
            return self.end
        worst = int(np.argmax(largest > limits))
        raise RolloutError(
            f"Step {self.k} (t = {self.k * self.s.dt:.6g} s) did not converge: the largest "
            f"residual left is {largest[worst]:.3g} {('N s', 'N m s')[worst]}, of at most "
            f"{limits[worst]:.3g}.",
            "Try a smaller {dt}, loads that grow over several steps, or more damping.",
        )

    def largest(self) -> np.ndarray:
        """Return the largest force and moment of the residual; NaN where one is."""
        return np.array([_largest(self.r[~self.is_moment]), _largest(self.r[self.is_moment])])

    def size(self, r: np.ndarray) -> float:
        """Return the norm of a residual, moments over a lever."""
        return float(np.linalg.norm(np.where(self.is_moment, r / self.lever, r)))

    def factorise(self) -> None:
        """Make A where the search is and, unless it goes down the potential, factors."""
        s = self.s
        self.A = A = s.matrix(self.k, self.before, self.end)
        stiff = np.abs(A.diagonal() - s.inertia) / s.dt
        force, moment = _largest(stiff[~self.is_moment]), _largest(stiff[self.is_moment])
        size = _largest(self.end.x)
        self.rounding = ROUNDINGS * size * np.array([force, np.sqrt(force * moment)])
        if self.goes_down:
            return
        try:
            self.factor = s.factors(A)
        except (RuntimeError, ValueError):  # singular, or not finite
            self.factor = None

    def take_step(self, *, halves: bool) -> float:
        """Take a step of Newton's or, if it `halves`, a part of it, so that the residual falls.

        Returns the part.
        """
        if self.factor is None:
            return 0.0
        direction, size = self.direction(self.factor), self.size(self.r)
        for fraction in PARTS if halves else (1.0,):
            u, end, r = self.at(self.u - fraction * direction)
            if self.size(r) < size:  # False where one is not finite
                self.u, self.end, self.r = u, end, r
                return fraction
        return 0.0

    def descend(self) -> float:
        """Take a part of a step down the potential, with masses added; return the part."""
        free = self.s.free
        A = self.A[free][:, free].tocsc()
        for _ in range(MOST_SHIFTS):
            factor = self.descent.factors(A)
            if factor is None:
                return 0.0
            fraction = self.descend_along(self.direction(factor))
            self.descent.took(fraction)
            if fraction > 0.0:
                self.goes_down = fraction < 1.0 or self.descent.shift > 0.0
                return fraction
        return 0.0

    def descend_along(self, direction: np.ndarray) -> float:
        """Take a part of a step, at whose end the residual pushes on, or not back by much."""
        slope = float(np.vdot(self.r, direction))
        if not np.isfinite(slope) or slope <= 0.0:
            return 0.0
        for fraction in PARTS:
            u, end, r = self.at(self.u - fraction * direction)
            if np.isfinite(r).all() and float(np.vdot(r, direction)) >= -OVERSHOOT * slope:
                self.u, self.end, self.r = u, end, r
                return fraction
        return 0.0

    def direction(self, factor: "SuperLU") -> np.ndarray:
        """Return a step of Newton's, backwards."""
        step, free = np.zeros_like(self.u), self.s.free
        step[free] = factor.solve(self.r[free])
        return step


def _largest(values: np.ndarray) -> float:
    """Return the largest magnitude, NaN where one is, 0 of none."""
    return float(np.abs(values).max(initial=0.0))
