"""The adjoint and the tangent of `adjsim/engine/cuda_patches.py`: patches of a block of threads."""

from collections.abc import Callable

from adjsim.engine.cuda_patches import (
    SLOTS1,
    V0,
    V1,
    X0,
    X1,
    ZERO,
    load_nodes,
    load_rest,
    load_state,
    sum_moving,
    sum_nodes,
)
from adjsim.jit.backend import device_fn


def make_adjoints_of_patches(chain: Callable, rest_chain: Callable) -> Callable:
    """Return the function that undoes the elements of all patches that this block works on."""

    @device_fn
    def adjoints(team, wait, step, patches, elements, state, memory, work, adj):
        thread, stride, patch, n_blocks = team
        numbers = (elements.consts, elements.params, elements.series)
        while patch < patches.table.shape[0] - 1:
            load_rest(thread, stride, patch, patches, memory)
            load_state(thread, stride, patch, patches, state, memory, (X0, V0))
            load_nodes(thread, stride, patch, patches, work.adj_f, memory, X1)
            wait()
            fields, slots = (X0, V0, X1), (ZERO, SLOTS1)
            out = (memory, memory, adj.params, adj.series)
            chain(
                thread, stride, patch, step, patches, elements, memory, fields, slots, numbers, out
            )
            rest_chain(
                thread, stride, patch, step, patches, elements, memory, fields, slots, numbers,
                (adj.consts,),
            )  # fmt: skip
            wait()
            sum_nodes(thread, stride, patch, patches, memory, work.adj_x_slots)
            sum_moving(thread, stride, patch, patches, memory[SLOTS1:], work.adj_v_slots)
            patch += n_blocks

    return adjoints


def make_tangents_of_patches(forces: Callable, chain: Callable, rest_chain: Callable) -> Callable:
    """Return the function that writes forces and tangents of all patches of this block."""

    @device_fn
    def tangents(team, wait, step, patches, elements, both, memory, tan, work):
        thread, stride, patch, n_blocks = team
        consts, params, series = elements.consts, elements.params, elements.series
        while patch < patches.table.shape[0] - 1:
            load_rest(thread, stride, patch, patches, memory)
            load_state(thread, stride, patch, patches, both[0], memory, (X0, V0))
            load_state(thread, stride, patch, patches, both[1], memory, (X1, V1))
            wait()
            read, out = (X0, V0), (memory,)
            forces(
                thread, stride, patch, step, patches, elements, memory, read, (ZERO, ZERO),
                (consts, params, series), out,
            )  # fmt: skip
            chain(
                thread, stride, patch, step, patches, elements, memory, (X0, V0, X1, V1),
                (SLOTS1, ZERO), (consts, params, series, tan.params, tan.series), out,
            )  # fmt: skip
            rest_chain(
                thread, stride, patch, step, patches, elements, memory, read, (SLOTS1, ZERO),
                (consts, params, series, tan.consts), out,
            )  # fmt: skip
            wait()
            sum_nodes(thread, stride, patch, patches, memory, work.slots)
            sum_nodes(thread, stride, patch, patches, memory[SLOTS1:], work.tan_slots)
            patch += n_blocks

    return tangents
