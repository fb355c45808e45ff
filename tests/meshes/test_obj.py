import numpy as np
import pytest

from adjsim.meshes.files import read_mesh
from adjsim.meshes.obj import check_corners


SQUARE = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nvt 1 1\nvn 0 0 1\n"


def write(folder, faces):
    path = folder / "square.obj"
    path.write_text(SQUARE + faces)
    return path


@pytest.mark.parametrize(
    "faces",
    [
        "f 1 2 3\nf 1 3 4",
        "f 1/1 2/2 3/2  # half\nf 1/1/1 3//1 4",
        "f -4 -3 -2\nf -4/-1/-1 -2 -1",
        "f 1 2 3 \\\n4",
        "f 1 2 5\nv 2 2 0",
    ],
)
def test_corners_that_are_there_pass(tmp_path, faces):
    check_corners(write(tmp_path, faces))


@pytest.mark.parametrize(
    ("faces", "message"),
    [
        ("f 1 2 9", r"line 8: a face must name vertices \(v\) from 1 to 4, got 9"),
        ("f 1 2 3\nf 1/1 2/3 3/2", r"line 9: .* texture coordinates \(vt\) from 1 to 2, got 3"),
        ("f 1//1 2//1 3//2", r"normals \(vn\) from 1 to 1, got 2"),
        ("f 0 1 2", r"vertices \(v\) from 1 to 4, got 0"),
        ("f -1 -2 -5", r"vertices \(v\) from 1 to 4, got -5"),
        ("f 1 2 x", r"must be whole numbers, such as 3 or 3/1/2, got 'x'"),
    ],
)
def test_a_face_that_names_what_is_not_there_is_told_by_its_line(tmp_path, faces, message):
    with pytest.raises(ValueError, match=rf"`mesh`: .*square\.obj, .*{message}"):
        read_mesh(write(tmp_path, faces))


def test_a_mesh_that_is_whole_is_read(tmp_path):
    mesh = read_mesh(write(tmp_path, "f 1/1 2/2 3/2\nf -4 -2 -1"))
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [0, 2, 3]])
