"""Real measurements, what adjsim finds in them, and what others measured or found.

    python -m benchmarks.real FOLDER         # all parts
    python -m benchmarks.real FOLDER cube    # tosses of a cube: friction, and prediction
    python -m benchmarks.real FOLDER beam    # markers on a silicone beam: its stiffness
    python -m benchmarks.real FOLDER apple   # film of an apple on a string: its length

FOLDER holds the files of the measurements, which are not part of the project. Each part says where
its file comes from, and is skipped where that is missing.
"""
