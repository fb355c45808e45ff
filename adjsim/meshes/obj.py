"""What a Wavefront file says of its corners, checked before VTK follows it.

VTK copies positions and texture coordinates by the numbers in the file and does not ask whether
there are so many: it would read beyond its arrays.

Tests: `tests/meshes/test_obj.py`.
Source: Wavefront, Advanced Visualizer Manual, app. B1 (1995): numbers count from 1, negative ones
back from the latest.
"""

from pathlib import Path


KINDS = {"v": "vertices", "vt": "texture coordinates", "vn": "normals"}


def check_corners(path: Path) -> None:
    """Raise a ValueError if a face of an .obj file names something the file does not have.

    It has the number of the line, what is there, and what it names.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    counts = dict.fromkeys(KINDS, 0)
    named: list[
        tuple[int, str, int]
    ] = []  # line, kind and number of what faces name from the front
    for at, line in enumerate(text.splitlines(), 1):
        word, *rest = line.split("#")[0].split() or [""]
        if word in counts:
            counts[word] += 1
        elif word == "f":
            for kind, number in (name for corner in rest for name in _numbers(path, at, corner)):
                if number > 0:
                    named.append((at, kind, number))
                elif not -counts[kind] <= number < 0:
                    raise _error(path, at, kind, counts[kind], number)
    for at, kind, number in named:
        if number > counts[kind]:
            raise _error(path, at, kind, counts[kind], number)


def _numbers(path: Path, at: int, corner: str) -> list[tuple[str, int]]:
    """Return the kinds and numbers of a corner such as 3/1/2, 3//2 or 3."""
    if corner == "\\":  # the line goes on
        return []
    try:
        return [
            (kind, int(number))
            for kind, number in zip(KINDS, corner.split("/"), strict=False)
            if number
        ]
    except ValueError as error:
        raise ValueError(
            f"`mesh`: {path}, line {at}: the corners of faces must be whole numbers, such as 3 or "
            f"3/1/2, got {corner!r}. Export it again."
        ) from error


def _error(path: Path, at: int, kind: str, count: int, number: int) -> ValueError:
    return ValueError(
        f"`mesh`: {path}, line {at}: a face must name {KINDS[kind]} ({kind}) from 1 to {count}, "
        f"got {number}. Export it again."
    )
