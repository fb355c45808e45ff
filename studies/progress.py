"""A bar with loss, gradient norm and time left; plain lines where there is no terminal."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from studies.optimizers.evaluations import Evaluation


class Shown:
    """A context manager that shows a bar of these columns where there is a terminal."""

    def __init__(self, columns: Sequence[ProgressColumn], console: Console | None) -> None:
        self._console = console or Console(stderr=True)
        self._bar = Progress(*columns, console=self._console, disable=not self._console.is_terminal)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line below the bar."""
        self._console.print(text, highlight=False, soft_wrap=True)


class EvaluationProgress(Shown):
    """Shows evaluations as they come, as a context manager and a callback."""

    def __init__(self, max_evaluations: int, console: Console | None = None) -> None:
        columns = (
            TextColumn("{task.description}evaluation {task.completed:.0f}/{task.total:.0f}"),
            BarColumn(bar_width=24),
            TextColumn("loss {task.fields[loss]}  |g| {task.fields[gradient]}"),
            TimeElapsedColumn(),
            TextColumn("search ends in at most"),
            TimeRemainingColumn(),
        )
        super().__init__(columns, console)
        self._max = max_evaluations
        self.prefix = ""
        self._label = ""
        self._gradient_norm: float | None = None
        self._first: Evaluation | None = None
        self._task = self._bar.add_task("", total=max_evaluations, loss="-", gradient="-")

    def begin(self, label: str = "") -> None:
        """Begin to count from 0, under a label such as "start 2/4"."""
        parts = [part for part in (self.prefix, label) if part]
        self._label = "".join(f"{part}, " for part in parts)
        self._gradient_norm = self._first = None
        self._bar.reset(self._task, description=self._label, loss="-", gradient="-")

    def __call__(self, evaluation: Evaluation) -> None:
        """Show one evaluation."""
        if evaluation.gradient_norm is not None:
            self._gradient_norm = evaluation.gradient_norm
        loss = f"{evaluation.loss:.3e}"
        gradient = "-" if self._gradient_norm is None else f"{self._gradient_norm:.1e}"
        if self._console.is_terminal:
            self._bar.update(self._task, completed=evaluation.spent, loss=loss, gradient=gradient)
            return
        self.say(
            f"{self._label}evaluation {evaluation.spent}/{self._max}  loss {loss}  |g| {gradient}  "
            f"{evaluation.seconds:.1f} s{self._left(evaluation)}"
        )

    def _left(self, evaluation: Evaluation) -> str:
        """Return how long the rest of this search takes at most; the first one also compiles."""
        if self._first is None or evaluation.spent <= self._first.spent:
            self._first = evaluation
            return ""
        rest = self._max - evaluation.spent
        spent = evaluation.spent - self._first.spent
        left = (evaluation.seconds - self._first.seconds) / spent * rest
        return f", search ends in at most {left:.0f} s" if rest > 0 else ""
