"""What `adjsim info` prints."""

from adjsim.extras import CLONE, how_to_install
from adjsim.jit.devices import cuda_problem
from studies.runs.manifest import machine, version, versions


EXTRAS = {  # what for, and which extra brings it
    "pydantic": ("scene files, films and reports", "scenes"),
    "pyvista": ("mesh files and 3-D views", "mesh"),
    "xarray": ("scans, data sets and tables of runs", "scans"),
    "pytetwild": ("tetrahedra from closed surfaces", "mesh"),
    "numba-cuda": ("kernels on NVIDIA GPUs", "cuda"),
    "cupy-cuda13x": ("FFT and arrays on NVIDIA GPUs", "cuda"),
    "distributed": ("scans, data sets and tables over many processes and machines", "dask"),
    "c3d": ("tracks from c3d files", "tracks"),
    "opencv-python-headless": ("cameras from a chessboard", "camera"),
    "torch": ("rollouts in PyTorch", "torch"),
    "jax": ("rollouts in JAX", "jax"),
    "mitsuba": ("path-traced videos and pictures", "photo"),
}
if CLONE.exists():  # a release has no benchmarks, tests or manual
    peers = "other packages beside ours, timed by `python -m benchmarks.timing peers`"
    EXTRAS |= {"deodr": (peers, "peers"), "pytest": ("the tests", "test")}
    EXTRAS |= {"sphinx": ("the docs", "docs")}


def info_text() -> str:
    """Return versions, devices, and what is missing with the way to get it."""
    lines = ["versions"]
    lines += [f"  {name:<14}{number or 'missing'}" for name, number in versions().items()]
    lines += ["machine"]
    lines += [f"  {name:<14}{value}" for name, value in machine().items()]
    problem = cuda_problem()
    lines += ["devices", "  cpu           ready", f"  cuda          {problem or 'ready'}"]
    lines += ["optional"]
    for name, (purpose, extra) in EXTRAS.items():
        missing = f"missing: {purpose}. {how_to_install(extra)}"
        lines.append(f"  {name:<24}{version(name) or missing}")
    return "\n".join(lines)
