"""What classes declare of their parameters is what they do, and what the manual says."""

import re
from pathlib import Path

import numpy as np
import pytest

from adjoint.forces.registry import forces
from adjoint.system_registry import SYSTEM_TWINS
from adjoint.verify.declared import OTHERS
from adjoint.verify.systems import scenes
from adjsim.reduced.double_pendulum import DoublePendulum
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum


DOCS = Path(__file__).resolve().parent.parent / "docs"
SYSTEMS = (
    SimplePendulum(1.0, center_of_mass=1.0),
    DoublePendulum([1.0, 1.0], center_of_mass=[1.0, 1.0]),
)
SCENES = scenes(4)
# Of each class and parameter, the first force of the catalogue that has it: scene, name, parameter.
PARAMETERS = {
    (type(force), p.name): (scene, name, p)
    for scene in reversed(SCENES.values())
    for name, force in scene.model.forces.items()
    for p in force.PARAMETERS
    if p.name in force.parameters()
}
DECLARED = {kind.__name__: kind.PARAMETERS for kind in OTHERS}


def changed(scene, name, parameter, factor):
    """The model with a parameter of a force times a factor."""
    path = f"{name}.{parameter.name}"
    return scene.at({path: factor * scene.parameters()[path] - 10.0 * (factor < 0.0)})


def test_the_catalogue_has_every_parameter_of_every_force():
    assert set(PARAMETERS) == {(kind, p.name) for kind in forces() for p in kind.PARAMETERS}


@pytest.mark.parametrize(
    ("scene", "name", "parameter"), PARAMETERS.values(), ids=lambda p: getattr(p, "name", "")
)
def test_what_is_searched_for_by_its_logarithm_is_refused_below_zero(scene, name, parameter):
    changed(scene, name, parameter, 1.25)
    if parameter.positive:
        with pytest.raises(ValueError, match=f"`({name}.)?{parameter.name}` must"):
            changed(scene, name, parameter, -1.0)


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: type(system).__name__)
def test_what_a_pendulum_declares_positive_is_refused_below_zero(system):
    state = PendulumState(np.zeros(system.SHAPE))
    for p in system.PARAMETERS:
        value = {p.name: -1.0 - system.parameters()[p.name]}
        if p.positive:
            with pytest.raises(ValueError, match=f"`{p.name}` must"):
                system.with_values(state, value)
        else:
            system.with_values(state, value)


def documented():
    """The rows of the tables of names: unit, shape and default transform by class and name."""
    rows, owner = {}, ""
    for line in (DOCS / "names.md").read_text().splitlines():
        if title := re.match(r"### `(\w+)`", line):
            owner = title[1]
        elif cells := re.match(r"\| `(\w+)` \|.*\| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", line):
            rows[owner, cells[1]] = cells.groups()[1:]
    return rows


def plain(text):
    """Units and shapes as the classes write them."""
    text = text.replace(" or a `Signal`", "").replace("`", "")
    return text.translate(str.maketrans({"²": "2", "³": "3", "–": "-"}))


@pytest.mark.parametrize("owner", DECLARED)
def test_the_manual_has_the_declared_unit_shape_and_transform(owner):
    rows = documented()
    for p in DECLARED[owner]:
        unit, shape, transform = rows[owner, p.name]
        assert plain(unit) == p.unit, p.name
        assert plain(shape).replace(", ", " or ") == p.shape.replace(", ", " or "), p.name
        assert transform.startswith(("log", "pair")) == p.positive, p.name


def test_the_reference_has_every_system():
    pages = [path.read_text() for path in (DOCS / "reference").glob("*.md")]
    listed = set(re.findall(r"autoclass:: (\w+)", "".join(pages)))
    kinds = {kind.__name__ for kind in SYSTEM_TWINS}
    assert kinds | {"State", "PendulumState", "SmokeState", "Signal"} <= listed
