"""Where a point falls on the image, in pixels, by homogeneous matrices: the oracle of cameras.

Written from the text of the classes, in the axes of computer vision (x right, y down, z
ahead), while the renderer works with axes of its own. A pixel (row i, column j) is centred
at u = j, v = i.

Source: Hartley & Zisserman, Multiple View Geometry, 2nd ed., eq. 6.5-6.10.
"""

import numpy as np
from scipy.spatial.transform import Rotation


def rigid(R, t):
    """The matrix (4, 4) of a rotation and a translation."""
    M = np.eye(4)
    M[:3, :3], M[:3, 3] = R, t
    return M


FLIP = rigid(np.diag([1.0, -1.0, -1.0]), np.zeros(3))


def posed(rotation, translation, nominal):
    """World to vision axes, (4, 4): turned by SciPy."""
    R = Rotation.from_rotvec(rotation).as_matrix() @ nominal
    return FLIP @ rigid(R, translation)


def looking(eye, target, up):
    """World to vision axes of a camera at `eye` that looks at `target`."""
    ahead = np.subtract(target, eye) / np.linalg.norm(np.subtract(target, eye))
    right = np.cross(ahead, up) / np.linalg.norm(np.cross(ahead, up))
    R = np.stack([right, -np.cross(right, ahead), ahead])
    return rigid(R, -R @ np.asarray(eye))


def wide(fov_y, size):
    """Intrinsics (3, 3) of a field of view in degrees on an image of this size."""
    height, width = size
    focal = height / 2 / np.tan(np.radians(fov_y) / 2)
    return np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]])


def pixels(points, extrinsics, intrinsics):
    """Columns u, rows v [pixels] and depths [m] of points (n, 3)."""
    seen = np.concatenate([points, np.ones((len(points), 1))], axis=1) @ extrinsics.T
    image = seen[:, :3] @ np.asarray(intrinsics).T
    return image[:, 0] / image[:, 2], image[:, 1] / image[:, 2], seen[:, 2]


def flat_pixels(points, extrinsics, height, size):
    """The same of an orthographic view whose image is `height` metres high."""
    seen = np.concatenate([points, np.ones((len(points), 1))], axis=1) @ extrinsics.T
    per_metre = size[0] / height
    u = (size[1] - 1) / 2 + per_metre * seen[:, 0]
    return u, (size[0] - 1) / 2 + per_metre * seen[:, 1], seen[:, 2]
