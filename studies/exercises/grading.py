"""Grade answers: which cotangents are right, and what is wrong with the others."""

import re
from itertools import combinations
from typing import NamedTuple

import numpy as np

from studies.exercises.catalogue import KINDS, POINTS, Exercise, Mistake
from studies.exercises.student import Answers, answers_of
from studies.runs.errors import StudyError


RTOL = 1e-8  # of the largest entry: formulas that are equal on paper differ by rounding
STEP = 1e-6  # of central differences


class Grade(NamedTuple):
    """What is right, and what explains the rest."""

    right: np.ndarray  # (n_inputs, n_outputs): of each cotangent, the part of each output
    mistakes: list[Mistake]  # declared ones that give the student's numbers
    lines: list[str]  # the report

    @property
    def passed(self) -> bool:
        """Return whether everything is right."""
        return bool(self.right.all())


def grade(exercise: Exercise, answers: Answers, source: str) -> Grade:
    """Compare the answers of `source` with the solution, and explain what differs."""
    solution = _answers(exercise)
    ours, theirs = _stacked(solution), _stacked(answers)
    n_outputs = len(exercise.outputs)
    right = np.array(
        [
            [_close(b[j::n_outputs], a[j::n_outputs], a) for j in range(n_outputs)]
            for a, b in zip(ours, theirs, strict=True)
        ]
    )
    wrong = [i for i in range(len(ours)) if not right[i].all()]
    title = f"Exercise {exercise.number}. {exercise.title}"
    if not wrong:
        pairs = _dot_test(exercise, answers)
        error = max(abs(a - b) for a, b in pairs) / max(abs(a) for a, _ in pairs)
        lines = [
            f"{title}: right, at {POINTS} random points.",
            f"Dot test with differences of the forward function: {error:.0e}.",
        ]
        return Grade(right, [], lines)
    mistakes, explained = _explain(exercise, ours, theirs, wrong)
    lines = [f"{title}: {len(ours) - len(wrong)} of {len(ours)} cotangents are right.", ""]
    lines += [*_table(exercise, right), ""]
    for mistake in mistakes:
        line = _line_of(exercise, mistake, source)
        where = f"Line {line}, undoing" if line else "Undoing"
        code = exercise.lines[mistake.line]
        lines.append(f"{where} ({mistake.line}) `{code}`:")
        lines.append(f"    {KINDS[mistake.kind]} {mistake.hint}")
    for i in wrong:
        if i not in explained and (guess := _guess(exercise, ours, theirs[i], i)):
            lines.append(f"adj_{exercise.inputs[i]} {guess}.")
    if len(explained) < len(wrong):
        lines += _first_wrong_line(solution, answers, source)
    for i in wrong[:1]:
        forward, reverse = _dot_test(exercise, answers)[i]
        lines.append(
            f"Dot test, {exercise.inputs[i]} alone: <J t, c> = {forward:.6g} by differences, "
            f"<t, J^T c> = {reverse:.6g}."
        )
    return Grade(right, mistakes, [line.rstrip() for line in lines])


def _answers(exercise: Exercise, *mistakes: Mistake) -> Answers:
    """Return the answers of the solution, with mistakes in it."""
    source = exercise.mutated(*mistakes)
    if source is None:
        raise StudyError("These mistakes exclude each other.")
    return answers_of(exercise, (exercise.given + source).encode(), "solution")


def _stacked(answers: Answers) -> list[np.ndarray]:
    """Return for each input what all calls gave."""
    return [np.stack(column) for column in zip(*answers.returned, strict=True)]


def _close(a: np.ndarray, b: np.ndarray, scale: np.ndarray) -> bool:
    """Return whether two arrays are equal but for rounding."""
    return a.shape == b.shape and bool((abs(a - b) <= RTOL * (abs(scale).max() + 1e-300)).all())


def _explain(
    exercise: Exercise, ours: list[np.ndarray], theirs: list[np.ndarray], wrong: list[int]
) -> tuple[list[Mistake], set[int]]:
    """Return the mistakes that give the student's wrong cotangents, and which they explain.

    One mistake alone is tried before two together, and the one that explains most comes first.
    """
    left, found = set(wrong), []
    singles = [(mistake,) for mistake in exercise.mistakes]
    for candidates in (singles, combinations(exercise.mistakes, 2)):
        explains = []
        for mistakes in candidates:
            try:
                values = _stacked(_answers(exercise, *mistakes))
            except StudyError:
                continue
            changed = [not _close(b, a, a) for a, b in zip(ours, values, strict=True)]
            if any(i not in wrong for i in np.flatnonzero(changed)):
                continue  # what the student has right would be wrong
            same = {i for i in wrong if changed[i] and _close(theirs[i], values[i], ours[i])}
            explains.append((mistakes, same))
        while explains:
            mistakes, same = max(explains, key=lambda one: (len(one[1] & left), len(one[1])))
            if not same & left:
                break
            found += [mistake for mistake in mistakes if mistake not in found]
            left -= same
        if not left:
            break
    return found, set(wrong) - left


