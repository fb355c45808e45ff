"""Obstacles: a contact force for each obstacle and body.

The force of "floor" and "duck" is called "floor_duck". The scene's value "floor.friction" goes to
all forces of the floor; so does "floor.stiffness", in proportion to the numbers that were chosen
for each point (`studies/scene/contacts.py`) where the scene gives none: the value is the mean of
those of the first body. An obstacle with a restitution has the values "floor.restitution" and
"floor.depth" in place of "floor.stiffness" and "floor.dissipation".
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adjsim.forces.acted_rows import NODES
from adjsim.forces.pressure_laws import LEAST, bounce
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.bodies.part import Additions, positive
from studies.scene.contacts import (
    BOUNCE_DEPTH,
    MEETING,
    RESOLVED,
    Touching,
    bounced,
    chosen_dissipation,
    chosen_friction_stiffness,
    chosen_stiffness,
    contact_duration,
    cubic_numbers,
    expected_depth,
    fall_speed,
)
from studies.scene.grips import Led
from studies.scene.maps import Arrays, ParameterMap, Scaled, Value, Widened
from studies.scene.obstacle_paths import path_of
from studies.scene.obstacle_shapes import shape_of


UNITS = {
    "stiffness": "N/m",
    "damping": "N s/m",
    "dissipation": "s/m",
    "friction_stiffness": "N s/m",
}
TOO_DEEP = 0.02  # of a body's size, at the start
RESTITUTIONS = (0.01, 1.0)  # between which a free one is searched
DEPTHS = 1.5  # times and part of a depth, within which it is searched: the step serves these


class Bounces(ParameterMap):
    r"""Numbers of cubic contacts, by target, from a restitution e and a depth c.

        k = K q(e)/c^4,   gamma = G zeta(e) c^2/sqrt(q)

    `stiffness` has K and `dissipation` G by target. Above 1 they are those of e = 1.
    """

    def __init__(
        self, name: str, stiffness: Mapping[str, Any], dissipation: Mapping[str, Any]
    ) -> None:
        self.restitution, self.depth = f"{name}.restitution", f"{name}.depth"
        self.sources = (self.restitution, self.depth)
        self.targets = (*stiffness, *dissipation)
        self.factors = {**stiffness, **dissipation}
        self.stiff = frozenset(stiffness)

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        (k, _, _), (gamma, _, _) = self._powers(sources)
        return {
            path: (k if path in self.stiff else gamma) * factor
            for path, factor in self.factors.items()
        }

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        e, c = (np.asarray(tangents.get(source, 0.0)) for source in self.sources)
        rates = [by_e * e + by_c * c for _, by_e, by_c in self._powers(sources)]
        return {
            path: rates[path not in self.stiff] * factor for path, factor in self.factors.items()
        }

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        adj = np.zeros(2)
        powers = self._powers(sources)
        for path, factor in self.factors.items():
            _, *slopes = powers[path not in self.stiff]
            adj += np.sum(adjoints.get(path, 0.0) * factor) * np.array(slopes)
        return dict(zip(self.sources, map(np.asarray, adj), strict=True))

    def _powers(self, sources: Arrays) -> list[tuple[float, float, float]]:
        """Return what multiplies K and G, and its slopes by e and c."""
        e, c = (float(sources[source]) for source in self.sources)
        inside = float(np.clip(e, LEAST, 1.0))
        moves = inside == e
        (zeta, q), (zeta_by_e, q_by_e) = bounce(inside)
        k, gamma = q / c**4, zeta * c * c / np.sqrt(q)
        gamma_by_e = c * c / np.sqrt(q) * (zeta_by_e - 0.5 * zeta * q_by_e / q)
        return [
            (k, moves * k * q_by_e / q, -4.0 * k / c),
            (gamma, moves * gamma_by_e, 2.0 * gamma / c),
        ]


def make_contacts(
    obstacles: Mapping[str, declared.Obstacle],
    bodies: Sequence[Touching],
    gravity: float,
    world: declared.World,
) -> Additions:
    """Return the contacts of all obstacles; `gravity` [m/s2] is its length."""
    out, by_name = Additions(), {body.name: body for body in bodies}
    for name, obstacle in obstacles.items():
        touching, placed = chosen(name, obstacle, bodies), obstacle
        if obstacle.fixed_to:
            carrier = by_name[obstacle.fixed_to]
            touching = [body.against(carrier) for body in touching]
            placed = shape_of(name, obstacle).about(carrier.center)
        for body in touching:
            if (obstacle.depth or 0.0) >= body.size:
                raise StudyError(
                    f"`obstacles.{name}.depth` must be smaller than `bodies.{body.name}`, which is "
                    f"{body.size:.3g} m large, got {obstacle.depth:.3g} m. By default it is "
                    f"{BOUNCE_DEPTH * body.size:.3g} m."
                )
        laws = [(b, _law(placed, b.before or b, gravity)) for b in touching]
        _add_contacts(out, name, placed, laws, gravity=gravity, world=world)
    return out


def _speed(obstacle: declared.Obstacle, body: Touching, gravity: float) -> float:
    """Return the speed of arrival that contact numbers are chosen for [m/s]."""
    return obstacle.speed or fall_speed(body, gravity)


def _depth(obstacle: declared.Obstacle, body: Touching) -> float:
    """Return how deep a contact with a restitution is at the `speed` [m]."""
    return obstacle.depth or BOUNCE_DEPTH * body.size


def _law(obstacle: declared.Obstacle, body: Touching, gravity: float) -> dict[str, np.ndarray]:
    """Return the numbers for each point of a body, () or (n,), by name: given or chosen."""
    numbers = {key: getattr(obstacle, key) for key in UNITS}
    law = {key: np.array(number, float) for key, number in numbers.items() if number is not None}
    speed = _speed(obstacle, body, gravity)
    if obstacle.restitution is not None:
        law |= bounced(body.bounce_mass, _depth(obstacle, body), speed)
        k = law["cubic_stiffness"] / (2.0 * law["depth"] ** 2)  # m u^2/c^2
        law.setdefault("friction_stiffness", chosen_friction_stiffness(body, k))
        return law
    if "damping" not in law:
        law.setdefault("dissipation", chosen_dissipation(body, speed))
    if obstacle.contact_time is not None:
        rate = contact_duration(float(np.max(law["dissipation"])) * speed) / obstacle.contact_time
        law["stiffness"] = np.asarray(body.mass * rate**2)
    k = law.setdefault("stiffness", chosen_stiffness(body, gravity, speed))
    law.setdefault("friction_stiffness", chosen_friction_stiffness(body, k))
    return law


def blows_on(
    obstacles: Mapping[str, declared.Obstacle], bodies: Sequence[Touching], gravity: float
) -> dict[str, float]:
    """Return m u^2/c^2 of rigid bodies that may strike an obstacle with a restitution [N/m]."""
    blows: dict[str, float] = {}
    for name, obstacle in obstacles.items():
        for body in chosen(name, obstacle, bodies):
            if obstacle.restitution is not None and body.is_rigid:
                speed = _speed(obstacle, body, gravity)
                blow = float(body.mass) * (speed / _depth(obstacle, body)) ** 2
                blows[body.name] = max(blows.get(body.name, 0.0), blow)
    return blows


def notes_on_start(
    obstacles: Mapping[str, declared.Obstacle], bodies: Sequence[Touching]
) -> list[str]:
    """Return what should be known of bodies that start inside an obstacle, or may miss it."""
    notes = []
    for name, obstacle in obstacles.items():
        shape = shape_of(name, obstacle)
        for body in chosen(name, obstacle, bodies):
            has_gaps = body.ball is None and body.faces is not None
            if has_gaps and shape.width < body.mean_edge:
                notes.append(
                    f"`obstacles.{name}` is {shape.width:.3g} m wide, and the edges of "
                    f"`bodies.{body.name}` are {body.mean_edge:.3g} m long on average. Only its "
                    "points touch, so the obstacle may slip between them: take a finer mesh."
                )
            deep = -float(shape.distance(body.points).min())
            if deep > TOO_DEEP * body.size:
                notes.append(
                    f"`bodies.{body.name}` starts {deep:.3g} m deep inside `obstacles.{name}`, "
                    f"which will throw it out: it is {body.size:.3g} m large. Move one of them."
                )
    return notes


def notes_on_paths(obstacles: Mapping[str, declared.Obstacle], paths: Sequence[Led]) -> list[str]:
    """Return what should be known of paths that lead nodes into an obstacle that stays."""
    notes = []
    for name, obstacle in obstacles.items():
        for path in paths:
            touches = path.body in (obstacle.bodies or [path.body])
            if obstacle.fixed_to is not None or obstacle.path is not None or not touches:
                continue
            far = shape_of(name, obstacle).distance(path.places.reshape(-1, 3))
            deep = -far.reshape(path.places.shape[:2]).min(axis=1)
            k = int(deep.argmax())
            if deep[k] > TOO_DEEP * path.size:
                notes.append(
                    f"`{path.key}` leads nodes {deep[k]:.3g} m deep into `obstacles.{name}`, at "
                    f"{path.times[k]:.3g} s. The grip does not feel it: move one of them."
                )
    return notes


def chosen(name: str, obstacle: declared.Obstacle, bodies: Sequence[Touching]) -> list[Touching]:
    """Return the bodies that may touch an obstacle."""
    if obstacle.bodies is None:
        return [body for body in bodies if body.name != obstacle.fixed_to]
    by_name = {body.name: body for body in bodies}
    if not obstacle.bodies:
        raise StudyError(
            f"`obstacles.{name}.bodies` must name one body or more. Leave it out for all of them."
        )
    return [by_name[other] for other in dict.fromkeys(obstacle.bodies)]


def _add_contacts(
    out: Additions,
    name: str,
    obstacle: declared.Obstacle,
    laws: list[tuple[Touching, dict[str, Any]]],
    *,
    gravity: float,
    world: declared.World,
) -> None:
    """Add the contacts of one obstacle with bodies, whose numbers these are."""
    shape = shape_of(name, obstacle)
    path = path_of(shape, world, min(body.size for body, _ in laws))
    pose = shape.pose | path.pose
    numbers: dict[str, dict[str, np.ndarray]] = {key: {} for key in laws[0][1]}
    pairs = [f"{name}_{body.name}" for body, _ in laws]
    e, depths, early, radii = obstacle.restitution, {}, {}, {}
    for pair, (body, law) in zip(pairs, laws, strict=True):
        shared = body.shared_out({key: law[key] for key in law if key != "depth"})
        for key, number in shared.items():
            numbers[key][f"{pair}.{key}"] = number
        depth: Any = 0.0
        speed = _speed(obstacle, body, gravity)
        if e is not None:
            depths[pair] = depth = float(law["depth"])
            surface = body.points if body.ball is None else np.asarray(body.center)[None]
            gap = float(shape.distance(surface).min()) - (body.ball or 0.0)
            early[pair] = min(MEETING, max(gap, 0.0) / depth)
            radii[pair] = body.ball or 0.0
            shared |= cubic_numbers(shared, e, depth)
            depth *= RESOLVED * np.sqrt(max(1.0, fall_speed(body, gravity, 4.0) / speed))
        elif "dissipation" in shared:
            depth = expected_depth(
                body, shared["stiffness"], shared["dissipation"], gravity=gravity, speed=speed
            )
        # A path presses as deep as it goes, however slow it is.
        depth = np.maximum(depth, path.depth(shape, body.points))
        touching: dict[str, Any] = {
            "contact_nodes": shape.nodes(body),
            "acts_on": body.name if body.is_rigid else NODES,
            "fixed_to": obstacle.fixed_to,
        }
        if body.ball is not None:
            touching = {"balls": (body.name,), "radius": body.ball}
        if e is not None:
            touching["radius"] = radii[pair] + early[pair] * depths[pair]
        out.forces[pair] = shape.contact(
            **pose, **shared, **touching, deepest=depth, friction=obstacle.friction
        )
    if e is not None:
        k, gamma = (numbers.pop(key) for key in ("cubic_stiffness", "cubic_dissipation"))
        del numbers["depth"]
        add_bounces(out, name, e, (k, gamma), depths=depths)
        factors = {
            f"{pair}.radius": early[pair] * depths[pair] / depths[pairs[0]] for pair in pairs
        }
        base = {f"{pair}.radius": radii[pair] for pair in pairs}
        out.maps.append(Widened(f"{name}.depth", factors, base))
    for key, each in numbers.items():
        value = float(np.mean(laws[0][1][key]))
        out.values[f"{name}.{key}"] = positive(value, UNITS[key])
        factors = {
            path: number / value if value else np.ones_like(number) for path, number in each.items()
        }
        out.maps.append(Scaled(f"{name}.{key}", factors))
    out.values[f"{name}.friction"] = positive(obstacle.friction, "-", 10.0)
    out.maps.append(Scaled(f"{name}.friction", {f"{pair}.friction": 1.0 for pair in pairs}))
    free = shape.values(max(body.size for body, _ in laws))
    for key, value in free.items():
        out.values[f"{name}.{key}"] = value
        rows = np.ones(len(path.moving[key].M)) if key in path.moving else 1.0
        out.maps.append(Scaled(f"{name}.{key}", {f"{pair}.{key}": rows for pair in pairs}))
    path.add(out, pairs, free)


def add_bounces(
    out: Additions,
    name: str,
    restitution: float,
    factors: tuple[Mapping[str, Any], Mapping[str, Any]],
    *,
    depths: Mapping[str, float],
) -> None:
    """Add the values of what has a restitution; `factors` are K and G, each by path.

    `depths` are those of its contacts, by name; the value is that of the first.
    """
    first, (k, gamma) = next(iter(depths.values())), factors
    ratios = {path: depths[path.rpartition(".")[0]] / first for path in (*k, *gamma)}
    out.values[f"{name}.restitution"] = Value(np.array(restitution), "-", "linear", RESTITUTIONS)
    out.values[f"{name}.depth"] = positive(first, "m", DEPTHS)
    stiffness = {path: number / ratios[path] ** 4 for path, number in k.items()}
    dissipation = {path: number * ratios[path] ** 2 for path, number in gamma.items()}
    out.maps.append(Bounces(name, stiffness, dissipation))
