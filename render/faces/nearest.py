r"""The pixel of the nearest face: DIB-R, and the z-buffer.

    a face covers the pixel    RGB = C of the nearest such face, alpha = 1
    none does                  RGB = C_bg,  alpha = 1 - prod (1 - D_j),  D_j = exp(-d_j^2/kappa)

over the faces with D_j >= 1e-10 in DIB-R, and over none in `Hard`, where alpha is 0 or 1. Of
equal depths the face that comes first counts. A pixel on the boundary of a face is covered, up
to a distance at which D rounds to 1: on an edge that two faces share rounding may put a pixel
outside both, and the background would show through a closed surface.

So D is 1 at y = delta d^2/kappa >= 0 and exp(y) below. Colours of the nearest face are
smooth in its corners; at its edges and where another comes nearest they jump. In DIB-R a
silhouette acts through alpha outside it alone, in `Hard` not at all: no gradient says
where an outline should go.

Adjoint: `adjoint/render/faces/nearest.py`. Tests: `tests/render/faces/test_nearest.py`.
Source: Chen et al., Learning to Predict 3D Objects with an Interpolation-based
Differentiable Renderer, NeurIPS 2019, eq. 1-4.
"""

from adjsim.jit.backend import device_fn, lit
from render.faces.fragment_lists import goes_before


@device_fn
def outer_coverage(y, e):
    """D and 1 - D of a face, from the logit y and e = exp(-|y|): 1 and 0 inside."""
    unity, zero = lit(1.0, y), lit(0.0, y)
    covers = y >= zero
    return unity if covers else e, zero if covers else unity - e


@device_fn
def nearest_cover(first, last, fragments):
    """The nearest fragment in order[first:last] that covers its pixel, or -1."""
    nearest = -1
    for k in range(first, last):
        q = fragments.order[k]
        covers = fragments.rest[q] <= lit(0.0, fragments.rest[q])
        if covers and (nearest < 0 or goes_before(q, nearest, fragments.z, fragments.face)):
            nearest = q
    return nearest


@device_fn
def nearest_body(first, last, fragments, background):
    """RGBA of a pixel with the list order[first:last]."""
    q = nearest_cover(first, last, fragments)
    T = lit(1.0, background[0])
    if q >= 0:
        return fragments.rgb[q, 0], fragments.rgb[q, 1], fragments.rgb[q, 2], T  # (1)
    for k in range(first, last):
        T = T * fragments.rest[fragments.order[k]]  # (2) rest = 1 - exp(y)
    return background[0], background[1], background[2], lit(1.0, T) - T  # (3)
