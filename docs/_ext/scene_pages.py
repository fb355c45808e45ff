"""Sphinx: the wall of films of the first page, and the page of scenes, which its tiles lead to.

Both stand in the place of a comment, `<!-- scene wall -->` and `<!-- scenes -->`. The films are
written by `scene_films.py`, the titles come from the scene files, and the results from the rows of
studies.md. A comment `<!-- index: photo, film -->` has words by which the search finds a page.
"""

import html
import re
import tomllib
from pathlib import Path


DOCS = Path(__file__).resolve().parents[1]
BUNDLED = DOCS.parent / "studies" / "bundled"
FILMS = DOCS / "_static" / "scenes"


def film(name):
    """Return the element of a film, which is fetched and played where it is seen."""
    return (
        f'<video src="_static/scenes/{name}.mp4" poster="_static/scenes/{name}.jpg" '
        'width="324" height="216" preload="none" muted loop playsinline aria-hidden="true" '
        'tabindex="-1"></video>'
    )


def names():
    """Return the scenes that have a film, those of studies.md in its order first."""
    films = {path.stem for path in FILMS.glob("*.mp4")}
    rows = re.findall(r"adjsim run ([\w-]+)", (DOCS / "studies.md").read_text("utf-8"))
    return list(dict.fromkeys([name for name in rows if name in films] + sorted(films)))


def title(name):
    """Return the title of a scene file."""
    return tomllib.loads((BUNDLED / f"{name}.toml").read_text("utf-8"))["title"]


def wall():
    """Return the HTML of all films, each a link to its scene."""
    tiles = "".join(
        f'<a href="scenes.html#{name}" title="{html.escape(title(name))}">{film(name)}'
        f"<span>{name}</span></a>"
        for name in names()
    )
    return (
        f'<div class="scene-wall">{tiles}</div>\n'
        '<button type="button" class="play-films" aria-pressed="true">Pause the films</button>'
    )


def result(name):
    """Return the row of studies.md about a scene, below the header of its table."""
    header, text = "", ""
    for line in (DOCS / "studies.md").read_text("utf-8").splitlines():
        if line.startswith("| command"):
            header = line
        elif re.search(rf"^\|.*`(adjsim run )?{name}[ `]", line):
            text = f"{header}\n|{'---|' * (header.count('|') - 1)}\n{line}\n"
            break
    return re.sub(r"\]\((#[\w-]+)\)", r"](studies.md\1)", text)


def scenes():
    """Return the page's sections, in Markdown."""
    return "\n".join(
        f"## {name}\n\n**{title(name)}**\n\n<div class='scene-film'>{film(name)}</div>\n\n"
        f"    adjsim run {name}      # search, judge, report: runs/{name}-001/report.html\n"
        f"    adjsim new my.toml --from {name}      # a copy to change\n\n{result(name)}\n"
        f"````{{dropdown}} studies/bundled/{name}.toml\n"
        f"```{{literalinclude}} ../studies/bundled/{name}.toml\n:language: toml\n```\n````\n"
        for name in names()
    )


def fill(_app, _page, source):
    """Put all where their comments are."""
    if words := re.search(r"<!-- index: (.+) -->", source[0]):  # main ones come first in a search
        entries = "! " + words[1].replace(", ", ", ! ")
        source[0] = source[0].replace(words[0], f"```{{index}} {entries}\n```")
    for comment, content in (("<!-- scene wall -->", wall), ("<!-- scenes -->", scenes)):
        if comment in source[0]:
            source[0] = source[0].replace(comment, content())


def setup(app):
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
