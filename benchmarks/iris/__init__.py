"""IRIS, a benchmark of 240 real films of eight kinds of motion: fit them, and compare the numbers.

    python -m benchmarks.iris FOLDER                fit every film, and print the table
    python -m benchmarks.iris.films OUT             simulated films of all classes, in this layout

FOLDER has what github.com/KurbanIntelligenceLab/iris-bench describes (R. Khanbayov et al., IRIS,
ECCV 2026; films CC-BY-NC 4.0):

    parameters.json                    what was measured, by class, setting and name: {"mean": ...}
    Pendulum/pendulum_45/01.mp4        films by class and setting, 60 frames per second

Films may also lie in FOLDER itself if they are named after their class, as those that the
benchmark's repository shows. `templates/` has a scene file for each class: copy that folder, change
colours or regions for films that look different, and give it with `--templates`.
"""
