"""What is scanned: a scene, axes, and what is looked at on the grid.

A scan file is TOML: `scene` and `over`, and maybe the other fields of `ScanFile`.
`studies/scans/configs` has the bundled ones, which go by their name. A scene is scanned without a
scan file too.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from studies.runs.errors import StudyError
from studies.runs.folder import PARAMETERS, SCAN, RunFolder
from studies.runs.options import RunOptions, make_options
from studies.scans.axes import Axis, parse_axes
from studies.scene.declared import STRICT
from studies.scene.drawing import drawn
from studies.scene.files import bundled_scenes, scene_file
from studies.scene.reading import read_scene, to_toml
from studies.scene.tables import unknown, validated


CONFIGS = Path(__file__).resolve().parent / "configs"
PLACES = ("truth", "start")
FORM = "`--over KEY=START:STOP:NUM`, e.g. `--over beam.E=1e5:4e5:31`"


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


def resolve(given: Mapping[str, Any]) -> Scan:
    """Return the scan that a command line asks for; what it leaves out is as in the scan file.

    `given` has `scan`, `overrides`, `over`, `at`, `trust` and the options, by name.
    """
    name = given["scan"]
    file, path = _scan_file(name)
    options = make_options(given)
    over = tuple(axis.text for axis in parse_axes(given.get("over") or file.over))
    if not over:
        raise StudyError(f"A scan needs at least one axis: add {FORM}.")
    overrides = [*file.overrides, *(given.get("overrides") or ())]
    scene = drawn(read_scene(path, overrides), options.seed)
    has_truth = any(one.simulate for one in scene.observations.values())
    at = given.get("at") or file.at or ("truth" if has_truth else "start")
    if at == "truth" and not has_truth:
        raise StudyError(
            "`--at truth` needs observations that are simulated. Hold what is not scanned where "
            "the search starts (`--at start`), or at the answer of a run (`--at RUN`)."
        )
    trust = given.get("trust")
    return Scan(
        name=name,
        scene=to_toml(scene),
        options=options,
        over=over,
        title=file.title or f"Scan: {scene.title or path.stem}",
        at=at,
        values={} if at in PLACES else _answer(Path(at)),
        trust=file.trust if trust is None else trust,
        subsets=file.subsets,
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
    found = RunFolder.open(run).read_npz(PARAMETERS)
    return dict(zip(found["names"].tolist(), found["estimate"].tolist(), strict=True))


def _scan_file(name: str) -> tuple[ScanFile, Path]:
    """Return a scan file by name or path, and the path of its scene; or that of a scene alone."""
    path = bundled().get(name, Path(name))
    record: dict[str, Any] = {}
    if path.suffix == ".toml" and path.is_file():
        try:
            record = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise StudyError(f"{path} is not valid TOML: {error}.") from error
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
