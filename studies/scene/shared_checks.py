"""Checks that tables of several kinds share: references, directions, selections, laws."""

from collections.abc import Iterable, Sequence

from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.tables import unknown


def check_reference(key: str, what: str, name: str, known: Iterable[str]) -> None:
    """Raise if a name leads nowhere."""
    if name not in known:
        raise StudyError(f"`{key}`: {unknown(what, name, known)}")


def check_direction(key: str, vector: Sequence[float]) -> None:
    """Raise if a direction is zero."""
    if not any(vector):
        raise StudyError(f"`{key}` must not be zero: it is a direction.")


def check_held(key: str, held: declared.Held, *, may_move: bool = False) -> None:
    """Raise if a selection of nodes is none, or has a path where it may not move."""
    for moves in ("path", "path_error"):
        if getattr(held, moves) is not None and not may_move:
            raise StudyError(
                f"`{key}.{moves}` must be left out: it only says which nodes are meant. A path "
                "belongs in `held` of a body or in [grips.NAME]."
            )
    if not (held.box or held.plane or held.ball or held.nodes):
        raise StudyError(f"`{key}` selects nothing: give box, plane, ball or nodes.")
    if held.box and any(a > b for a, b in zip(held.box.lower, held.box.upper, strict=True)):
        raise StudyError(
            f"`{key}.box.lower` must not be above upper, got {list(held.box.lower)} and "
            f"{list(held.box.upper)}."
        )
    if held.plane:
        check_direction(f"{key}.plane.normal", held.plane.normal)


def check_law(key: str, contact: declared.Obstacle | declared.Contact) -> None:
    """Raise if a loss of energy, or a stiffness, is given in two ways, or a depth by itself."""
    units = {
        "dissipation": "s/m", "damping": "N s/m", "restitution": "", "contact_time": "s",
        "stiffness": "N/m",
    }  # fmt: skip
    jumps = "Leave out `damping`, whose force jumps at touch."
    for first, second, advice in (
        ("dissipation", "damping", jumps),
        ("restitution", "damping", jumps),
        ("restitution", "dissipation", "The one follows from the other."),
        ("contact_time", "stiffness", "The one follows from the other."),
        ("contact_time", "damping", jumps),
    ):
        numbers = [(name, getattr(contact, name)) for name in (first, second)]
        if None not in (number for _, number in numbers):
            both = " and ".join(f"{number:g} {units[name]}".strip() for name, number in numbers)
            raise StudyError(
                f"`{key}` must have `{first}` or `{second}`, got both: {both}. {advice}"
            )
    for other in ("stiffness", "contact_time"):
        if contact.restitution is not None and getattr(contact, other) is not None:
            raise StudyError(
                f"`{key}` must not have `{other}` beside `restitution`, got "
                f"{getattr(contact, other):g}. Give the `depth` that bodies sink to."
            )
    if contact.depth is not None and contact.restitution is None:
        raise StudyError(
            f"`{key}.depth` must come with `restitution`, got {contact.depth:g} m alone. Give a "
            "`stiffness` in place of it."
        )
