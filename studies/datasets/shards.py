"""Shards: HDF5 files that any HDF5 reader reads, and the index with their checksums.

A shard holds nothing of when, where or by what version it was made: made again it has the same
bytes. `readme` among its attributes says what is in it, and every array has its units and what it
is. What differs in size from scene to scene is in a group of its own, `each/000012/ball/vertices`.
"""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from studies.datasets.samples import EACH, FIELDS, Field, Sample, field_of, fields_of
from studies.datasets.spec import PER_SHARD, Spec, simulated_films, split
from studies.problem.observing import frame_times
from studies.runs.folder import RunFolder
from studies.scene.reading import to_toml


INDEX, FORMAT = "index.json", "adjsim data set 2"
SPLITS = ("train", "test")
COMPRESSION = 4  # of gzip
EXAMPLE = """\
import h5py

with h5py.File("shard-00000.h5") as shard:
    print(list(shard["images"]), list(shard["parameters"]))
    films = shard["images/{film}"]       # (scenes, frames, height, width, RGBA), uint8
    film = films[3] / 255.0              # one scene is read, the others stay on disk
    value = shard["parameters/{path}"][3]
    is_test = shard["split"].asstr()[:] == "test"
    scene = shard["toml"].asstr()[3]     # a scene file: `adjsim run` runs it
    number = shard["scene"][3]
    print(list(shard[f"each/{{number:06d}}"]))
"""


def shard_name(first: int) -> str:
    """Return the file of the shard that begins with a scene."""
    return f"shard-{first // PER_SHARD:05d}.h5"


def write_shard(folder: RunFolder, spec: Spec, samples: Sequence[Sample]) -> "Entry":
    """Write scenes as a shard, whole or not at all; return its line of the index.

    It is made in memory: a full disk is then an error of one file, not one within HDF5.
    """
    fields, numbers = fields_of(spec), [int(sample["scene"]) for sample in samples]
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as shard:

        def put(name: str, values: np.ndarray, field: Field, **packed: Any) -> None:
            if values.dtype.kind == "U":
                values = np.char.encode(values, "utf-8")
            array = shard.create_dataset(name, data=values, **packed)
            array.attrs["units"], array.attrs["description"] = field

        shard.attrs["readme"] = readme(spec)
        shard.attrs["format"] = FORMAT
        shard.attrs["seed"] = spec.options.seed
        shard.attrs["dtype"] = spec.options.dtype
        shard.attrs["scene_file"] = to_toml(spec.file)
        for which in SPLITS:
            shard.attrs[which] = _of_split(numbers, which)
        for film in simulated_films(spec.file):
            observation: Any = spec.file.observations[film]
            times = frame_times(observation, spec.file.world, f"observations.{film}")
            put(f"times/{film}", times, FIELDS["times"])
        for sample, number in zip(samples, numbers, strict=True):
            for key in (key for key in sample if key.startswith(EACH)):
                where = f"{EACH}{number:06d}/{key.removeprefix(EACH)}"
                put(where, sample[key], field_of(key, fields))
        for key in (key for key in samples[0] if not key.startswith(EACH)):
            column = np.stack([sample[key] for sample in samples])
            packed: dict[str, Any] = {}
            if key.startswith("images/"):
                packed = {"chunks": (1, *column.shape[1:]), "compression": "gzip"}
                packed["compression_opts"] = COMPRESSION
            put(key, column, field_of(key, fields), **packed)
    name = shard_name(numbers[0])
    folder.write_bytes(name, buffer.getvalue())
    path = folder.file(name)
    return Entry(name, numbers[0], len(numbers), path.stat().st_size, _checksum(path))


def _of_split(numbers: Sequence[int], which: str) -> list[int]:
    return [k for k in numbers if split(k) == which]


def example(spec: Spec) -> str:
    """Return how a shard is read."""
    path = next((name.partition("/")[2] for name in fields_of(spec)), "NAME")
    return EXAMPLE.format(film=spec.film, path=path)


def readme(spec: Spec) -> str:
    """Return what a reader of the data set must know."""
    arrays = {"scene", "split", "toml", "problem"}
    lines = [f"- {key} [{FIELDS[key].unit}]: {FIELDS[key].text}" for key in sorted(arrays)]
    fields = {f"{key}/FILM": FIELDS[key] for key in ("images", "times", "coverage")}
    fields |= fields_of(spec)
    fields |= {f"{EACH}NUMBER/BODY/{key}": FIELDS[key] for key in ("vertices", "faces")}
    lines += [f"- {key} [{field.unit}]: {field.text}" for key, field in fields.items()]
    return "\n".join([
        f"Random scenes by adjsim, seed {spec.options.seed}: {spec.file.title or spec.name}",
        "",
        "Scenes count from 0 through all shards. SI units. Row 0 of a frame is its top.",
        "",
        "Arrays, the scenes of the shard first; those of `each` have a group for each scene:",
        "",
        *lines,
        "",
        "Attributes: `train` and `test` are the scenes of each set, by number; `scene_file` is the "
        "TOML file from which, with the seed, every scene follows.",
        "",
        example(spec),
    ])  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A shard as the index names it."""

    file: str
    first: int
    count: int
    bytes: int
    sha256: str

    def fault(self, folder: RunFolder) -> str | None:
        """Return what is wrong with the shard, None if it is as the index says."""
        path = folder.file(self.file)
        if not path.is_file():
            return "is missing"
        return None if _checksum(path) == self.sha256 else "has another checksum"


@dataclass
class _Index:
    shards: list[Entry]


def read_index(folder: RunFolder) -> list[Entry]:
    """Return the shards that are written, in order."""
    if not folder.has(INDEX):
        return []
    names = [field.name for field in fields(Entry)]
    rows = folder.read_json(INDEX, _Index)["shards"]
    return [Entry(**{name: row[name] for name in names}) for row in rows]


def write_index(folder: RunFolder, spec: Spec, entries: Sequence[Entry]) -> None:
    """Write the index: what the data set is, and its shards with checksums."""
    content = {"format": FORMAT, "scene": spec.name, "count": spec.count, "seed": spec.options.seed}
    splits = {which: _of_split(range(spec.count), which) for which in SPLITS}
    folder.write_json(INDEX, {**content, **splits, "shards": [vars(entry) for entry in entries]})


def _checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
