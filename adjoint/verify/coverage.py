"""The live coverage table behind `adjsim verify`: every parameter of every system.

A cell is one parameter of one system. For it, with every other parameter held fixed,

- a least-squares loss against a nearby target is differentiated by the adjoint, and the
  gradient meets `taylor_test` and `gradcheck`, over 100 random directions or a basis;
- tangent and adjoint of the outputs meet `dot_test`, over the rollout and over one step;
- the distance to the nearest kink is measured, in the units of the steps taken, and the
  steps stay well inside it.

A parameter that a registered class declares and no system has is a failure of the table.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from adjoint.vectors import unit
from adjoint.verify.declared import declared_parameters
from adjoint.verify.dot_test import DotTest, dot_test
from adjoint.verify.gradcheck import gradcheck
from adjoint.verify.kinks import kink_distance
from adjoint.verify.problem import Problem, System, known_at_point
from adjoint.verify.systems import SYSTEMS
from adjoint.verify.taylor_test import taylor_test
from adjsim import checks


N_DIRECTIONS = 100
VJP_TOLERANCE = 1e-7
KERNEL_TOLERANCE = 1e-12
LARGEST_STEP = 1e-3  # of the central differences, in units of the parameter
LARGEST_EPS = 1e-2  # of the Taylor test


@dataclass(frozen=True)
class Cell:
    """One parameter of one system.

    Attributes
    ----------
    system, parameter : str
        Where this was checked.
    slope : float
        Least slope of the Taylor remainder over `halvings` halvings; inf where linear.
    dot, dot_kernel : float
        Residual of the dot test over the system, and over one step of it (NaN: no steps).
    vjp_error : float
        Largest error against central differences over `n_directions` directions, or over all
        there are where those are a basis (`gradcheck`).
    kink : float
        Distance to the nearest kink in units of the parameter's size; inf: smooth.
    gradient_norm : float
        Norm of the scaled gradient, which is not zero.
    seconds : float
        Time taken.
    reason : str
        Why it failed; empty if it passed.
    is_inert : bool
        Whether the parameter does not act in this system: it was checked to be exactly 0.
    """

    system: str
    parameter: str
    slope: float
    halvings: int
    dot: float
    dot_kernel: float
    vjp_error: float
    n_directions: int
    kink: float
    gradient_norm: float
    seconds: float
    reason: str
    is_inert: bool = False

    @property
    def passed(self) -> bool:
        """Whether every bar was met."""
        return not self.reason

    def to_dict(self) -> dict[str, Any]:
        """Return the cell as plain values, ready for JSON; None for NaN and infinity."""
        plain = {
            key: value if not isinstance(value, float) or np.isfinite(value) else None
            for key, value in asdict(self).items()
        }
        return {**plain, "passed": self.passed}


@dataclass(frozen=True)
class Coverage:
    """The table: cells, declared parameters that no system has, and the nearest touches.

    `events` says of each system with contact how near it is to a touch in another step.
    """

    cells: tuple[Cell, ...]
    missing: tuple[str, ...]
    events: Mapping[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether there are cells, all passed, and none is missing."""
        return bool(self.cells) and not self.missing and all(cell.passed for cell in self.cells)

    def table(self) -> str:
        """Return the table as plain text."""
        lines = [text_table(self.cells)]
        lines += [f"{name}: {event}" for name, event in self.events.items()]
        lines += [f"FAIL {name} is in no system" for name in self.missing]
        n_failed = sum(not cell.passed for cell in self.cells)
        verdict = "pass" if self.passed else f"FAIL: {n_failed + len(self.missing)}"
        return "\n".join([*lines, f"{len(self.cells)} cells, {verdict}"])

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain values, ready for JSON."""
        return {
            "passed": self.passed,
            "missing": list(self.missing),
            "events": dict(self.events),
            "cells": [cell.to_dict() for cell in self.cells],
        }


def system_names() -> list[str]:
    """Return the names of all systems, e.g. "contact/slip"."""
    return [system.name for system in SYSTEMS]


def select(name: str | None) -> list[System]:
    """Return the systems of a name or of a group, "contact" for "contact/..."; None: all.

    Raise a ValueError if no system and no group has the name.
    """
    if name is None:
        return list(SYSTEMS)
    groups = dict.fromkeys(system.name.split("/")[0] for system in SYSTEMS)
    try:
        checks.known_key("system", name, [*groups, *system_names()])
    except ValueError as error:
        message = str(error).split(" Known:", 1)[0]
        raise ValueError(
            f"{message} Groups: {', '.join(groups)}. Without a name all are checked, and listed."
        ) from error
    return [system for system in SYSTEMS if name in (system.name, system.name.split("/")[0])]


def verify(
    name: str | None = None,
    *,
    on_cell: Callable[[Cell], None] | None = None,
    processes: int = 1,
    seed: int = 0,
) -> Coverage:
    """Check every parameter of the chosen systems now; a failed cell raises nothing.

    `name` is that of a system or of a group of systems; None: all, and then no declared parameter
    may be missing from them. `on_cell` is called with each cell as it is known, to show progress.
    `processes` systems are checked at a time, each in a process of its own if more than one: a
    script that asks for more must call this under `if __name__ == "__main__"`. `seed` is that of
    the random directions and cotangents. Raise a ValueError if no system has the name.
    """
    chosen = select(name)
    done: list[Checked] = []
    if min(processes, len(chosen)) == 1:
        done = [check_system(system.name, seed, on_cell) for system in chosen]
    else:
        # A family shares kernels: its first system compiles them, before any of the others.
        first = {system.family: system for system in reversed(chosen)}.values()
        order = [*first, *(system for system in chosen if system not in first)]
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            running = {pool.submit(check_system, s.name, seed): s.name for s in order}
            for future in as_completed(running):
                for cell in future.result().cells:
                    if on_cell is not None:
                        on_cell(cell)
            by_name = {name: future.result() for future, name in running.items()}
        done = [by_name[system.name] for system in chosen]
    cells = tuple(cell for checked in done for cell in checked.cells)
    covered = {owner for checked in done for owner in checked.owners}
    events = {checked.cells[0].system: checked.event for checked in done if checked.event}
    return Coverage(cells, () if name else missing_parameters(covered), events)


class Checked(NamedTuple):
    """A system's cells, the (class, parameter) pairs that it covers, and its nearest touch."""

    cells: list[Cell]
    owners: set[tuple[str, str]]
    event: str


