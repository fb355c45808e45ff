"""Run toy scenes on the CPU and in Numba's CUDA simulator; print the differences as JSON.

Arrays of the device are kept apart from NumPy's, by `stand_ins.py`.

Run in a process of its own with NUMBA_ENABLE_CUDASIM=1 and NUMBA_DISABLE_JIT=1, and with
the name of what is run: physics, worlds, reduced, render, outputs or study.
"""

import json
import sys

import numpy as np

from tests.cuda import reduced_scenes, render_scenes, scenes, stand_ins, study_scenes


RUNS = {
    "physics": scenes.everything,
    "worlds": scenes.many_worlds,
    "reduced": reduced_scenes.all_scenes,
    "render": render_scenes.all_scenes,
    "outputs": render_scenes.outputs_of_scenes,
    "study": study_scenes.problem,
}


def main():
    everything = RUNS[sys.argv[1]]
    stand_ins.install()
    cpu, cuda = everything("cpu"), everything("cuda")
    report = {
        name: {
            "largest": float(np.abs(value).max()),
            "difference": float(np.abs(value - cuda[name]).max()),
            "alike": value.shape == cuda[name].shape and value.dtype == cuda[name].dtype,
        }
        for name, value in cpu.items()
    }
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
