"""Hand-derived adjoints of `adjsim` and `render`, the reverse sweep, and the verifiers.

Names are loaded on first use, so that `import adjoint` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from adjoint.rollout import Record, record, rollout_jvp
    from adjoint.schedules import Binomial, EveryK, MemoryBudget, Segments, StoreAll
    from adjoint.verify.differences import jacobian_fd
    from adjoint.verify.dot_test import dot_test
    from adjoint.verify.gradcheck import gradcheck
    from adjoint.verify.taylor_test import taylor_test

__all__ = [
    "Binomial",
    "EveryK",
    "MemoryBudget",
    "Record",
    "Segments",
    "StoreAll",
    "dot_test",
    "gradcheck",
    "jacobian_fd",
    "record",
    "rollout_jvp",
    "taylor_test",
]

_HOMES = {
    "adjoint.rollout": ("Record", "record", "rollout_jvp"),
    "adjoint.schedules": ("Binomial", "EveryK", "MemoryBudget", "Segments", "StoreAll"),
    "adjoint.verify.differences": ("jacobian_fd",),
    "adjoint.verify.dot_test": ("dot_test",),
    "adjoint.verify.gradcheck": ("gradcheck",),
    "adjoint.verify.taylor_test": ("taylor_test",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name from the module where it lives."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
