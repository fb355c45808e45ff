"""What a report says, as data: `report.json`, from which pages are rendered.

    Report = title, verdict, chips, facts, sections
    Section = title and blocks: Text, Facts, Table, Bars, Media, Motion, Code, Links, Details

Every number is a text already. Files are named relative to the run folder.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from studies.runs import folder as run_folder
from studies.runs.errors import StudyError
from studies.runs.folder import RunFolder


STRICT = ConfigDict(extra="forbid")
Tone = Literal["good", "bad", "plain"]
Json = dict[str, Any]  # of a JSON file of a run


@dataclass(frozen=True, config=STRICT)
class Text:
    """A paragraph."""

    text: str
    tone: Tone = "plain"
    kind: Literal["text"] = "text"


@dataclass(frozen=True, config=STRICT)
class Facts:
    """Names and values."""

    values: dict[str, str]
    kind: Literal["facts"] = "facts"


@dataclass(frozen=True, config=STRICT)
class Table:
    """Rows of cells; what follows a line break in a cell is a note below it.

    `strong` are the numbers of the columns in bold.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: tuple[int, ...] = ()
    kind: Literal["table"] = "table"


@dataclass(frozen=True, config=STRICT)
class Bar:
    """A number in its range; places are percents of the way from the low end to the high one.

    `interval` is where its interval begins and how wide that is.
    """

    label: str
    ends: tuple[str, str]
    interval: tuple[float, float]
    answer: float
    start: float
    truth: float | None
    alt: str


@dataclass(frozen=True, config=STRICT)
class Bars:
    """Numbers in their ranges, below each other."""

    rows: tuple[Bar, ...]
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True, config=STRICT)
class Item:
    """A picture (SVG, JPEG or PNG) or a film (MP4, with a poster).

    A `wide` one has a row of its own, a `chart` is no wider than it has to be.
    """

    file: str
    alt: str
    caption: str = ""
    poster: str = ""
    wide: bool = False
    chart: bool = False


@dataclass(frozen=True, config=STRICT)
class Media:
    """Pictures and films side by side; films play together.

    With `wipe` the second lies over the first, from a line on that can be moved.
    """

    items: tuple[Item, ...]
    caption: str = ""
    wipe: bool = False
    kind: Literal["media"] = "media"


@dataclass(frozen=True, config=STRICT)
class Motion:
    """Bodies in space over time, to be turned: `file` is JSON of `studies.reports.space`.

    Where no script runs, the `picture` stands in their place, if there is one.
    """

    file: str
    alt: str
    caption: str = ""
    picture: str = ""
    kind: Literal["motion"] = "motion"


@dataclass(frozen=True, config=STRICT)
class Code:
    """Text of a file."""

    text: str
    kind: Literal["code"] = "code"


@dataclass(frozen=True, config=STRICT)
class Links:
    """Files of the run, and what is in them."""

    files: dict[str, str]
    kind: Literal["links"] = "links"


@dataclass(frozen=True, config=STRICT)
class Details:
    """Blocks that are folded away."""

    summary: str
    blocks: "tuple[Block, ...]"
    kind: Literal["details"] = "details"


Block = Annotated[
    Text | Facts | Table | Bars | Media | Motion | Code | Links | Details,
    Field(discriminator="kind"),
]


@dataclass(frozen=True, config=STRICT)
class Section:
    """A title and what is below it."""

    title: str
    blocks: tuple[Block, ...]

    @property
    def is_wide(self) -> bool:
        """Whether it needs a row of the page: an answer, several pictures, or a wide one.

        Two that lie over each other are one.
        """
        media = [block for block in self.blocks if block.kind == "media"]
        folded = [
            inner for block in self.blocks if block.kind == "details" for inner in block.blocks
        ]
        media += [block for block in folded if block.kind == "media" and len(block.items) > 2]
        has_bars = any(block.kind == "bars" for block in self.blocks)
        return has_bars or any(
            len(block.items) > 1 + block.wipe or any(k.wide for k in block.items) for block in media
        )


@dataclass(frozen=True, config=STRICT)
class Headline:
    """What the page says first. Only an answer that is found is good."""

    text: str
    tone: Tone
    reason: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, config=STRICT)
class Value:
    """A number by which an index compares runs, with its 95 % interval if there is one."""

    value: float
    unit: str = ""
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, config=STRICT)
class Report:
    """A page of one run."""

    title: str
    verdict: Headline
    facts: dict[str, str] = field(default_factory=dict)  # for an index: what was run, its answer
    sections: tuple[Section, ...] = ()
    chips: tuple[str, ...] = ()  # further short statements beside the verdict
    thumbnail: str = ""  # a small picture
    numbers: dict[str, Value] = field(default_factory=dict)  # for an index: answers, loss, time


_ADAPTER = TypeAdapter(Report)


def to_json(report: Report) -> Any:
    """Return a report as lists and dictionaries."""
    return _ADAPTER.dump_python(report, mode="json")


def read_report(folder: RunFolder) -> Report:
    """Return the report of a run folder."""
    stored = folder.read_json(run_folder.REPORT_DATA)
    try:
        return _ADAPTER.validate_python(stored)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "all of it"
        raise StudyError(
            f"{folder.file(run_folder.REPORT_DATA)} is not a report: {where}: {first['msg']}. "
            f"Make it again: `adjsim report {folder.path}`."
        ) from error


def section(title: str, *blocks: Block | None) -> Section | None:
    """Return a section of the blocks that are there; None without any."""
    return Section(title, kept) if (kept := _present(blocks)) else None


def details(summary: str, *blocks: Block | None) -> Details | None:
    """Return folded blocks; None without any."""
    return Details(summary, kept) if (kept := _present(blocks)) else None


def _present(blocks: Iterable[Block | None]) -> tuple[Block, ...]:
    return tuple(block for block in blocks if block is not None)


def table(
    head: Iterable[str], rows: Iterable[Iterable[Any]], strong: Iterable[int] = ()
) -> Table | None:
    """Return a table of texts; None without rows."""
    lines = tuple(tuple(map(str, row)) for row in rows)
    return Table(tuple(head), lines, tuple(strong)) if lines else None


def charts(files: Mapping[str, str], caption: str = "") -> Media | None:
    """Return charts by their description side by side; None without any."""
    items = tuple(Item(file, alt, chart=True) for alt, file in files.items())
    return Media(items, caption) if items else None
