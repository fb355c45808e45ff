r"""Seamless coverage: faces soften at the outline of a surface, not where they meet.

Soft rasterization takes each face for itself. On an edge that two faces share each has D = 1/2,
so a quarter of what lies behind shines through: a net of seams, as wide as sigma. Here an edge
is a *seam* of face j, and does not soften it, if another face of the same object

    has the same two vertices,
    is drawn (between near and far, of some area on the screen, not culled),
    and lies on the other side: the third corners are on opposite sides of the edge's line.

For faces that go round the same way, the last says that both show the camera the same side. All
other edges of drawn faces are *soft*, as are the vertices at which they end. D = sigmoid(y), and

    inside face j    y =  m^2/sigma, m the distance to its nearest soft edge or soft corner
    outside          y = -m^2/sigma, m the distance to the nearest soft edge of j that counts at p

and m is infinite where there is none. A point of a shared edge is inside one of its faces. DIB-R
takes m^2 too. So the inside of a surface is opaque at any sigma, a face does not reach across a
seam, and beside a surface one edge counts, not every face around a vertex. At its end v an edge
e goes on by e': of the soft edges that end at v, but for e, the first in the order of faces and
of their corners. e counts at p if at both ends

    p is nearer to e than to e'; where both are equally near, as where v itself is the nearest
    point of both, that one of them counts whose vertices, the lower first, come first,

and p lies on the outer side of e, or is nearest to an end v at which the outline is convex (e' is
on the inner side of e). A point of e that is not inside the face is on its outer side.

Why corners: of the faces around a vertex of the outline some have no soft edge. They would be
opaque up to that vertex, where the surface ends.

Not smooth, beside what soft rasterization is not: at seams RGB jumps from one face's colour to
the next's, as in a z-buffer; alpha jumps too where two faces see the outline at different
distances, by more than rounding only within a few sqrt(sigma) of it; where a face turns edge-on,
seams turn soft or the other way round (a jump); inside there is a kink where two soft features
are equally near. Derivatives hold fixed which edges are seams and which count.

Adjoint: `adjoint/render/seamless.py`. Tests: `tests/render/test_seamless.py`.
"""

from typing import NamedTuple

import numpy as np

from adjsim.jit.backend import cpu_kernel, device_fn, lit
from render.faces.coverage import cross2, edge_square_distance
from render.faces.face_setup import is_drawn, load_corners


FAR_OFF = 1e6  # [screen units squared] at which a feature counts that does not soften
ALIKE = 1.0 / 64.0  # of a difference: if what it is of does not feel that, it is rounding


class Edges(NamedTuple):
    """Which faces share an edge; the edge k of a face is opposite to its corner k."""

    number: np.ndarray  # (n_faces, 3) int64, of each edge of each face; (0, 3) if not seamless
    start: np.ndarray  # (n_edges + 1,) int64, where the sides of an edge start
    sides: np.ndarray  # (3 n_faces,) int64, 3 f + k of the faces at each edge, in their order


def shared_edges(faces: np.ndarray) -> Edges:
    """Return which faces (n_faces, 3) share an edge."""
    ends = np.sort(faces[:, [[1, 2], [2, 0], [0, 1]]].reshape(-1, 2), axis=1)
    key = ends[:, 0] * (ends.max(initial=-1) + 1) + ends[:, 1]
    _, number = np.unique(key, return_inverse=True)
    number = number.reshape(-1).astype(np.int64)
    start = np.zeros(number.max(initial=-1) + 2, np.int64)
    np.cumsum(np.bincount(number, minlength=len(start) - 1), out=start[1:])
    sides = np.argsort(number, kind="stable").astype(np.int64)
    return Edges(number.reshape(-1, 3), start, sides)


NO_EDGES = shared_edges(np.empty((0, 3), np.int64))  # of what is not seamless


@device_fn
def screen_corner(f, k, corners):
    """Corner k of face f on the screen."""
    return (corners[f, 2 * k], corners[f, 2 * k + 1])


