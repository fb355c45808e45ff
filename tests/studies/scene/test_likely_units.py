import pytest

from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.likely_units import notes_on_units
from studies.scene.overrides import set_override
from studies.scene.reading import scene_from_dict


def scene(body=None, *, free=None, **world):
    return scene_from_dict(
        {
            "bodies": {
                "block": {"kind": "soft", "mesh": "box", "E": 1e4, "nu": 0.3, **(body or {})}
            },
            "cameras": {
                "front": {"eye": [0.0, 0.0, 3.0], "target": [0.0, 0.0, 0.0], "fov_y": 30.0}
            },
            "observations": {
                "film": {"simulate": {"frames": 3, "height": 8, "width": 8, "duration": 0.1}}
            },
            "world": world,
            "free": {"block.E": free or {}},
            "truth": {"block.E": 2e4},
        }
    )


@pytest.mark.parametrize(
    ("body", "world", "key", "meant"),
    [
        ({"density": 1.1}, {}, "bodies.block.density", "g/cm³, write 1100"),
        ({"E": 2.5}, {}, "bodies.block.E", "MPa, write 2.5e6"),
        ({}, {"gravity": [0.0, -9810.0, 0.0]}, "world.gravity", "mm/s²"),
    ],
)
def test_a_number_in_another_unit_is_named_with_what_was_meant(body, world, key, meant):
    (note,) = notes_on_units(scene(body, **world))
    assert f"`{key}`" in note
    assert meant in note


def test_a_field_of_view_in_radians_is_named():
    file = scene()
    front = file.cameras["front"]
    object.__setattr__(front, "fov_y", 0.49)
    (note,) = notes_on_units(file)
    assert "`cameras.front.fov_y`" in note
    assert "write 28.1" in note


def test_usual_numbers_have_no_note():
    assert notes_on_units(scene()) == []


@pytest.mark.parametrize(("scale", "is_said"), [(1.0, True), (0.001, False)])
def test_a_mesh_file_in_millimetres_is_named(tmp_path, scale, is_said):
    corners = ["0 0 0", "120 0 0", "0 120 0", "0 0 120"]
    (tmp_path / "part.tet").write_text("\n".join(f"v {row}" for row in corners) + "\nt 0 1 2 3\n")
    body = {"mesh": str(tmp_path / "part.tet"), "scale": scale}
    assert any("millimetres" in note for note in build(scene(body)).notes) == is_said


@pytest.mark.parametrize(("size", "is_said"), [([100.0, 20.0, 20.0], True), ([1, 1, 1], False)])
def test_a_size_in_millimetres_is_named(size, is_said):
    notes = build(scene({"size": size})).notes
    assert any("block.size` makes a body" in note for note in notes) == is_said


def test_an_override_names_the_bodies_that_are_there():
    values = {"bodies": {"rod": {"kind": "pendulum"}}}
    with pytest.raises(StudyError, match=r"Unknown body `pendulum`.* Known: rod\."):
        set_override(values, "bodies.pendulum.length=2")
    set_override(values, "bodies.bob.kind=rigid")  # a body of one's own begins with its kind
    set_override(values, "bodies.bob.mesh=ball")
    assert values["bodies"]["bob"] == {"kind": "rigid", "mesh": "ball"}


def test_a_value_outside_its_bounds_is_named_with_what_was_meant():
    with pytest.raises(StudyError, match=r"must hold the scene's value, 0\.6, .* write 0\.6e6"):
        scene({"E": 0.6}, free={"bounds": [1e4, 1e6]})
