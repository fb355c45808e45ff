"""Run the toy scene on the CPU and in Numba's CUDA simulator; print the differences as JSON.

Run in a process of its own with NUMBA_ENABLE_CUDASIM=1 and NUMBA_DISABLE_JIT=1.
"""

import json
import sys

import numpy as np

from tests.cuda.scenes import everything


def main():
    cpu, cuda = everything("cpu"), everything("cuda")
    report = {
        name: {
            "largest": float(np.abs(value).max()),
            "difference": float(np.abs(value - cuda[name]).max()),
        }
        for name, value in cpu.items()
    }
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
