"""By how much an answer changes on a finer mesh, at shorter steps and in harder contacts."""

from dataclasses import replace

import numpy as np
import pytest

from studies.answer.discretisation import (
    CONTACT,
    LAW,
    LOSS,
    MESH,
    TIME_STEP,
    Change,
    _share,
    change_by,
    changes_by,
    linear_at,
)
from studies.optimizers.minimize import minimize
from studies.problem import refining
from studies.problem.making import make_problem
from studies.problem.refining import (
    refined_problem,
    seen_in_space,
    with_harder_contacts,
    with_lossier_contacts,
    with_row_held,
)
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.reading import scene_from_dict


TIP = [0.2, 0.0, 0.0]


def beam(cells=(4, 1, 1), **more):
    """Return the scene of a clamped beam whose tip is tracked as it sags."""
    tables = {
        "bodies": {
            "beam": {
                "kind": "soft", "mesh": "box", "size": [0.2, 0.05, 0.05], "cells": list(cells),
                "position": [0.1, 0.0, 0.0], "E": 1e5, "nu": 0.3, "viscosity": 20.0,
                "held": {"plane": {"point": [0.0, 0.0, 0.0], "normal": [1.0, 0.0, 0.0]}},
            }
        },
        "observations": {
            "tip": {
                "kind": "points", "body": "beam", "at": {"tip": TIP},
                "simulate": {"frames": 8, "duration": 0.16},
            }
        },
        "free": {"beam.E": {}},
        **more,
    }  # fmt: skip
    return scene_from_dict(tables)


def fitted(problem):
    """Return the problem and theta of its optimum."""
    theta = problem.parameters.start
    problem = problem.with_steps_for(theta)
    return problem, minimize(problem, theta, declared.Search(), log=None).theta


def changes_of(problem, theta, file, most=1e6):
    linear, finer = linear_at(problem, theta, None), lambda each: refined_problem(each, file)
    return changes_by(problem, theta, linear, refined=finer, most=most)


def change_to(other, problem, theta, source):
    """Return the change of an answer to another problem's, and notes on it."""
    return change_by(problem, other, theta, linear_at(problem, theta, None), source=source)


def test_the_change_is_what_a_fit_on_the_finer_mesh_finds():
    """The film is that of a mesh twice as fine as the scene's; E is fitted with both meshes."""
    file = beam(truth={"bodies.beam.cells": [8, 2, 2]})
    made = make_problem(file)
    assert made.has_mesh_error  # the film has another mesh
    problem, theta = fitted(made.problem)
    changes, notes = changes_of(problem, theta, file)
    assert not notes
    change = {each.source: each for each in changes}
    finer, there = fitted(made.refined(made.problem))
    assert abs(there - theta)[0] > 0.1  # log E: the coarse mesh is much too stiff
    assert change[MESH].step == pytest.approx(there - theta, rel=0.2)
    assert abs(change[TIME_STEP].step[0]) < 0.01
    assert finer.loss_at(there) < problem.loss_at(theta)
    assert change[MESH].share[0] == pytest.approx(1.0, abs=0.15)  # the film's own mesh
    assert change[MESH].is_error


def test_a_film_shows_on_which_mesh_it_was_made():
    """Films of the scene's own mesh and of a much finer one, with noise."""
    simulate = {"frames": 12, "duration": 0.24, "height": 48, "width": 64, "noise": 0.01, "seed": 3}
    film = {
        "observations": {"film": {"simulate": simulate}},
        "cameras": {"front": {"eye": [0.1, 0.0, 0.5], "target": [0.1, -0.03, 0.0], "fov_y": 30.0}},
    }
    by_cells = {}
    for cells in ([6, 2, 2], [18, 6, 6]):
        file = beam((6, 2, 2), truth={"bodies.beam.cells": cells}, **film)
        problem, theta = fitted(make_problem(file).problem)
        changes, notes = changes_of(problem, theta, file)
        by_cells[cells[0]] = next(change for change in changes if change.source == MESH), notes
    same, notes = by_cells[6]
    assert abs(same.share[0]) < 0.2
    assert not same.is_error
    assert notes == [same.note()]
    assert "What was observed shows the scene's own mesh" in notes[0]
    finer, notes = by_cells[18]
    assert 1.0 < finer.share[0] < 1.6
    assert finer.is_error
    assert not notes


