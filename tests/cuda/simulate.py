"""Run toy scenes on the CPU and in Numba's CUDA simulator; print the differences as JSON.

Arrays of the device are kept apart from NumPy's, by `stand_ins.py`.

Run in a process of its own with NUMBA_ENABLE_CUDASIM=1 and NUMBA_DISABLE_JIT=1, and with
the name of what is run: physics, worlds, nodes, surfaces, reduced, render, outputs or study.
"""

import json
import sys

import numpy as np

from tests.cuda import pair_scenes, reduced_scenes, render_scenes, scenes, stand_ins, study_scenes


RUNS = {
    "physics": scenes.everything,
    "worlds": scenes.many_worlds,
    "nodes": scenes.own_nodes,
    "surfaces": pair_scenes.surfaces,
    "reduced": reduced_scenes.all_scenes,
    "render": render_scenes.all_scenes,
    "outputs": render_scenes.outputs_of_scenes,
    "study": study_scenes.problem,
}


def compare(cpu, cuda):
    """Return by name how large the CPU's numbers are, and how far those of CUDA are from them."""
    return {
        name: {
            "largest": float(np.abs(value).max()),
            "difference": float(np.abs(value - cuda[name]).max()),
            "alike": value.shape == cuda[name].shape and value.dtype == cuda[name].dtype,
        }
        for name, value in cpu.items()
    }


if __name__ == "__main__":
    stand_ins.install()
    everything = RUNS[sys.argv[1]]
    json.dump(compare(everything("cpu"), everything("cuda")), sys.stdout)
