"""Compile CUDA kernels to PTX without a GPU and print, as JSON, what came of each.

Run in a process of its own, with float32 or float64 and the compute capabilities to compile for,
e.g. `python -m tests.cuda.compile_ptx float32 80 90`: device functions ask for the current device
when they are compiled, and a stub answers. With `--link 90` the PTX for these is made machine code;
`--only "in blocks"` leaves out kernels whose names a regular expression does not find.
"""

import argparse
import gc
import json
import re
import sys
from contextlib import contextmanager
from itertools import product
from types import SimpleNamespace

import numpy as np
from numba import typeof

from adjsim.jit.kernel_keys import kernel_key
from tests.cuda.machine_code import linked


# libdevice's sine of a large float32 multiplies once in float64, by pi 2^-65 of an integer.
SINE_REDUCTION = re.compile(
    r"\.reg \.f64|cvt\.rn\.f64\.s64|mul\.f64.*0d3BF921FB54442D19|cvt\.rn\.f32\.f64"
)
APPROXIMATE = re.compile(r"\w+\.approx[.\w]*")


class Device:
    """What the compiler asks of a GPU."""

    compute_capability = (8, 0)


def array(real, ndim):
    from numba import types

    return types.Array(real, ndim, "C")


def twins_of_scenes():
    """Twins of every kind of element in the catalogue's scenes: first those that act on frames."""
    from adjoint.forces.registry import twin_of
    from adjoint.verify.systems import scenes

    forces = [force for scene in scenes(1).values() for force in scene.model.forces.values()]
    by_kind = ({}, {})
    for force in forces:
        if not force.changes:
            twin = twin_of(force).twin_kind(force)
            # Of carried obstacles and of balls one shape: what differs is their gap functions,
            # which obstacles have too, and a kernel of all kinds would be too long to compile.
            shape, _, way = twin.kind.name.rpartition("_")
            name = way if way in {"carried", "ball"} else f"{shape}_{way}"
            by_kind[not force.framed].setdefault(name, twin)
    return tuple(tuple(twins.values()) for twins in by_kind)


def named(kind, real, *ranks):
    """Type of a named tuple of arrays: "i1" of indices, "u1" of node numbers, "r3" of reals.

    "s1" are numbers within patches.
    """
    from numba import types

    from adjsim.tiles.loop_arrays import named_type

    kinds = {"i": types.int64, "u": types.uint32, "s": types.uint16, "r": real}
    return named_type(kind, [array(kinds[rank[0]], int(rank[1])) for rank in ranks])


def physics_arguments(*, in_blocks):
    """The functions from a real type to the type of the argument of each physics kernel."""
    from numba import types

    from adjoint.engine.cuda_timeloop import TeamReverse, TeamTangent
    from adjoint.engine.timeloop import Frames, ReverseWork
    from adjsim.engine.cuda_teams import Worlds
    from adjsim.engine.cuda_timeloop import TeamAdvance
    from adjsim.engine.patches import Patches
    from adjsim.engine.tangent_packing import PackedVector
    from adjsim.engine.tangents import TangentWork
    from adjsim.rigid.pieces import Pieces
    from adjsim.tiles.loop_arrays import Bodies, Elements, ModelArrays, Nodes, States, named_type

    number, slots = ("u1", "r1") if in_blocks else ("s1", "r2")

    def model(real):
        elements = named(Elements, real, "i2", number, "r1", "r1", "r1")
        nodes = named(Nodes, real, "r1", "r2", "u1", "u1", "u1", "u1", "i1", "i2")
        parts = [elements, nodes, named(Bodies, real, "i1", "r2", "r2")]
        patches = none if in_blocks else named(Patches, real, "i2", "u1", "u1", "s1", "r1")
        pieces = named(Pieces, real, "i1", "i1", "i1", "r2")
        return named_type(ModelArrays, parts), patches, pieces

    def states(real):
        return named(States, real, "r3", "r3", "r3")

    def worlds(real):
        return named(Worlds, real, "i2", "i1")

    def vector(real):
        return named(PackedVector, real, "r2", "r2", "r2", *["r1"] * 4, "r2", "r2", "r2")

    none = types.BaseTuple.from_types(())

    def forward(real):
        reals, index = array(real, 1), array(types.int64, 1)
        rest = [array(real, int(slots[1])), reals, index, states(real), index, worlds(real), none]
        return named_type(TeamAdvance, [*model(real), *rest])

    def backward(real):
        work = named(ReverseWork, real, slots, slots, slots, "r2", "r2")
        frames = named(Frames, real, "i1", "r3", "r3", "r3")
        rest = [vector(real), array(real, 1), array(types.int64, 1), states(real), worlds(real)]
        return named_type(TeamReverse, [*model(real), work, frames, *rest, none])

    def tangent(real):
        work, index = named(TangentWork, real, slots, slots, "r2"), array(types.int64, 1)
        rest = [array(real, 1), index, states(real), states(real), index, worlds(real), none]
        return named_type(TeamTangent, [*model(real), vector(real), work, *rest])

    return forward, backward, tangent


