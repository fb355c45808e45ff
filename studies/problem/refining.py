"""The same problem on a finer mesh, at shorter steps, in other contacts, laws and shading.

Soft bodies and cloth are cut finer (`studies.scene.building.build`); observers see the nodes that
were there before, so that predictions have the same rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse

from adjsim.forces.neo_hookean import SolidTets
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from studies.problem.declared_errors import DeclaredNumber, copies_of
from studies.problem.observers import Observer
from studies.problem.problem import SceneProblem
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.bodies.part import held_nodes
from studies.scene.building import BuiltScene, build
from studies.scene.motion import Settled, model_of


MOST_ELEMENTS = 250_000  # of the finer mesh, on which a few rollouts run
TETS, TRIANGLES = 8, 4  # of one on a mesh twice as fine
LOSSIER = 4.0  # times as much energy is lost in a slow touch
CLOSER = 0.5  # times as thick are surfaces, of a contact whose thickness was chosen
OTHER_LAW: dict[str, Literal["stable", "log"]] = {"stable": "log", "log": "stable"}  # of solids
HARDER = 4.0  # times as stiff is a contact in which a point sinks half as deep
STAYING = 0.5  # of the held nodes, at least, where a row is released: else it is the clamp


def refined_problem(problem: SceneProblem, scene: declared.Scene) -> SceneProblem:
    """Return the problem of a scene on a mesh twice as fine, with the time step of `problem`.

    Raise a StudyError if the mesh cannot be refined, with the reason.
    """
    n = sum(n * times for n, times in element_counts(problem.built))
    if n > MOST_ELEMENTS:
        raise StudyError(f"A mesh twice as fine has {n} elements, more than {MOST_ELEMENTS}.")
    built = build(scene, refined=True)
    chosen = {**problem.fixed, **problem.parameters.scene_values(problem.parameters.start)}
    for path, value in chosen.items():
        if path in built.values and np.shape(value) != built.values[path].value.shape:
            raise StudyError(f"`{path}` has a number for each element or node of the mesh.")
    # the matrix from all nodes to those that were there before, (n_before, n_nodes)
    rows = [
        np.arange(built.nodes[name].start, built.nodes[name].start + before.stop - before.start)
        for name, before in problem.built.nodes.items()
    ]
    identity: Any = scipy.sparse.csr_array(scipy.sparse.eye_array(len(built.state.x)))
    matrix = identity[np.concatenate(rows)]
    observers = tuple(observer.refined(matrix) for observer in problem.observers)
    return replace(problem, built=built, observers=observers)


def seen_in_space(problem: SceneProblem) -> SceneProblem:
    """Return the problem with every film replaced by all drawn vertices of its bodies, in space.

    A picture that is off by more than a few pixels has no useful slope; places have. Films of the
    same body at the same times have the same places, so these count once.
    """
    places: dict[Any, Observer] = {}
    for observer in problem.observers:
        for each in observer.in_space(problem):
            key = observer.name if each is observer else (each.name, each.start, *each.times)
            places.setdefault(key, each)
    return replace(problem, observers=tuple(places.values()))


def element_counts(built: BuiltScene) -> list[tuple[int, int]]:
    """Return how many elements each soft body or cloth has, and what one becomes."""
    model = model_of(built.system)
    forces = model.forces.values() if model else ()
    tets = [(len(force.tets), TETS) for force in forces if isinstance(force, SolidTets)]
    return tets + [
        (len(force.triangles), TRIANGLES)
        for force in forces
        if isinstance(force, NeoHookeanTriangles)
    ]


def with_shorter_steps(problem: SceneProblem, theta: np.ndarray, count: int) -> SceneProblem:
    """Return the problem with at least `count` steps between frames, or as many as theta needs."""
    if not problem.built.step.IS_STABLE:
        free = replace(problem, steps=replace(problem.steps, is_given=False)).with_steps_for(theta)
        count = max(count, free.steps.count)
    steps = replace(problem.steps, count=count)
    return replace(problem, steps=steps)


def with_other_law(problem: SceneProblem, scene: declared.Scene) -> SceneProblem | None:
    """Return the problem of a scene with the other law of solids; None where no soft body moves.

    Both have the same constants at small strains.
    """
    soft = {name: body for name, body in scene.bodies.items() if isinstance(body, declared.Soft)}
    if not soft or problem.is_still:
        return None
    other = {name: replace(body, law=OTHER_LAW[body.law]) for name, body in soft.items()}
    return replace(problem, built=build(replace(scene, bodies={**scene.bodies, **other})))


def with_harder_contacts(
    problem: SceneProblem, contacts: Mapping[str, declared.Obstacle | declared.Contact]
) -> SceneProblem | None:
    """Return the problem with stiffer contacts; None where adjsim did not choose their stiffness.

    A friction that was chosen with a stiffness grows with its root, as it was chosen, and surfaces
    of bodies whose thickness was chosen are half as thick.
    """
    free = problem.parameters.scene_values(problem.parameters.start)
    harder = {}
    for name, contact in contacts.items():
        chosen = (contact.stiffness, contact.contact_time)
        if chosen != (None, None) or f"{name}.stiffness" in free:
            continue
        if contact.restitution is not None:
            if contact.depth is not None or f"{name}.depth" in free:
                continue
            harder[f"{name}.depth"] = 1.0 / np.sqrt(HARDER)  # as deep as with that stiffness
        else:
            harder[f"{name}.stiffness"] = HARDER
        if contact.friction_stiffness is None and f"{name}.friction_stiffness" not in free:
            harder[f"{name}.friction_stiffness"] = np.sqrt(HARDER)
        if isinstance(contact, declared.Contact) and contact.radius is None:
            harder |= {} if f"{name}.radius" in free else {f"{name}.radius": CLOSER}
    return _times(problem, harder)


def with_lossier_contacts(
    problem: SceneProblem, contacts: Mapping[str, declared.Obstacle | declared.Contact]
) -> SceneProblem | None:
    """Return the problem with contacts that lose more; None where adjsim did not choose it."""
    free = problem.parameters.scene_values(problem.parameters.start)
    chosen = [
        f"{name}.dissipation"
        for name, contact in contacts.items()
        if (contact.dissipation, contact.damping, contact.restitution) == (None, None, None)
    ]
    return _times(problem, {path: LOSSIER for path in chosen if path not in free})


def with_other_shading(problem: SceneProblem) -> SceneProblem | None:
    """Return the problem whose films are drawn flat in place of smooth, or smooth in place of flat.

    None where there is no film.
    """
    observers = tuple(observer.shaded_otherwise() for observer in problem.observers)
    return None if observers == problem.observers else replace(problem, observers=observers)


def with_row_held(problem: SceneProblem, *, released: bool) -> SceneProblem | None:
    """Return the problem in which bodies are held by one more row of nodes, or one fewer.

    Those of one more are all nodes of elements with a node that is held. Where one is `released`,
    those stay that have no node beside them that is free. None where none is held, or where less
    than `STAYING` are left.
    """
    built, model = problem.built, model_of(problem.built.system)
    if model is None or built.held is None or not built.held.any():
        return None
    spread = built.held ^ released  # the nodes from which a row is taken
    mask = spread.copy()
    for name in built.nodes:
        elements = model.forces[name].nodes
        mask[elements[spread[elements].any(axis=1)]] = True
    held = mask ^ released
    if released and held.sum() < STAYING * built.held.sum():
        return None
    return _with_held(problem, held)


def with_held_if_larger(
    problem: SceneProblem,
    deviations: float,
    *,
    scene: declared.Scene,
    numbers: Sequence[DeclaredNumber],
) -> SceneProblem | None:
    """Return the problem that holds the nodes it would hold with larger bodies.

    `numbers` are what the scene declares; each body is larger by so many `deviations` of its size,
    about its place, while all else stays. None where the same nodes are held.
    """
    built, errors = problem.built, {number.key: number.error for number in numbers}
    if built.held is None:
        return None
    held = built.held.copy()
    for shared, names in copies_of(scene.bodies).items():
        larger = 1.0 + deviations * errors.get(f"bodies.{shared}.scale_error", 0.0)
        for name in names:
            body: Any = scene.bodies[name]
            if larger == 1.0 or not built.held[rows := built.nodes.get(name, slice(0))].any():
                continue
            x, place = built.state.x[rows], np.asarray(body.position)
            try:
                as_declared, as_larger = (
                    held_nodes(name, body.held, place + factor * (x - place), numbered=True)
                    for factor in (1.0, larger)
                )
            except StudyError:  # it would hold no node or all
                continue
            held[rows] ^= as_declared ^ as_larger
    return _with_held(problem, held)


def _with_held(problem: SceneProblem, held: np.ndarray) -> SceneProblem | None:
    """Return the problem in which some nodes are held, not all; None if it holds these."""
    built, model = problem.built, model_of(problem.built.system)
    is_led = bool(built.paths)  # then a row that is held does not rest
    if model is None or is_led or held.all() or not held.any() or not (held != built.held).any():
        return None
    changed = replace(model, pinned=held)
    system = Settled(changed) if problem.settles else changed
    return replace(problem, built=replace(built, system=system, held=held))


def _times(problem: SceneProblem, factors: Mapping[str, float]) -> SceneProblem | None:
    """Return the problem with some of its values multiplied; None if it has none of them."""
    values = {path: value.value for path, value in problem.built.values.items()}
    values |= problem.fixed
    fixed = {path: times * values[path] for path, times in factors.items() if path in values}
    return replace(problem, fixed={**problem.fixed, **fixed}) if fixed else None