def check_system(
    name: str, seed: int = 0, on_cell: Callable[[Cell], None] | None = None
) -> Checked:
    """Check every parameter of one system."""
    (system,) = (system for system in SYSTEMS if system.name == name)
    problem = known_at_point(system.make())
    cells = []
    for parameter in problem.point:
        cells.append(check_cell(name, problem, parameter, seed))
        if on_cell is not None:
            on_cell(cells[-1])
    return Checked(cells, set(problem.owners.values()), problem.event())


def missing_parameters(covered: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the declared parameters that are not covered, as "Class.parameter"."""
    return tuple(f"{cls}.{name}" for cls, name in sorted(declared_parameters() - set(covered)))


def check_cell(system: str, problem: Problem, parameter: str, seed: int = 0) -> Cell:
    """Check one parameter of one system."""
    begin = time.perf_counter()
    if parameter in problem.inert:
        return _check_inert(system, problem, parameter, seed)
    value, rng = problem.point[parameter], np.random.default_rng(seed)
    y = problem.forward(problem.point)
    # A target off by as much as the parameter moves the outputs: nothing drowns.
    move = problem.jvp({parameter: _scale(value) * unit(rng, value.size).reshape(value.shape)})
    residual = rng.standard_normal(y.shape) * float(np.sqrt(np.mean(np.square(move))))
    target = y - residual

    def loss(x: np.ndarray) -> float:
        r = problem.forward({**problem.point, parameter: np.asarray(x)}) - target
        return 0.5 * float(r @ r)

    gradient = np.asarray(problem.vjp(residual, [parameter])[parameter])
    kink = kink_distance(
        lambda x: problem.margins({**problem.point, parameter: np.asarray(x)}),
        value, gradient=gradient, seed=seed,
    )  # fmt: skip
    taylor = taylor_test(loss, gradient, value, eps0=LARGEST_EPS, kink=kink, seed=seed)
    grad = gradcheck(
        loss, gradient, value, n_directions=N_DIRECTIONS, step=LARGEST_STEP,
        tolerance=VJP_TOLERANCE, kink=kink, seed=seed,
        noise=taylor.noise if np.isfinite(taylor.noise) else None,
    )  # fmt: skip
    dots = [_dot(problem, parameter, problem.dot_tolerance, seed)]
    if problem.kernel is not None:
        dots.append(_dot(problem.kernel, parameter, KERNEL_TOLERANCE, seed))
    verdicts = [
        ("Taylor", taylor.reason),
        ("gradient", grad.reason),
        *zip(("dot", "one-step dot"), (dot.reason for dot in dots), strict=False),
    ]
    return Cell(
        system=system,
        parameter=parameter,
        slope=taylor.slope1,
        halvings=taylor.halvings,
        dot=dots[0].residual,
        dot_kernel=dots[1].residual if len(dots) > 1 else float("nan"),
        vjp_error=grad.max_error,
        n_directions=len(grad.errors),
        kink=kink,
        gradient_norm=grad.gradient_norm,
        seconds=time.perf_counter() - begin,
        reason="; ".join(f"{what}: {why}" for what, why in verdicts if why),
    )


def _check_inert(system: str, problem: Problem, parameter: str, seed: int) -> Cell:
    """Check that a parameter which does not act has derivatives that are exactly zero."""
    value, rng = problem.point[parameter], np.random.default_rng(seed)
    y = problem.forward(problem.point)
    tangent = _scale(value) * unit(rng, value.size).reshape(value.shape)
    moved = problem.forward({**problem.point, parameter: value + LARGEST_STEP * tangent})
    adj = rng.standard_normal(y.shape)
    changes = {
        "outputs": moved - y,
        "jvp": problem.jvp({parameter: tangent}),
        "vjp": problem.vjp(adj, [parameter])[parameter],
    }
    wrong = [name for name, change in changes.items() if np.any(change)]
    inf, nan = float("inf"), float("nan")
    reason = f"it does not act, yet {', '.join(wrong)} not zero" if wrong else ""
    return Cell(system, parameter, inf, 0, 0.0, nan, 0.0, 0, inf, 0.0, 0.0, reason, is_inert=True)


def _dot(problem: Problem, parameter: str, tolerance: float, seed: int) -> DotTest:
    """Return the dot test of one parameter."""
    return dot_test(
        lambda t: problem.jvp({parameter: np.asarray(t)}),
        lambda c: problem.vjp(np.asarray(c), [parameter])[parameter],
        problem.point[parameter],
        tolerance=tolerance,
        seed=seed,
    )


def _scale(value: np.ndarray) -> float:
    """Return the root mean square of a value, 1 if it is zero."""
    return float(np.sqrt(np.mean(np.square(value)))) or 1.0


def text_table(cells: Sequence[Cell]) -> str:
    """Return the cells as plain text, one line each."""
    head = "{:22} {:24} {:>7} {:>9} {:>9} {:>9} {:>9}  {}"
    row = "{:22} {:24} {:7.3f} {:9.1e} {:9.1e} {:9.1e} {:9.1e}  {}"
    lines = [head.format("system", "parameter", "slope", "dot", "one step", "vjp", "kink", "")]
    lines += [
        row.format(
            c.system, c.parameter, c.slope, c.dot, c.dot_kernel, c.vjp_error, c.kink,
            ("zero" if c.is_inert else "pass") if c.passed else f"FAIL {c.reason}",
        )
        for c in cells
    ]  # fmt: skip
    return "\n".join(lines)
