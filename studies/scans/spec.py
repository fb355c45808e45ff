"""What is scanned: a scene, axes, and what is looked at on the grid.

A scan file is TOML: `scene` and `over`, and maybe the other fields of `ScanFile`.
`studies/scans/configs` has the bundled ones, which go by their name. A scene is scanned without a
scan file too. Axes read `KEY=START:STOP:NUM`, evenly spaced, or `:log` in their logarithm.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from studies.runs.errors import StudyError
from studies.runs.folder import PARAMETERS, SCAN, RunFolder
from studies.runs.options import RunOptions, make_options
from studies.scene.declared import STRICT, Positive
from studies.scene.drawing import instance_of
from studies.scene.files import bundled_scenes, read_toml, scene_file
from studies.scene.reading import read_scene, to_toml
from studies.scene.tables import unknown, validated


CONFIGS = Path(__file__).resolve().parent / "configs"
PLACES = ("truth", "start")
FORM = "`--over KEY=START:STOP:NUM`, e.g. `--over beam.E=1e5:4e5:31`"
MOST = 1_000_000  # points of a scan
AXIS = "KEY=START:STOP:NUM or KEY=START:STOP:NUM:log"
ROUNDING = 1e-9  # of a value that has to be a whole number


@dataclasses.dataclass(frozen=True)
class Axis:
    """Values of one key: the path of a value in the scene, or of a number of the scene file."""

    key: str
    start: float
    stop: float
    count: int
    is_log: bool = False

    @property
    def values(self) -> np.ndarray:
        """The values, (count,)."""
        space = np.geomspace if self.is_log else np.linspace
        values = space(self.start, self.stop, self.count)
        near = np.rint(values)
        is_whole = np.abs(values - near) <= ROUNDING * np.maximum(1.0, np.abs(near))
        return np.where(is_whole, near, values)  # 8 is 8, not 7.999999999999999

    @property
    def numbers(self) -> list[float] | list[int]:
        """The values, as whole numbers where all of them are."""
        values = self.values
        return [int(v) for v in values] if (values == np.rint(values)).all() else values.tolist()

    @property
    def text(self) -> str:
        """The axis as the command line takes it."""
        tail = ":log" if self.is_log else ""
        return f"{self.key}={self.start!r}:{self.stop!r}:{self.count}{tail}"

    def place(self, value: float) -> float:
        """Return where a value lies, counted in steps of the axis from its first value."""
        if self.count == 1:
            return 0.0
        ends = np.array([self.start, self.stop, value])
        if self.is_log:
            if value <= 0.0:
                return -np.inf
            ends = np.log(ends)
        return float((ends[2] - ends[0]) / (ends[1] - ends[0]) * (self.count - 1))

    def at(self, share: np.ndarray) -> np.ndarray:
        """Return the values at shares of the way from the first to the last."""
        if self.is_log:
            return self.start * (self.stop / self.start) ** share
        return self.start + (self.stop - self.start) * share

    def require_whole(self) -> None:
        """Raise if not all values are whole numbers."""
        off = self.values[self.values != np.rint(self.values)]
        if off.size:
            raise StudyError(
                f"`--over {self.text}`: `{self.key}` is a whole number, but one value would be "
                f"{off[0]:g}. Choose NUM so that all are whole, as in "
                f"{self.key}={self.start:g}:{self.stop:g}:{round(self.stop - self.start) + 1}."
            )


def parse_axis(text: str) -> Axis:
    """Return the axis of "KEY=START:STOP:NUM[:log]"; raise what is wrong with it."""
    key, _, given = text.partition("=")
    parts = given.split(":")
    is_log = len(parts) == 4 and parts[3].strip() == "log"
    if not key.strip() or len(parts) != (4 if is_log else 3) or not given.isascii():
        raise StudyError(f"`--over` must read {AXIS}, got {text!r}. E.g. beam.E=1e5:4e5:31.")
    try:
        start, stop, count = float(parts[0]), float(parts[1]), int(parts[2])
    except ValueError as error:
        raise StudyError(
            f"`--over {text}`: START and STOP must be numbers and NUM a whole one. It reads {AXIS}."
        ) from error
    if not 1 <= count <= MOST:
        raise StudyError(f"`--over {text}`: NUM must be from 1 to {MOST}, got {count}.")
    if not (np.isfinite(start) and np.isfinite(stop)) or (start >= stop and count > 1):
        raise StudyError(
            f"`--over {text}`: START must be less than STOP, both finite. For one value alone "
            "NUM is 1."
        )
    if is_log and start <= 0.0:
        raise StudyError(
            f"`--over {text}`: a logarithmic axis must have START > 0, got {start:g}. Leave "
            "`:log` out, or begin above 0."
        )
    return Axis(key.strip(), start, stop, count, is_log)


def parse_axes(texts: Sequence[str]) -> tuple[Axis, ...]:
    """Return the axes of a scan, each key once."""
    axes = tuple(parse_axis(text) for text in texts)
    keys = [axis.key for axis in axes]
    if twice := sorted(key for key in keys if keys.count(key) > 1):
        raise StudyError(f"`--over` must name each key once, got `{twice[0]}` twice.")
    if (total := math.prod(axis.count for axis in axes)) > MOST:
        raise StudyError(f"`--over` must give at most {MOST} points in all, got {total:.2g}.")
    return axes


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BlackBox:
    """A gradient estimated from values of the loss alone, REINFORCE's."""

    samples: Annotated[int, Field(ge=2, le=100_000)]  # drawn around each point
    sigma: Positive  # how far, as a part of the value


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ScanFile:
    """The keys of a scan file."""

    scene: str  # a bundled one, or a file beside this one
    title: str = ""
    over: tuple[str, ...] = ()  # axes, as `--over` takes them
    overrides: tuple[str, ...] = ()  # of the scene, such as "bodies.beam.mu=1000.0"
    at: str | None = None  # where what is not scanned is held: "truth", "start", or a run's folder
    trust: bool = True  # whether the gradient is compared with differences at every point
    # Frames by number from 1, by the name of the curve that compares them alone.
    subsets: dict[str, tuple[Annotated[int, Field(ge=1)], ...]] = field(default_factory=dict)
    black_box: BlackBox | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Scan(ScanFile):
    """A scan, resolved: `scene` is the scene itself in TOML, pure data, with its overrides."""

    name: str  # of the bundled scan or the scene
    options: RunOptions
    values: dict[str, float] = field(default_factory=dict)  # answer of the run that `at` names

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The axes."""
        return parse_axes(self.over)

    def to_json(self) -> dict[str, Any]:
        """Return all but the scene, which is a file of its own, as plain values."""
        return TypeAdapter(Scan).dump_python(self, mode="json", exclude={"scene"})


def bundled() -> dict[str, Path]:
    """Return the scan files that come with the package, by name."""
    return {path.stem: path for path in sorted(CONFIGS.glob("*.toml"))}


def resolve(arguments: Mapping[str, Any]) -> Scan:
    """Return the scan that a command line asks for; what it leaves out is as in the scan file.

    `arguments` has `scan`, `overrides`, `over`, `at`, `trust` and the options, by name.
    """
    name = arguments["scan"]
    file, path = _scan_file(name)
    options = make_options(arguments)
    over = tuple(axis.text for axis in parse_axes(arguments.get("over") or file.over))
    if not over:
        raise StudyError(f"A scan needs at least one axis: add {FORM}.")
    overrides = [*file.overrides, *(arguments.get("overrides") or ())]
    scene = instance_of(read_scene(path, overrides), options.seed)
    has_truth = any(observation.simulate for observation in scene.observations.values())
    at = arguments.get("at") or file.at or ("truth" if has_truth else "start")
    if at == "truth" and not has_truth:
        raise StudyError(
            "`--at truth` needs observations that are simulated. Hold what is not scanned where "
            "the search starts (`--at start`), or at the answer of a run (`--at RUN`)."
        )
    trust = file.trust if arguments.get("trust") is None else bool(arguments["trust"])
    return Scan(
        name=name,
        scene=to_toml(scene),
        options=options,
        over=over,
        title=file.title or f"Scan: {scene.title or path.stem}",
        at=at,
        values={} if at in PLACES else _answer(Path(at)),
        trust=trust,
        subsets=file.subsets,
        black_box=file.black_box,
    )


def read_scan(folder: RunFolder) -> Scan:
    """Return the scan of a folder."""
    record = {**folder.read_json(SCAN), "scene": folder.read_study()}
    return TypeAdapter(Scan).validate_python(record)


def _answer(run: Path) -> dict[str, float]:
    """Return the answer of a run of a scene, cameras included, by label."""
    if not (run / PARAMETERS).is_file():
        raise StudyError(
            f"`--at` must be {' or '.join(PLACES)}, or the folder of a run that has ended, got "
            f"{str(run)!r}."
        )
    answer = RunFolder.open(run).read_npz(PARAMETERS)
    return dict(zip(answer["names"].tolist(), answer["estimate"].tolist(), strict=True))


def _scan_file(name: str) -> tuple[ScanFile, Path]:
    """Return a scan file by name or path, and the path of its scene; or that of a scene alone."""
    path = bundled().get(name, Path(name))
    record: dict[str, Any] = {}
    if path.suffix == ".toml" and path.is_file():
        record = read_toml(path)
    if "scene" not in record:
        if scene := scene_file(name):
            return ScanFile(scene=name), scene
        known = [*bundled_scenes(), *bundled()]
        raise StudyError(f"{unknown('scene or scan', name, known)} Or give a TOML file.")
    try:
        file = validated(ScanFile, record)
    except StudyError as error:
        raise StudyError(f"{path}: {error}") from error
    scene = scene_file(str(path.parent / file.scene)) or scene_file(file.scene)
    if scene is None:
        known = list(bundled_scenes())
        raise StudyError(f"{path}: {unknown('scene', file.scene, known)} Or name a TOML file.")
    return file, scene
