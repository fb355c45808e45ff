"""What stops a run in the middle, as Ctrl-C would."""

import pytest

from studies.optimizers import evaluations


def stop_after(count, job, folder, monkeypatch):
    """Run a job until so many evaluations are in its logs."""
    append, left = evaluations.append_line, [count]

    def stop_after_a_few(path, line):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        append(path, line)

    monkeypatch.setattr(evaluations, "append_line", stop_after_a_few)
    with pytest.raises(KeyboardInterrupt):
        job.run(folder)
    monkeypatch.undo()