@pytest.mark.parametrize(
    ("share", "error", "is_error"),
    [
        (0.1, 0.1, False),
        (0.1, 0.3, True),
        (-0.6, 0.0, True),
        (1.0, 0.1, True),
        (np.nan, np.nan, True),
    ],
)
def test_the_mesh_has_an_error_unless_its_share_is_surely_nothing(share, error, is_error):
    assert Change(MESH, np.zeros(1), (share, error)).is_error is is_error


def test_a_finer_mesh_is_the_same_body_seen_by_the_same_points():
    file = beam(observations={
        "nodes": {"kind": "states", "simulate": {"frames": 2, "duration": 0.02}, "body": "beam"},
        "tip": {"kind": "points", "simulate": {"frames": 2, "duration": 0.02}, "body": "beam",
                "at": {"tip": TIP}},
    })  # fmt: skip
    problem = make_problem(file).everything
    finer = refined_problem(problem, file)
    coarse, fine = problem.built, finer.built
    assert fine.system.mass.sum() == pytest.approx(coarse.system.mass.sum())
    assert fine.held.sum() == 9  # of the clamped face, of which the coarse mesh has 4
    theta = problem.parameters.start
    blank = [each.residuals_jvp(np.zeros((len(each.targets()), 4))) for each in finer.observers]
    assert len(problem.residuals(theta)) == sum(map(len, blank)) + 1
    rows = finer.predicted_rows(theta)[:, :3]
    # the body has hardly moved after 10 ms: nodes are in their places, in the same order
    assert rows == pytest.approx(problem.predicted_rows(theta)[:, :3], abs=1e-3)


def test_of_a_film_places_are_compared_not_pixels():
    """The tip moves by a good part of its size: pixels have no slope that leads so far."""
    simulate = {"frames": 8, "duration": 0.16, "height": 24, "width": 32}
    film = beam(
        (8, 2, 2),
        observations={"film": {"simulate": simulate}},
        cameras={"front": {"eye": [0.1, 0.0, 0.8], "target": [0.1, -0.05, 0.0], "fov_y": 30.0}},
    )
    steps = []
    for file in (film, beam((8, 2, 2))):
        problem = make_problem(file).problem
        changes, _ = changes_of(problem, problem.parameters.start, file)
        steps.append(changes[1].step[0])
    assert 0.2 < steps[0] == pytest.approx(steps[1], rel=0.1)


def test_twins_on_their_own_mesh_have_no_mesh_error():
    assert not make_problem(beam()).has_mesh_error


def test_what_cannot_be_refined_is_said(monkeypatch):
    file = beam()
    problem = make_problem(file).problem
    theta = problem.parameters.start
    monkeypatch.setattr(refining, "MOST_ELEMENTS", 100)
    changes, notes = changes_of(problem, theta, file)
    assert [each.source for each in changes] == [TIME_STEP]
    assert notes == [
        "The error by the mesh is not known. A mesh twice as fine has 160 elements, more than 100."
    ]


def test_a_number_for_every_node_cannot_be_refined():
    file = beam(free={"beam.node_velocity": {}})
    problem = make_problem(file).problem
    with pytest.raises(StudyError, match=r"`beam\.node_velocity` has a number for each element"):
        refined_problem(problem, file)


