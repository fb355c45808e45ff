"""Grade answers: which cotangents are right, and what is wrong with the others."""

import ast
import re
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from studies.exercises.answers import Answers, answers_of
from studies.exercises.catalogue import KINDS, POINTS, Exercise
from studies.exercises.derived import Mistake
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
    guesses = {i: text for i in wrong if (text := _guess(exercise, ours, theirs[i], i))}
    mistakes, explained = _explain(
        exercise, ours, theirs, wrong, guessed=set(guesses), source=source
    )
    lines = [f"{title}: {len(ours) - len(wrong)} of {len(ours)} cotangents are right.", ""]
    lines += [*_table(exercise, right), ""]
    for mistake in mistakes:
        line = _line_of(exercise, mistake, source)
        where = f"Line {line}, undoing" if line else "Undoing"
        code = exercise.lines[mistake.line]
        lines.append(f"{where} ({mistake.line}) `{code}`:")
        lines.append(f"    {KINDS[mistake.kind]} {mistake.hint}")
    guesses = {f"adj_{exercise.inputs[i]}": guesses[i] for i in guesses if i not in explained}
    lines += [f"{name} {guess}." for name, guess in guesses.items()]
    if len(explained) + len(guesses) < len(wrong):
        values = {
            name: value for name, value in _values(solution, answers).items() if name not in guesses
        }
        lines += _first_wrong_value(exercise, values, source)
    for i in wrong[:1]:
        forward, reverse = _dot_test(exercise, answers)[i]
        lines.append(
            f"Dot test, {exercise.inputs[i]} alone: <J t, c> = {forward:.6g} by differences, "
            f"<t, J^T c> = {reverse:.6g}."
        )
    return Grade(right, mistakes, [line.rstrip() for line in lines])


@cache
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
    exercise: Exercise,
    ours: list[np.ndarray],
    theirs: list[np.ndarray],
    wrong: list[int],
    *,
    guessed: set[int],
    source: str,
) -> tuple[list[Mistake], set[int]]:
    """Return the mistakes that give the student's wrong cotangents, and which they explain.

    One mistake alone is tried before two together, and the one that explains most comes first. Two
    are tried only if something is left that cannot be `guessed`. Of equal ones the one comes first
    that fits the number of lines, then a declared one.
    """

    def fits(mistake: Mistake) -> bool:
        """Return whether lines are missing where a term is, and none where one is overwritten."""
        if mistake.kind not in ("dropped", "overwritten"):
            return True
        name = mistake.right.split(" ")[0]
        is_missing = len(theirs_at.get(name, [])) < len(ours_at.get(name, []))
        return is_missing == (mistake.kind == "dropped")

    ours_at, theirs_at = _assigned(exercise.solution), _assigned(source)
    left, causes = set(wrong), []
    every = [*exercise.mistakes, *exercise.derived]
    singles = [(mistake,) for mistake in every]
    for candidates in (singles, combinations(every, 2)):
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
            mistakes, same = max(
                explains,
                key=lambda pair: (len(pair[1] & left), len(pair[1]), all(map(fits, pair[0]))),
            )
            if not same & left:
                break
            causes += [mistake for mistake in mistakes if mistake not in causes]
            left -= same
        if not left - guessed:
            break
    return causes, set(wrong) - left


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


def _values(solution: Answers, answers: Answers) -> dict[str, bool]:
    """Return whether the final value of each `adj_...` that both have is that of the solution."""
    return {
        name: all(
            _close(b[name], a[name], a[name])
            for a, b in zip(solution.values, answers.values, strict=True)
        )
        for name in solution.values[0]
        if all(name in held for held in answers.values)
    }


def _first_wrong_value(exercise: Exercise, is_right: dict[str, bool], source: str) -> list[str]:
    """Return the first variable that is complete and wrong, and what it is made of.

    Which of its lines is wrong cannot be told: each may be right, and a term missing.
    """
    last = {name: lines[-1] for name, lines in _assigned(exercise.solution).items()}
    wrong = sorted((name for name in is_right if not is_right[name]), key=lambda n: last.get(n, 0))
    if not wrong:
        return []
    name, lines = wrong[0], _assigned(source).get(wrong[0])
    where = f"; you set it in line {_listed(lines)}" if lines else ""
    report = [f"`{name}` is the first whose value differs from ours{where}."]
    terms = {
        mistake.line
        for mistake in exercise.derived
        if mistake.kind == "dropped" and re.match(rf"{name}\b", mistake.right)
    }
    if terms:
        numbers = [f"({number})" for number in sorted(terms, reverse=True)]
        report += [f"It gets a term from undoing {_listed(numbers)}: are all there?"]
    return report


def _listed(items: list) -> str:
    *first, last = [str(item) for item in items]
    return f"{', '.join(first)} and {last}" if first else last


def _line_of(exercise: Exercise, mistake: Mistake, source: str) -> int | None:
    """Return the line of the student that does what the line with the mistake does in ours.

    None where it cannot be told: of a line that is missing, say.
    """
    at = exercise.solution.index(mistake.right)
    number = exercise.solution.count("\n", 0, at) + 1
    for name, ours in _assigned(exercise.solution).items():
        theirs = _assigned(source).get(name, [])
        if number in ours and len(theirs) >= len(ours):
            return theirs[ours.index(number)]
    return None


def _assigned(source: str) -> dict[str, list[int]]:
    """Return the lines of the adjoint that assign to each variable, or that `return`."""
    assigned: dict[str, list[int]] = {}
    for function in ast.parse(source).body:
        if isinstance(function, ast.FunctionDef) and function.name.endswith("_vjp"):
            statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
            for statement in statements:
                for name in _targets(statement):
                    assigned.setdefault(name, []).append(statement.lineno)
    return {name: sorted(lines) for name, lines in assigned.items()}


def _targets(node: Any) -> list[str]:
    """Return the variables that a statement sets, or `return` where it returns."""
    match node:
        case ast.Return():
            return ["return"]
        case ast.Assign(targets=targets) | ast.Tuple(elts=targets) | ast.List(elts=targets):
            return [name for target in targets for name in _targets(target)]
        case ast.AugAssign(target=inner) | ast.AnnAssign(target=inner):
            return _targets(inner)
        case ast.Subscript(value=inner) | ast.Starred(value=inner):
            return _targets(inner)
        case ast.Name(id=name):
            return [name]
    return []


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
