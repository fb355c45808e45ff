"""The checks that the twins of every camera pass."""

import numpy as np

from adjoint.render.camera import view_jvp, view_vjp
from tests.render.elements import check_element


def check_camera(rng, camera, step=1e-3):
    """Tangent and adjoint of the view against differences and each other."""
    point = camera.parameters()

    def named(args):
        return {name: np.asarray(arg) for name, arg in zip(point, args, strict=True)}

    def view(*args):
        return tuple(camera.with_values(named(args)).view())

    def jvp(args, tangents):
        return tuple(view_jvp(camera.with_values(named(args)), named(tangents)))

    def vjp(args, adj):
        pulled = view_vjp(camera.with_values(named(args)), np.asarray(adj))
        return tuple(tuple(np.atleast_1d(pulled[name])) for name in point)

    args = tuple(tuple(value) if value.ndim else float(value) for value in point.values())
    check_element(rng, view, jvp, vjp, args, step=step)
