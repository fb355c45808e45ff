"""What the command line says besides the settings of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from studies.runs.errors import StudyError


DTYPES, DEVICES = ("float64", "float32"), ("cpu", "cuda")
CHANGEABLE = ("checkpoint", "certificate")  # may differ in a resumed run: they change no number
MOST_SEED = 2**63 - 1


@dataclass(frozen=True)
class RunOptions:
    """What the command line says besides the study's own settings."""

    seed: int = 0
    dtype: str = "float64"
    device: str = "cpu"
    checkpoint: str = "1GB"  # for the states of a reverse sweep
    certificate: bool = True  # whether the gradient is certified at the end

    def __post_init__(self) -> None:
        """Raise if an option has a value that it cannot have."""
        from studies.runs.memory import check_budget  # it brings Numba

        if not 0 <= self.seed <= MOST_SEED:
            seed_text = str(self.seed) if abs(self.seed) < 10**20 else "a number of more digits"
            raise StudyError(f"`--seed` must be 0 or more and below 2^63, got {seed_text}.")
        for name, choices in (("dtype", DTYPES), ("device", DEVICES)):
            value = getattr(self, name)
            if value not in choices:
                raise StudyError(f"`--{name}` must be {' or '.join(choices)}, got {value!r}.")
        check_budget(self.checkpoint)


def make_options(given: Mapping[str, Any]) -> RunOptions:
    """Return the options of a command line, whose None stand for defaults."""
    names = RunOptions.__dataclass_fields__
    return RunOptions(**{k: v for k, v in given.items() if k in names and v is not None})


def check_device(device: str) -> None:
    """Raise if the device cannot be used here."""
    from adjsim.jit import devices

    if device == "cuda" and (problem := devices.cuda_problem()):
        raise StudyError(
            f"`--device cuda` is not possible here: {problem.rstrip('.')}. Run with "
            "`--device cpu`, which needs no GPU; `adjsim info` lists what is missing and how "
            "to get it."
        )
