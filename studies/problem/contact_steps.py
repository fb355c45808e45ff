r"""How long a step may be where bodies touch: tried on the motion itself.

The bounds of what touches (`adjsim/stable_step.py`) count everything that might touch at once, so a
stack of boxes is stable in steps ten times as long, while one bounce may need shorter ones. So the
motion is rolled out at the start values in steps of 64 times the estimate, but no longer than keeps
surfaces from passing each other, then of 1/2, 1/4, ... of these. The longest are taken whose motion

    differs from that of half as long steps by at most 3e-3 of the smallest body, at every frame,
    and that are at most 0.7 of what the forces ask for at the frames (`adjsim/measured_rate.py`).

The second makes gradients right as well: where steps are too long for friction that sticks, bodies
rest, but shake between the walls of its cone. Where no bodies touch at a frame, nothing is known of
longer steps than those of the estimate, and none are taken. The choice is a multiple of the
estimate, so it holds as material and contacts change in a search. The motion is that of the values
at the start, always on the CPU, so the choice is the same wherever a scene file is read again. What
is left of the error is measured at the answer, in steps half as long
(`studies/answer/discretisation.py`).

Where bodies touch only obstacles, the estimate is kept. It assumes that each point sinks into an
obstacle by itself. If the neighbours of a light point press it deeper, it is damped more. The
motion still looks right, but its tangent grows without bound. So the depths of the motion are
measured at 257 instants or more. If the step is longer than the stable step for these depths, it is
shortened to 0.6 of that, but not below a quarter of the estimate. This is done at the start, and
where local searches begin and end.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from adjsim.contact_margins import stable_dt_along
from adjsim.field import Field
from adjsim.measured_rate import rate_at
from adjsim.model import Model, State
from adjsim.stable_step import step_of
from studies.problem.scene_maps import system_at
from studies.problem.steps import LONG, PART_OF_STABLE, Sampling, TimeSteps, sample_steps
from studies.runs.errors import NotFiniteError
from studies.scene.building import BuiltScene
from studies.scene.motion import Motion


LONGEST, SHORTEST = 64.0, 0.25  # of the estimated step
EPS = 1e-9  # so that a number of steps is not rounded up to the next
AGREES = 3e-3  # of the smallest body: a third of a pixel where it is 100 pixels large
STABLE = 0.7  # of what is stable at its frames: twice the stiffness is still stable
N_FRAMES = 16  # at which motions are compared
SHORT = 1e-7  # a step below which is worth a word [s]
N_DEPTHS, MOST_ROWS = 257, 2e6  # instants at which depths are measured, and rows of all together


@dataclass(frozen=True, eq=False)
class _Trial:
    """A motion in steps of one length."""

    steps: TimeSteps
    motion: Motion
    run: Any = None  # None if it left the finite numbers, or bodies went through each other
    # (N_FRAMES, n_vertices, 3) by name
    surfaces: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def first_difference(self, finer: "_Trial") -> int | None:
        """Return the frame at which a vertex is too far away from where a finer motion has it."""
        if self.run is None or finer.run is None:
            return 0
        sizes = [float(np.ptp(x[0], axis=0).max()) for x in finer.surfaces.values()]
        far = np.zeros(N_FRAMES, bool)
        for name, x in self.surfaces.items():
            apart = np.linalg.norm(x - finer.surfaces[name], axis=2)
            far |= (apart > AGREES * min(sizes)).any(axis=1)
        return int(far.argmax()) if far.any() else None

    def touches(self) -> bool:
        """Whether bodies touch each other at any frame before the end."""
        system = cast("Model", self.motion.system)
        contacts = {name: force for name, force in system.forces.items() if force.changes}
        field = Field(replace(system, forces=contacts), n_steps=self.motion.n_steps)
        states = _states(self.motion, self.run)
        return any(field.magnitude(state, step) > 0.0 for step, state in states)


def stable_step(motion: Motion, run: Any) -> float:
    """Return the step that is stable at the frames of a run of a model, before its end [s]."""
    forces = Field(cast("Model", motion.system), n_steps=motion.n_steps)
    return step_of(max(rate_at(forces, state, step) for step, state in _states(motion, run)))


def _states(motion: Motion, run: Any) -> list[tuple[int, State]]:
    """Return the step and the state of each frame before the end."""
    return [
        (int(step), State(run.x[i], run.v[i], {name: replace(
            motion.state.bodies[name], rotation=None, position=body.position[i],
            orientation=body.orientation[i], velocity=body.velocity[i],
            angular_velocity=body.angular_velocity[i],
        ) for name, body in run.bodies.items()}))
        for i, step in enumerate(run.steps)
        if step < motion.n_steps
    ]  # fmt: skip


def tried_steps(
    steps: TimeSteps, built: BuiltScene, values: Mapping[str, Any], end: float
) -> tuple[TimeSteps, list[str]]:
    """Return steps that suit the motion until `end` [s], and what should be known of them.

    `values` are scene values by path that replace the scene's own. Where the file says how long a
    step is, steps stay what they are; where no bodies touch each other, they are not tried.
    """
    system, _ = system_at(built, values, steps.dt)
    if steps.is_given or built.step.IS_STABLE or not isinstance(system, Model):
        return steps, []
    suited, notes = steps.suited_to(system), []
    if any(force.changes for force in system.forces.values()):
        suited, notes = _tried(suited, built, values, end)
    else:
        suited = stable_steps(suited, built, values, end)
    if suited.dt < SHORT:
        notes.append(_cause(system, suited))
    return suited, notes


def stable_steps(
    steps: TimeSteps,
    built: BuiltScene,
    values: Mapping[str, Any],
    end: float,
    *,
    device: str = "cpu",
) -> TimeSteps:
    """Return steps in which contact with obstacles is stable until `end` [s]: shorter, or the same.

    Where bodies touch each other, the steps were tried on the motion (`tried_steps`).
    """
    if steps.is_given or built.step.IS_STABLE or not isinstance(built.system, Model):
        return steps
    forces = built.system.forces.values()
    if any(force.changes for force in forces) or not any(force.touches for force in forces):
        return steps
    rows = built.system.n_nodes + sum(set_.n_points for set_ in built.system.bodies.values())
    count = max(N_DEPTHS, int(min(MOST_ROWS / rows, end / steps.dt)))
    motion, _ = _motion(steps, built, values, np.linspace(0.0, end, count))
    motion = replace(motion, threads=None, device=device)
    system = cast("Model", motion.system)
    try:
        stable = stable_dt_along(system, motion.run())
    except NotFiniteError:  # then the motion itself says why
        return steps
    if steps.dt <= LONG * stable or steps.factor <= SHORTEST:
        return steps
    factor = max(stable / system.stable_dt(), SHORTEST)
    return replace(steps, factor=factor).suited_to(system)


def _tried(
    steps: TimeSteps, built: BuiltScene, values: Mapping[str, Any], end: float
) -> tuple[TimeSteps, list[str]]:
    """Return the longest steps that will do, and what to say where none does."""
    system, _ = system_at(built, values, steps.dt)
    stable = PART_OF_STABLE * system.stable_dt()

    def of(count: int) -> TimeSteps:
        """Return so many steps; those that `suited_to` makes of their factor."""
        return replace(steps, count=count, factor=steps.interval / count / stable * (1.0 + EPS))

    trials: list[_Trial] = []
    count = replace(steps, factor=LONGEST).suited_to(system).count
    while (longer := of(count)).factor > SHORTEST:
        trials.append(_trial(longer, built, values, end))
        if len(trials) > 1 and trials[-2].first_difference(trials[-1]) is None:
            coarse, fine = trials[-2:]
            limit = STABLE * min(stable_step(each.motion, each.run) for each in (coarse, fine))
            if fine.steps.dt <= limit:  # what lies between two that agree agrees with them
                most = min(float(coarse.steps.dt), limit)
                count = int(np.ceil(steps.interval / most - EPS))
                return of(count if fine.touches() else max(count, steps.count)), []
        count *= 2
    if len(trials) < 2 or trials[-1].run is None:  # then the motion itself says why
        return steps, []
    return steps, [_never(*trials[-2:])]


def _trial(steps: TimeSteps, built: BuiltScene, values: Mapping[str, Any], end: float) -> _Trial:
    """Return the motion in these steps."""
    instants = np.linspace(0.0, end, N_FRAMES)
    motion, at = _motion(steps, built, values, instants)
    try:
        run = motion.run()
    except NotFiniteError:
        return _Trial(steps, motion)
    moving = {*built.nodes, *cast("Model", motion.system).bodies}
    surfaces = {
        name: at.at(subject.vertices(motion, run))
        for name, subject in built.subjects.items()
        if name in moving
    }
    return _Trial(steps, motion, run, surfaces=surfaces)


def _motion(
    steps: TimeSteps, built: BuiltScene, values: Mapping[str, Any], instants: np.ndarray
) -> tuple[Motion, Sampling]:
    """Return a motion in these steps, and where the instants lie among its frames."""
    kept, (at,) = sample_steps([instants], steps.dt, moves=[False])
    system, state = system_at(built, values, steps.dt, varies=True)
    return Motion(system, state, steps.dt, kept, threads=1, step=built.step), at


def _never(coarse: _Trial, fine: _Trial) -> str:
    """Return what to say where no step that was tried is short enough."""
    say = f"No time step from {LONGEST:g} to {SHORTEST:g} times the estimated one gives the "
    say += f"motion of one half as long to {AGREES:g} of the smallest body"
    system, frame = cast("Model", fine.motion.system), coarse.first_difference(fine)
    if frame is None:
        return f"{say} and is stable. Give `world.dt`."
    states = _states(fine.motion, fine.run)
    step, state = states[min(frame, len(states) - 1)]
    strength = {
        name: Field(replace(system, forces={name: force}), n_steps=fine.motion.n_steps).magnitude(
            state, step
        )
        for name, force in system.forces.items()
        if force.touches
    }
    strongest = max(strength, key=lambda name: strength[name])
    return (
        f"{say}: from {step * fine.steps.dt:.3g} s on they are apart, where `{strongest}` pushes "
        "most. The estimated one is taken. What follows may hang on every bounce: end the film "
        f"earlier, make `{strongest}` softer (`stiffness`), or give `world.dt`."
    )


def _cause(system: Model, steps: TimeSteps) -> str:
    """Return what makes a step so short."""
    say = f"The time step is {steps.dt:.2g} s"
    if steps.longest < steps.factor * PART_OF_STABLE * system.stable_dt():
        return f"{say}, so that surfaces that meet this fast do not pass each other: give `radius`."
    without = {
        name: replace(
            system, forces={other: force for other, force in system.forces.items() if other != name}
        ).stable_dt()
        for name in system.forces
    }
    stiffest = max(without, key=lambda name: without[name])
    return f"{say}: `{stiffest}` is so stiff or damped. Make it softer, or give `world.dt`."
