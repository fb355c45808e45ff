"""What `adjsim info` prints."""

from studies.manifest import machine, version, versions
from studies.running import cuda_problem


EXTRAS = {
    "pytetwild": ("tetrahedra from closed surfaces", "pip install 'adjsim[mesh]'"),
    "numba-cuda": ("kernels on NVIDIA GPUs", "pip install 'adjsim[cuda]'"),
    "cupy-cuda13x": ("FFT and arrays on NVIDIA GPUs", "pip install 'adjsim[cuda]'"),
    "pytest": ("the tests", "pip install 'adjsim[test]'"),
    "sphinx": ("the docs", "pip install 'adjsim[docs]'"),
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
        lines.append(f"  {name:<14}{found or f'missing: {purpose}. {command}'}")
    return "\n".join(lines)
