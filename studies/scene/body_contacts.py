r"""Contact between bodies, and of a body with itself: a `SurfaceContact` for each table.

Two rigid balls touch as balls: their contact is a `SphereContact` of the first with the second.

The force of "touch" is called "touch", and so are its values: "touch.friction" and the others. What
a table leaves out is chosen, with rho = 2 r the thickness of both surfaces together, u the speed of
arrival (given, or that of a fall from the larger body's size that begins with the difference of
their velocities) and m what is behind a point: all of a rigid body, or the mean of a node.

    r    a fifth of the mean edge, and at most 0.5 % of the size, of either body: they touch at rho
    k    of two rigid bodies mu (2 u/rho)^2, 1/mu = 1/m_A + 1/m_B: without loss one point that
         arrives at u sinks half of the thickness;
         else the largest of three. k_l of the softer body, what a layer of its elements holds with
         (`studies/scene/contacts.py`). 2 u z/rho, 1/z the sum of 1/sqrt(k_l m) of the bodies made
         of nodes, which stops the wave that an impact at u sends into them within half of the
         thickness. And what bears the upper body, or either of two that lie beside each other:
         4 m g/rho of a rigid one, 60 m g/rho of nodes
    d    e = 0.15 at u of rigid bodies; else half of the speed of a node, as of obstacles, but no
         more than sqrt(mu/k)/rho, which shortens the stable step by less than a half
    k_f  1.5 sqrt(k mu) of two rigid bodies, half of what obstacles have, since more pairs stick at
         once, and their rates add up where those of k go by its root. As it is, k_f and d ask for
         steps of about the same length. k is harder than that of obstacles, so bodies creep more
         slowly on each other. Else 1.2 sqrt(k mu)

A `restitution` e has the cubic law, as of obstacles, of the same e at every speed:

    C    the `depth` at u, at most r, which it is by default: at 4 u it is then rho
    k, gamma  of one point that carries mu, 1/mu = 1/m_A + 1/m_B with what points of rigid bodies
         carry (`studies/scene/struck.py`). Where nodes take part, as of an arrival at
         C sqrt(k/mu) if that is faster than u, with the k that is chosen without a restitution

Balls that are free to move keep e. Pairs that touch at the same time share a mass: of e = 0.6 boxes
keep 0.51 to 0.57, whether a corner or a face meets a face, the same at every speed.

Surfaces that start in each other are an error.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adjsim.forces.acted_rows import NODES
from adjsim.forces.pressure_laws import CUBIC
from adjsim.forces.sphere import SphereContact
from adjsim.model import Model, State
from adjsim.pairs.surface_contact import SurfaceContact
from studies.runs.errors import StudyError
from studies.scene.bodies.part import Additions, positive
from studies.scene.contacts import (
    GRAVITY,
    NODE_FRICTION_RATE,
    NODE_LOSS,
    NODE_PART,
    RESOLVED,
    RESTITUTION,
    SHARED,
    Touching,
    bounced,
    contact_duration,
    cubic_numbers,
    loss_of,
)
from studies.scene.declared import Contact, Vector
from studies.scene.maps import Scaled, Widened
from studies.scene.obstacles import UNITS, add_bounces


OF_EDGE, OF_SIZE = 0.2, 0.005  # the chosen radius, of the mean edge and at most of the size
LOADS = 4.0  # k rho/(m g): a rigid body rests on one point a quarter of the thickness deep
NODE_LOADS = 60.0  # and a body of nodes on a tenth of its surface, if half of its mass is there
TOUCHING = 1e-9  # of a body's size: points that are no deeper in another only touch it
BESIDE = 0.1  # of the smaller size: bodies whose heights differ by less lie beside each other
PER_STEP = 0.125  # of the thickness: how far surfaces move in a step at the expected speed
PER_LONG_STEP = 0.5  # and in an implicit one
PAIR_FRICTION_RATE = 1.5  # k_f over sqrt(k mu) of two rigid bodies
PRESSED = 0.25  # of the thickness, at the start


def make_body_contacts(
    contacts: Mapping[str, Contact], bodies: Sequence[Touching], rest: np.ndarray, gravity: Vector
) -> Additions:
    """Return contacts between bodies; `rest` are all nodes, (n, 3) [m], `gravity` (3,) [m/s2]."""
    out, by_name = Additions(), {body.name: body for body in bodies}
    for name, contact in contacts.items():
        a, b = (by_name[other] for other in contact.between)
        before = a.before or a, b.before or b
        law = _law(contact, *before, gravity)
        share = _count(*before) / _count(a, b)  # a finer surface shares a pressure
        factors = {key: share if key in SHARED else 1.0 for key in law}
        radius, depth = law.pop("radius"), law.pop("depth", 0.0)
        for body in (a, b):
            if (edge := body.mean_edge) < radius:
                raise StudyError(
                    f"`contacts.{name}.radius` must be smaller than the edges of "
                    f"`bodies.{body.name}`, {edge:.3g} m on average, got {radius:.3g} m. Give a "
                    "smaller radius or a coarser mesh."
                )
        are_rigid = a.is_rigid and b.is_rigid
        speed = (contact.speed or _speed_between(*before, gravity)) if are_rigid else None
        scaled: dict[str, Any] = {key: factors[key] * number for key, number in law.items()}
        if contact.restitution is not None:
            _check_depth(name, depth, radius)
            k, gamma = ({f"{name}.{key}": scaled[key]} for key in CUBIC.scalars)
            add_bounces(out, name, contact.restitution, (k, gamma), depths={name: depth})
            scaled |= cubic_numbers(scaled, contact.restitution, depth)
            law = {key: law[key] for key in law if key not in CUBIC.scalars}
        numbers = {**scaled, "friction": contact.friction}
        if a.ball is not None and b.ball is not None:
            bare = {"radius": a.ball, "sphere_radius": b.ball}
            depth = depth or speed * np.sqrt(_shared_mass(*before) / scaled["stiffness"])
            out.forces[name] = SphereContact(
                **{key: ball + radius for key, ball in bare.items()}, **numbers,
                deepest=RESOLVED * depth, balls=(a.name,), fixed_to=b.name,
            )  # fmt: skip
        else:
            out.forces[name] = _surfaces(a, b, rest, radius, speed=speed, **numbers)
            bare = {"radius": 0.0} if a is b else {"radius": 0.0, "other_radius": 0.0}
        _add_values(out, name, contact, {key: (law[key], factors[key]) for key in law})
        out.values[f"{name}.radius"] = positive(radius, "m", 3.0)
        base = {f"{name}.{key}": ball for key, ball in bare.items()}
        out.maps.append(Widened(f"{name}.radius", dict.fromkeys(base, 1.0), base))
    return out


def _surfaces(
    a: Touching, b: Touching, rest: np.ndarray, radius: float, **numbers: Any
) -> SurfaceContact:
    """Return the contact of the surfaces of two bodies, or of one with itself."""
    faces, acts_on = _triangles(a, b, len(rest))
    if b is a:
        where: dict[str, Any] = {"triangles": faces[0], "rest_positions": rest}
    else:
        where = {"triangles": faces[0], "other_triangles": faces[1], "other_radius": radius}
    return SurfaceContact(**where, radius=radius, acts_on=acts_on, **numbers)


def longest_step(
    contacts: Mapping[str, Contact],
    bodies: Sequence[Touching],
    gravity: Vector,
    share: float = PER_STEP,
) -> float:
    """Return the step in which surfaces move by a part of the thickness at the expected speed [s].

    So that none passes another.
    """
    by_name, limit = {body.name: body for body in bodies}, np.inf
    for contact in contacts.values():
        a, b = (by_name[other] for other in contact.between)
        before = a.before or a, b.before or b
        speed = max(contact.speed or 0.0, _speed_between(*before, gravity))
        limit = min(limit, share * 2.0 * _radius(contact, *before) / speed)
    return float(limit)


def _add_values(
    out: Additions, name: str, contact: Contact, law: Mapping[str, tuple[float, float]]
) -> None:
    """Add the numbers of the law, and factors from them to the force, as values of the scene."""
    for key, (number, factor) in law.items():
        out.values[f"{name}.{key}"] = positive(number, UNITS[key])
        out.maps.append(Scaled(f"{name}.{key}", {f"{name}.{key}": factor}))
    out.values[f"{name}.friction"] = positive(contact.friction, "-", 10.0)
    out.maps.append(Scaled(f"{name}.friction", {f"{name}.friction": 1.0}))


def _law(contact: Contact, a: Touching, b: Touching, gravity: Vector) -> dict[str, float]:
    """Return the radius and the numbers of the law, given or chosen."""
    law = {key: float(number) for key in UNITS if (number := getattr(contact, key)) is not None}
    radius = law["radius"] = _radius(contact, a, b)
    speed = contact.speed or _speed_between(a, b, gravity)
    mass = _shared_mass(a, b)
    are_rigid = a.is_rigid and b.is_rigid
    if contact.restitution is not None:
        struck = 1.0 / sum(1.0 / float(np.mean(body.bounce_mass)) for body in (a, b))
        depth = contact.depth or radius
        if not are_rigid:
            k = _node_stiffness(a, b, gravity, thickness=2.0 * radius, speed=speed)
            speed = max(speed, depth * float(np.sqrt(k / struck)))
        law |= {key: float(number) for key, number in bounced(struck, depth, speed).items()}
        rate = PAIR_FRICTION_RATE if are_rigid else NODE_FRICTION_RATE
        law.setdefault("friction_stiffness", rate * struck * speed / depth)
        return law
    if are_rigid and "damping" not in law:
        law.setdefault("dissipation", loss_of(RESTITUTION) / speed)
    if contact.contact_time is not None:
        rate = contact_duration(law.get("dissipation", 0.0) * speed) / contact.contact_time
        law["stiffness"] = mass * rate**2
    k = law.setdefault(
        "stiffness",
        mass * (speed / radius) ** 2
        if are_rigid
        else _node_stiffness(a, b, gravity, thickness=2.0 * radius, speed=speed),
    )
    if "damping" not in law:
        law.setdefault("dissipation", min(NODE_LOSS / speed, 0.5 * np.sqrt(mass / k) / radius))
    rate = PAIR_FRICTION_RATE if are_rigid else NODE_FRICTION_RATE
    law.setdefault("friction_stiffness", rate * float(np.sqrt(k * mass)))
    return law


def _shared_mass(a: Touching, b: Touching) -> float:
    """Return 1/(1/m_A + 1/m_B) of points that touch [kg]."""
    return 1.0 / (1.0 / a.point_mass + 1.0 / b.point_mass)


def _node_stiffness(
    a: Touching, b: Touching, gravity: Vector, *, thickness: float, speed: float
) -> float:
    """Return the chosen stiffness of a contact in which nodes take part [N/m]."""
    layers, yields = [], 0.0
    g = float(np.linalg.norm(gravity))
    heights = [-float(np.dot(gravity, body.points.mean(axis=0))) for body in (a, b)]
    highest = max(heights) - BESIDE * g * min(a.size, b.size)
    loads = [
        (LOADS if body.is_rigid else NODE_LOADS) * body.point_mass * g / thickness
        for body, height in zip((a, b), heights, strict=True)
        if height >= highest
    ]
    for body in (a, b):
        m = body.point_mass
        if body.is_rigid:
            continue
        layers.append(layer := NODE_PART * float(np.mean(body.held_with)))
        yields += 1.0 / np.sqrt(layer * m)
    return float(max(min(layers), 2.0 * speed / (yields * thickness), *loads))


def _radius(contact: Contact, a: Touching, b: Touching) -> float:
    """Return the radius of both surfaces, given or chosen [m]."""
    chosen = min(min(OF_EDGE * body.mean_edge, OF_SIZE * body.size) for body in (a, b))
    return contact.radius or chosen


def _speed_between(a: Touching, b: Touching, gravity: Vector) -> float:
    """Return the speed at which two bodies are expected to meet [m/s]."""
    of_nodes = [body.speed - float(np.linalg.norm(body.velocity)) for body in (a, b)]
    apart = float(np.linalg.norm(a.velocity - b.velocity)) + sum(of_nodes)
    g = float(np.linalg.norm(gravity)) or (0.0 if apart > 0.0 else GRAVITY)
    return float(np.sqrt(2.0 * g * max(a.size, b.size) + apart**2))


def _count(a: Touching, b: Touching) -> int:
    """Return how many corners the faces of two bodies have."""
    return sum(len(np.unique(np.asarray(body.faces))) for body in (a, b))


def _triangles(a: Touching, b: Touching, n_nodes: int) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """Return the triangles of both by numbers of the rows that a contact acts on, and on what."""
    firsts: dict[str, int] = {}
    total = 0
    for body in sorted((a, b), key=lambda body: body.is_rigid):
        owner = body.name if body.is_rigid else NODES
        if owner not in firsts:
            firsts[owner] = total
            total += body.n_rows if body.is_rigid else n_nodes
    faces = [
        firsts[body.name if body.is_rigid else NODES] + np.asarray(body.faces) for body in (a, b)
    ]
    return faces, tuple(firsts)


def _check_depth(name: str, depth: float, radius: float) -> None:
    if depth > radius:
        raise StudyError(
            f"`contacts.{name}.depth` must be at most the radius, {radius:.3g} m, so that faster "
            f"touches do not go through, got {depth:.3g} m. Give a larger `radius`."
        )


def check_apart(contacts: Mapping[str, Contact], model: Model, state: State) -> None:
    """Raise a StudyError if surfaces that touch go through each other at the start."""
    rows = [
        state.bodies[name].position[0] + body.arms for name, body in model.bodies.items()
    ]  # of bodies in their declared pose
    x = np.concatenate([state.x, *rows])
    for name, contact in contacts.items():
        force: Any = model.forces[name]
        if not force.changes:
            continue  # of balls, which have no surfaces
        if crossing := force.crossing_at_start(x[force.nodes[:, 0]]):
            a, b = contact.between
            if a == b:
                raise StudyError(
                    f"`bodies.{a}` goes through itself at the start, so that `contacts.{name}` "
                    f"cannot keep it apart: {crossing}. Mend its mesh."
                )
            raise StudyError(_in_each_other(name, contact, crossing))


def _in_each_other(name: str, contact: Contact, crossing: str) -> str:
    a, b = contact.between
    return (
        f"`bodies.{a}` and `bodies.{b}`, which `contacts.{name}` keeps apart, start in each other: "
        f"{crossing}. Move one of them by `position`."
    )


def notes_on_pairs(contacts: Mapping[str, Contact], bodies: Sequence[Touching]) -> list[str]:
    """Return what should be known of radii that are chosen, and of bodies that start near others.

    Raise a StudyError if a body starts inside another.
    """
    by_name, notes = {body.name: body for body in bodies}, []
    for name, contact in contacts.items():
        a, b = (by_name[other] for other in contact.between)
        radius = _radius(contact, a.before or a, b.before or b)
        if contact.radius is None:
            notes.append(
                f"`contacts.{name}.radius` is not given: {radius:.3g} m is taken, so that surfaces "
                f"touch where they are {2.0 * radius:.3g} m apart."
            )
        if a is b:
            continue
        distance = np.inf
        for body, other in ((a, b), (b, a)):
            signed, is_closed = _signed_distances(body, other)
            if is_closed and other.is_solid and signed.min() < -TOUCHING * other.size:
                overlap = (
                    f"a point of `{body.name}` lies {-signed.min():.3g} m inside `{other.name}`"
                )
                raise StudyError(_in_each_other(name, contact, overlap))
            distance = min(distance, float(np.abs(signed).min()))
        if (c := 2.0 * radius - distance) > PRESSED * 2.0 * radius:
            notes.append(
                f"`bodies.{a.name}` and `bodies.{b.name}` start {distance:.3g} m apart, which is "
                f"{c:.3g} m less than where `contacts.{name}` lets them touch: it will throw them "
                "apart. Move one of them, or give a smaller `radius`."
            )
    return notes


def _signed_distances(body: Touching, other: Touching) -> tuple[np.ndarray, bool]:
    """Return the distances of a body's points from the surface of another [m], and if it is closed.

    They are negative inside of one that is closed.
    """
    import pyvista as pv

    surface = pv.PolyData.from_regular_faces(other.places, np.asarray(other.faces))
    points = pv.PolyData(body.places[np.unique(np.asarray(body.faces))])
    distances = points.compute_implicit_distance(surface)["implicit_distance"]
    return np.asarray(distances), surface.n_open_edges == 0
