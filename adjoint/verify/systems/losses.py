"""Every loss at two small frames or trajectories; its output is one number."""

from collections.abc import Sequence

import numpy as np

from adjoint.losses import (
    center_of_mass_mse_jvp,
    center_of_mass_mse_vjp,
    state_mse_jvp,
    state_mse_vjp,
)
from adjoint.render.losses import loss_jvp, loss_vjp
from adjoint.render.shape_losses import shape_loss_jvp, shape_loss_vjp
from adjoint.verify.problem import Problem, System, Values, systems
from adjsim.losses import center_of_mass_mse, state_mse
from adjsim.meshes.ball import icosahedron
from render.losses import Huber, ImageLoss, Mse, PyramidMse, SoftIou
from render.shape_losses import EdgeLength, Laplacian, NormalConsistency, ShapeLoss


def image_loss(loss: ImageLoss) -> Problem:
    """Return a loss of two frames of an odd size."""
    rng = np.random.default_rng(11)
    images, targets = rng.random((2, 2, 5, 7, 4))

    def forward(values: Values) -> np.ndarray:
        return np.array([loss(values["images"], targets)])

    def jvp(tangents: Values) -> np.ndarray:
        return np.array([loss_jvp(loss, images, targets, tangents["images"])])

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        return {path: loss_vjp(loss, images, targets, float(adj[0])) for path in wrt}

    owners = {"images": (type(loss).__name__, "images")}
    return Problem({"images": images}, owners, forward, jvp, vjp)


def shape_loss(loss: ShapeLoss) -> Problem:
    """Return a regulariser of a crumpled icosahedron in two frames."""
    points, _ = icosahedron()
    x = points + 0.1 * np.random.default_rng(14).standard_normal((2, *points.shape))

    def forward(values: Values) -> np.ndarray:
        return np.array([loss(values["x"])])

    def jvp(tangents: Values) -> np.ndarray:
        return np.array([shape_loss_jvp(loss, x, tangents["x"])])

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        return {path: shape_loss_vjp(loss, x, float(adj[0])) for path in wrt}

    return Problem({"x": x}, {"x": (type(loss).__name__, "x")}, forward, jvp, vjp)


def positions_loss() -> Problem:
    """Return the mean squared difference of positions."""
    x, target = np.random.default_rng(12).standard_normal((2, 3, 5, 3))
    return Problem(
        {"x": x},
        {"x": ("state_mse", "x")},
        lambda values: np.array([state_mse(values["x"], target)]),
        lambda tangents: np.array([state_mse_jvp(x, target, tangents["x"])]),
        lambda adj, wrt: {path: state_mse_vjp(x, target, float(adj[0])) for path in wrt},
    )


def center_of_mass_loss() -> Problem:
    """Return the mean squared difference of centres of mass."""
    rng = np.random.default_rng(13)
    x, mass, target = (
        rng.standard_normal((3, 5, 3)),
        rng.uniform(1, 2, 5),
        rng.standard_normal((3, 3)),
    )

    def forward(values: Values) -> np.ndarray:
        return np.array([center_of_mass_mse(values["x"], values["mass"], target)])

    def jvp(tangents: Values) -> np.ndarray:
        tan_x = tangents.get("x", np.zeros_like(x))
        tan_mass = tangents.get("mass", np.zeros_like(mass))
        return np.array([center_of_mass_mse_jvp(x, mass, target, tan_x, tan_mass)])

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        adj_x, adj_mass = center_of_mass_mse_vjp(x, mass, target, float(adj[0]))
        gradient = {"x": adj_x, "mass": adj_mass}
        return {path: gradient[path] for path in wrt}

    owners = {key: ("center_of_mass_mse", key) for key in ("x", "mass")}
    return Problem({"x": x, "mass": mass}, owners, forward, jvp, vjp)


ICOSAHEDRON = icosahedron()[1]
IMAGE_LOSSES = {
    "mse": Mse(), "huber": Huber(0.3), "pyramid": PyramidMse(3, 4.0), "soft_iou": SoftIou()
}  # fmt: skip
SHAPE_LOSSES = {
    "laplacian": Laplacian(ICOSAHEDRON),
    "edges": EdgeLength(ICOSAHEDRON, 0.9),
    "normals": NormalConsistency(ICOSAHEDRON),
}
SYSTEMS = (
    *systems("pixels", image_loss, {f"loss/{key}": loss for key, loss in IMAGE_LOSSES.items()}),
    *systems("pixels", shape_loss, {f"loss/{key}": loss for key, loss in SHAPE_LOSSES.items()}),
    System("loss/state_mse", positions_loss),
    System("loss/center_of_mass", center_of_mass_loss),
)
