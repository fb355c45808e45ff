"""Forces of the user's own in scenes: allowed by name, on their body only, and fitted."""

import sys
from pathlib import Path

import numpy as np
import pytest

from adjsim.rollout import rollout
from studies.api import Problem, fit
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.declared import (
    Free,
    OwnForce,
    Points,
    Rigid,
    Scene,
    Search,
    Simulated,
    Soft,
    World,
)  # fmt: skip
from studies.scene.own_code import ALLOWED
from studies.scene.reading import read_scene
from studies.scene.takes import spread_takes


DOCS = Path(__file__).resolve().parents[3] / "docs"
CUBE = Soft(mesh="box", cells=(1, 1, 1), E=1e4, nu=0.3)
VALUES = {"strength": 40.0, "place": (3.0, 1.0, 0.0), "softening": 0.7}


@pytest.fixture
def allowed(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.setenv(ALLOWED, "nothing, attractor")


def star(body="cube", **changes):
    return OwnForce(**{"type": "attractor:Attractor", "body": body, "values": VALUES, **changes})


def scene(force, **bodies):
    world = World(gravity=(0.0, 0.0, 0.0), duration=0.5)
    return Scene(bodies={"cube": CUBE, **bodies}, forces={"star": force}, world=world)


def test_a_force_acts_on_its_body_alone(allowed):
    other = Soft(mesh="box", cells=(1, 1, 1), E=1e4, nu=0.3, position=(5, 0, 0))
    block = Rigid(mesh="box", position=(9, 0, 0))
    for name in ("cube", "other", "block"):
        built = build(scene(star(name), other=other, block=block))
        run = rollout(built.system, built.state, 1e-4, 20)
        speeds = {
            "cube": np.abs(run.v[0][built.nodes["cube"]]).max(),
            "other": np.abs(run.v[0][built.nodes["other"]]).max(),
            "block": np.abs(run.bodies["block"].velocity).max(),
        }
        assert speeds.pop(name) > 1e-6
        assert max(speeds.values()) < 1e-9


def test_parameters_may_be_free_and_nodes_are_counted_in_the_body(allowed):
    before = Soft(mesh="box", cells=(1, 1, 1), E=1e4, nu=0.3, position=(5, 0, 0))
    bodies = {"before": before, "cube": CUBE}
    force = star(values={**VALUES, "attracted": (0, 2)})
    built = build(Scene(bodies=bodies, forces={"star": force}))
    start = built.nodes["cube"].start
    assert built.system.forces["star"].nodes.ravel().tolist() == [start, start + 2]
    strength, place = (built.values[f"forces.star.{key}"] for key in ("strength", "place"))
    assert (strength.unit, strength.transform, strength.value) == ("N m2", "log", 40.0)
    assert place.transform == "linear"
    assert built.targets()["star.strength"] == 40.0


def test_a_fit_finds_the_strength(allowed):
    tracks = {"a": Points(body="cube", at={"a": (0.5, 0.5, 0.5)}, simulate=Simulated(frames=8))}
    free = {"forces.star.strength": Free(start=10.0)}
    search = Search(coarse=0, stages=(1.0,), held_back=0.0)
    answer = fit(Problem(scene(star()), tracks, free, search=search))
    assert answer.values["forces.star.strength"] == pytest.approx(40.0, rel=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "antigravity:F"}, "runs no code .* set the environment variable ADJSIM_MODULES"),
        ({"type": ":Force"}, "runs no code that you have not allowed"),
        ({"type": "nothing:Force"}, "module cannot be imported .* Add its folder to PYTHONPATH"),
        ({"type": "os:system"}, "must be module:Class with a subclass of Force"),
        ({"type": "adjsim.forces.element:Force"}, "a subclass of Force that is a dataclass, got"),
        ({"type": "attractor"}, "must be module:Class with a subclass of Force"),
        ({"body": "cub"}, "`forces.star.body`.*cub"),
        ({"values": {"strength": 1.0}}, "`forces.star.values` must be arguments .* missing"),
        ({"values": {**VALUES, "strength": -1.0}}, "must not be negative"),
    ],
)
def test_a_force_that_does_not_fit_is_refused(allowed, changes, message):
    with pytest.raises(StudyError, match=message):
        build(scene(star(**changes)))


def test_takes_have_no_forces_of_the_users_own():
    takes = {"one": {"observations": {"a": {"body": "cube"}}}}
    with pytest.raises(StudyError, match="`forces` must be left out of a scene with `takes`"):
        spread_takes({"forces": {"star": {"body": "cube"}}, "takes": takes})


def test_a_scene_file_imports_nothing_by_itself(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "attractor", raising=False)
    monkeypatch.syspath_prepend(str(DOCS))
    path = tmp_path / "scene.toml"
    path.write_text(
        '[bodies.cube]\nkind = "soft"\nmesh = "box"\nE = 1e4\nnu = 0.3\n'
        '[forces.star]\ntype = "attractor:Attractor"\nbody = "cube"\n'
        "values = { strength = 1.0, place = [0.0, 1.0, 0.0], softening = 0.5 }\n"
        '[free."forces.star.strength"]\n'
        '[observations.a]\nkind = "points"\nbody = "cube"\nsimulate = { frames = 3 }\n'
        "at = { a = [0.0, 0.0, 0.0] }\n"
    )
    file = read_scene(path)
    with pytest.raises(StudyError, match="runs no code that you have not allowed"):
        build(file)
    assert "attractor" not in sys.modules
    monkeypatch.setenv(ALLOWED, "attractor")
    assert "forces.star.strength" in build(file).values
