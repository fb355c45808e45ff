r"""By how much an answer would change on a finer mesh, at shorter steps, in other contacts or laws.

With the residuals r (n,) and their Jacobian J (n, p) at the answer theta, and r' those of the same
theta on the finer mesh, one Gauss-Newton step for the finer mesh is

    d = -(J^T J)^-1 J^T (r' - r),

since J^T r is 0 at the answer. The coarse problem alone can correct a long step: at theta - d it
should show what the finer one shows at theta. What is missing is one more step, with J brought up
to date by Broyden's rule; each costs one evaluation.

Of films the places of all drawn vertices are compared, with a Jacobian of their own: pictures that
are off by more than a few pixels have no useful slope. The error of a shape stays as it is there:
it would move the vertices themselves to where the finer mesh has them, which outlines do not allow.

A film that was simulated on the scene's own mesh has no mesh error, and shows it: the two motions
still differ where theta has done what it can. With D the difference of their residuals, r'(theta +
d) - r(theta), without what J can make up for, the share of the refinement that was observed is

    s = -D^T r / D^T D,

0 on the scene's own mesh, 1 on one twice as fine, 4/3 to 2 on a very fine one. Its standard error
is that of a jackknife over blocks of frames. Where s is 0 and not a half, the mesh error does not
count. Where the error of a shape is free, s is not known: it makes up for most of D.

So is a contact whose stiffness adjsim chose: in one that is 4 times as hard points sink half as
deep, and surfaces of bodies whose thickness was chosen are half as far apart. It moves pictures by
less than a pixel or two, so these are compared. And so is a contact that loses 4 times as much,
where it was adjsim that chose how much: a cloth that rattles on a ball slides more easily. And so
are bodies that are drawn flat in place of smooth, or the other way round, and bodies that are held
by one row of nodes more or fewer: where a clamp ends is rarely known better than that. And bodies
that hold the nodes that they would hold if they were two uncertainties of their size larger or
smaller: which these are jumps, so no slope shows it.

And so is the law of a solid, with which the answer is fitted again, in a few steps from J, which
Broyden's rule brings up to date. The stable neo-Hookean law and that of textbooks agree at small
strains; at larger ones they lead to the same mu and to a lam that differs by half. What strains so
much may also show which of both it has.

The whole error is larger than this change: twice as large at first order. Linear tetrahedra are of
second order, e = 4/3 d, but only on meshes that are finer than most. In a clamped beam of 8 x 2 x 2
cells that is fitted to one of 32 x 8 x 8, log E is off by 1.5 d; of 4 x 1 x 1 cells, fitted to one
of 16 x 4 x 4, by 2.5 d.

Sources: Roache, Perspective: a method for uniform reporting of grid refinement studies, J. Fluids
Engineering 116 (1994); Broyden, A class of methods for solving nonlinear simultaneous equations,
Mathematics of Computation 19 (1965).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from studies.optimizers.jacobian import Jacobian
from studies.optimizers.problem import NOT_FINITE
from studies.optimizers.secants import secant_jacobian
from studies.problem.clusters import clusters_of_rows
from studies.problem.many_thetas import residuals_at
from studies.problem.problem import SceneProblem
from studies.problem.refining import element_counts, seen_in_space, with_shorter_steps
from studies.runs.errors import StudyError


# What is finer, harder, or loses more
MESH, TIME_STEP, CONTACT, LOSS, LAW = "mesh", "step", "contact", "loss", "law"
SHADING, HELD, RELEASED = "shading", "held", "released"
LARGER, SMALLER = "larger", "smaller"  # bodies, of which other nodes are held then
OTHER = {
    MESH: "a mesh twice as fine",
    CONTACT: "a contact 4 times as hard",
    LOSS: "a contact that loses 4 times as much",
    SHADING: "flat in place of smooth shading, or the other way round,",
    LAW: "the other law of solids",
    HELD: "one more row of held nodes",
    RELEASED: "one row of held nodes fewer",
    LARGER: "the nodes that a larger body would have held",
    SMALLER: "the nodes that a smaller body would have held",
}
WHOLE = 2.0  # error over the change: on a mesh twice as fine at first order, with one other law
OF_HELD = (HELD, RELEASED, LARGER, SMALLER)
CORRECTIONS = 5  # of a step, at most
SHORT, LONG = 0.02, 1.0  # steps of theta: that need no correction, and that are not taken at once
LEAST_FRAMES = 1.0 / 3.0  # part of the film that must be simulated for a change to be known
BLOCKS = 8  # of frames for the jackknife
ROUNDING = 1e-12  # part of the difference of two motions that is none
# Share of a refinement, with two standard errors, that the scene's own mesh may show by chance
LEAST_SHARE = 0.5
Linear = tuple[np.ndarray, Jacobian]  # residuals (n,) and their Jacobian (n, p)


@dataclass(frozen=True, eq=False)
class Change:
    """What an answer would change by: on a finer mesh, at shorter steps, with other physics."""

    source: str  # `MESH`, `TIME_STEP`, `CONTACT`, `LOSS` or `LAW`
    step: np.ndarray  # of theta, (p,)
    # Of all but the step: the share of the refinement that was observed, and its standard error;
    # NaN if unknown
    share: tuple[float, float] = (np.nan, np.nan)

    @property
    def is_error(self) -> bool:
        """Whether it is an error of the answer: what was observed has another mesh or contact."""
        share, error = self.share
        return not abs(share) + 2.0 * error < LEAST_SHARE

    def note(self) -> str | None:
        """Return why it does not count, or that the other law was observed; None if neither."""
        share, error = self.share[0], 2.0 * self.share[1]
        shows_other = self.source == LAW and abs(share - 1.0) + error < LEAST_SHARE
        if self.is_error and not shows_other:
            return None
        amount = (
            f"of what {OTHER[self.source]} would change, it has {round(100.0 * share)} ± "
            f"{round(100.0 * error)} %"
        )
        if self.is_error:
            return (
                f"What was observed moves as soft bodies of another `law` do: {amount}. Set their "
                '`law` to the other of "stable" and "log", and run again.'
            )
        if self.source == SHADING:  # nothing was chosen, so nothing is to be said
            return None
        source = {LOSS: "loss in contact"}.get(self.source, self.source)
        return (
            f"What was observed shows the scene's own {source}, so no error of the {source} "
            f"is counted: {amount}."
        )


def changes_by(
    problem: SceneProblem,
    theta: np.ndarray,
    linear: Linear,
    *,
    refined: Callable[[SceneProblem], SceneProblem],
    most: float,
    distance: np.ndarray | None = None,
) -> tuple[list[Change], list[str]]:
    """Return what an answer would change by with a finer mesh and step, and why some is unknown.

    Nothing where no body is soft. `linear` are the residuals of `problem` and their Jacobian, and
    `refined` returns a problem on a mesh twice as fine or raises.
    `most` is how many evaluations of the problem a motion on it may take: where it takes more, only
    the first part of the film is compared. `distance` (p,) is that of secants, where gradients are
    no slopes.
    """
    if not element_counts(problem.built):
        return [], []
    count, notes = 2 * problem.steps.count, []
    finer: SceneProblem | None = None
    try:
        finer = with_shorter_steps(refined(problem), theta, count)
        elements = element_counts(problem.built)
        growth = sum(n * times for n, times in elements) / sum(n for n, _ in elements)
        affordable = most * problem.steps.count / finer.steps.count / (1.0 + growth)
        if affordable < LEAST_FRAMES:
            raise StudyError("A motion on a mesh twice as fine takes longer than the search.")
        stop = int(np.ceil(min(affordable, 1.0) * problem.n_frames))
        if stop < problem.n_frames:
            problem, finer = problem.first_frames(stop), finer.first_frames(stop)
            linear = linear_at(problem, theta, distance)
        count = finer.steps.count
    except (StudyError, MemoryError, *NOT_FINITE) as error:
        notes.append(f"The error by the mesh is not known. {error}")
        finer = None
    changes: list[Change] = []
    try:
        places = seen_in_space(problem)
        is_same = places.observers == problem.observers
        in_space = linear if is_same else linear_at(places, theta, distance)
        shorter = with_shorter_steps(places, theta, count).residuals(theta)
        step = _change(places, theta, in_space, shorter, is_in_space=True)
        changes.append(Change(TIME_STEP, step))
        if finer is not None:
            there = in_space[0] + seen_in_space(finer).residuals(theta) - shorter
            step = _change(places, theta, in_space, there, is_in_space=True)
            share = _share(problem, finer, theta, step=step, linear=linear)
            changes.append(Change(MESH, step, share))
    except NOT_FINITE as error:
        notes.append(f"The error by mesh or time step is not known. {error}")
    return changes, notes + [note for change in changes if (note := change.note()) is not None]


def change_by(
    problem: SceneProblem, other: SceneProblem, theta: np.ndarray, linear: Linear, *, source: str
) -> tuple[list[Change], list[str]]:
    """Return what an answer would change by with `other` in place of its problem, and notes.

    `linear` are the residuals of `problem` and their Jacobian. With another law `other` is fitted;
    with other held nodes, whose motion is far from its own, places are compared as with a finer
    mesh. Nothing where nothing differs, such as where nothing touches.
    """
    try:
        other = with_shorter_steps(other, theta, problem.steps.count)
        if source == LAW:
            step = _change_of_fit(other, theta, linear[1])
        elif source in OF_HELD:
            places = with_shorter_steps(seen_in_space(problem), theta, other.steps.count)
            there = seen_in_space(other).residuals(theta)
            in_space = linear_at(places, theta, None)
            step = _change(places, theta, in_space, there, is_in_space=True)
        else:
            same_steps = with_shorter_steps(problem, theta, other.steps.count)
            there = other.residuals(theta)
            there -= same_steps.residuals(theta)
            if not there.any():
                return [], []
            there += linear[0]
            step = _change(problem, theta, linear, there)
            del there  # as long as all residuals of a film
    except NOT_FINITE as error:
        return [], [f"The error by {OTHER[source]} is not known. {error}"]
    change = Change(source, step, _share(problem, other, theta, step=step, linear=linear))
    note = None if source in OF_HELD else change.note()
    return [change], [] if note is None else [note]


def linear_at(problem: SceneProblem, theta: np.ndarray, distance: np.ndarray | None) -> Linear:
    """Return residuals and Jacobian at theta, or secants over this distance."""
    if distance is None:
        return problem.residuals_and_jacobian(theta)
    linear = secant_jacobian(partial(residuals_at, problem), theta, distance, problem.bounds)
    if linear is None:
        raise FloatingPointError("The simulation blows up beside the answer.")
    return linear


def _share(
    problem: SceneProblem,
    finer: SceneProblem,
    theta: np.ndarray,
    *,
    step: np.ndarray,
    linear: Linear,
) -> tuple[float, float]:
    """Return the share of a refinement that was observed, and its standard error; NaN if unknown.

    `linear` are the residuals and Jacobian of `problem` at theta, `step` is what theta changes by
    on the finer mesh.
    """
    if any(free.is_shape_error for free in problem.parameters.free):
        return np.nan, np.nan
    at, (r, J) = np.clip(theta + step, *problem.bounds), linear
    try:
        D = finer.residuals(at)
    except NOT_FINITE:
        return np.nan, np.nan
    D -= r
    instants = clusters_of_rows(problem)
    begins = np.append(True, instants[1:] != instants[:-1])
    spans = list(pairwise([*np.flatnonzero(begins).tolist(), len(instants)]))
    present = np.unique([instants[start] for start, _ in spans if instants[start] >= 0])
    blocks = np.array_split(present, BLOCKS)
    blocks = [block for block in blocks if block.size]
    if len(blocks) < 2:
        return np.nan, np.nan

    def sums(start: int, end: int) -> list[Any]:
        j, d, r_span = J[start:end], D[start:end], r[start:end]
        return [j.T @ j, j.T @ d, j.T @ r_span, d @ d, d @ r_span]

    def share(parts: Sequence[Any]) -> float:
        H, g, c, dd, dr = parts
        made_up = np.linalg.lstsq(H, g, rcond=None)[0]
        square = dd - made_up @ g  # 0 where the finer mesh shows nothing new
        return float(-(dr - made_up @ c) / square) if square > ROUNDING * dd else np.nan

    parts = [(instants[start], sums(start, end)) for start, end in spans]
    total = [sum(each) for each in zip(*(of_span for _, of_span in parts), strict=True)]
    without = (
        zip(*(of_span for at, of_span in parts if not block[0] <= at <= block[-1]), strict=True)
        for block in blocks
    )
    each = np.array([share([sum(terms) for terms in left]) for left in without])
    B = len(each)
    error = np.sqrt((B - 1) / B * np.square(each - each.mean()).sum())
    return share(total), float(error)


def _change(
    problem: SceneProblem,
    theta: np.ndarray,
    linear: Linear,
    finer: np.ndarray,
    *,
    is_in_space: bool = False,
) -> np.ndarray:
    """Return the change of theta, (p,), that explains the residuals of a finer model, (n,).

    Where places are compared, the errors of shapes stay as they are.
    """
    (r, J), shift = linear, np.zeros_like(theta)
    free = problem.parameters.free
    moves = problem.parameters.each([not (is_in_space and each.is_shape_error) for each in free])
    best, least = None, float(np.linalg.norm(finer - r))
    for _ in range(CORRECTIONS):
        step = J.solve(finer - r, moves)
        step *= LONG / max(float(np.abs(step).max()), LONG)
        at = np.clip(theta + shift + step, *problem.bounds)
        step, shift = at - theta - shift, at - theta
        best = shift if best is None else best
        if np.abs(step).max() <= SHORT:
            return -shift
        try:
            before, r = r, problem.with_steps_for(at).residuals(at)
        except NOT_FINITE:
            break
        if (left := float(np.linalg.norm(finer - r))) < least:
            best, least = shift, left
        J = J.updated(before, r, step)
    assert best is not None
    return -best


def _change_of_fit(other: SceneProblem, theta: np.ndarray, J: Jacobian) -> np.ndarray:
    """Return by how much theta changes, (p,), where another model is fitted.

    J (n, p) is the Jacobian of the model that theta was fitted with.
    """
    r, shift = other.residuals(theta), np.zeros_like(theta)
    for _ in range(1 + CORRECTIONS):
        step = -J.solve(r)
        step *= LONG / max(float(np.abs(step).max()), LONG)
        at = np.clip(theta + shift + step, *other.bounds)
        step = at - theta - shift
        if not step.any():
            break
        try:
            there = other.with_steps_for(at).residuals(at)
        except NOT_FINITE:
            break
        J = J.updated(r, there, step)
        if float(there @ there) < float(r @ r):
            r, shift = there, at - theta
        if np.abs(step).max() <= SHORT:
            break
    return shift
