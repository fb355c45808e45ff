"""Formulas as MathML: browsers draw it by themselves, so a page needs no script or network."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def mathml(tex, display):
    """MathML of a formula; several lines or an alignment are set as one."""
    if display == "block" and (r"\\" in tex or "&" in tex) and r"\begin" not in tex:
        tex = rf"\begin{{align*}}{tex}\end{{align*}}"
    return convert(tex, display=display)


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
