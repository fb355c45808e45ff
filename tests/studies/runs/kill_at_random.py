"""Kill commands at random moments, resume them, and compare their folders with undisturbed ones.

    python -m tests.studies.runs.kill_at_random 50

takes an hour on two cores. The commands are small: a run, instances, a scan, a data set.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.studies.fitting.test_running import write_scene


# What tells of time, machine or place.
VARYING = {"seconds", "crc32", "sha256", "resumed", "started", "command", "made", "evaluated"}
COMPARED = ("*.jsonl", "result.json", "*.h5", "*.nc", "*.csv", "index.json", "instances/*/*.json*")


def say(*words):
    """Print a line."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def commands(folder):
    """Return the arguments of what is killed, by name."""
    scene = str(write_scene(folder))
    short = ("search.max_evaluations=20", "search.coarse=4", "--no-certificate")
    return {
        "run": ["run", scene, *short],
        "instances": [
            "run", "pendulum", "instances=3", "search.max_evaluations=6", "--no-certificate",
            "--scheduler", "local:2",
        ],
        "scan": ["scan", scene, "--over", "cube.E=1e4:4e4:9", "--scheduler", "local:2"],
        "dataset": ["dataset", "pendulum", "--count", "24", "--scheduler", "local:2"],
    }  # fmt: skip


def call(arguments, out, seconds=None):
    """Run a command, or go on; return its exit code, None if it was killed after `seconds`."""
    command = [sys.executable, "-m", "tests.studies.run_adjsim", *arguments]
    process = subprocess.Popen(
        [*command, "--out", str(out), "--resume"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    try:
        _, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)  # its workers end by themselves
        process.communicate()
        return None
    if process.returncode:
        say(err[-2000:])
    return process.returncode


def contents(folder):
    """Return what must not depend on kills."""
    compared = {}
    for pattern in COMPARED:
        for path in sorted(folder.glob(pattern)):
            data = path.read_bytes()
            if path.suffix == ".json":
                data = plain(json.loads(data))
            elif path.suffix == ".jsonl":
                records = [plain(json.loads(line)) for line in data.splitlines()]
                data = sorted(map(json.dumps, records))  # of tasks in the order in which they end
            compared[str(path.relative_to(folder))] = data
    return compared


def plain(value):
    """Return JSON without what varies."""
    if isinstance(value, dict):
        return {key: plain(child) for key, child in value.items() if key not in VARYING}
    return [plain(child) for child in value] if isinstance(value, list) else value


def main(trials, *names):
    """Kill each command so many times in all; return how many folders differ."""
    rng, bad, kills = random.Random(7), 0, 0
    with tempfile.TemporaryDirectory() as place:
        chosen = {
            name: command
            for name, command in commands(Path(place)).items()
            if not names or name in names
        }
        whole, seconds = {}, {}
        for name, arguments in chosen.items():
            began = time.monotonic()
            if call(arguments, Path(place) / name):
                say(f"{name}: the undisturbed command fails")
                return 1
            seconds[name] = time.monotonic() - began
            whole[name] = contents(Path(place) / name)
            say(f"{name}: {seconds[name]:.0f} s, {len(whole[name])} files")
        for trial in range(trials):
            name = list(chosen)[trial % len(chosen)]
            out = Path(place) / f"{name}-{trial}"
            killed = 0
            while (code := call(chosen[name], out, rng.uniform(0.5, seconds[name]))) is None:
                killed += 1
                if killed == 3:
                    code = call(chosen[name], out)
                    break
            resumed = contents(out)
            differs = [
                key
                for key in {**whole[name], **resumed}
                if whole[name].get(key) != resumed.get(key)
            ]
            left = [path.name for path in out.rglob(".part-*")]
            is_bad = bool(code or differs or left)
            bad, kills = bad + is_bad, kills + killed
            say(
                f"{trial + 1:3d} {name}: {killed} kills",
                "BAD" if is_bad else "equal",
                *differs,
                *left,
            )
    say(f"{kills} kills, {bad} of {trials} folders differ")
    return bad


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), *sys.argv[2:]) > 0)
