"""What a study does on a device, tiny: `adjsim run --device` asks its problem for nothing else."""

import numpy as np

from studies import beam, config
from studies.registry import RunOptions


BEAM = (
    "beam.cells=[1, 1, 1]",
    "beam.size=[0.4, 0.4, 0.4]",
    "time.dt=1e-3",
    "time.steps=3",
    "time.frames=2",
    "image.height=6",
    "image.width=8",
    "loss.levels=1",
)


def problem(device):
    """Pictures, residuals and derivatives of `beam` where its search begins, by name."""
    settings = config.resolve("beam", BEAM)
    fit = beam.prepare(settings.values, RunOptions(device=device))
    own, theta = fit.problem, fit.problem.parameters.start
    loss, gradient = own.loss_and_gradient(theta)
    residuals, jacobian = own.residuals_and_jacobian(theta)
    return {
        "images": own.images(theta),
        "targets": own.targets,
        "loss": np.array([loss]),
        "gradient": gradient,
        "residuals": residuals,
        "jacobian": jacobian,
    }
