"""Hand-derived adjoints of `adjsim` and `render`, the reverse sweep, and the verifiers.

Names are loaded on first use, so that `import adjoint` costs nothing.
"""

from typing import TYPE_CHECKING

from adjsim.lazy import lazy_names


if TYPE_CHECKING:
    from adjoint.hessian import hvp as hvp
    from adjoint.inspector import Inspection as Inspection
    from adjoint.losses import (
        center_of_mass_mse_jvp as center_of_mass_mse_jvp,
        center_of_mass_mse_vjp as center_of_mass_mse_vjp,
        state_mse_jvp as state_mse_jvp,
        state_mse_vjp as state_mse_vjp,
    )
    from adjoint.objective import Objective as Objective, value_and_grad as value_and_grad
    from adjoint.operators import (
        hessian_operator as hessian_operator,
        jacobian_operator as jacobian_operator,
    )
    from adjoint.render.losses import (
        loss_jvp as loss_jvp,
        loss_vjp as loss_vjp,
        residuals_jvp as residuals_jvp,
        residuals_vjp as residuals_vjp,
    )
    from adjoint.render.soft_raster import (
        ImageRecord as ImageRecord,
        rasterize_jvp as rasterize_jvp,
        record_images as record_images,
    )
    from adjoint.rollout import Record as Record, record as record, rollout_jvp as rollout_jvp
    from adjoint.schedules import (
        Binomial as Binomial,
        EveryK as EveryK,
        MemoryBudget as MemoryBudget,
        Segments as Segments,
        StoreAll as StoreAll,
    )
    from adjoint.verify.differences import jacobian_fd as jacobian_fd
    from adjoint.verify.dot_test import dot_test as dot_test, symmetry_test as symmetry_test
    from adjoint.verify.gradcheck import gradcheck as gradcheck
    from adjoint.verify.kinks import (
        kink_distance as kink_distance,
        rollout_margins as rollout_margins,
    )
    from adjoint.verify.taylor_test import taylor_test as taylor_test
    from render.losses import residuals as residuals

__getattr__, __dir__ = lazy_names(__name__)