def with_pairs(real, arguments):
    """The same arguments with pairs that change."""
    from numba import types

    return types.NamedTuple([*arguments.types[:-1], pairs(real)], arguments.instance_class)


def with_sums(real, arguments):
    """The same arguments with two places for sums in place of slots."""
    from numba import types

    names = arguments.instance_class._fields
    kinds = [
        array(real, 3) if name == "slots" else kind
        for name, kind in zip(names, arguments.types, strict=True)
    ]
    return types.NamedTuple(kinds, arguments.instance_class)


def pairs(real):
    """Type of the pairs that change."""
    from adjsim.engine.cuda_pairs import TeamPairs

    ranks = ["i2", "u1", *["r1"] * 7, *["i1"] * 5, "u1", "u1", "r2", "i1", "r1", "i1"]
    return named(TeamPairs, real, *ranks)


def pair_kernels():
    """As `physics_kernels`, of springs and surfaces that touch."""
    from dataclasses import replace

    from adjoint.engine.cuda_timeloop import twin_kernel
    from adjoint.forces.springs import SPRING_TWIN
    from adjoint.pairs.pair_force import PAIR_TWIN
    from adjsim.engine.cuda_timeloop import advance_kernel
    from adjsim.pairs.pair_force import SURFACE_ROW

    twins = SPRING_TWIN, replace(PAIR_TWIN, kind=SURFACE_ROW)
    kinds, how = tuple(twin.kind for twin in twins), {"in_blocks": False, "with_bodies": True}
    made = {"advance": advance_kernel(kinds, **how)}
    made |= {
        sweep: twin_kernel(sweep, laws, with_rest=False, **how)
        for sweep, laws in (("reverse", twins), ("tangent", kinds))
    }
    arguments = physics_arguments(in_blocks=False)
    for (sweep, kernel), argument in zip(made.items(), arguments, strict=True):
        yield (
            f"{sweep} of pairs on grid",
            kernel,
            lambda real, argument=argument: with_pairs(real, argument(real)),
        )


def physics_kernels():
    """Name, kernel and the function from a real type to the type of its one argument."""
    from adjoint.engine.cuda_timeloop import twin_kernel
    from adjsim.engine.cuda_timeloop import advance_kernel

    joint_twins, twins = twins_of_scenes()
    # A kernel with rest shapes has the lines of every force that one without them has. The latter
    # has joints here: they have no rest shape, and need more registers than there are.
    rests = ((" with rest", twins), ("", joint_twins))
    for team in (" on grid", " in blocks"):
        how = {"in_blocks": team == " in blocks"}
        forward, *arguments = physics_arguments(**how)
        for (sweep, argument), (rest, of) in product(
            zip(("reverse", "tangent"), arguments, strict=True), rests
        ):
            options = {"with_rest": bool(rest), "with_bodies": bool(rest), **how}
            laws = tuple(twin.kind for twin in of) if sweep == "tangent" else of
            yield f"{sweep}{rest}{team}", twin_kernel(sweep, laws, **options), argument
        kinds = tuple(twin.kind for twin in (*twins, *joint_twins))
        kernel = advance_kernel(kinds, with_bodies=True, **how)
        yield f"advance{team}", kernel, forward
    kinds, (forward, *_) = tuple(twin.kind for twin in twins), physics_arguments(in_blocks=False)
    kernel = advance_kernel(kinds, in_blocks=False, with_bodies=False, own_nodes=True)
    yield "advance of own nodes on grid", kernel, lambda real: with_sums(real, forward(real))


def render_launches(dtype):
    """Every body that the renderer launches, with the arguments it is launched with.

    Nothing is run: all counts stay 0, so that no fragment is found, but every launch is made.
    """
    from adjoint.render.raster import cuda_raster as twin, cuda_sums, cuda_tangents
    from adjsim.jit import devices
    from render.raster import cuda_bins, cuda_raster
    from tests.cuda.render_scenes import all_outputs, everything, toy

    launches = {}
    blank = SimpleNamespace(**{name: getattr(np, name) for name in ("zeros", "cumsum", "arange")})
    blank.empty = np.zeros
    devices.cuda_problem = lambda: None
    cuda_bins.constants = lambda arrays, device: arrays
    for module in (cuda_bins, cuda_raster, twin, cuda_tangents, cuda_sums):
        module.array_module = lambda device: blank
        module.on_device = module.kept_on_device = lambda arrays: arrays
        module.launch = lambda body, n, args, **_: launches.setdefault(body.__name__, (body, args))
    everything(toy("over", dtype), "cuda")
    all_outputs(toy("over", dtype), "cuda")
    return launches