def _guess(exercise: Exercise, ours: list[np.ndarray], got: np.ndarray, i: int) -> str | None:
    """Return what a cotangent that no declared mistake explains looks like."""
    want = ours[i]
    if not got.any():
        return "is 0: nothing flows into it"
    if want.ndim == 3 and _close(got.swapaxes(1, 2), want, want):
        return "is transposed"
    for k, other in enumerate(ours):
        if k != i and _close(got, other, other):
            return f"is what adj_{exercise.inputs[k]} should be"
    factor = np.vdot(got, want) / np.vdot(want, want) if want.any() else 0.0
    if _close(got, factor * want, want):
        return (
            "has the wrong sign" if np.isclose(factor, -1) else f"is {factor:.6g} times too large"
        )
    return None


def _table(exercise: Exercise, right: np.ndarray) -> list[str]:
    """Return what is right, input by output."""
    rows = [["", *(f"from adj_{name}" for name in exercise.outputs)]]
    for name, cells in zip(exercise.inputs, right, strict=True):
        rows.append([f"adj_{name}", *("right" if cell else "WRONG" for cell in cells)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join(map(str.ljust, row, widths)) for row in rows]


def _first_wrong_line(solution: Answers, answers: Answers, source: str) -> list[str]:
    """Return the line of the first `adj_...` of the solution whose final value differs."""
    for name in solution.values[0]:
        if all(name in held for held in answers.values):
            ours = [held[name] for held in solution.values]
            theirs = [held[name] for held in answers.values]
            if not all(_close(b, a, a) for a, b in zip(ours, theirs, strict=True)):
                lines = _assignments(source, name)
                if not lines:  # a tuple of them, say
                    return [f"`{name}` is the first whose value differs from ours."]
                code = source.splitlines()[lines[-1] - 1].strip()
                return [f"Line {lines[-1]} is the first whose value differs from ours: `{code}`."]
    return []


def _line_of(exercise: Exercise, mistake: Mistake, source: str) -> int | None:
    """Return the line of the student that does what the line with the mistake does in ours."""
    at = exercise.solution.index(mistake.right)
    number = exercise.solution.count("\n", 0, at) + 1
    code = exercise.solution.splitlines()[number - 1]
    name = re.match(r"\s*(\w+)", code)
    if name is None:
        return None
    theirs, ours = _assignments(source, name[1]), _assignments(exercise.solution, name[1])
    if not theirs or number not in ours:
        return None
    return theirs[min(ours.index(number), len(theirs) - 1)]


def _assignments(source: str, name: str) -> list[int]:
    """Return the lines of the adjoint that assign to a variable, or that return."""
    pattern = r"\s*return\b" if name == "return" else rf"\s*(\w+, *)*{name}\b[^=(]*=[^=]"
    lines = source.splitlines()
    first = next((k for k, line in enumerate(lines) if re.match(r"def \w+_vjp\b", line)), 0)
    return [k for k, line in enumerate(lines, 1) if k > first and re.match(pattern, line)]


def _dot_test(exercise: Exercise, answers: Answers) -> list[tuple[float, float]]:
    """Return <J t, c> and <t, J^T c> for each input alone, at the first point.

    J t comes from central differences of the forward function: no adjoint of ours is in it.
    """
    rng = np.random.default_rng([exercise.number, POINTS])
    calls = exercise.calls[: len(exercise.outputs)]
    inputs = calls[0].inputs
    pairs = []
    for i, name in enumerate(exercise.inputs):
        t = rng.normal(size=np.shape(inputs[name]))
        ahead, behind = (
            exercise.results({**inputs, name: inputs[name] + h * t}) for h in (STEP, -STEP)
        )
        tangents = [(a - b) / (2 * STEP) for a, b in zip(ahead, behind, strict=True)]
        forward = sum(
            float(np.vdot(tangent, adj))
            for call in calls
            for tangent, adj in zip(tangents, call.cotangents.values(), strict=True)
        )
        reverse = sum(float(np.vdot(t, answers.returned[k][i])) for k in range(len(calls)))
        pairs.append((forward, reverse))
    return pairs
