"""Where everything that is drawn is at the start. Nothing is rolled out, nor compiled."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from studies.scene.building import Built
from studies.scene.filming import Hulls
from studies.scene.motion import Motion


def start_surfaces(built: Built) -> dict[str, np.ndarray]:
    """Return the vertices of everything that is drawn at the start, by name, (n, 3) [m]."""
    motion = Motion(built.system, built.state, 1.0, np.array([0]))
    fields = {name: value for name, value in vars(built.state).items() if name != "bodies"}
    run = SimpleNamespace(**{k: np.asarray(v)[None] for k, v in fields.items() if v is not None})
    system: Any = built.system
    return {
        name: _hull(system.bodies[one.name], built.state.bodies[one.name])
        if isinstance(one, Hulls)
        else one.vertices(motion, run)[0]
        for name, one in built.subjects.items()
    }


def _hull(bodies: RigidBodies, state: BodyState) -> np.ndarray:
    """Return x + R c of the vertices of a set with one rigid body, (n_vertices, 3) [m]."""
    theta, nominal = state.rotation[0].copy(), state.orientation[0].copy()
    turned = Rotation.from_rotvec(theta) * Rotation.from_quat(nominal)
    return state.position[0] + turned.apply(bodies.arms[bodies.hull])
