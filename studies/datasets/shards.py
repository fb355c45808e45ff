"""Shards: HDF5 files that any HDF5 reader reads, and the index with their checksums.

A shard holds nothing of when, where or by what version it was made: made again it has the same
bytes. `readme` among its attributes says what is in it, and every array has its units and what it
is. What differs in size from scene to scene is in a group of its own, `mesh/000012/vertices`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from studies.datasets.scene import COMMON, MESH, Field
from studies.datasets.simulation import split
from studies.datasets.spec import Spec
from studies.errors import StudyError
from studies.run_folder import RunFolder


INDEX, FORMAT = "index.json", "adjsim data set 1"
BLOCK = 1 << 20  # bytes read at once
EXAMPLE = """\
import h5py

with h5py.File("shard-00000.h5") as shard:
    videos = shard["images"]                        # (scenes, frames, height, width, RGBA), uint8
    video = videos[3] / 255.0                       # one scene is read, the others stay on disk
    mass = shard["parameters/mass"][:]              # (scenes,)
    unit = shard["parameters/mass"].attrs["units"]
    is_test = shard["split"].asstr()[:] == "test"
    number = shard["scene"][3]
    faces = shard[f"mesh/{number:06d}/faces"][:]
"""


def shard_name(first: int, size: int) -> str:
    """Return the file of the shard that begins with a scene."""
    return f"shard-{first // size:05d}.h5"


def all_fields(spec: Spec) -> dict[str, Field]:
    """Return what a data set keeps of a scene, by name, group by group."""
    fields = COMMON | spec.kind.fields(spec.settings.values)
    groups = list(dict.fromkeys(name.partition("/")[0] for name in fields))
    return dict(sorted(fields.items(), key=lambda item: groups.index(item[0].partition("/")[0])))


def write_shard(
    folder: RunFolder, name: str, spec: Spec, made: Sequence[dict[str, np.ndarray]]
) -> None:
    """Write scenes as a shard; the file appears whole or not at all."""
    fields, files = all_fields(spec), spec.settings.values["files"]
    numbers = [int(one["scene"]) for one in made]
    with folder.replacing(name) as part, h5py.File(part, "w") as shard:
        time = spec.seen["time"]
        shard.attrs["readme"] = readme(spec)
        shard.attrs["format"] = FORMAT
        shard.attrs["dataset"] = spec.settings.kind
        shard.attrs["seed"] = spec.options.seed
        shard.attrs["dtype"] = spec.options.dtype
        shard.attrs["settings"] = spec.settings.to_toml()
        for which in ("train", "test"):
            shard.attrs[which] = of_split(spec, numbers, which)
        times = np.arange(1, time["frames"] + 1) / time["fps"]
        _put(shard, "times", times, Field("s", "of the frames"))
        for key in made[0]:
            if key.startswith(MESH):
                for one, number in zip(made, numbers, strict=True):
                    where = f"{MESH}{number:06d}/{key.removeprefix(MESH)}"
                    _put(shard, where, one[key], fields[key])
                continue
            column = np.stack([one[key] for one in made])
            packed = {}
            if key == "images":
                packed["chunks"] = (1, *column.shape[1:])
                if level := files["compression"]:
                    packed |= {"compression": "gzip", "compression_opts": level}
            _put(shard, key, column, fields[key], **packed)


def _put(shard: h5py.File, name: str, values: np.ndarray, field: Field, **packed: Any) -> None:
    """Write an array with its units and what it is."""
    if values.dtype.kind == "U":
        values = np.char.encode(values, "ascii")
    array = shard.create_dataset(name, data=values, **packed)
    array.attrs["units"] = field.unit
    array.attrs["description"] = field.text


def of_split(spec: Spec, numbers: Sequence[int], which: str) -> np.ndarray:
    """Return the scenes of "train" or "test", by number."""
    test = spec.settings.values["split"]["test"]
    return np.array([k for k in numbers if split(k, test) == which], np.int64)


def readme(spec: Spec) -> str:
    """Return what a reader of the data set must know."""
    fields = all_fields(spec)
    time, image, camera = (spec.seen[table] for table in ("time", "image", "camera"))
    lines = [
        f"Data set `{spec.settings.kind}` of adjsim, seed {spec.options.seed}: "
        f"{spec.kind.summary}.",
        "",
        f"Scenes count from 0 through all shards. A video has {time['frames']} frames of "
        f"{image['height']} x {image['width']} pixels, {time['fps']:g} a second; the first is at "
        f"1/{time['fps']:g} s, the scene begins at 0. SI units, y is up. The camera stands at "
        f"{camera['eye']} m, looks at {camera['target']} and sees {camera['fov_y']:g} degrees from "
        "top to bottom. Row 0 of a frame is its top.",
        "",
        "Arrays, the scenes of the shard first; those of `mesh` have a group for each scene:",
        "",
        *(f"- {_shown(key)} [{field.unit}]: {field.text}" for key, field in fields.items()),
        "- times [s]: of the frames, the same for all scenes",
        "",
        "Attributes: `train` and `test` are the scenes of each set, by number; `settings` is the "
        "TOML file from which, with the seed, every scene follows.",
        "",
        EXAMPLE,
    ]
    return "\n".join(lines)


def _shown(key: str) -> str:
    return f"{MESH}NUMBER/{key.removeprefix(MESH)}" if key.startswith(MESH) else key


@dataclass(frozen=True)
class Entry:
    """A shard as the index names it."""

    file: str
    first: int
    count: int
    bytes: int
    sha256: str


def read_index(folder: RunFolder) -> list[Entry]:
    """Return the shards that are written, in order."""
    if not folder.has(INDEX):
        return []
    try:
        return [Entry(**one) for one in folder.read_json(INDEX)["shards"]]
    except (KeyError, TypeError) as error:
        raise StudyError(f"{folder.file(INDEX)} is no index of shards: {error}.") from error


def write_index(folder: RunFolder, spec: Spec, entries: Sequence[Entry]) -> None:
    """Write the index: what the data set is, and its shards with checksums."""
    numbers = range(spec.count)
    folder.write_json(
        INDEX,
        {
            "format": FORMAT,
            **spec.to_json(),
            "train": of_split(spec, numbers, "train").tolist(),
            "test": of_split(spec, numbers, "test").tolist(),
            "shards": [vars(one) for one in entries],
        },
    )


def make_entry(folder: RunFolder, name: str, first: int, count: int) -> Entry:
    """Return a shard's line of the index."""
    path = folder.file(name)
    return Entry(name, first, count, path.stat().st_size, checksum(path))


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            found.update(block)
    return found.hexdigest()


def fault(folder: RunFolder, entry: Entry) -> str | None:
    """Return what is wrong with a shard, None if it is as the index says."""
    path = folder.file(entry.file)
    if not path.is_file():
        return "is missing"
    if path.stat().st_size != entry.bytes:
        return f"has {path.stat().st_size} bytes, not {entry.bytes}"
    return None if checksum(path) == entry.sha256 else "has another checksum"
