"""A bar over the points of a scan or the instances of a table; plain lines without a terminal."""

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from studies.runs.progress import Shown


EVERY = 5.0  # seconds between plain lines


class PointProgress(Shown):
    """Shows how many of `total` points are `done`, as a context manager and a callback."""

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

    def __call__(self, made: list[dict[str, Any]]) -> None:
        """Show points that were evaluated just now."""
        self._done += len(made)
        self._failed += sum(one["reason"] is not None for one in made)
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
