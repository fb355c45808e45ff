import numpy as np
import pytest

from adjsim.meshes.files import read_mesh
from adjsim.meshes.grid import box_tets


def write(path, text):
    path.write_text(text)
    return path


def test_a_tet_file_is_read_as_it_was_written(tmp_path):
    mesh = box_tets((2, 1, 1), (2.0, 1.0, 1.0))
    lines = ["# a box", *(f"v {x} {y} {z}" for x, y, z in mesh.points.tolist()), ""]
    lines += [f"t {a} {b} {c} {d} 0.5" for a, b, c, d in mesh.tets.tolist()]
    read = read_mesh(write(tmp_path / "box.tet", "\n".join(lines)), scale=0.1)
    np.testing.assert_allclose(read.points, 0.1 * mesh.points, rtol=1e-15)
    np.testing.assert_array_equal(read.tets, mesh.tets)
    assert read.volumes.sum() == pytest.approx(2e-3)


TET = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"


def test_tetrahedra_that_are_all_inverted_are_turned_over(tmp_path):
    assert read_mesh(write(tmp_path / "one.tet", TET + "t 0 2 1 3")).volumes[0] > 0.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TET, "4 points .* and 0 tetrahedra"),
        (TET + "t 1 2 3 4", "4 points, counted from 0, but a tetrahedron names point 4"),
        (TET + "t 0 1 2", "line 5: `t` must be followed by four numbers"),
        (TET + "t 0 1 2 -1", "line 5: `t`"),
        (TET + "v 0 nan 1\nt 0 1 2 3", "line 5: `v` must be followed by three coordinates"),
        (TET + "v 0 x 1\nt 0 1 2 3", "line 5: `v`"),
    ],
)
def test_damaged_files_are_told_by_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_mesh(write(tmp_path / "bad.tet", text))
