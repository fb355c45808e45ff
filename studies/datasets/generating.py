"""Make a data set in a new folder, go on with one that was stopped, check one that is there."""

import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from studies.datasets.pages import write_report
from studies.datasets.samples import Sample, make_samples, require_simulated
from studies.datasets.shards import read_index, shard_name, write_index, write_shard
from studies.datasets.spec import Spec, read_spec, resolve
from studies.runs.folder import RESULT, SPEC, RunFolder
from studies.runs.pool import HERE, Pool
from studies.runs.progress import PointProgress
from studies.runs.starting import Recipe, recalled, start_or_resume
from studies.scene.own_code import sources
from studies.scene.reading import to_toml


AT_ONCE = 10  # scenes of one piece of work


@dataclass(frozen=True)
class DatasetJob:
    """A data set that is checked, ready to be made; `spread` makes its scenes."""

    spec: Spec
    spread: Pool

    def run(self, folder: RunFolder) -> str:
        """Make the shards that are not there yet, then the report; return a few lines."""
        spec, entries = self.spec, {}
        for entry in read_index(folder):
            if wrong := entry.fault(folder):
                print(f"{entry.file} {wrong}: it is made again", flush=True)
            else:
                entries[entry.file] = entry
        done = sum(entry.count for entry in entries.values())
        if done:
            print(f"{done} scenes are in shards already and not made again", flush=True)
        began = time.perf_counter()
        left = {first: stop for first, stop in spec.shards() if shard_name(first) not in entries}
        with PointProgress(spec.count, done, what="scene") as progress:
            for samples in self._shards(left, progress):
                entry = write_shard(folder, spec, samples)
                entries[entry.file] = entry
                write_index(folder, spec, [entries[name] for name in sorted(entries)])
        seconds = time.perf_counter() - began
        folder.write_json(RESULT, {"made": spec.count - done, "seconds": seconds})
        report, facts = write_report(folder)
        return "\n".join([*facts, f"report: {report}"])

    def _shards(self, left: Mapping[int, int], progress: PointProgress) -> Iterator[list[Sample]]:
        """Yield the scenes of each shard as soon as all its pieces are made.

        `left` has the last scene, exclusive, of each by the first one.
        """
        make = partial(make_samples, self.spec.file, self.spec.options)
        shard_of = {
            range(begin, min(begin + AT_ONCE, stop)): first
            for first, stop in left.items()
            for begin in range(first, stop, AT_ONCE)
        }
        pieces: dict[int, dict[range, list[Sample]]] = {first: {} for first in left}
        for piece, samples in self.spread(make, shard_of):
            progress([{"reason": str(sample["problem"]) or None} for sample in samples])
            first = shard_of[piece]
            pieces[first][piece] = samples
            if sum(map(len, pieces[first])) == left[first] - first:
                by_piece = pieces.pop(first)
                yield [sample for piece in sorted(by_piece, key=min) for sample in by_piece[piece]]


def start(
    given: Mapping[str, Any], out: Path | None, spread: Pool = HERE, *, resume: bool = False
) -> tuple[RunFolder, DatasetJob]:
    """Check what `spec.resolve` takes, then make the folder, or open the one to resume."""
    given = recalled(out, given, resume=resume)
    spec = resolve(given)
    toml = to_toml(spec.file)
    values = {"scene": tomllib.loads(toml), "count": spec.count}
    if code := sources(spec.file):
        values["own_code"] = code
    recipe = Recipe("dataset", spec.name, "dataset", values, toml, spec.options, given)

    def make() -> DatasetJob:
        require_simulated(spec.file, spec.options)
        return DatasetJob(spec, spread)

    folder, job = start_or_resume(recipe, out, make, resume=resume)
    folder.write_json(SPEC, {"name": spec.name, "count": spec.count})
    return folder, job


def verify(path: Path) -> tuple[bool, list[str]]:
    """Check every shard of a folder against the index; return whether all are well, and lines."""
    folder = RunFolder.open(path)
    spec, entries = read_spec(folder), read_index(folder)
    faults = [entry.fault(folder) for entry in entries]
    lines = [f"{entry.file}  {wrong or 'ok'}" for entry, wrong in zip(entries, faults, strict=True)]
    there = sum(entry.count for entry in entries)
    if there < spec.count:
        lines.append(f"{there} of {spec.count} scenes are made: go on with `--resume`")
    good, total = faults.count(None), len(spec.shards())
    return good == total, [*lines, f"{good} of {total} shards are whole"]