def test_a_short_search_compares_the_first_part_of_the_film_or_none():
    file = beam()
    problem = make_problem(file).problem
    theta = problem.parameters.start
    # The motion on both meshes takes about 9 times the elements in 2 to 3 times the steps.
    changes, _ = changes_of(problem, theta, file, most=14.0)
    full, _ = changes_of(problem, theta, file)
    assert changes[1].step == pytest.approx(full[1].step, rel=0.3)
    assert changes[1].step[0] != full[1].step[0]
    _, notes = changes_of(problem, theta, file, most=2.0)
    assert "takes longer than the search" in notes[0]


def test_a_shape_that_is_free_makes_up_for_no_mesh():
    """With its shape free E would change as much on a finer mesh, and no share of it is known."""
    steps = {}
    for free in (["beam.E"], ["beam.E", "beam.shape"]):
        file = beam(truth={"bodies.beam.cells": [8, 2, 2]}, free={path: {} for path in free})
        body = replace(file.bodies["beam"], shape_error=1e-3, shape_cells=1)
        file = replace(file, bodies={"beam": body})
        problem = make_problem(file).problem
        theta = problem.parameters.start
        problem = problem.with_steps_for(theta)
        changes, _ = changes_of(problem, theta, file)
        steps[len(free)] = {each.source: each.step for each in changes}
    assert np.isnan(changes[1].share).all()
    assert not steps[2][MESH][1:].any()
    assert abs(steps[1][MESH][0]) > 0.1
    for source in (MESH, TIME_STEP):
        assert steps[2][source][0] == pytest.approx(steps[1][source][0], rel=1e-9)


def test_films_of_a_body_at_the_same_times_show_its_places_once():
    film = {"simulate": {"frames": 4, "duration": 0.1, "height": 8, "width": 8}}
    cameras = {name: {"eye": [z, 0.0, 0.5], "target": [0.1, 0.0, 0.0], "fov_y": 30.0}
               for name, z in (("left", 0.0), ("right", 0.2))}  # fmt: skip
    films = {name: film | {"camera": name} for name in cameras}
    later = {"late": film | {"camera": "left", "start": 0.05}}
    file = beam((2, 1, 1), cameras=cameras, observations=films | later)
    observers = seen_in_space(make_problem(file).problem).observers
    assert [(each.name, each.start) for each in observers] == [("beam", 0.0), ("beam", 0.05)]


def test_a_finer_mesh_that_shows_nothing_new_has_no_known_share():
    problem = make_problem(beam()).problem
    theta = problem.parameters.start
    linear, step = linear_at(problem, theta, None), np.zeros_like(theta)
    share = _share(problem, problem, theta, step=step, linear=linear)
    assert np.isnan(share).all()


HARDNESS = {"floor.stiffness": 1.0, "floor.friction_stiffness": 0.5}  # powers


def block(times=1.0, powers=HARDNESS, **floor):
    """Return the scene of a soft block that falls on a corner, on a floor as many times as hard."""
    tables = {
        "bodies": {
            "block": {
                "kind": "soft", "mesh": "box", "size": [0.1, 0.1, 0.1], "cells": [2, 2, 2],
                "position": [0.0, 0.1, 0.0], "rotation": [40.0, 5.0, 30.0],
                "velocity": [0.3, -1.0, 0.0], "E": 4e4, "nu": 0.3, "density": 900.0,
                "viscosity": 10.0,
            }
        },
        "obstacles": {"floor": {"kind": "plane", "friction": 0.4, **floor}},
        "observations": {
            "nodes": {
                "kind": "states", "body": "block", "simulate": {"frames": 12, "duration": 0.12},
            }
        },
        "free": {"block.E": {}},
    }  # fmt: skip
    values = make_problem(scene_from_dict(tables)).problem.built.values
    truth = {path: float(times**power * values[path].value) for path, power in powers.items()}
    return scene_from_dict(tables | {"truth": truth})


