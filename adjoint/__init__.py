"""Hand-derived adjoints of `adjsim` and `render`, the reverse sweep, and the verifiers.

Names are loaded on first use, so that `import adjoint` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from adjoint.hessian import hvp
    from adjoint.inspector import Inspection
    from adjoint.losses import (
        center_of_mass_mse_jvp,
        center_of_mass_mse_vjp,
        state_mse_jvp,
        state_mse_vjp,
    )
    from adjoint.objective import Objective, value_and_grad
    from adjoint.operators import hessian_operator, jacobian_operator
    from adjoint.render.losses import (
        loss_jvp,
        loss_vjp,
        residuals,
        residuals_jvp,
        residuals_vjp,
    )
    from adjoint.render.soft_raster import ImageRecord, rasterize_jvp, record_images
    from adjoint.rollout import Record, record, rollout_jvp
    from adjoint.schedules import Binomial, EveryK, MemoryBudget, Segments, StoreAll
    from adjoint.verify.differences import jacobian_fd
    from adjoint.verify.dot_test import dot_test, symmetry_test
    from adjoint.verify.gradcheck import gradcheck
    from adjoint.verify.kinks import kink_distance, rollout_margins
    from adjoint.verify.taylor_test import taylor_test

__all__ = [
    "Binomial",
    "EveryK",
    "ImageRecord",
    "Inspection",
    "MemoryBudget",
    "Objective",
    "Record",
    "Segments",
    "StoreAll",
    "center_of_mass_mse_jvp",
    "center_of_mass_mse_vjp",
    "dot_test",
    "gradcheck",
    "hessian_operator",
    "hvp",
    "jacobian_fd",
    "jacobian_operator",
    "kink_distance",
    "loss_jvp",
    "loss_vjp",
    "rasterize_jvp",
    "record",
    "record_images",
    "residuals",
    "residuals_jvp",
    "residuals_vjp",
    "rollout_jvp",
    "rollout_margins",
    "state_mse_jvp",
    "state_mse_vjp",
    "symmetry_test",
    "taylor_test",
    "value_and_grad",
]

_HOMES = {
    "adjoint.hessian": ("hvp",),
    "adjoint.inspector": ("Inspection",),
    "adjoint.losses": (
        "center_of_mass_mse_jvp",
        "center_of_mass_mse_vjp",
        "state_mse_jvp",
        "state_mse_vjp",
    ),
    "adjoint.objective": ("Objective", "value_and_grad"),
    "adjoint.operators": ("hessian_operator", "jacobian_operator"),
    "adjoint.render.losses": (
        "loss_jvp",
        "loss_vjp",
        "residuals",
        "residuals_jvp",
        "residuals_vjp",
    ),
    "adjoint.render.soft_raster": ("ImageRecord", "rasterize_jvp", "record_images"),
    "adjoint.rollout": ("Record", "record", "rollout_jvp"),
    "adjoint.schedules": ("Binomial", "EveryK", "MemoryBudget", "Segments", "StoreAll"),
    "adjoint.verify.differences": ("jacobian_fd",),
    "adjoint.verify.dot_test": ("dot_test", "symmetry_test"),
    "adjoint.verify.gradcheck": ("gradcheck",),
    "adjoint.verify.kinks": ("kink_distance", "rollout_margins"),
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
