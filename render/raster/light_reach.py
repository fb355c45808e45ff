r"""Which of the faces that are shaded pixel by pixel light reaches at all; CPU only.

With m = sum w_k n_k, n = m/|m| and v = sum w_k v_k, e = v/|v|, all w_k >= 0, a pixel has

    n.l > 0  if and only if  sum w_k n_k.l > 0
    r.e > 0  if and only if  2 (m.l) (m.v) - (m.m) (v.l) > 0,   r = 2 (n.l) n - l

These are polynomials in the weights, each term of the same degree. If no coefficient is
positive, no pixel of the face is lit, or none has a highlight: max(0, .) and its slopes are 0
at all of them, and nothing of it need be worked. Of a ball in one light that are half the faces.

Tests: `tests/render/raster/test_light_reach.py`.
"""

from adjsim.algebra.vec3 import dot
from adjsim.jit.backend import cpu_kernel, device_fn, lit
from render.faces.face_setup import face_shade, load3
from render.raster.pixel_shading import corner_normals, corner_rows, is_glossy
from render.shaders.normals import unit_or_zero


CURVED, SHINY = 0, 1  # whether a face has a normal at each pixel that matters, and a highlight
MARGIN = 1e-5  # of a cosine: what is nearer to 0 is worked, so that rounding decides nothing
# A NaN is worked too, hence `not <=`: it must be seen in the picture.


@device_fn
def is_lit(normals, l):
    """Whether a face with unit normals at its corners may be lit from l at any pixel."""
    margin = -lit(MARGIN, l[0])
    a, b, c = normals
    return not (dot(a, l) <= margin and dot(b, l) <= margin and dot(c, l) <= margin)


@device_fn
def may_shine(normals, towards, l):
    """Whether a face may have a highlight of the light from l at any pixel."""
    margin = -lit(MARGIN, l[0])
    for v in towards:
        u, _ = unit_or_zero(v)
        b = dot(u, l)
        for i in range(3):
            for j in range(i + 1):
                mirrored = dot(normals[i], l) * dot(normals[j], u)
                mirrored += dot(normals[j], l) * dot(normals[i], u)
                if not mirrored - dot(normals[i], normals[j]) * b <= margin:
                    return True
    return False


@device_fn
def reach_body(f, scene, faces):
    """Face f: write whether its normals and its highlights matter."""
    n, towards = load3(faces.shaded, f), corner_rows(f, scene.faces, faces.towards)
    is_rounded, has_highlight = scene.rounded[f], is_glossy(f, scene)
    normals = corner_normals(f, faces.shaded) if is_rounded else (n, n, n)
    is_curved, is_shiny = scene.harmonics.shape[0] > 0, False
    for k in range(scene.directions.shape[0]):
        l = load3(scene.directions, k)
        is_curved = is_curved or is_lit(normals, l)
        is_shiny = is_shiny or (has_highlight and may_shine(normals, towards, l))
    faces.reach[f, CURVED] = is_rounded and (is_curved or is_shiny)
    faces.reach[f, SHINY] = is_shiny


@device_fn
def reached_light(f, faces, scene):
    """As `face_light`, with the one shade of a rounded face that no light reaches too."""
    n = load3(faces.shaded, f)
    if faces.reach[f, CURVED]:
        return n, n
    return n, face_shade(f, n, scene)


def _find_reach(scene, faces):
    """Find what light reaches of every face that is drawn and shaded pixel by pixel."""
    for f in range(faces.reach.shape[0]):
        if scene.by_pixel[f] and faces.box[f, 0] < faces.box[f, 1]:
            reach_body(f, scene, faces)


find_reach = cpu_kernel(_find_reach)