def test_the_change_by_a_contact_is_what_a_fit_with_a_harder_one_finds():
    """The film is that of a floor 4 times as hard; E is fitted with both floors."""
    made = make_problem(block(4.0))
    problem, theta = fitted(made.problem)
    harder = made.harder(made.problem)
    _, there = fitted(harder)
    (change,), notes = change_to(harder, problem, theta, CONTACT)
    assert not notes
    assert abs(there - theta)[0] > 0.1
    assert change.step == pytest.approx(there - theta, rel=0.2)
    assert change.share[0] == pytest.approx(1.0, abs=0.05)
    assert change.is_error
    (secants,), _ = change_by(
        problem, harder, theta, linear_at(problem, theta, np.full(1, 0.01)), source=CONTACT
    )
    assert secants.step == pytest.approx(change.step, rel=0.05)


def test_a_film_of_the_contact_that_was_chosen_has_no_error_by_it():
    made = make_problem(block())
    problem, theta = fitted(made.problem)
    (change,), notes = change_to(made.harder(problem), problem, theta, CONTACT)
    assert not change.is_error
    assert notes == [change.note()]
    assert "shows the scene's own contact" in notes[0]


def test_only_contacts_that_were_chosen_are_made_harder():
    problem = make_problem(block()).problem
    path, friction = "floor.stiffness", "floor.friction_stiffness"
    chosen = problem.built.values[path].value
    harder = make_problem(block()).harder(problem)
    assert harder.fixed[path] == 4.0 * chosen
    assert harder.fixed[friction] == 2.0 * problem.built.values[friction].value
    own_friction = make_problem(block(friction_stiffness=5.0))
    assert friction not in own_friction.harder(own_friction.problem).fixed
    fixed = make_problem(block(stiffness=2e3))
    assert fixed.harder(fixed.problem) is None
    timed = make_problem(block(contact_time=0.01))
    assert timed.harder(timed.problem) is None
    free = replace(block(), free={path: declared.Free()})
    assert with_harder_contacts(make_problem(free).problem, free.obstacles) is None
    assert make_problem(beam()).harder(make_problem(beam()).problem) is None


def test_only_a_loss_that_was_chosen_is_made_larger():
    made = make_problem(block())
    loss = made.problem.built.values["floor.dissipation"].value
    assert made.lossier(made.problem).fixed == {"floor.dissipation": 4.0 * loss}
    bouncing = {"restitution": 0.4, "powers": {}}
    for law in ({"dissipation": 0.5}, bouncing, {"damping": 2.0}):
        other = make_problem(block(**law))
        assert other.lossier(other.problem) is None
    problem = make_problem(replace(block(), free={"floor.dissipation": declared.Free()})).problem
    assert with_lossier_contacts(problem, block().obstacles) is None


def test_only_a_depth_that_was_chosen_is_halved():
    made = make_problem(block(restitution=0.4, powers={}))
    values = made.problem.built.values
    rubbed = 2.0 * values["floor.friction_stiffness"].value
    half = {"floor.depth": 0.5 * values["floor.depth"].value, "floor.friction_stiffness": rubbed}
    assert made.harder(made.problem).fixed == half
    fixed = make_problem(block(restitution=0.4, depth=1e-3, powers={}))
    assert fixed.harder(fixed.problem) is None


def test_a_film_of_a_contact_that_loses_more_shows_it():
    """The film is that of a floor that loses 4 times as much, which E cannot make up for."""
    made = make_problem(block(4.0, powers={"floor.dissipation": 1.0}))
    problem, theta = fitted(made.problem)
    (change,), notes = change_to(made.lossier(problem), problem, theta, LOSS)
    assert not notes
    assert change.share[0] == pytest.approx(1.0, abs=0.05)
    same = replace(change, share=(0.01, 0.01))
    assert "shows the scene's own loss in contact" in (same.note() or "")


def test_a_body_that_touches_nothing_has_no_error_by_contact():
    file = block()
    far = replace(file.bodies["block"], position=[0.0, 5.0, 0.0])
    problem = make_problem(replace(file, bodies={"block": far})).problem
    harder = with_harder_contacts(problem, file.obstacles)
    start = problem.parameters.start
    assert change_to(harder, problem, start, CONTACT) == ([], [])


