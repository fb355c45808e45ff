"""Sphinx: the manual and the course. Every notebook is executed when this is built.

    sphinx-build -W docs docs/_build

Nothing is fetched from the network, and a cell that fails fails the build.
"""

import inspect
import os
import re
import sys
from pathlib import Path


ROOT = Path(__file__).resolve().parent.parent
# Notebooks run in processes of their own, which inherit this.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
)
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # agg would draw nothing
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "_ext")]

project = "adjsim"
copyright = "the adjsim authors, Apache-2.0"
release = re.search(r'__version__ = "(.+)"', (ROOT / "adjsim" / "__init__.py").read_text())[1]

extensions = ["myst_nb", "sphinx_design", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
extensions += ["sphinx.ext.viewcode"]
extensions += ["mathml", "browser_exercises", "scene_pages"]  # of docs/_ext
html_math_renderer = "mathml"
exclude_patterns = ["_build", "jupyter_execute", "**.ipynb_checkpoints"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
nb_render_markdown_format = "gfm"

autodoc_member_order = "bysource"
autodoc_mock_imports = ["torch"]  # of a bridge; the manual is built without it
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # the docstrings say more: shapes and units
napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "adjsim"
html_static_path = ["_static"]
html_css_files = ["course.css"]
html_js_files = ["scrolling.js", "films.js", "listings.js"]
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1b5e8c",
        "color-brand-content": "#1b5e8c",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cc0ea",
        "color-brand-content": "#7cc0ea",
    },
}


def escape_bars(_app, _what, _name, _obj, _options, lines):
    """Docstrings write |x| for a length; reStructuredText would look for a substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def without_private(_app, what, _name, obj, _options, signature, returned):
    """Leave out of a class's signature what only its own module passes."""
    if what != "class" or not signature:
        return None
    try:
        full = inspect.signature(obj)
    except (TypeError, ValueError):
        return None
    public = [p for p in full.parameters.values() if not p.name.startswith("_")]
    if len(public) == len(full.parameters):
        return None
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in public]
    return str(inspect.Signature(bare)), returned


def mend_roles(_app, _page, _template, context, _doctree):
    """Mend what readers for the blind stumble over in the markup of theme and notebooks."""
    mended = {
        "furo_navigation_tree": ('role="heading"', 'role="heading" aria-level="2"'),
        "body": ('<summary aria-label="Toggle hidden content">', "<summary>"),
    }
    for block, (wrong, right) in mended.items():
        context[block] = (context.get(block) or "").replace(wrong, right)


def setup(app):
    app.connect("html-page-context", mend_roles, priority=900)
    app.connect("autodoc-process-docstring", escape_bars, priority=900)
    app.connect("autodoc-process-signature", without_private)
