"""Formulas as MathML: browsers draw it by themselves; no script, no network."""

import re
import xml.etree.ElementTree as ET
from itertools import cycle

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


NAMESPACE = "http://www.w3.org/1998/Math/MathML"
THIN_SPACE = {"width": "0.167em"}
CAPITALS = "ΓΔΘΛΞΠΣΦΨΩ"  # TeX sets them upright, a browser would slant them
PRIMES = "′″"  # the font has them raised
WORD_JOINER = "&#x2060;"  # without it a comma may begin the next line
SIGNS, CLOSING = ("−", "+"), (")", "]", "}", "|", "⟩", "!")
RELATIONS = {"~": "∼", "⟹": "⟹"}  # taken for variables
ROWS = ("math", "mrow", "mstyle", "mtd")
# A macron is as short as a dot is wide; an overline is as wide as its letter.
MACRON, OVERLINE = "&#x000AF;", "&#x0203E;"


def mathml(tex, display):
    """Return MathML: lines are aligned, bars come in pairs, accents sit close."""
    if display == "block" and (r"\\" in tex or "&" in tex) and r"\begin" not in tex:
        tex = rf"\begin{{align*}}{tex}\end{{align*}}"
    bars = (rf'<mo form="{form}" stretchy="false">|</mo>' for form in cycle(("prefix", "postfix")))
    text = re.sub("<mo>&#x0007C;</mo>", lambda _: next(bars), convert(tex, display=display))
    text = text.replace("<mover>", '<mover accent="true">')
    text = text.replace(MACRON, OVERLINE)
    root = ET.fromstring(text.replace(f' xmlns="{NAMESPACE}"', ""))
    for element in list(root.iter()):
        _adjust(element)
        if element.tag in ROWS:
            _mark_signs(element)
            _space_functions(element)
    root.set("xmlns", NAMESPACE)
    return ET.tostring(root, encoding="unicode")


def _adjust(element):
    """Set one element as TeX does."""
    text = element.text or "-"
    if element.tag == "mi" and text in CAPITALS:
        element.set("mathvariant", "normal")
    elif element.tag == "mi" and text in RELATIONS:
        element.tag, element.text = "mo", RELATIONS[text]
    elif element.tag == "mo" and text == "/":
        element.attrib.update(lspace="0em", rspace="0em")
    elif element.tag == "mo" and "minsize" in element.attrib:  # \big and the like
        element.attrib.update(stretchy="true", symmetric="true", lspace="0em", rspace="0em")
    elif element.tag == "msup" and (element[1].text or "-") in PRIMES:
        element.tag = "mrow"


def _mark_signs(row):
    """Set the minus of `= -p` close to its p: it is a sign, not a difference."""
    before = None
    for child in row:
        follows = before is not None and before.tag == "mo" and before.text not in CLOSING
        if child.tag == "mo" and child.text in SIGNS and follows:
            child.set("form", "prefix")
        if child.tag != "mspace":
            before = child


def _space_functions(row):
    """Put TeX's thin spaces around the functions of a row: ω sin δ, but sin(δ)."""
    children = list(row)
    for k, child in reversed(list(enumerate(children))):
        if not _is_function(child):
            continue
        if child.tag == "mo":
            child.attrib.update(lspace="0em", rspace="0em")
        following = children[k + 1] if k + 1 < len(children) else None
        if following is not None and following.tag != "mspace" and _first(following) not in "()|,;":
            row.insert(k + 1, ET.Element("mspace", THIN_SPACE))
        if k and (children[k - 1].tag not in ("mo", "mspace") or children[k - 1].text == ")"):
            row.insert(k, ET.Element("mspace", THIN_SPACE))


def _is_function(element):
    """Return whether an element is the name of a function, or one with an index."""
    if element.tag in ("msub", "msup", "msubsup", "munder"):
        element = element[0]
    return element.tag in ("mi", "mo") and re.fullmatch("[a-z]{2,}", element.text or "") is not None


def _first(element):
    """Return the first text of an element, a space if there is none."""
    return next((text for text in element.itertext() if text.strip()), " ")[0]


def visit_inline(self, node):
    following = node.next_node(descend=False, siblings=True)
    keeps = following is not None and following.astext()[:1] in tuple(",.;:)?!")
    self.body.append(mathml(node.astext(), "inline") + keeps * WORD_JOINER)


def visit_block(self, node):
    self.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')


def leave(self, node):
    """Never reached: both visits skip the formula's text."""


def skipping(visit):
    """A visitor that does not go on to the node's children."""

    def visit_and_skip(self, node):
        visit(self, node)
        raise SkipNode

    return visit_and_skip


def setup(app):
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(skipping(visit_inline), leave),
        block_renderers=(skipping(visit_block), leave),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
