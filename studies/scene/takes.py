"""Several takes of one scene: the tables `takes.NAME`, spread over copies of the bodies.

Every take has copies of all bodies, their contacts, joints, grips and pushes, which start, and are
filmed, as its own tables say; obstacles that no body carries, cameras, lights and the world are
shared. Bodies of different takes do not touch each other. Bodies of the first take keep their
names; in other takes the name of the take is appended: "cube", "cube_toss2". What is free outside
of the takes is one number for all of them.
"""

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from studies.runs.errors import StudyError
from studies.scene.components import split_component
from studies.scene.declared import WORLD
from studies.scene.overrides import JOINED
from studies.scene.tables import joined, unknown


# Tables of which every take has copies.
COPIED = ("bodies", "contacts", "joints", "grips", "pushes")
OWN = (*COPIED, "observations", "free", "truth", "validate")  # keys of a take
SHARED = (*COPIED, "obstacles", "free")  # tables of tables beside the takes
SCANS = ("cloud", "depth")  # kinds of observations of bodies, beside films
ALONE = ("pendulum", "smoke")  # kinds of bodies of which a scene has one


def spread_takes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a scene file without takes: with the bodies of all of them.

    Raise a StudyError where a take has an unknown key or no observations, or a copy the name of
    something else.
    """
    takes = values.get("takes")
    if takes is None:
        return dict(values)
    out: dict[str, Any] = {key: value for key, value in values.items() if key != "takes"}
    are_tables = all(_is_table_of_tables(values.get(key, {})) for key in SHARED)
    if not (are_tables and isinstance(values.get("truth", {}), dict)):
        return out  # a mistake elsewhere
    _check(values, takes)
    spread: dict[str, dict[str, Any]] = {key: {} for key in (*COPIED, "observations")}
    ties: dict[str, Any] = {}
    truth, shared = dict(out.get("truth", {})), dict(out.get("truth", {}))
    free = dict(out.get("free", {}))
    ends = {take: f"_{take}" if k else "" for k, take in enumerate(takes)}
    for take, end in ends.items():
        take_values = takes[take]
        renamed = _Renamed(values, take_values, end)
        copies = {key: renamed.copies(key, take) for key in COPIED}
        copies["observations"] = {
            f"{name}{end}": renamed.observation(observation)
            for name, observation in take_values["observations"].items()
        }
        for key, tables in copies.items():
            if twice := next((name for name in tables if name in spread[key]), None):
                raise StudyError(
                    f"`takes.{take}`: its copy {twice!r} has the name of another of `{key}`. "
                    "Rename the take."
                )
            spread[key] |= tables
        for path, settings in free.items():
            if renamed.path(path) != path:
                is_tied = "tied_to" in settings
                ties[renamed.path(path)] = dict(settings) if is_tied else {"tied_to": path}
        for numbers in (shared, JOINED["truth"](take_values.get("truth", {}))):
            truth |= {renamed.path(path): number for path, number in numbers.items()}
        ties |= renamed.free(JOINED["free"](take_values.get("free", {})))
    if "obstacles" in out:
        out["obstacles"] = _obstacles_of_all(values, list(ends.values()))
    out |= {key: tables for key, tables in spread.items() if tables}
    out["free"] = free | ties
    return out | ({"truth": truth} if truth else {})


def _obstacles_of_all(values: Mapping[str, Any], ends: Sequence[str]) -> dict[str, Any]:
    """Return the obstacles, each with the bodies of all takes, or copies on their carriers."""
    obstacles = dict(values["obstacles"])
    for name, obstacle in values["obstacles"].items():
        bodies, carrier = obstacle.get("bodies"), obstacle.get("fixed_to")
        if carrier:
            bodies = bodies or [body for body in values["bodies"] if body != carrier]
            for end in ends:
                mine = {"fixed_to": f"{carrier}{end}", "bodies": [f"{k}{end}" for k in bodies]}
                obstacles[f"{name}{end}"] = {**obstacle, **mine}
        elif isinstance(bodies, list):
            every = [f"{body}{end}" for end in ends for body in bodies]
            obstacles[name] = {**obstacle, "bodies": every}
    return obstacles


def without_repeats(mistakes: Sequence[str], takes: Iterable[str]) -> list[str]:
    """Return mistakes of which several differ only in the names of copies once, the first."""
    end = re.compile(rf"_(?:{'|'.join(takes)})\b")
    return list({end.sub("", mistake): mistake for mistake in reversed(mistakes)}.values())[::-1]


class _Renamed:
    """The names of one take: those of the scene with a suffix."""

    def __init__(self, values: Mapping[str, Any], take_values: Mapping[str, Any], end: str) -> None:
        self.values, self.take_values, self.end = values, take_values, end
        self.bodies = list(values.get("bodies", {}))
        self.copied = {
            name for key in COPIED for name in (*values.get(key, {}), *take_values.get(key, {}))
        }
        carried = values.get("obstacles", {})
        self.copied |= {name for name, obstacle in carried.items() if obstacle.get("fixed_to")}

    def copies(self, key: str, take: str) -> dict[str, Any]:
        """Return the bodies, contacts, joints, grips or pushes of this take."""
        shared, changes = self.values.get(key, {}), self.take_values.get(key, {})
        if key == "bodies" and (other := next((n for n in changes if n not in shared), None)):
            raise StudyError(f"`takes.{take}.bodies`: {unknown('body', other, shared)}")
        out = {}
        for name in dict.fromkeys((*shared, *changes)):
            table = {**copy.deepcopy(shared.get(name, {})), **changes.get(name, {})}
            table |= {"take": take} if key == "bodies" else {}
            if key in ("grips", "pushes") and "body" in table:
                table["body"] += self.end
            if isinstance(table.get("between"), list):
                table["between"] = [
                    body if body == WORLD else f"{body}{self.end}" for body in table["between"]
                ]
            out[f"{name}{self.end}"] = table
        return out

    def observation(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Return an observation of this take's bodies."""
        out = dict(table)
        if self.take_values.get("validate"):
            out.setdefault("validate", True)
        for key in ("body", "joint", "grip"):
            if key in out:
                out[key] = f"{out[key]}{self.end}"
        if (obstacle := out.get("obstacle")) in self.copied:
            out["obstacle"] = f"{obstacle}{self.end}"
        elif obstacle is not None and "body" not in out:  # others are those of other takes, too
            if len(self.bodies) > 1:
                raise StudyError(
                    f"A force of `obstacles.{obstacle}` must have a `body` in a scene of takes of "
                    "several bodies: the obstacle is one for all takes."
                )
            out["body"] = f"{self.bodies[0]}{self.end}"
        is_scan = out.get("kind") in SCANS or str(out.get("file", "")).endswith((".ply", ".pcd"))
        if is_scan or "video" in out or {"height", "points"} & (out.get("simulate") or {}).keys():
            out["bodies"] = [f"{body}{self.end}" for body in out.get("bodies", self.bodies)]
        return out

    def free(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is free in this take alone; a tie to another of these is within the take."""
        out = {}
        for path, row in table.items():
            if not self._owner(path):
                raise StudyError(
                    f"`{path}` under `free` of a take is of nothing that takes have of their own: "
                    "obstacles, cameras and the world are shared. Write it under [free]."
                )
            renamed = dict(row) if isinstance(row, dict) else row
            if isinstance(renamed, dict) and renamed.get("tied_to") in table:
                renamed["tied_to"] = self.path(renamed["tied_to"])
            out[self.path(path)] = renamed
        return out

    def path(self, path: str) -> str:
        """Return a scene path of this take."""
        owner = self._owner(path)
        return path.replace(owner, f"{owner}{self.end}", 1) if owner else path

    def _owner(self, path: str) -> str:
        """Return the beginning of a path that names a copy; "" of what all takes share."""
        head, *rest = split_component(path)[0].split(".")
        if head in self.copied:
            return head
        known = {"observations": self.take_values["observations"]}
        known |= dict.fromkeys(COPIED, self.copied)
        return f"{head}.{rest[0]}" if rest and rest[0] in known.get(head, ()) else ""


def _check(values: Mapping[str, Any], takes: Any) -> None:
    """Raise if the takes are no tables with observations, or stand beside what they replace."""
    if not takes or not _is_table_of_tables(takes):
        raise StudyError(
            "`takes` must be tables, one for each take: [takes.NAME.observations.film] and what "
            "else is its own."
        )
    for take, table in takes.items():
        _check_take(joined("takes", take), take, table)
    if values.get("observations"):
        name = next(iter(values["observations"]))
        raise StudyError(
            f"`observations.{name}` must be in a take, as there are takes: write "
            f"[takes.{next(iter(takes))}.observations.{name}]."
        )
    if values.get("forces"):
        raise StudyError("`forces` must be left out of a scene with `takes`. Fit each take alone.")
    for name, body in values.get("bodies", {}).items():
        if isinstance(body, dict) and body.get("kind") in ALONE:
            raise StudyError(
                f"`takes` needs bodies that a scene may have several of, and `bodies.{name}` is "
                f"{'a pendulum' if body['kind'] == 'pendulum' else 'smoke'}. Fit each take alone."
            )


def _check_take(key: str, take: str, table: Mapping[str, Any]) -> None:
    """Raise if a take has an invalid name, an unknown key, or no observations."""
    if not take.isidentifier():
        raise StudyError(
            f"`{key}`: a name must be letters, digits and _, not first a digit, got {take!r}."
        )
    if other := next((name for name in table if name not in OWN), None):
        raise StudyError(f"`{key}`: {unknown('key', other, OWN)}")
    if not table.get("observations"):
        raise StudyError(
            f"`{key}.observations` is missing: give the take a film, points or states of its "
            "own, or leave the take out."
        )
    for name in (*COPIED, "observations", "free"):
        if not _is_table_of_tables(table.get(name, {})):
            raise StudyError(f"`{key}.{name}` must be tables, got {table[name]!r}.")
    if not isinstance(table.get("validate", False), bool):
        raise StudyError(f"`{key}.validate` must be true or false, got {table['validate']!r}.")


def _is_table_of_tables(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(table, dict) for table in value.values())
