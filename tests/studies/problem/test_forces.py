"""Load cells whose data are doubtful: the other sign, another unit."""

import numpy as np
import pytest

from studies.problem.making import make_problem
from studies.reports.preview.showing import preview
from studies.scene.files import find_scene
from studies.scene.reading import read_scene


SCALED = [(1.0, None), (-1.0, "reverse `axis`"), (1e3, "mN"), (1e-3, "kN"), (10.0, None)]


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Return a function that writes the bundled indentation with a file of scaled forces."""
    text = find_scene("indentation").read_text(encoding="utf-8")
    text = text.replace("frames = 10", "frames = 3").replace("[10, 4, 10]", "[5, 2, 5]")
    text = text.replace("{ between = [0.8e5, 1.6e5] }", "1e5")
    folder = tmp_path_factory.mktemp("cells")
    path = folder / "scene.toml"
    path.write_text(text, encoding="utf-8")
    (cell,) = make_problem(read_scene(path)).everything.observers
    simulated = next(line for line in text.splitlines() if line.startswith("simulate"))
    path.write_text(text.replace(simulated, 'file = "load.csv"'), encoding="utf-8")

    def scene(factor):
        rows = np.column_stack([cell.times, factor * cell.forces[:, 0]])
        np.savetxt(folder / "load.csv", rows, delimiter=",", header="time,force", comments="")
        return path

    return scene


def doubts(notes):
    return [note for note in notes if note.startswith("The force of `observations.cell`")]


@pytest.mark.parametrize(("factor", "said"), SCALED)
def test_a_cell_of_another_sign_or_unit_is_named(cells, factor, said):
    notes = doubts(make_problem(read_scene(cells(factor))).notes)
    assert len(notes) == (said is not None)
    assert said is None or said in notes[0]


@pytest.mark.parametrize(("factor", "said"), SCALED[:3])
def test_a_preview_names_it_too(cells, tmp_path, factor, said):
    notes = doubts(preview(cells(factor), tmp_path / "a.png"))
    assert len(notes) == (said is not None)
    assert said is None or said in notes[0]


def test_one_table_of_a_testing_machine_is_path_and_force(cells):
    scene = cells(1.0)
    time, force = np.loadtxt(scene.parent / "load.csv", delimiter=",", skiprows=1).T
    rows = np.vstack([np.zeros(3), np.column_stack([time, 0.2 * time, force])])  # 2 mm in 10 s
    head = "time,displacement,force"
    np.savetxt(scene.parent / "test.csv", rows, delimiter=",", header=head, comments="")
    lines = scene.read_text(encoding="utf-8").splitlines()
    stroke = 'path = { file = "test.csv", axis = [0.0, -1.0, 0.0], units = "mm" }'
    lines = [stroke if line.startswith("path =") else line for line in lines]
    both = scene.with_name("both.toml")
    both.write_text("\n".join(lines).replace("load.csv", "test.csv"), encoding="utf-8")
    apart, together = (make_problem(read_scene(path)).problem for path in (scene, both))
    theta = apart.parameters.start
    predicted = together.predicted_rows(theta)
    np.testing.assert_allclose(predicted[1:, 0], apart.predicted_rows(theta)[:, 0], rtol=1e-6)
    assert predicted[0, 0] == pytest.approx(0.0, abs=1e-3)
    assert together.observers[0].forces[1:] == pytest.approx(force[:, None])
