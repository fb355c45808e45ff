"""The gallery: every mode, light and appearance of the renderer, beside VTK's pictures.

    python -m benchmarks.gallery --out gallery      PNG files and one self-contained page

`entries.py` is the one list of what is shown: all that a new mode needs.
"""
