r"""Slow seamless coverage: which edges and corners soften, and their distance, pixel by pixel.

Written from the definition in `docs/seamless.md` alone.
"""

import numpy as np


def turn(a, b, c):
    """Twice the signed area of the triangle a, b, c."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def along(p, v, w):
    """Place on the segment from v to w that is nearest to p, and its squared distance."""
    t = min(max(float((p - v) @ (w - v) / ((w - v) @ (w - v))), 0.0), 1.0)
    away = p - v - t * (w - v)
    return t, away @ away


def soft_sides(faces, screen):
    """Pairs (f, k): the edge of face f opposite to its corner k is soft."""
    sides = {}
    for f, face in enumerate(faces):
        for k in range(3):
            sides.setdefault(frozenset((face[k - 2], face[k - 1])), []).append((f, k))
    soft = set()
    for ends, of_faces in sides.items():
        a, b = (screen[i] for i in ends)
        turns = [turn(a, b, screen[faces[f][k]]) for f, k in of_faces]
        for side, sense in zip(of_faces, turns, strict=True):
            if all(sense * other >= 0 for other in turns):
                soft.add(side)
    return soft


def outline_of(faces, soft):
    """By vertex the soft edges that end there, in the order of faces and of their corners."""
    outline = {}
    for f, face in enumerate(faces):
        for a in range(3):
            for k in ((a + 1) % 3, (a + 2) % 3):
                if (f, k) in soft:
                    outline.setdefault(face[a], []).append(frozenset((face[k - 2], face[k - 1])))
    return outline


def soft_features(faces, screen):
    """Soft edges and soft corners of each drawn face of one mesh: what `square_distance` takes.

    An edge is its face's third corner, and for both ends: the end v, the other end w, the other
    end o of the edge by which the outline goes on (None if by none), and whether e comes first.
    """
    soft = soft_sides(faces, screen)
    outline, features = outline_of(faces, soft), []
    for f, face in enumerate(faces):
        edges = []
        for k in range(3):
            edge, ends = frozenset((face[k - 2], face[k - 1])), []
            for v, w in ((face[k - 2], face[k - 1]), (face[k - 1], face[k - 2])):
                others = [other for other in outline.get(v, []) if other != edge]
                o = screen[min(others[0] - {v})] if others else None
                first = bool(others) and sorted(edge) < sorted(others[0])
                ends.append((screen[v], screen[w], o, first))
            edges += [(screen[face[k]], ends)] if (f, k) in soft else []
        features.append((edges, [screen[v] for v in face if v in outline]))
    return features


def edge_counts(p, corner, ends):
    """Whether a soft edge counts at p, outside its face."""
    is_convex_end = False
    for v, w, o, first in ends:
        t, d = along(p, v, w)
        if o is not None:
            s, other = along(p, v, o)
            if (t == 0) != (s == 0):
                leads = s == 0
            elif t == 0 or abs(d - other) <= 1e-14 * (d + other):
                leads = first
            else:
                leads = d < other
            if not leads:
                return False
        if t == 0 and (o is None or turn(v, w, o) * turn(v, w, corner) > 0):
            is_convex_end = True
    v, w, _, _ = ends[0]
    return is_convex_end or turn(v, w, p) * turn(v, w, corner) <= 0


def square_distance(features, p, within):
    """Squared distance from p to what softens a face there; infinite if nothing does."""
    edges, corners = features
    squares = [np.inf]
    for corner, ends in edges:
        if within or edge_counts(p, corner, ends):
            squares.append(along(p, *ends[0][:2])[1])
    if within:
        squares += [(p - v) @ (p - v) for v in corners]
    return min(squares)
