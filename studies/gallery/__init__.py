"""The gallery: every mode, light and appearance of the renderer, beside other packages' pictures.

`entries.py` is the one list of what is shown; `others.py` lists who else draws it. Both are all
that a new mode or package needs. `making.py` draws and compares, `page.py` writes the page.
"""
