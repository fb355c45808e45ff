"""Views of arrays in kernels of a GPU: in shared memory, or of some rows, without any check."""

from typing import Any

from numba.core import cgutils
from numba.extending import intrinsic

from adjsim.jit.backend import JIT_DISABLED


def _share(context, like, memory, place):
    """Return an array of the shape of `like` at byte `place` of `memory`, itself if that is < 0."""

    def codegen(context, builder, signature, args):
        view = context.make_array(signature.args[0])(context, builder, args[0])
        data = context.make_array(signature.args[1])(context, builder, args[1]).data
        shared = builder.bitcast(builder.gep(data, [args[2]]), view.data.type)
        stays = builder.icmp_signed("<", args[2], args[2].type(0))
        view.data = builder.select(stays, view.data, shared)
        return view._getvalue()

    return like(like, memory, place), codegen


def _share_slowly(like: Any, memory: Any, place: int) -> Any:
    """As `_share`, in Python without compiler; a row may end where the memory ends."""
    if place < 0:
        return like
    view = memory[place : place + like.nbytes]
    view = view[: len(view) // like.itemsize * like.itemsize].view(like.dtype)
    return view if like.ndim == 1 else view.reshape(like.shape)


share: Any = _share_slowly if JIT_DISABLED else intrinsic(_share)


def _cut(context, array, lo, hi):
    """Return rows lo to hi of an array, of which these are sure to be rows: nothing is checked."""

    def codegen(context, builder, signature, args):
        view = context.make_array(signature.args[0])(context, builder, args[0])
        shape = cgutils.unpack_tuple(builder, view.shape)
        size, n = args[1].type(1), builder.sub(args[2], args[1])
        for extent in shape[1:]:
            size = builder.mul(size, extent)
        view.data = builder.gep(view.data, [builder.mul(args[1], size)])
        view.nitems = builder.mul(n, size)
        view.shape = cgutils.pack_array(builder, [n, *shape[1:]])
        return view._getvalue()

    return array(array, lo, hi), codegen


def _cut_slowly(array: Any, lo: int, hi: int) -> Any:
    """As `_cut`, in Python without compiler."""
    return array[lo:hi]


cut: Any = _cut_slowly if JIT_DISABLED else intrinsic(_cut)
