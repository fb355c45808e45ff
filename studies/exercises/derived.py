"""Mistakes that every adjoint invites, derived from the text of a solution.

- A term is dropped: `adj_e = adj_e + ...` is left out, or one summand of a line, or what flows into
  a cotangent on the way.
- Two neighbouring lines of the forward function are undone in the wrong order.

Declared mistakes come first: their hints say more.
"""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple


BLOCK = re.compile(r"^( *)# \((\d+)\) .*\n", re.MULTILINE)


class Mistake(NamedTuple):
    """A classic mistake: `right` of the solution, at forward line `line`, replaced by `wrong`."""

    kind: str  # a key of `KINDS` in catalogue.py
    line: int
    right: str
    wrong: str
    hint: str = ""  # said behind what the kind says


class _Block(NamedTuple):
    """The lines of a solution that undo one line of the forward function."""

    number: int
    indent: int
    first: int  # line of the comment, from 1
    last: int  # its last line
    text: str


def derived_mistakes(solution: str, inputs: list[str]) -> list[Mistake]:
    """Return the mistakes that a solution invites; `inputs` are those with a cotangent."""
    blocks = _blocks(solution)
    return [*_dropped(solution, blocks, inputs), *_swapped(blocks)]


def _blocks(solution: str) -> list[_Block]:
    """Return what stands below each comment `# (k)`, as far as it is indented."""
    lines = solution.splitlines(keepends=True)
    starts = [
        (k, match) for k, line in enumerate(lines, 1) if (match := BLOCK.match(line)) is not None
    ]
    blocks = []
    for k, match in starts:
        indent, last = len(match[1]), k
        for line in lines[k:]:
            is_inside = line.startswith(match[1]) and not line.lstrip().startswith("return")
            if not is_inside or BLOCK.match(line):
                break
            last += 1
        blocks.append(_Block(int(match[2]), indent, k, last, "".join(lines[k - 1 : last])))
    return blocks


def _dropped(solution: str, blocks: list[_Block], inputs: list[str]) -> Iterator[Mistake]:
    """Yield terms that are left out; terms that are added to others come first."""
    later = []
    for statement in ast.walk(ast.parse(solution)):
        if not isinstance(statement, ast.Assign | ast.AugAssign):
            continue
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        name = ast.unparse(target)
        number = next(
            (b.number for b in reversed(blocks) if b.first < statement.lineno <= b.last), None
        )
        if number is None or not name.startswith("adj_"):
            continue
        right = ast.get_source_segment(solution, statement) or ""
        hint = f"`{name}` lacks what comes through this line."
        if isinstance(statement, ast.AugAssign):
            yield Mistake("dropped", number, right, "pass", hint)
            continue
        terms = [ast.unparse(term) for term in _terms(statement.value)]
        for k, term in enumerate(terms if len(terms) > 1 else ()):
            wrong = f"{name} = {' + '.join(terms[:k] + terms[k + 1 :])}"
            if k > 0 and terms[0] == name:
                yield Mistake("dropped", number, right, wrong, hint)
            elif term != name:  # without itself it would be overwritten
                later.append(Mistake("dropped", number, right, wrong, hint))
        if name not in terms and name.removeprefix("adj_") not in inputs:
            wrong = f"{name} = 0.0 * ({ast.unparse(statement.value)})"
            later.append(Mistake("dropped", number, right, wrong, f"Nothing flows into `{name}`."))
    yield from later


def _terms(value: ast.expr) -> list[ast.expr]:
    """Return the summands of an expression; those that are taken away have a minus."""
    if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub)):
        return [value]
    last: Any = value.right
    if isinstance(value.op, ast.Sub):
        last = ast.UnaryOp(ast.USub(), last)
    return [*_terms(value.left), last]


def _swapped(blocks: list[_Block]) -> Iterator[Mistake]:
    """Yield two neighbouring blocks the other way round."""
    for first, second in pairwise(blocks):
        if first.last + 1 == second.first and first.indent == second.indent:
            hint = f"Undo ({first.number}) before ({second.number})."
            right, wrong = first.text + second.text, second.text + first.text
            yield Mistake("order", second.number, right, wrong, hint)
