"""Compile the bodies of the renderer and its twins to PTX, one thread a face or a pixel.

Run in a process of its own: device functions ask for the current device when they are
compiled, and a stub answers. Prints, as JSON, whether each holds double precision.
"""

import json
import sys

from numba import cuda

from adjoint.render.blending import (
    FragmentAdjoints,
    FragmentTangents,
    over_jvp_body,
    over_vjp_body,
    softmax_jvp_body,
    softmax_vjp_body,
)
from adjoint.render.face_setup import FaceTangents, face_vjp_body, shade_jvp_body
from adjoint.render.fragments import pair_jvp_body, pair_vjp_body
from render.blending import over_body, softmax_body
from render.camera import project_body
from render.face_setup import (
    Faces,
    PackedScene,
    Settings,
    box_body,
    corner_body,
    load3,
    shade_body,
)
from render.fragments import Fragments, Grid, fragments_body, sort_body


class Device:
    """What the compiler asks of a GPU."""

    compute_capability = (8, 0)


def face_kernel(args):
    scene, faces, settings, axes, x = args
    f = cuda.grid(1)
    if f < scene.faces.shape[0]:
        right, true_up, forward = load3(axes, 0), load3(axes, 1), load3(axes, 2)
        frame = (right, true_up, forward, axes[3, 0])  # made on the host, once for an image
        project_body(f, x, load3(axes, 4), frame, faces.screen)
        corner_body(f, scene, faces.screen, faces.corners)
        if box_body(f, faces.corners, settings, 64, 64, faces.box):
            shade_body(f, scene, x, faces.shaded)


def fragment_kernel(args):
    scene, faces, settings, grid, fragments = args
    f = cuda.grid(1)
    n = fragments.pair[f]
    fragments.pair[f] = fragments_body(f, 0, 16, n, grid, scene.smooth, faces, settings, fragments)


def pixel_kernel(args):
    scene, settings, fragments, image = args
    k = cuda.grid(1)
    first, last = fragments.start[k], fragments.start[k + 1]
    sort_body(first, last, fragments.z, fragments.order, fragments.spare)
    rgba = over_body(first, last, fragments, scene.background)
    other = softmax_body(first, last, fragments, settings, scene.background)
    for c in range(4):
        image[k, c] = rgba[c] if settings.over else other[c]


def pixel_twins_kernel(args):
    scene, tan_scene, settings, fragments, tangents, adj, image = args
    k = cuda.grid(1)
    first, last = fragments.start[k], fragments.start[k + 1]
    bg, tan_bg = scene.background, tan_scene.background
    rgba = (image[k, 0], image[k, 1], image[k, 2], image[k, 3])
    tan = (settings.gamma, settings.epsilon)
    over = over_jvp_body(first, last, fragments, tangents, bg, tan_bg)
    other = softmax_jvp_body(first, last, fragments, tangents, settings, tan, bg, tan_bg)
    adj_bg = over_vjp_body(first, last, fragments, bg, rgba, adj)
    adj_other, _, _ = softmax_vjp_body(first, last, fragments, settings, bg, rgba, adj)
    for c in range(3):
        image[k, c] = over[c] + other[c] + adj_bg[c] + adj_other[c]


def face_twins_kernel(args):
    scene, tan_scene, tan_faces, x, adj_faces, slots = args
    f = cuda.grid(1)
    shade_jvp_body(f, scene, tan_scene, x, x, tan_faces)
    face_vjp_body(f, scene, x, adj_faces, tan_scene, f, slots)


def pair_twins_kernel(args):
    scene, faces, tan_faces, settings, grid, fragments, tangents, adj, image, slots = args
    f = cuda.grid(1)
    pair_jvp_body(
        f, f, grid, scene.smooth, faces, tan_faces, settings, settings.sigma, fragments, tangents
    )
    slots[f, 0] += pair_vjp_body(
        f, f, grid, scene.smooth, faces, settings, fragments, adj, image, f, slots
    )


def arguments(real):
    """The argument of every kernel, in its types."""
    from numba import types

    def named(kind, ranks):
        members = [
            kinds.get(rank) or types.Array(kinds[rank[0]], int(rank[1]), "C") for rank in ranks
        ]
        return types.NamedTuple(members, kind)

    kinds = {"r": real, "i": types.int64, "s": types.int32, "b": types.boolean}
    scene = named(PackedScene, ["i2", "b1", "i1", "r2", "r2", "r2", "r2", "r2", "r2", "r1"])
    settings = named(Settings, ["r"] * 7 + ["b"] * 2)
    faces = named(Faces, ["r2", "r2", "r2", "i2"])
    grid = named(Grid, ["r1", "r1", "i"])
    lists = ["s1", "s1", "r1", "r1", "r1", "r2", "s1", "s1", "s1", "i1", "r1"]
    fragments, tangents = named(Fragments, lists), named(FragmentTangents, ["r1", "r1", "r2"])
    adj, tan_faces = named(FragmentAdjoints, ["r1"] * 6), named(FaceTangents, ["r2"] * 3)
    r2, r3 = types.Array(real, 2, "C"), types.Array(real, 3, "C")
    return {
        face_kernel: (scene, faces, settings, r2, r2),
        fragment_kernel: (scene, faces, settings, grid, fragments),
        pixel_kernel: (scene, settings, fragments, r2),
        pixel_twins_kernel: (scene, scene, settings, fragments, tangents, adj, r2),
        face_twins_kernel: (scene, scene, tan_faces, r2, r2, r3),
        pair_twins_kernel: (
            scene, faces, tan_faces, settings, grid, fragments, tangents, adj, r3, r2,
        ),
    }  # fmt: skip


def main():
    from numba import types
    from numba.cuda import dispatcher

    dispatcher.get_current_device = Device
    report = {}
    for real in (types.float32, types.float64):
        for kernel, argument in arguments(real).items():
            for capability in ((8, 0), (9, 0)):
                ptx, _ = cuda.compile_ptx(kernel, (types.Tuple(argument),), cc=capability)
                report[f"{kernel.__name__} {real} {capability}"] = ".f64" in ptx
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
