r"""The centre of mass as a picture: what 3-D supervision compares in place of pixels.

A frame has one pixel. Its red, green and blue are the coordinates of the centre of mass,

    c = sum_i m_i x_i / sum_i m_i   [m],

so that `Mse` against a goal c* is the loss of `adjsim.losses.center_of_mass_mse`, and all that
searches and certifies pictures does the same to states.

Tests: `tests/studies/control/test_centers.py`.
Source: gradSim (ICLR 2021), section 4.3, the baseline with 3-D supervision.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adjoint.losses import center_of_mass_jvp, center_of_mass_vjp
from adjsim.losses import center_of_mass
from studies.filming import Filmed, Filming, Pulled
from studies.motion import Motion


class CenterFilming(Filming):
    """One pixel a frame: the centre of mass of the nodes, and an alpha of 1.

    The masses are data: they get no cotangent.
    """

    size = (1, 1)

    def shoot(self, motion: Motion, run: Any) -> np.ndarray:
        """Return the centres [m], (n_frames, 1, 1, 4)."""
        return _pixels(center_of_mass(run.x, _mass(motion)), 1.0, motion.dtype)

    def jvp(
        self, motion: Motion, run: Any, tan_run: Any, tangents: Mapping[str, Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the centres and their tangents."""
        del tangents
        mass = _mass(motion)
        tan_c = center_of_mass_jvp(run.x, mass, tan_run.x, np.zeros_like(mass))
        return self.shoot(motion, run), _pixels(tan_c, 0.0, motion.dtype)

    def record(self, motion: Motion, run: Any) -> Filmed:
        """Return the centres; cotangents of them go back to the nodes."""

        def vjp(adj_images: np.ndarray) -> Pulled:
            adj_x, _ = center_of_mass_vjp(run.x, _mass(motion), adj_images[:, 0, 0, :3])
            return Pulled({"x": adj_x.astype(motion.dtype, copy=False)})

        return Filmed(self.shoot(motion, run), vjp)


def _mass(motion: Motion) -> np.ndarray:
    """Return the masses of the nodes [kg], (n_nodes,)."""
    return np.asarray(motion.system.parameters()["mass"], np.float64)


def _pixels(centers: np.ndarray, alpha: float, dtype: str) -> np.ndarray:
    """Return rows (n_frames, 3) as pictures of one pixel, (n_frames, 1, 1, 4)."""
    alphas = np.full((len(centers), 1), alpha)
    return np.concatenate([centers, alphas], axis=1).astype(dtype)[:, None, None]
