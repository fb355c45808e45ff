r"""Adjoint and tangent of `adjsim/reduced/advection.py`: read the two files side by side.

A lookup S(f; u) depends on the field f, linearly, and on the velocity u through its offsets.
To the field it is a gather, whose adjoint would scatter; here every cell gathers instead from
the lookups that touched it, found by `Sources`: corner after corner, each in increasing order.
"""

from typing import Any

from adjsim.jit.backend import device_fn, lit
from adjsim.reduced.advection import CellRows, corner_cells, corner_values, departure, wrapped


@device_fn
def bilinear_jvp(f, s, t, tan_f, tan_s, tan_t):
    """Push tangents through `bilinear`."""
    low = f[0] + s * (f[1] - f[0])  # (2)
    tan_low = tan_f[0] + s * (tan_f[1] - tan_f[0]) + tan_s * (f[1] - f[0])
    high = f[2] + s * (f[3] - f[2])  # (3)
    tan_high = tan_f[2] + s * (tan_f[3] - tan_f[2]) + tan_s * (f[3] - f[2])
    return tan_low + t * (tan_high - tan_low) + tan_t * (high - low)  # (4)


@device_fn
def bilinear_offsets_vjp(f, s, t, adj):
    """Pull a cotangent of `bilinear` back to the offsets: adj_s, adj_t."""
    low = f[0] + s * (f[1] - f[0])  # (2) replayed
    high = f[2] + s * (f[3] - f[2])  # (3) replayed

    # (4) value = low + t (high - low)
    adj_t = (high - low) * adj
    adj_high = t * adj
    adj_low = adj - adj_high

    # (3) high = f10 + s (f11 - f10)
    adj_s = (f[3] - f[2]) * adj_high

    # (2) low = f00 + s (f01 - f00)
    adj_s += (f[1] - f[0]) * adj_low
    return adj_s, adj_t


@device_fn
def corner_weight(corner, s, t):
    """Return the slope of `bilinear` in one of its corner values, 0 to 3."""
    unity = lit(1, s)
    across = s if corner % 2 == 1 else unity - s  # (2), (3)
    return across * t if corner > 1 else across * (unity - t)  # (4)


@device_fn
def advect_cell_jvp(i, j, args):
    """Write the tangent of S(f; u) of one cell; args are (size, f, u, tan_f, tan_u, out)."""
    size, field, velocity, tan_field, tan_velocity, tan_out = args
    here = i * size[1] + j
    cells, s, t = corner_cells(i, j, velocity, size)
    tan_s, tan_t = -tan_velocity[here, 0], -tan_velocity[here, 1]  # (1)
    for c in range(field.shape[1]):
        tan_out[here, c] = bilinear_jvp(
            corner_values(field, cells, c), s, t, corner_values(tan_field, cells, c), tan_s, tan_t
        )


@device_fn
def advect_cell_velocity_vjp(i, j, args):
    """Add to adj_u of one cell what its own lookup felt; args are (size, f, u, adj_out, adj_u)."""
    size, field, velocity, adj_out, adj_velocity = args
    here = i * size[1] + j
    cells, s, t = corner_cells(i, j, velocity, size)
    for c in range(field.shape[1]):
        f = corner_values(field, cells, c)
        adj_s, adj_t = bilinear_offsets_vjp(f, s, t, adj_out[here, c])
        # (1) s = -u_x - floor(-u_x), and t alike
        adj_velocity[here, 0] -= adj_s
        adj_velocity[here, 1] -= adj_t


@device_fn
def advect_cell_field_vjp(i, j, args):
    """Add to adj_f of one cell what looked it up; args are (size, u, adj_out, sources, adj_f)."""
    size, velocity, adj_out, sources, adj_field = args
    start, order = sources
    here = i * size[1] + j
    for corner in range(4):
        # this cell is that corner of the lookups that lie in `base`
        row = wrapped(i - 1, size[0]) if corner > 1 else i
        base = row * size[1] + (wrapped(j - 1, size[1]) if corner % 2 == 1 else j)
        for k in range(start[base], start[base + 1]):
            source = order[k]
            _, _, s = departure(0, velocity[source, 0], size[1])
            _, _, t = departure(0, velocity[source, 1], size[0])
            weight = corner_weight(corner, s, t)
            for c in range(adj_field.shape[1]):
                adj_field[here, c] += weight * adj_out[source, c]


def advect_jvp(
    grid: CellRows, field: Any, velocity: Any, tan_field: Any, tan_velocity: Any, tan_out: Any
) -> None:
    """Write the tangent of S(field; velocity), all of them flat."""
    grid.run(advect_cell_jvp, field, velocity, tan_field, tan_velocity, tan_out)


def advect_vjp(
    grid: CellRows, field: Any, velocity: Any, adj_out: Any, adj_field: Any, adj_velocity: Any
) -> None:
    """Add the cotangents of S(field; velocity), all of them flat; the last two may be one."""
    grid.run(advect_cell_velocity_vjp, field, velocity, adj_out, adj_velocity)
    sources = grid.sources(velocity)
    grid.run(advect_cell_field_vjp, velocity, adj_out, tuple(sources), adj_field)
