"""What `adjsim info` prints."""

from adjsim.extras import CLONE, how_to_install
from adjsim.jit.devices import cuda_problem
from studies.runs.manifest import machine, version, versions


EXTRAS = {
    "pytetwild": ("tetrahedra from closed surfaces", how_to_install("mesh")),
    "numba-cuda": ("kernels on NVIDIA GPUs", how_to_install("cuda")),
    "cupy-cuda13x": ("FFT and arrays on NVIDIA GPUs", how_to_install("cuda")),
    "distributed": (
        "scans, data sets and tables over many processes and machines",
        how_to_install("dask"),
    ),
    "c3d": ("tracks from c3d files", how_to_install("tracks")),
    "opencv-python-headless": ("cameras from a chessboard", how_to_install("camera")),
    "torch": ("rollouts in PyTorch", how_to_install("torch")),
    "jax": ("rollouts in JAX", how_to_install("jax")),
    "mitsuba": ("path-traced videos and pictures", how_to_install("photo")),
}
if CLONE.exists():  # a release has no benchmarks, tests or manual
    EXTRAS |= {
        "deodr": (
            "other packages beside ours, timed by `python -m benchmarks.timing peers`",
            how_to_install("peers"),
        ),
        "pytest": ("the tests", how_to_install("test")),
        "sphinx": ("the docs", how_to_install("docs")),
    }


def info_text() -> str:
    """Return versions, devices, and what is missing with the way to get it."""
    lines = ["versions"]
    lines += [f"  {name:<14}{number or 'missing'}" for name, number in versions().items()]
    lines += ["machine"]
    lines += [f"  {name:<14}{value}" for name, value in machine().items()]
    problem = cuda_problem()
    lines += ["devices", "  cpu           ready", f"  cuda          {problem or 'ready'}"]
    lines += ["optional"]
    for name, (purpose, command) in EXTRAS.items():
        found = version(name)
        lines.append(f"  {name:<24}{found or f'missing: {purpose}. {command}'}")
    return "\n".join(lines)
