"""Random rigid bodies: fourteen shapes, stretched, in any pose, thrown where there is a floor.

Instance k has shape k, from the first again after the last. A push at vertices is moved to the one
that is lowest at first. Where the scene has a list of masses of vertices, all have the first of
them, and the push is multiplied by their number, so that no body is slower for it.
"""

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim.meshes.shapes import SHAPES, shape
from studies.scene.declared import Rigid, SceneFile


BODY = "body"
STRETCH = (0.8, 1.2)  # along each axis
CLEARANCE = 0.1  # of the lowest vertex above where the scene has the body [m]
SLOWEST, FASTEST = (1.0, -1.0, -0.3), (2.0, 0.0, 0.3)  # where there is a floor [m/s]
SPIN = 1.0  # about each of the body's axes, at most [rad/s]


def draw(file: SceneFile, rng: np.random.Generator, instance: int) -> SceneFile:
    """Return the scene with the body of an instance."""
    body = file.bodies[BODY]
    assert isinstance(body, Rigid)
    name = list(SHAPES)[instance % len(SHAPES)]
    scale = rng.uniform(*STRETCH, size=3)
    turn = Rotation.from_quat(rng.standard_normal(4))
    points = turn.apply(shape(name).points * scale)
    low = int(np.argmin(points[:, 1]))
    position = np.add(body.position, [0.0, CLEARANCE - points[low, 1], 0.0])
    velocity, spin = np.zeros((2, 3))
    if file.obstacles:
        velocity = rng.uniform(SLOWEST, FASTEST)
        spin = turn.apply(rng.uniform(-SPIN, SPIN, size=3))
    drawn = replace(
        body,
        mesh=f"shape:{name}",
        scale=tuple(scale.tolist()),
        rotation=tuple(turn.as_rotvec(degrees=True).tolist()),
        position=tuple(position.tolist()),
        velocity=tuple(velocity.tolist()),
        spin=tuple(spin.tolist()),
    )
    factor = 1.0
    if isinstance(body.vertex_mass, tuple):
        factor = float(len(points))
        drawn = replace(drawn, vertex_mass=body.vertex_mass[:1] * len(points))
    pushes = {
        key: replace(push, nodes=(low,), force=tuple(np.multiply(factor, push.force).tolist()))
        if push.nodes
        else push
        for key, push in file.pushes.items()
    }
    return replace(file, bodies={**file.bodies, BODY: drawn}, pushes=pushes)