@device_fn
def faces_camera(f, corners, settings):
    """Whether face f is drawn."""
    a0, a1, a2, z = load_corners(f, corners)
    return is_drawn(a0, a1, a2, z, settings)


@device_fn
def is_seam(f, k, edges, corners, settings):
    """Whether the edge k of a face that is drawn does not soften."""
    a, b = screen_corner(f, (k + 1) % 3, corners), screen_corner(f, (k + 2) % 3, corners)
    u, opposite = (b[0] - a[0], b[1] - a[1]), screen_corner(f, k, corners)
    side = cross2(u, (opposite[0] - a[0], opposite[1] - a[1]))
    edge = edges.number[f, k]
    for i in range(edges.start[edge], edges.start[edge + 1]):
        g = edges.sides[i] // 3
        third = screen_corner(g, edges.sides[i] % 3, corners)
        other = cross2(u, (third[0] - a[0], third[1] - a[1]))
        if side * other < lit(0.0, side) and faces_camera(g, corners, settings):
            return True
    return False


@device_fn
def soft_edges_body(f, edges, corners, settings, soft):
    """Face f: write 1 for each soft edge, 0 for the others."""
    drawn = faces_camera(f, corners, settings)
    for k in range(3):
        soft[f, k] = 1 if drawn and not is_seam(f, k, edges, corners, settings) else 0


@device_fn
def goes_on(i, edge, faces, edges, vertex_corners, soft):
    """How the outline goes on at vertex i from an edge: 2 o + whether the edge comes first, or -1.

    o is the other vertex of the edge that goes on. From no edge, -1, it goes on with any.
    """
    for c in range(vertex_corners.start[i], vertex_corners.start[i + 1]):
        f, a = vertex_corners.corners[c] // 3, vertex_corners.corners[c] % 3
        for step in range(1, 3):
            k = (a + step) % 3
            if soft[f, k] > 0 and edges.number[f, k] != edge:
                o = faces[f, (a + 3 - step) % 3]
                return 2 * o + (1 if edge < edges.number[f, k] else 0)
    return -1


@device_fn
def outline_body(f, faces, edges, vertex_corners, soft):
    """Face f: write 1 for each soft corner, and how the outline goes on from its soft edges."""
    for k in range(3):
        soft[f, 3 + k] = (
            0 if goes_on(faces[f, k], -1, faces, edges, vertex_corners, soft) < 0 else 1
        )
        for end in range(2):
            i = faces[f, (k + 1 + end) % 3]
            soft[f, 6 + 2 * k + end] = -1
            if soft[f, k] > 0:
                edge = edges.number[f, k]
                soft[f, 6 + 2 * k + end] = goes_on(i, edge, faces, edges, vertex_corners, soft)


def _find_soft(faces, edges, vertex_corners, corners, settings, soft):
    """Find the soft edges and corners of all faces, and how the outline goes on."""
    for f in range(soft.shape[0]):
        soft_edges_body(f, edges, corners, settings, soft)
    for f in range(soft.shape[0]):
        outline_body(f, faces, edges, vertex_corners, soft)


find_soft = cpu_kernel(_find_soft)


