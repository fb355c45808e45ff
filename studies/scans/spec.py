"""What is scanned: a study with its settings, axes, and what is looked at on the grid.

A scan file is TOML: `study` and `over`, the study's own settings in the table `settings`, and
maybe the other fields of `Scan`. `studies/scans/configs` has the bundled ones, which go by
their name. Nothing in a scan file is run.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adjsim import checks
from studies import config
from studies.config import StudySettings
from studies.errors import StudyError
from studies.registry import STUDIES
from studies.runs.folder import SCAN, SPEC, STUDY, RunFolder
from studies.runs.options import RunOptions, make_options
from studies.scans.axes import Axis, parse_axes
from studies.scene.files import bundled_scenes


CONFIGS = Path(__file__).resolve().parent / "configs"
PLACES = ("truth", "start")
KINDS: Mapping[str, type] = {
    "study": str, "title": str, "over": list, "at": str, "trust": bool, "settings": dict,
    "subsets": dict, "black_box": dict,
}  # fmt: skip


@dataclass(frozen=True)
class BlackBox:
    """A gradient estimated from values of the loss alone, REINFORCE's.

    Attributes
    ----------
    samples : int
        Values drawn around each point.
    sigma : float
        How far, as a part of the value.
    """

    samples: int
    sigma: float


@dataclass(frozen=True)
class Scan:
    """A scan, resolved.

    Attributes
    ----------
    name : str
        Of the bundled scan or the study.
    settings : StudySettings
    options : RunOptions
    axes : tuple of Axis
    at : str
        Where what is not scanned is held: "truth" or "start".
    trust : bool
        Whether the gradient is compared with differences at every point.
    subsets : mapping
        Frames by number from 1, by the name of the curve that compares them alone.
    black_box : BlackBox, optional
        An estimate to hold beside the gradient.
    """

    name: str
    settings: StudySettings
    options: RunOptions
    axes: tuple[Axis, ...]
    title: str = ""
    at: str = "truth"
    trust: bool = True
    subsets: Mapping[str, list[int]] = field(default_factory=dict)
    black_box: BlackBox | None = None

    def to_json(self) -> dict[str, Any]:
        """Return all but the settings, which are a file of their own, as plain values."""
        return {
            "scan": self.name,
            "study": self.settings.kind,
            "title": self.title,
            "over": [axis.text for axis in self.axes],
            "at": self.at,
            "trust": self.trust,
            "subsets": dict(self.subsets),
            "black_box": None if self.black_box is None else vars(self.black_box),
            "options": vars(self.options),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any], settings: StudySettings) -> "Scan":
        """Return the scan of a folder."""
        box = record["black_box"]
        return cls(
            record["scan"],
            settings,
            RunOptions(**record["options"]),
            parse_axes(record["over"]),
            record["title"],
            record["at"],
            record["trust"],
            record["subsets"],
            None if box is None else BlackBox(**box),
        )


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
        own = {key: given[key] for key in ("scan", "at", "trust")}
        lists = {key: given[key] or () for key in ("overrides", "over")}
        options = {k: one for k, one in given.items() if k not in own and k not in lists}
        return cls(**own, **lists, options=options)


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
    record = _read(asked.scan)
    settings = config.resolve(record["study"], asked.overrides, record.get("settings", {}))
    scan = Scan(
        asked.scan,
        settings,
        make_options(asked.options),
        parse_axes([*(asked.over or record.get("over", []))]),
        title=record.get("title", ""),
        at=asked.at or record.get("at", "truth"),
        trust=record.get("trust", True) if asked.trust is None else asked.trust,
        subsets=record.get("subsets", {}),
        black_box=_black_box(record.get("black_box")),
    )
    if not scan.axes:
        raise StudyError(
            "A scan needs at least one axis: add `--over KEY=START:STOP:NUM`, e.g. "
            "`--over beam.mu=1e5:4e5:31`."
        )
    checks.known_key(f"place in {'`--at`' if asked.at else '`at`'}", scan.at, PLACES)
    return replace(scan, title=scan.title or f"A scan of {settings.kind}")


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
            f"{folder.path} holds {what}, not a scan. Go on with it by `adjsim {folder.command()} "
            f"--out {folder.path} --resume`, or scan into a new folder."
        )
    settings = config.resolve(str(folder.file(STUDY)))
    return Scan.from_json(folder.read_json(SCAN), settings)


def _read(name: str) -> dict[str, Any]:
    """Return the entries of a scan file, or those of a scan of a study."""
    files = bundled()
    if name in STUDIES:
        return {"study": name}
    if name in files:
        return _parsed(files[name])
    path = Path(name)
    is_file = path.suffix == ".toml" and path.is_file()
    record = _parsed(path) if is_file else {}
    if "bodies" in record or name in bundled_scenes():
        raise StudyError(
            f"Scans of scene files are not possible yet, and {name!r} is one. `adjsim run {name}` "
            "shows the losses over the bounds of what is free: figure `coarse` of its report."
        )
    if is_file:
        return record if _is_scan(record) else {"study": name}
    try:
        scanned = [study.name for study in STUDIES.values() if study.searches]
        checks.known_key("study or scan", name, [*scanned, *files])
    except ValueError as error:
        raise StudyError(f"{error} Or give a TOML file.") from error
    raise AssertionError(name)


def _is_scan(record: Mapping[str, Any]) -> bool:
    """Whether a file is that of a scan; otherwise it is that of a study."""
    return "over" in record or "settings" in record


def _parsed(path: Path) -> dict[str, Any]:
    """Return the entries of a scan file, each of its type."""
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} is not valid TOML: {error}.") from error
    if not _is_scan(record):
        return record
    for key, value in record.items():
        try:
            kind = KINDS[checks.known_key("key of a scan file", key, KINDS)]
        except ValueError as error:
            raise StudyError(f"{path}: {error}") from error
        if not isinstance(value, kind):
            raise StudyError(f"{path}: `{key}` must be a {kind.__name__}, got {value!r}.")
    if "study" not in record:
        raise StudyError(f"{path} must name its `study`, one of {', '.join(STUDIES)}.")
    for name, frames in record.get("subsets", {}).items():
        if not isinstance(frames, list) or not all(isinstance(k, int) and k > 0 for k in frames):
            raise StudyError(
                f"{path}: `subsets.{name}` must list frames, counted from 1, got {frames!r}."
            )
    return record


def _black_box(table: Mapping[str, Any] | None) -> BlackBox | None:
    if table is None:
        return None
    if set(table) != {"samples", "sigma"}:
        raise StudyError(f"`black_box` must have `samples` and `sigma`, got {sorted(table)}.")
    samples = checks.whole("black_box.samples", table["samples"], 2)
    return BlackBox(samples, float(checks.positive("black_box.sigma", table["sigma"])))
