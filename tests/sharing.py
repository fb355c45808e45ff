"""What takes minutes to find is found once, however many workers run the tests."""

import os
import pickle
import time


TIMEOUT = 1800  # [s]; alone on a machine no finding takes five minutes


def found_once(tmp_path_factory, name, find):
    """Return find(); where pytest runs on several workers, the first one here finds it for all."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    answer, lock = shared / f"{name}.pickle", shared / f"{name}.lock"
    try:
        lock.mkdir()
    except FileExistsError:
        wait_for(answer)
    else:
        result = None  # of a failure, so that nobody waits for more
        try:
            result = find()
        finally:
            write_whole(answer, pickle.dumps(result))
    result = pickle.loads(answer.read_bytes())
    assert result is not None, f"the {name} were not found; see the first error"
    return result


def wait_for(path):
    """Wait until another worker has written a file."""
    end = time.monotonic() + TIMEOUT
    while not path.exists():
        assert time.monotonic() < end, f"{path} was not written"
        time.sleep(0.5)


def write_whole(path, content):
    """Write a file that is whole once it is there."""
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(content)
    unfinished.replace(path)