def jelly(law, observed, **free):
    """Return a soft block that is thrown on a floor, all nodes of which are observed."""
    return scene_from_dict(
        {
            "bodies": {
                "jelly": {
                    "kind": "soft", "law": law, "mesh": "box", "size": [0.1, 0.1, 0.1],
                    "cells": [2, 2, 2], "mu": 4e3, "lam": 6e3, "position": [0.0, 0.06, 0.0],
                    "velocity": [0.0, -1.0, 0.0], "viscosity": 5.0,
                }
            },
            "obstacles": {"floor": {"kind": "plane", "stiffness": 500.0}},
            "observations": {
                "x": {
                    "kind": "states", "body": "jelly", "error": 1e-3,
                    "simulate": {"frames": 12, "duration": 0.12},
                }
            },
            "truth": {"bodies.jelly.law": observed},
            "free": {"jelly.mu": {}, "jelly.lam": {}},
        }
    )  # fmt: skip


@pytest.mark.parametrize(("law", "observed"), [("stable", "log"), ("log", "stable")])
def test_the_change_by_a_law_is_what_a_fit_with_the_other_one_finds(law, observed):
    made = make_problem(jelly(law, observed))
    assert made.has_law_error
    problem, theta = fitted(made.problem)
    missing = np.log([4e3, 6e3]) - theta
    (change,), notes = change_to(made.other_law(problem), problem, theta, LAW)
    assert abs(missing[1]) > 0.3  # the laws differ in how they resist a change of volume
    assert np.abs([missing[0], change.step[0]]).max() < 0.05
    assert change.step == pytest.approx(missing, abs=0.05)
    assert change.share[0] == pytest.approx(1.0, abs=0.05)
    assert change.is_error
    assert notes == [change.note()]
    assert "moves as soft bodies of another `law` do" in notes[0]
    assert replace(change, share=(3.1, 0.7)).note() is None  # shows neither
    assert replace(change, share=(np.nan, np.nan)).note() is None


def test_what_has_the_scenes_own_law_shows_it():
    made = make_problem(jelly("stable", "stable"))
    problem, theta = fitted(made.problem)
    (change,), notes = change_to(made.other_law(problem), problem, theta, LAW)
    assert not change.is_error
    assert "shows the scene's own law" in notes[0]


def test_a_simulated_film_of_the_same_law_and_a_scene_without_solids_have_no_other_law():
    made = make_problem(beam())
    assert made.other_law(made.problem) is None
    file = replace(beam(truth={"bodies.beam.law": "log"}), bodies={}, observations={}, truth={})
    assert refining.with_other_law(made.problem, file) is None


def held_to(x):
    """Return the prepared scene of a beam of 4 cells from 0 to 0.2 m, held up to x."""
    file = beam()
    body = replace(file.bodies["beam"], scale_error=0.02)
    plane = declared.Plane(point=(x, 0.0, 0.0), normal=(1.0, 0.0, 0.0))
    held = replace(body.held, plane=plane)
    return make_problem(replace(file, bodies={"beam": replace(body, held=held)}))


@pytest.mark.parametrize(("x", "deviations", "more"), [(0.049, 2.0, 4), (0.051, -2.0, -4)])
def test_a_body_of_another_size_may_hold_other_nodes(x, deviations, more):
    made = held_to(x)
    problem = made.everything
    other = made.held_if_larger(problem, deviations)
    assert other.built.held.sum() == problem.built.held.sum() + more
    assert other.built.state.x.tobytes() == problem.built.state.x.tobytes()
    np.testing.assert_array_equal(other.built.system.pinned, other.built.held)
    assert made.held_if_larger(problem, -deviations) is None


def test_a_row_is_released_only_where_half_of_the_held_nodes_stay():
    # One row, of which nothing would be left, and two rows.
    assert with_row_held(held_to(0.01).everything, released=True) is None
    assert with_row_held(held_to(0.06).everything, released=True).built.held.sum() == 4