def search_launches(dtype):
    """As `render_launches`, of a search for pairs, which finds none, and of tangents of pairs."""
    from adjsim.engine import cuda_search
    from adjsim.engine.packing import pack
    from tests.cuda.pair_scenes import close_nets

    launches, (model, state) = {}, close_nets()
    packed = pack([model], 1, dtype, 0)
    cuda_search.array_module = lambda device: np
    cuda_search.on_device = lambda arrays: arrays
    cuda_search.launch = lambda body, n, args: launches.setdefault(body.__name__, (body, args))
    search, x = cuda_search.PairSearch([model], packed, packed.params), state.x.astype(dtype)
    search.begin(x)
    for since_last in (False, True):
        search.find(x, checked=True, since_last=since_last)
    search.with_tangents(search.pairs, packed.params)
    return launches


def kernels(real):
    """Name, kernel and the types of its arguments, of all physics and of the renderer."""
    from numba import types

    from adjsim.engine.cuda_pairs import far_thread
    from adjsim.engine.sparse import Entries, product_thread
    from adjsim.jit.cuda_launch import index_kernel
    from adjsim.tiles.loop_arrays import named_type
    from tests.cuda.reduced_scenes import launches

    for name, kernel, argument in (*physics_kernels(), *pair_kernels()):
        yield name, kernel, (argument(getattr(types, real)),)
    kinds = pairs(getattr(types, real)), array(getattr(types, real), 3)
    arguments = types.Tuple((*kinds, *[array(types.int64, 1)] * 2))
    yield "far_thread", index_kernel(far_thread), (types.int64, arguments)
    reals = [array(getattr(types, real), ndim) for ndim in (1, 3)]
    entries = named_type(Entries, [reals[0], *[array(types.int32, 1)] * 2])
    arguments = types.Tuple((entries, reals[1], reals[1]))
    yield "product_thread", index_kernel(product_thread), (types.int64, arguments)
    dtype = np.dtype(real)
    launched = launches(dtype) | render_launches(dtype) | search_launches(dtype)
    for name, (body, args) in launched.items():
        yield name, index_kernel(body), (types.int64, typeof(args))


@contextmanager
def targets(capabilities):
    """Have what is compiled for the first of some capabilities compiled for all; give the PTX.

    It is a dictionary of texts by capability, of the last kernel. Numba reads a kernel for
    each anew, though what it hands to the back end is the same but for the name of the target.
    """
    from numba.cuda.cudadrv import nvvm

    compile_ir, texts = nvvm.compile_ir, {}

    def compile_for_all(ir, *, arch, **options):
        first = capabilities[0]
        assert arch.endswith(first), arch
        for capability in capabilities:
            target = arch.removesuffix(first) + capability
            texts[capability] = compile_ir(ir, arch=target, **options)
        return texts[first]

    nvvm.compile_ir = compile_for_all
    try:
        yield texts
    finally:
        nvvm.compile_ir = compile_ir


def facts(name, real, capability, ptx, unknown):
    """Return what came of a kernel, and what is `unknown` in its key.

    Lines are searched, not the text, which is 2 MB long.
    """
    lines = ptx.splitlines()
    doubles = [line for line in lines if ".f64" in line and not SINE_REDUCTION.search(line)]
    approximate = {
        word for line in lines if ".approx" in line for word in APPROXIMATE.findall(line)
    }
    return {
        "kernel": name,
        "real": real,
        "target": capability,
        "names_target": any(line.startswith(f".target sm_{capability}") for line in lines),
        "has_f64": bool(doubles),
        "barriers": sum(line.strip() == "cudaCGSynchronize," for line in lines),
        "meets_in_blocks": any("bar.sync" in line or "barrier.sync" in line for line in lines),
        "approximate": sorted(approximate),
        "lines": len(lines),
        "unknown": unknown,
    }


def main():
    from numba import cuda
    from numba.cuda import dispatcher

    gc.disable()  # this process lives as long as its garbage; looking at it takes a seventh
    dispatcher.get_current_device = Device
    parser = argparse.ArgumentParser()
    parser.add_argument("real")
    parser.add_argument("capabilities", nargs="+")
    parser.add_argument("--link", nargs="*", default=())
    parser.add_argument("--only", default="")
    asked, report = parser.parse_args(), []
    with targets(asked.capabilities) as texts:
        for name, kernel, arguments in kernels(asked.real):
            if not re.search(asked.only, name):
                continue
            texts.clear()
            _, unknown = kernel_key(kernel, arguments)
            cuda.compile_ptx(kernel, arguments, cc=divmod(int(asked.capabilities[0]), 10))
            for c, ptx in texts.items():
                link = linked(ptx, c) if c in asked.link else {}
                report.append(facts(name, asked.real, c, ptx.decode(), unknown) | link)
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
