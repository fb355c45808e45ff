"""What is scanned: a scene, axes, and what is looked at on the grid.

A scan file is TOML: `scene` and `over`, and maybe the other fields of `ScanFile`.
`studies/scans/configs` has the bundled ones, which go by their name. A scene is scanned without a
scan file too.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from studies.runs.errors import StudyError
from studies.runs.folder import PARAMETERS, SCAN, SPEC, RunFolder
from studies.runs.options import RunOptions, make_options
from studies.scans.axes import Axis, parse_axes
from studies.scene.declared import STRICT, Positive
from studies.scene.drawing import drawn
from studies.scene.files import bundled_scenes, scene_file
from studies.scene.reading import read_scene, to_toml
from studies.scene.tables import unknown, validated


CONFIGS = Path(__file__).resolve().parent / "configs"
PLACES = ("truth", "start")
FORM = "`--over KEY=START:STOP:NUM`, e.g. `--over beam.E=1e5:4e5:31`"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BlackBox:
    """A gradient estimated from values of the loss alone, REINFORCE's.

    Attributes
    ----------
    samples : int
        Values drawn around each point.
    sigma : float
        How far, as a part of the value.
    """

    samples: Annotated[int, Field(ge=2)]
    sigma: Positive


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ScanFile:
    """The keys of a scan file.

    Attributes
    ----------
    scene : str
        A bundled scene, or a scene file beside this one.
    over : tuple of str
        Axes, as `--over` takes them.
    overrides : tuple of str
        Of the scene, such as "bodies.beam.mu=1000.0".
    at : str
        Where what is not scanned is held: "truth", "start", or the folder of a run.
    trust : bool
        Whether the gradient is compared with differences at every point.
    subsets : mapping
        Frames by number from 1, by the name of the curve that compares them alone.
    black_box : BlackBox, optional
        An estimate to hold beside the gradient.
    """

    scene: str
    title: str = ""
    over: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    at: str | None = None
    trust: bool = True
    subsets: dict[str, tuple[Annotated[int, Field(ge=1)], ...]] = field(default_factory=dict)
    black_box: BlackBox | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Scan(ScanFile):
    """A scan, resolved: `scene` is the scene itself in TOML, pure data, with its overrides.

    Attributes
    ----------
    name : str
        Of the bundled scan or the scene.
    options : RunOptions
    values : mapping of str to float
        The answer of the run that `at` names, by label.
    """

    name: str
    options: RunOptions
    values: dict[str, float] = field(default_factory=dict)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The axes."""
        return parse_axes(self.over)

    def to_json(self) -> dict[str, Any]:
        """Return all but the scene, which is a file of its own, as plain values."""
        return TypeAdapter(Scan).dump_python(self, mode="json", exclude={"scene"})

    @classmethod
    def from_json(cls, record: Mapping[str, Any], scene: str) -> "Scan":
        """Return the scan of a folder."""
        return TypeAdapter(Scan).validate_python({**record, "scene": scene})


@dataclass(frozen=True)
class Asked:
    """What a command line asks for; None: as in the scan file, or by default."""

    scan: str
    overrides: Sequence[str] = ()
    over: Sequence[str] = ()
    at: str | None = None
    trust: bool | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the same as plain values."""
        given = {"scan": self.scan, "overrides": list(self.overrides), "over": list(self.over)}
        return {**given, "at": self.at, "trust": self.trust, **self.options}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Asked":
        """Return what `to_json` was made of."""
        own: dict[str, Any] = {key: given[key] for key in ("scan", "at", "trust")}
        own |= {key: given[key] or () for key in ("overrides", "over")}
        return cls(**own, options={k: one for k, one in given.items() if k not in own})


def bundled() -> dict[str, Path]:
    """Return the scan files that come with the package, by name."""
    return {path.stem: path for path in sorted(CONFIGS.glob("*.toml"))}


def resolve(asked: Asked) -> Scan:
    """Return the scan that is asked for.

    Raises
    ------
    StudyError
        If a name or key is unknown (the nearest known one is named), an axis reads wrong, or a
        value has another type than it should.
    """
    file, path = _scan_file(asked.scan)
    options = make_options(asked.options)
    over = tuple(axis.text for axis in parse_axes(asked.over or file.over))
    if not over:
        raise StudyError(f"A scan needs at least one axis: add {FORM}.")
    scene = drawn(read_scene(path, [*file.overrides, *asked.overrides]), options.seed)
    has_truth = any(one.simulate for one in scene.observations.values())
    at = asked.at or file.at or ("truth" if has_truth else "start")
    if at == "truth" and not has_truth:
        raise StudyError(
            "`--at truth` needs observations that are simulated. Hold what is not scanned where "
            "the search starts (`--at start`), or at the answer of a run (`--at RUN`)."
        )
    return Scan(
        name=asked.scan,
        scene=to_toml(scene),
        options=options,
        over=over,
        title=file.title or f"A scan of {scene.title or path.stem}",
        at=at,
        values={} if at in PLACES else _answer(Path(at)),
        trust=file.trust if asked.trust is None else asked.trust,
        subsets=file.subsets,
        black_box=file.black_box,
    )


def read_scan(folder: RunFolder) -> Scan:
    """Return the scan of a folder.

    Raises
    ------
    StudyError
        If the folder is that of a run.
    """
    if not folder.has(SCAN):
        what = "a data set" if folder.has(SPEC) else "a run"
        raise StudyError(
            f"{folder.path} holds {what}, not a scan. Go on with it: `{folder.how_to_go_on()}`."
        )
    return Scan.from_json(folder.read_json(SCAN), folder.read_study())


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
