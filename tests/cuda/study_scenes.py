"""What a scene does on a device, tiny: `adjsim run --device` asks its problem for nothing else."""

import numpy as np

from studies.problem.making import make_problem
from studies.scene.drawing import instance_of
from studies.scene.files import BUNDLED
from studies.scene.reading import read_scene


BEAM = (
    "bodies.beam.cells=[1, 1, 1]",
    "bodies.beam.size=[0.4, 0.4, 0.4]",
    "bodies.beam.position=[0.2, 0.2, 0.2]",
    "world.dt=1e-3",
    "world.duration=3e-3",
    "observations.film.simulate.frames=2",
    "observations.film.simulate.height=6",
    "observations.film.simulate.width=8",
    "search.levels=1",
)


def problem(device):
    """Pictures, residuals and derivatives of `beam` where its search begins, by name."""
    overrides = (*BEAM, "observations.film.ignore=[0, 0, 2, 1]")
    file = instance_of(read_scene(BUNDLED / "beam.toml", overrides), 0)
    beam_problem = make_problem(file, device=device).problem
    theta = beam_problem.parameters.start
    loss, gradient = beam_problem.loss_and_gradient(theta)
    residuals, jacobian = beam_problem.residuals_and_jacobian(theta)
    return {
        "images": beam_problem.predicted_rows(theta),
        "targets": beam_problem.targets,
        "loss": np.array([loss]),
        "gradient": gradient,
        "residuals": residuals,
        "jacobian": np.asarray(jacobian),
    }
