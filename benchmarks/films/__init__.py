"""Test films: simulated by small solvers of their own, drawn with VTK, compressed with H.264.

Nothing here imports adjsim's physics or its renderer, since the films are there to test them.

    python -m benchmarks.films make --out /tmp/films     draw the films and write their scene files
    python -m benchmarks.films vary --out /tmp/varied    the same with 50 variations of three films
    python -m benchmarks.films wrong /tmp/films          copies with a wrong scale, rate or camera
    python -m benchmarks.films small size-3 blur         films with a small thing wrong, fitted
    python -m benchmarks.films pull --out /tmp/pulled    a tensile test: load cell and markers
    python -m benchmarks.films views                     bodies without a mesh, and their hulls
    python -m benchmarks.films table /tmp/films          fit every film, and compare with the truth
"""
