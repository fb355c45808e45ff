"""The exercises, read from the files of `tasks/`.

A file has three parts, divided by the lines `# --- solution ---` and `# --- grading ---`: what the
student gets, `NAME_vjp`, and then `inputs(rng)` and `MISTAKES`. The docstring of `NAME_vjp` names
the cotangents that it returns; its parameters `adj_...` are those of the forward's outputs.
"""

import inspect
import re
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from studies.exercises.derived import Mistake, derived_mistakes


SOLUTION, GRADING = "# --- solution ---", "# --- grading ---"
POINTS = 4  # random points at which a solution is compared
CHAPTERS = {  # of docs/course, and the exercises of each
    1: (*range(1, 11), 17, 18),
    2: tuple(range(25, 31)),
    3: (11, 12),
    4: (13, 14, 15),
    5: (19, 20),
    6: (24,),
    8: (21,),
    9: (16, 22, 23),
    10: (32,),
    11: (31,),
    12: (33, 34),
}
NUMBERED = re.compile(r"^\s*(.*?)\s*# \((\d+)\)", re.MULTILINE)
KINDS = {
    "sign": "A sign is wrong.",
    "transpose": "A transpose is missing, or a product has the wrong order.",
    "stale": "A value is stale: the line needs it as it was when the forward line ran.",
    "dropped": "A term is missing. Is there another way in which this value acts?",
    "overwritten": "A cotangent is overwritten. The value is used twice: add the second part.",
    "factor": "A factor is missing, or there is one too many.",
    "swapped": "Two cotangents, or the inputs that they belong to, are swapped.",
    "order": "Lines are undone in the wrong order.",
    "branch": "The wrong branch: the adjoint must take the one that the forward line took.",
}


class Call(NamedTuple):
    """Inputs of a forward function, and cotangents of its outputs, by name."""

    inputs: dict[str, Any]
    cotangents: dict[str, Any]


class Exercise:
    """One exercise: its text, functions and mistakes."""

    def __init__(self, path: Path) -> None:
        self.number = int(path.stem[1:3])
        self.slug = path.stem[4:]
        given, rest = path.read_text(encoding="utf-8").split(SOLUTION)
        self.given = given.rstrip() + "\n"
        self.solution, self._grading = rest.split(GRADING)

    @cached_property
    def functions(self) -> dict[str, Any]:
        """What the file defines, by name."""
        return self.run(self.solution + self._grading)

    def run(self, source: str) -> dict[str, Any]:
        """Return what the given part and `source` behind it define."""
        defined: dict[str, Any] = {"__name__": self.slug}
        exec(compile(self.given + source, self.slug, "exec"), defined)
        return defined

    @property
    def title(self) -> str:
        """Return the first line of the text, without its full stop."""
        return self.functions["__doc__"].splitlines()[0].rstrip(".")

    @property
    def file_name(self) -> str:
        """The name of the student's file."""
        return f"exercise_{self.number:02}_{self.slug}.py"

    @property
    def chapter(self) -> int:
        """The chapter of the course that it belongs to."""
        return next(chapter for chapter, numbers in CHAPTERS.items() if self.number in numbers)

    @cached_property
    def name(self) -> str:
        """The name of the forward function."""
        return next(name for name in self.functions if f"{name}_vjp" in self.functions)

    @property
    def forward(self) -> Callable:
        """Return the forward function."""
        return self.functions[self.name]

    @property
    def vjp(self) -> Callable:
        """Return the solution."""
        return self.functions[f"{self.name}_vjp"]

    @property
    def mistakes(self) -> list[Mistake]:
        """Return the declared mistakes."""
        return [Mistake(*row) for row in self.functions["MISTAKES"]]

    @cached_property
    def derived(self) -> list[Mistake]:
        """The mistakes that the text of the solution invites."""
        return derived_mistakes(self.solution, self.inputs)

    @cached_property
    def inputs(self) -> list[str]:
        """The inputs that have a cotangent, in the order in which the solution returns them."""
        return re.findall(r"\badj_(\w+)", self.vjp.__doc__ or "")

    @cached_property
    def outputs(self) -> list[str]:
        """The outputs of the forward function."""
        names = inspect.signature(self.vjp).parameters
        return [name[4:] for name in names if name.startswith("adj_")]

    @cached_property
    def lines(self) -> dict[int, str]:
        """The numbered lines of the forward function."""
        return {int(number): code for code, number in NUMBERED.findall(self.given)}

    def results(self, inputs: dict[str, Any]) -> list[np.ndarray]:
        """Return the outputs of the forward function."""
        results = self.forward(**inputs)
        results = results if isinstance(results, tuple) else (results,)
        return [np.asarray(result, float) for result in results]

    @cached_property
    def calls(self) -> list[Call]:
        """Random inputs, `POINTS` times, each with a cotangent of one output after the other."""
        calls = []
        for point in range(POINTS):
            rng = np.random.default_rng([self.number, point])
            inputs = self.functions["inputs"](rng)
            adjoints = [rng.normal(size=result.shape) for result in self.results(inputs)]
            for j in range(len(adjoints)):
                cotangents = {
                    f"adj_{name}": adjoint * (i == j)
                    for i, (name, adjoint) in enumerate(zip(self.outputs, adjoints, strict=True))
                }
                calls.append(Call(inputs, cotangents))
        return calls

    def mutated(self, *mistakes: Mistake) -> str | None:
        """Return the solution with mistakes in it; None where one leaves no place for the other."""
        source = self.solution
        for mistake in mistakes:
            if source.count(mistake.right) != 1:
                return None
            source = source.replace(mistake.right, mistake.wrong)
        return source

    def student_file(self, command: str) -> str:
        """Return what the student gets: text, forward function, and a gap."""
        head, text, rest = self.given.split('"""', 2)
        text = f"Exercise {self.number}. {text.rstrip()}\n\nGrade it: {command}\n"
        signature = inspect.signature(self.vjp)
        blocks = [f"    # ({k}) {code}" for k, code in sorted(self.lines.items(), reverse=True)]
        wanted = ", ".join(f"adj_{name}" for name in self.inputs)
        gap = [
            f"def {self.name}_vjp{signature}:",
            f'    """{self.vjp.__doc__}"""',
            "    # Compute again what you need of the forward function, then undo its lines, the",
            "    # last one first. Two cotangents of one value are added.",
            *blocks,
            f'    raise NotImplementedError("replace this line by `return {wanted}`")',
        ]
        return f'{head}"""{text}"""{rest.rstrip()}\n\n\n' + "\n".join(gap) + "\n"


@cache
def exercises() -> dict[int, Exercise]:
    """Return all exercises by number."""
    paths = sorted((Path(__file__).parent / "tasks").glob("e[0-9][0-9]_*.py"))
    return {exercise.number: exercise for exercise in map(Exercise, paths)}
