"""Bars of a search, and of the points of a scan; plain lines where there is no terminal."""

import time
from collections.abc import Iterable, Sequence
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from studies.runs.evaluations import Evaluation


WIDE, NARROW = 112, 80  # columns of a terminal that has room for all words, for all numbers
EVERY = 5.0  # seconds between plain lines of `PointProgress`


class TitledBar(Progress):
    """A bar under a line of its own, which is cut where the terminal ends."""

    title = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Give the line, if there is anything to say, and the bar."""
        if self.title:
            yield Text(self.title, no_wrap=True, overflow="ellipsis")
        yield from super().get_renderables()


class ProgressDisplay:
    """A context manager that shows a bar of these columns where there is a terminal."""

    def __init__(self, columns: Sequence[ProgressColumn], console: Console) -> None:
        self._console = console
        self._bar = TitledBar(*columns, console=console, disable=not console.is_terminal)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line below the bar."""
        self._console.print(text, highlight=False, soft_wrap=True)


def _columns(width: int) -> Sequence[ProgressColumn]:
    """Return what fits into so many columns of a terminal: words go before numbers do."""
    count = TextColumn("evaluation {task.completed:.0f}/{task.total:.0f}")
    loss = TextColumn("loss {task.fields[loss]}")
    if width < NARROW:
        return count, loss, TimeElapsedColumn()
    slope = TextColumn("|g| {task.fields[gradient]}")
    is_wide = width >= WIDE
    left = TextColumn("{task.fields[left]}" + "{task.fields[ends]}" * is_wide)
    bar = BarColumn(bar_width=24 if is_wide else 4)
    return count, bar, loss, slope, TimeElapsedColumn(), left


def clock(seconds: int) -> str:
    """Return hours, minutes and seconds; hours may be more than a day."""
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


class EvaluationProgress(ProgressDisplay):
    """Shows evaluations as they come, as a context manager and a callback."""

    def __init__(self, max_evaluations: int, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        super().__init__(_columns(console.width), console)
        self._max = max_evaluations
        self.prefix = ""
        self._label = ""
        self._gradient_norm: float | None = None
        self._before: Evaluation | None = None
        self._kinds: set[str] = set()  # those that are compiled
        self._rates: list[float] = []  # seconds per rollout
        self._nothing: dict[str, Any] = {"loss": "-", "gradient": "-", "ends": "", "left": ""}
        self._task = self._bar.add_task("", total=max_evaluations, **self._nothing)

    def begin(self, label: str = "") -> None:
        """Begin to count from 0, under a label such as "start 2/4"."""
        parts = [text for text in (self.prefix, label) if text]
        self._bar.title = ", ".join(parts)
        self._label = "".join(f"{text}, " for text in parts)
        self._gradient_norm = self._before = None
        self._rates = []
        self._bar.reset(self._task, **self._nothing)

    def __call__(self, evaluation: Evaluation) -> None:
        """Show one evaluation."""
        if evaluation.gradient_norm is not None:
            self._gradient_norm = evaluation.gradient_norm
        loss = f"{evaluation.loss:.3e}"
        gradient = "-" if self._gradient_norm is None else f"{self._gradient_norm:.1e}"
        left = self._left(evaluation)
        rest = ""
        if left:
            seconds = f"{left[0]} to {left[1]}" if left[0] < left[1] else left[0]
            rest = f", at most {self._max - evaluation.spent} more of this search: {seconds} s"
        if self._console.is_terminal:
            known: dict[str, Any] = {"loss": loss, "gradient": gradient, "ends": "", "left": ""}
            if left:
                known |= {"left": f"at most {clock(left[1])}", "ends": " if it takes all"}
            self._bar.update(self._task, completed=evaluation.spent, **known)
            return
        self.say(
            f"{self._label}evaluation {evaluation.spent}/{self._max}  loss {loss}  |g| {gradient}  "
            f"{evaluation.seconds:.1f} s{rest}"
        )

    def _left(self, evaluation: Evaluation) -> tuple[int, int] | None:
        """Return from how many to how many seconds the rest of this search takes if it takes all.

        None if none is left or it is not known. Most searches end long before their last
        evaluation: whoever shows it must say so.

        The first evaluation, and the first of each further kind, such as one with tangents, also
        compile and say nothing of the others. Rollouts of the others take from the tenth to the
        ninetieth percentile of their times.
        """
        before, self._before = self._before, evaluation
        is_compiled = evaluation.kind in self._kinds
        self._kinds.add(evaluation.kind)
        if before is None or evaluation.spent <= before.spent:
            self._rates = []
            return None
        if is_compiled:
            rollouts = evaluation.spent - before.spent
            self._rates.append((evaluation.seconds - before.seconds) / rollouts)
        rest = self._max - evaluation.spent
        if rest <= 0 or not self._rates:
            return None
        rates, cut = sorted(self._rates), len(self._rates) // 10
        return max(1, round(rates[cut] * rest)), max(1, round(rates[-1 - cut] * rest))


class PointProgress(ProgressDisplay):
    """Shows how many of `total` points of a scan, or instances of a table, are `done`."""

    def __init__(self, total: int, done: int, *, what: str = "point") -> None:
        columns = (
            TextColumn(what + " {task.completed:.0f}/{task.total:.0f}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[failed]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        super().__init__(columns, Console(stderr=True))
        self._what, self._total, self._done, self._failed = what, total, done, 0
        self._first: tuple[float, int] | None = None  # when the first piece came, and the count
        self._began = self._last = time.perf_counter()
        self._task = self._bar.add_task("", total=total, completed=done, failed="")

    def __call__(self, records: list[dict[str, Any]]) -> None:
        """Show points that were evaluated just now."""
        self._done += len(records)
        self._failed += sum(record["reason"] is not None for record in records)
        failed = f"{self._failed} failed" if self._failed else ""
        self._bar.update(self._task, completed=self._done, failed=failed)
        now, left = time.perf_counter(), ""
        if self._first is None:
            self._first = now, self._done
        else:  # the first piece also compiles, and says nothing of the others
            (began, done), rest = self._first, self._total - self._done
            left = f", about {(now - began) / (self._done - done) * rest:.0f} s left" * bool(rest)
        is_due = now - self._last > EVERY or self._done == self._total
        if not self._console.is_terminal and is_due:
            self._last = now
            text = f"{self._what} {self._done}/{self._total}  {failed}  {now - self._began:.0f} s"
            self.say(text + left)


class FrameProgress(ProgressDisplay):
    """Shows how many frames of a film are done, which does not say how many there are."""

    def __init__(self) -> None:
        columns = TextColumn("{task.description} {task.completed:.0f}"), TimeElapsedColumn()
        super().__init__(columns, Console(stderr=True))
        self._last = time.perf_counter()
        self._task = self._bar.add_task("frame", total=None)

    def __call__(self, frames: int, what: str) -> None:
        """Show how many are done."""
        self._bar.update(self._task, completed=frames, description=what)
        if not self._console.is_terminal and time.perf_counter() - self._last > EVERY:
            self._last = time.perf_counter()
            self.say(f"{what} {frames}")