@device_fn
def leads(p, v, w, code, screen):
    """Whether the edge from v to w is nearer to p than the one that goes on at v."""
    if code < 0:
        return True
    o = (screen[code // 2, 0], screen[code // 2, 1])
    d, _, t = edge_square_distance(p, v, w)
    other, _, s = edge_square_distance(p, v, o)
    zero = lit(0.0, t)
    if t > zero and s > zero and d + lit(ALIKE, d) * (d - other) != d:
        return d < other
    if (t > zero) != (s > zero):
        return t > zero
    return code % 2 == 1


@device_fn
def is_convex_end(p, v, w, opposite, code, screen):
    """Whether v is the point of the edge nearest to p, and the outline is convex there."""
    _, _, t = edge_square_distance(p, v, w)
    if t > lit(0.0, t):
        return False
    if code < 0:
        return True
    u = (w[0] - v[0], w[1] - v[1])
    turn = cross2(u, (screen[code // 2, 0] - v[0], screen[code // 2, 1] - v[1]))
    return turn * cross2(u, (opposite[0] - v[0], opposite[1] - v[1])) > lit(0.0, turn)


@device_fn
def counts(p, f, k, faces):
    """Whether the soft edge k of face f counts at p, outside the face."""
    a, b = (
        screen_corner(f, (k + 1) % 3, faces.corners),
        screen_corner(f, (k + 2) % 3, faces.corners),
    )
    opposite, screen = screen_corner(f, k, faces.corners), faces.screen
    at_a, at_b = faces.soft[f, 6 + 2 * k], faces.soft[f, 7 + 2 * k]
    if not (leads(p, a, b, at_a, screen) and leads(p, b, a, at_b, screen)):
        return False
    inner = cross2((b[0] - a[0], b[1] - a[1]), (opposite[0] - a[0], opposite[1] - a[1]))
    return (
        is_left(p, a, b) != (inner > lit(0.0, inner))  # as `within_face` has it
        or is_convex_end(p, a, b, opposite, at_a, screen)
        or is_convex_end(p, b, a, opposite, at_b, screen)
    )


@device_fn
def edge_weights(k, t):
    """Weights of the three corners at the place t of the edge k."""
    zero, unity = lit(0.0, t), lit(1.0, t)
    if k == 0:
        return zero, unity - t, t
    if k == 1:
        return t, zero, unity - t
    return unity - t, t, zero


@device_fn
def corner_weights(k, like):
    """Weights of the three corners at corner k."""
    zero, unity = lit(0.0, like), lit(1.0, like)
    return unity if k == 0 else zero, unity if k == 1 else zero, unity if k == 2 else zero


@device_fn
def nearest_soft(p, f, within, faces):
    """Squared distance to the nearest soft point q that counts, p - q, and q's corner weights.

    `within` says whether p is inside face f. Edges go before corners, the first before others.
    """
    zero = lit(0.0, p[0])
    best, o, w = lit(FAR_OFF, p[0]), (zero, zero), (zero, zero, zero)
    for k in range(3):
        if faces.soft[f, k] > 0:
            a = screen_corner(f, (k + 1) % 3, faces.corners)
            b = screen_corner(f, (k + 2) % 3, faces.corners)
            d, away, t = edge_square_distance(p, a, b)
            if d < best and (within or counts(p, f, k, faces)):
                best, o, w = d, away, edge_weights(k, t)
    for k in range(3):
        if within and faces.soft[f, 3 + k] > 0:
            a = screen_corner(f, k, faces.corners)
            away = (p[0] - a[0], p[1] - a[1])
            d = away[0] * away[0] + away[1] * away[1]
            if d < best:
                best, o, w = d, away, corner_weights(k, d)
    return best, o, w


@device_fn
def is_left(p, a, b):
    """Whether p is on the left of the line from a to b; not on that of the line from b to a.

    A point on the line is where it would be if it were moved up by nothing, and left by less.
    """
    turned = (b[0] < a[0]) | ((b[0] == a[0]) & (b[1] < a[1]))
    s, e = b if turned else a, a if turned else b
    c = cross2((s[0] - p[0], s[1] - p[1]), (e[0] - p[0], e[1] - p[1]))  # exactly 0 at s and e
    return (c >= lit(0.0, c)) != turned


@device_fn
def within_face(p, a0, a1, a2):
    """Whether p is in the triangle; a point of an edge is in one of the two faces that share it.

    `coverage.inside` says both, and then they would cover it twice, or by the rounding of fused
    products none, and where the edge is a seam nothing would.
    """
    first, second = is_left(p, a0, a1), is_left(p, a1, a2)
    return first == second and second == is_left(p, a2, a0)


@device_fn
def seamless_logit(p, f, faces, sigma):
    """Logit y of the seamless coverage of pixel p by face f."""
    a0, a1, a2, _ = load_corners(f, faces.corners)
    within = within_face(p, a0, a1, a2)
    m, _, _ = nearest_soft(p, f, within, faces)  # (1)
    y = m * (lit(1.0, sigma) / sigma)  # (2)
    return y if within else -y  # (3)
