"""Prints the course as one PDF, from the pages in OUT; needs Chromium.

sphinx-build docs OUT
python docs/_ext/course_pdf.py OUT course.pdf
"""

import re
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from studies.exercises.catalogue import exercises


PAGES = re.compile(r"^course/(?!practice|teaching)(.+)$", re.MULTILINE)
LINK = re.compile(r'<a\b[^>]*?href="([^"]*)"[^>]*>')
HEADER_LINK = re.compile(r'<a class="headerlink".*?</a>')
CHROMIUM = "chromium", "chromium-browser", "google-chrome"
TITLE = "Discrete adjoints by hand"
STYLE = """<style>
@page { size: A4; margin: 18mm 17mm; }
@page { @bottom-center { content: counter(page); font: 9pt sans-serif; } }
html { font-size: 10.5pt; }
body > section + section { break-before: page; }
p.title { font-size: 2.6em; font-weight: bold; margin: 0 0 2rem; }
h1, h2, h3, h4 { break-after: avoid; }
h1 { font-size: 1.9em; }
h2 { font-size: 1.45em; }
h3 { font-size: 1.2em; }
.table-wrapper { overflow: visible; }
a:not([href]) { color: inherit; text-decoration: none; }
.highlight pre, .side-by-side .highlight pre { font-size: 7.8pt; }
div.exercise { break-inside: avoid; }
#index img { max-height: 85mm; width: auto; }
#index--chapters { break-before: page; }
</style>"""


def chapter(text, name, names):
    """Return the article of a page; its anchors and links to other chapters have its name."""
    article = re.search(r"<article[^>]*>(.*)</article>", text, re.DOTALL)[1]
    article = HEADER_LINK.sub("", article)

    def link(match):
        path, _, anchor = match[1].partition("#")
        page = path.removesuffix(".html") if path else name
        if page in names:
            return f'<a class="internal" href="#{page}{anchor and "--"}{anchor}">'
        return match[0] if match[1].startswith("http") else "<a>"

    article = re.sub(r'\bid="', f'id="{name}--', article)
    return f'<section id="{name}">{LINK.sub(link, article)}</section>'


def exercise_texts():
    """Return the texts of all exercises, with what is given."""
    parts = ['<section id="texts"><h1>The exercises</h1>']
    for number, exercise in exercises().items():
        code = highlight(exercise.given, PythonLexer(), HtmlFormatter())
        title = f"<h2>{number}. {escape(exercise.title)}</h2>"
        parts.append(f'<div class="exercise">{title}{code}</div>')
    return "".join([*parts, "</section>"])


def main(out, target):
    """Write one page with all chapters beside them, print it, and remove it."""
    index = Path(__file__).parents[1] / "index.md"
    names = PAGES.findall(index.read_text(encoding="utf-8"))
    texts = {name: (out / "course" / f"{name}.html").read_text(encoding="utf-8") for name in names}
    head = re.search(r"<head>(.*)</head>", texts[names[0]], re.DOTALL)[1]
    head = re.sub("<title>.*</title>", f"<title>{TITLE}</title>", head)
    body = "".join(chapter(text, name, names) for name, text in texts.items()) + exercise_texts()
    page = out / "course" / "all.html"
    page.write_text(
        f"<!doctype html><html lang='en'><head>{head}{STYLE}</head>"
        f"<body><p class='title'>{TITLE}</p>{body}</body></html>",
        encoding="utf-8",
    )
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None:
        sys.exit(f"No browser to print with: install one of {', '.join(CHROMIUM)}.")
    options = ["--headless", "--no-sandbox", "--no-pdf-header-footer"]
    options += ["--generate-pdf-document-outline", f"--print-to-pdf={target}"]
    subprocess.run([chromium, *options, page.resolve().as_uri()], check=True, capture_output=True)
    page.unlink()
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
