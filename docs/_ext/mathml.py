"""Formulas as MathML: browsers draw it by themselves; no script, no network."""

import re
from itertools import cycle

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def mathml(tex, display):
    """MathML of a formula: lines are aligned, bars come in pairs, accents sit close."""
    if display == "block" and (r"\\" in tex or "&" in tex) and r"\begin" not in tex:
        tex = rf"\begin{{align*}}{tex}\end{{align*}}"
    bars = (rf'<mo form="{form}" stretchy="false">|</mo>' for form in cycle(("prefix", "postfix")))
    html = re.sub("<mo>&#x0007C;</mo>", lambda _: next(bars), convert(tex, display=display))
    return re.sub(r"<mover>(?!<mi>.{1,9}</mi><mo>&#x002D9;)", '<mover accent="true">', html)


def visit_inline(self, node):
    self.body.append(mathml(node.astext(), "inline"))


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
