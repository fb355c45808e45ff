"""What stops a run in the middle: as Ctrl-C would, or by a kill."""

import os
import signal

import pytest

from studies.runs import files


def stop_after(count, job, folder, monkeypatch):
    """Run a job until so many evaluations are in its logs."""
    append, left = files.append_line, [count]

    def stop_after_a_few(path, line):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        append(path, line)

    monkeypatch.setattr(files, "append_line", stop_after_a_few)
    with pytest.raises(KeyboardInterrupt):
        job.run(folder)
    monkeypatch.undo()


def die_after(count):
    """Let this process be killed when so many lines and a half are logged, whatever the load.

    A test that watched the log and killed from outside would be too late where it was not given
    the processor in time.
    """
    append, left = files.append_line, [count]

    def die_in_the_next(path, line):
        if not left[0]:
            with path.open("a") as stream:
                stream.write(line[: len(line) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        append(path, line)

    files.append_line = die_in_the_next
