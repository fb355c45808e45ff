r"""Adjoint of `adjsim/joints/pins.py`, which has the tangent: read them side by side."""

from adjoint.forces.element import ForceTwin, TwinKind
from adjoint.forces.registry import register
from adjsim.algebra.vec3 import dot, scale
from adjsim.jit.backend import device_fn
from adjsim.joints.pins import PIN, C, K, Pins


@device_fn
def pin_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `pin_force`."""
    adj = adj_f[0]
    # (1) f_j = -k r - c r'
    adj_params = -dot(x[0], adj), -dot(v[0], adj)
    return (scale(-params[K], adj),), (scale(-params[C], adj),), adj_params, ()


PIN_TWIN = TwinKind(PIN, pin_vjp)


register(Pins, ForceTwin(PIN_TWIN))
