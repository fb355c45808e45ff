"""What a report says first, read from its page: title, verdicts, tables, pictures, set-up.

Every kind of report is read alike, and nothing of a page is copied as HTML: texts are texts, and
a picture is one only if it is embedded as PNG or mp4.
"""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser


EMBEDDED = re.compile(r"data:(image/png|video/mp4);base64,[A-Za-z0-9+/=\s]+")
SET_UP = "Set-up"
TEXTS = ("h1", "h2", "summary", "p", "th", "td", "figcaption")
CAPTION = 80  # characters: a longer paragraph is not the heading of a table


@dataclass
class Table:
    """Rows of texts under a caption; the first row is the head unless it is one of facts."""

    caption: str
    is_facts: bool
    rows: list[list[str]] = field(default_factory=list)


@dataclass
class Medium:
    """An embedded picture or film: its data address, what it shows, whether it wants room."""

    address: str
    what: str
    is_wide: bool = False

    @property
    def is_film(self) -> bool:
        """Whether it moves."""
        return self.address.startswith("data:video/")


@dataclass
class Section:
    """A section of a page."""

    heading: str = ""
    tables: list[Table] = field(default_factory=list)
    media: list[Medium] = field(default_factory=list)


@dataclass
class Said:
    """What a page says.

    Attributes
    ----------
    title : str
    verdicts : list
        Pairs of a class ("good", "bad", "plain") and a text.
    sections : list of Section
        The first one is what comes before any heading.
    """

    title: str = ""
    verdicts: list[tuple[str, str]] = field(default_factory=list)
    sections: list[Section] = field(default_factory=lambda: [Section()])

    @property
    def media(self) -> list[Medium]:
        """All pictures and films, in their order."""
        return [one for section in self.sections for one in section.media]

    def results(self) -> list[Table]:
        """Return the tables of the first section that has any, the set-up apart."""
        own = (one.tables for one in self.sections if one.tables and one.heading != SET_UP)
        return next(own, [])

    def set_up(self) -> dict[str, str]:
        """Return the facts of the set-up; empty where a page tells none."""
        tables = [table for one in self.sections if one.heading == SET_UP for table in one.tables]
        return {row[0]: row[1] for table in tables for row in table.rows if len(row) == 2}


def read_page(text: str) -> Said:
    """Return what a page says."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.said


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said = Said()
        self._text: list[str] | None = None
        self._chip, self._caption, self._folded = "", "", 0
        self._table: Table | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        classes = values.get("class", "").split()
        if tag == "details":
            self._folded += 1
        elif tag == "table":
            self._table = Table(self._caption, "facts" in classes)
            self._caption = ""
        elif tag == "tr" and self._table is not None:
            self._table.rows.append([])
        elif tag == "span" and "chip" in classes:
            self._chip = next((kind for kind in ("good", "bad") if kind in classes), "plain")
            self._text = []
        elif tag in TEXTS:
            self._text = []
        elif tag in {"img", "video"} and EMBEDDED.fullmatch(values.get("src", "")):
            own = Medium(values["src"], values.get("alt", ""), "wide" in classes)
            self.said.sections[-1].media.append(own)

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "details":
            self._folded -= 1
        elif tag == "table" and self._table is not None:
            if not self._folded or self._table.is_facts:
                self.said.sections[-1].tables.append(self._table)
            self._table = None
        elif self._text is not None and (tag in TEXTS or (tag == "span" and self._chip)):
            self._ended(tag, " ".join("".join(self._text).split()))

    def _ended(self, tag: str, text: str) -> None:
        """Take in the text of an element."""
        self._text = None
        if tag == "span":
            self.said.verdicts.append((self._chip, text))
            self._chip = ""
        elif tag == "h1":
            self.said.title = self.said.title or text
        elif tag in {"h2", "summary"}:
            self.said.sections.append(Section(text))
        elif tag == "p":
            self._caption = text if len(text) < CAPTION else ""
        elif tag == "figcaption" and self.said.sections[-1].media:
            self.said.sections[-1].media[-1].what = text
        elif tag in {"th", "td"} and self._table is not None and self._table.rows:
            self._table.rows[-1].append(text)
