r"""Held nodes that move along a path, as a robot's grip or a testing machine moves them.

    x' = p_k                    the place that the path gives for the end of step k     (1)
    v' = (x' - x)/dt                                                                   (2)

A grip acts with whatever force that takes, so its element function has none: the step puts the
nodes there, and other forces feel where they are and how fast. What it takes is in
`adjsim/support_force.py`.

Adjoint: `adjoint/forces/grip.py`. Tests: `tests/forces/test_grip.py`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.forces.element import Force
from adjsim.jit.backend import device_fn, lit
from adjsim.series import freeze_series
from adjsim.tiles.assembly import U_TILE
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter


@device_fn
def grip_force(x, v, consts, params, series):
    """Return no force [N] on one node."""
    zero = lit(0, x[0][0])
    return ((zero, zero, zero),)


@device_fn
def grip_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Return its tangent, which is 0 too."""
    zero = lit(0, x[0][0])
    return ((zero, zero, zero),)


GRIP = ElementKind("grip", grip_force, 1, 0, 0, 3, uses_velocity=False, jvp=grip_jvp)
FIRST, STRIDE = range(2)  # columns of `Nodes.led`


@device_fn
def place_of(n, step, led):
    """Return where the place of node n at the end of a step lies in a flat series."""
    return np.uint64(led[n, FIRST] + step * led[n, STRIDE])


@device_fn
def is_led(n, nodes):
    """Whether a grip leads node n; of a free node no more than its mass is read."""
    return not nodes.w[n] > lit(0, nodes.w[n]) and nodes.led[n, FIRST] >= 0


@device_fn
def led_step(o, x, dt, series):
    """Return the new x [m] and v [m/s] of a node whose place lies at `o`."""
    p = (series[o], series[o + U_TILE], series[o + U_TILE + U_TILE])  # (1)
    return p, ((p[0] - x[0]) / dt, (p[1] - x[1]) / dt, (p[2] - x[2]) / dt)  # (2)


@dataclass(frozen=True, eq=False)
class Grip(Force):
    """Nodes that are led along a path. They are pinned: no force moves them.

    Parameters
    ----------
    held_nodes : array
        The nodes, (n_held,) integer, each once.
    positions : array or Signal
        Where they are [m]: (n_steps, n_held, 3) with row k at the end of step k, in state k + 1;
        or a `Signal` over control points of (n_held, 3). One place for good is (n_held, 3). Where
        they begin is `State.x`.

    Raises
    ------
    ValueError
        If an array has the wrong shape or is not finite, or a node is named twice.
    """

    held_nodes: Any
    positions: Any

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("positions", "p", "m", "(n_held, 3) or (n_steps, n_held, 3)"),
    )
    KIND = GRIP
    SERIES: ClassVar = ("positions", (3,))
    ELEMENTS = "held_nodes"
    leads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        nodes = checks.integers("held_nodes", self.held_nodes, ("n_held",))
        if len(np.unique(nodes)) < len(nodes):
            twice = int(np.flatnonzero(np.bincount(nodes) > 1)[0])
            raise ValueError(f"`held_nodes` must name each node once, got node {twice} twice.")
        checks.freeze(self, "held_nodes", nodes)
        freeze_series(self, "positions", ((len(nodes), 3),))
