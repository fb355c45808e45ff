"""Textures from pictures: what is drawn, what pictures tell of texels, what a run leaves."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.sparse import csr_array

from render.textured_files import read_texture
from render.textures import Wrap
from studies import config, running
from studies.registry import RunOptions
from studies.texels import Told, averaged, drawn, on_faces, texel_matrix
from studies.texture import DETERMINED, NAME, PATH, hidden_scenery, prepare
from tests.studies.toys import TOYS


TINY = TOYS["texture"].overrides


def scenery(rng, *overrides):
    settings = config.resolve("texture", (*TINY, *overrides)).values
    return hidden_scenery(settings, RunOptions(), 0, rng)


def dense(hidden):
    """A of one channel, column by column from tangents."""
    texels = hidden.scene.objects[NAME].texture.texels
    columns = []
    for k in np.ndindex(texels.shape[:2]):
        probe = np.zeros_like(texels)
        probe[k] = 1.0
        columns.append(hidden.jvp({PATH: probe})[1][..., 0].ravel())
    return np.stack(columns, axis=1)


def test_a_drawn_texture_is_the_same_each_time_and_inside_the_colours():
    first, again, other = (drawn(32, 48, np.random.default_rng(k)) for k in (3, 3, 4))
    assert first.shape == (32, 48, 3)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1
    assert 0.0 < first.min() < 0.2
    assert 0.8 < first.max() < 1.0


def test_a_picture_is_averaged_over_areas(rng):
    texels = rng.random((6, 4, 3))
    np.testing.assert_allclose(averaged(texels, 6, 4), texels, rtol=1e-14)
    halves = texels.reshape(3, 2, 2, 2, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(averaged(texels, 3, 2), halves, rtol=1e-14)
    np.testing.assert_allclose(averaged(texels, 12, 4)[::2], texels, rtol=1e-14)
    # 4 rows of 6: each takes one row and a half
    mixed = averaged(texels, 4, 4)
    np.testing.assert_allclose(mixed[0], (2.0 * texels[0] + texels[1]) / 3.0, rtol=1e-14)


@pytest.mark.parametrize("wrap", list(Wrap))
@pytest.mark.parametrize("size", [(6, 8), (5, 7), (1, 2), (3, 1)])
def test_the_matrix_of_texels_is_that_of_the_pictures(size, wrap, rng):
    given = (f"texture.height={size[0]}", f"texture.width={size[1]}", f"texture.wrap={wrap}")
    hidden = scenery(rng, *given, "camera.views=2", "image.height=16", "image.width=12")
    matrix = texel_matrix(hidden, PATH).toarray()
    np.testing.assert_allclose(matrix, dense(hidden), atol=1e-14)
    assert matrix.any()


def test_what_pictures_tell_is_the_pseudoinverse(rng):
    hidden = scenery(rng, "camera.views=1", "image.height=20", "image.width=20")
    told = Told.by(texel_matrix(hidden, PATH), (6, 9))
    A = dense(hidden)
    is_seen = A.any(axis=0)
    np.testing.assert_array_equal(told.squares.ravel() > 0.0, is_seen)
    np.testing.assert_array_equal(np.isnan(told.gain.ravel()), ~is_seen)
    A = A[:, is_seen] / np.linalg.norm(A[:, is_seen], axis=0)
    values = np.linalg.svd(A, compute_uv=False)
    np.testing.assert_allclose(np.sqrt(np.abs(told.eigenvalues[::-1])), values, atol=1e-7)
    gain = told.gain.ravel()[is_seen]
    assert told.n_hidden == (values**2 <= 1e-12 * values[0] ** 2).sum()
    if not told.n_hidden:
        inverse = np.linalg.inv(dense(hidden)[:, is_seen].T @ dense(hidden)[:, is_seen])
        np.testing.assert_allclose(gain, np.sqrt(np.diag(inverse)), rtol=1e-6)


def test_texels_that_are_told_only_together_have_no_gain_of_their_own():
    # Texels 0 and 1 are seen by one pixel together, 2 by two pixels alone, 3 by none.
    matrix = csr_array(np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.8, 0.0], [0.0, 0.0, 0.6, 0.0]]))
    told = Told.by(matrix, (2, 2))
    assert told.n_hidden == 1
    np.testing.assert_allclose(told.gain, [[np.inf, np.inf], [1.0, np.nan]], rtol=1e-14)
    np.testing.assert_allclose(told.squares, [[0.25, 0.25], [1.0, 0.0]], rtol=1e-14)


@pytest.mark.parametrize("wrap", list(Wrap))
def test_texels_that_a_pixel_looks_at_lie_on_faces(wrap, rng):
    size = ("texture.height=23", "texture.width=36")
    hidden = scenery(rng, f"texture.wrap={wrap}", *size, 'mesh.shapes=["sphere"]')
    is_on = on_faces(hidden.scene.objects[NAME])
    is_seen = texel_matrix(hidden, PATH).toarray().any(axis=0).reshape(23, 36)
    assert not (is_seen & ~is_on).any()
    assert is_seen.any()
    # A sphere's six sides leave the corners of their fields bare.
    assert not is_on[0, 0]
    assert not is_on[11, 11:13].any()
    assert is_on[5, 5]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Fit a texture to a single picture, once."""
    overrides = (*TINY, "camera.views=1", "image.height=32", "image.width=32")
    folder, job = running.start("texture", overrides, tmp_path_factory.mktemp("one") / "run", {})
    return folder, job.run(folder)


def test_what_no_pixel_looks_at_is_counted_and_stays_as_it_started(finished):
    folder, text = finished
    arrays = folder.read_npz("texture.npz")
    unseen = tuple(arrays["unseen"].T)
    assert f"No pixel looks at {len(arrays['unseen'])}, of which" in text
    n_faint = arrays["texels_hardly_seen"].sum() if "texels_hardly_seen" in arrays else 0
    assert len(arrays["unseen"]) + arrays["texels"].sum() + n_faint == 6 * 9
    assert (arrays["fitted"][unseen] == 0.5).all()
    apart = np.abs(arrays["fitted"] - arrays["hidden"]).max(axis=2)
    assert apart[arrays["texels"]].max() <= 1e-8
    assert apart[unseen].max() > 0.1
    assert folder.read_json("certificate.json")["passed"]


def test_the_report_shows_textures_and_other_sides(finished):
    folder, _ = finished
    text = folder.file("report.html").read_text()
    for part in ("The textures", "From other sides", "0: edges are hard", "condition"):
        assert part in text
    for name in ("textures", "elsewhere"):
        assert (folder.path / "figures" / f"{name}.png").stat().st_size > 5_000
    with Image.open(folder.file("texture.png")) as picture:
        assert picture.size == (9, 6)


def test_noise_comes_through_as_the_gain_says():
    overrides = (*TINY, "noise.level=0.01", "texture.height=8", "texture.width=12")
    fit = prepare(config.resolve("texture", overrides).values, RunOptions())
    hidden, told = fit.hidden, fit.told
    A = texel_matrix(hidden, PATH).toarray()
    difference = (fit.problem.targets - fit.truth.images[..., :3]).reshape(-1, 3)
    where = fit.cells[DETERMINED]
    shift = np.linalg.pinv(A, rcond=1e-6) @ difference
    ratio = shift.reshape(*told.gain.shape, 3)[where] / (0.01 * told.gain[where][:, None])
    # Standard normal numbers, of neighbours hardly correlated: their spread within 5 errors.
    assert ratio.std() == pytest.approx(1.0, abs=5.0 / np.sqrt(2.0 * ratio.size))


def test_a_mesh_comes_with_its_own_picture_and_place_on_it(tmp_path, rng):
    texels = (255 * rng.random((6, 9, 3))).astype(np.uint8)
    Image.fromarray(texels).save(tmp_path / "paint.png")
    (tmp_path / "part.mtl").write_text("newmtl paint\nmap_Kd paint.png\n")
    (tmp_path / "part.obj").write_text(
        "mtllib part.mtl\nv 4 0 0\nv 6 0 0\nv 6 0 2\nv 5 2 1\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\n"
        "usemtl paint\nf 1/1 3/2 2/3\nf 1/1 2/2 4/4\nf 2/2 3/3 4/4\nf 3/3 1/1 4/4\n"
    )
    path = tmp_path / "part.obj"
    hidden = scenery(rng, f'mesh.shapes=["{path}"]')
    mesh = hidden.scene.objects[NAME]
    np.testing.assert_allclose(mesh.texture.texels, texels / 255.0, atol=1e-15)
    np.testing.assert_array_equal(mesh.uv[mesh.uv_faces][0], [[0, 0], [1, 0], [1, 1]])
    points = hidden.vertices[NAME]
    assert np.linalg.norm(points, axis=1).max() == pytest.approx(1.0)
    np.testing.assert_allclose(points.min(axis=0), -points.max(axis=0), atol=1e-12)
    other = tmp_path / "other.png"
    Image.fromarray(255 - texels).save(other)
    changed = scenery(rng, f'mesh.shapes=["{path}"]', f"texture.picture={other}")
    np.testing.assert_allclose(
        changed.scene.objects[NAME].texture.texels, read_texture(other).texels, atol=1e-15
    )


def test_a_file_that_cannot_be_read_is_named(tmp_path, rng):
    Path(tmp_path / "bad.png").write_text("no picture")
    with pytest.raises(ValueError, match=r"`texture.picture`: .*bad.png cannot be read"):
        scenery(rng, f"texture.picture={tmp_path / 'bad.png'}")
    (tmp_path / "bad.obj").write_text(
        "mtllib none.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl a\nf 1 2 3\n"
    )
    with pytest.raises(ValueError, match=r"`mesh.shapes`: bad.obj names the materials .*none.mtl"):
        scenery(rng, f'mesh.shapes=["{tmp_path / "bad.obj"}"]')


@pytest.mark.usefixtures("unpainted")
def test_the_colours_of_a_picture_may_be_the_bounds(tmp_path):
    board = np.indices((6, 9)).sum(axis=0) % 2
    Image.fromarray((255 * board[..., None] * np.ones(3)).astype(np.uint8)).save(tmp_path / "b.png")
    overrides = (*TINY, f"texture.picture={tmp_path / 'b.png'}")
    folder, job = running.start("texture", overrides, tmp_path / "run", {})
    job.run(folder)
    arrays = folder.read_npz("texture.npz")
    assert arrays["fitted"].min() >= 0.0
    assert arrays["fitted"].max() <= 1.0
    apart = np.abs(arrays["fitted"] - arrays["hidden"]).max(axis=2)
    assert apart[arrays["texels"]].max() <= 1e-8


@pytest.mark.usefixtures("unpainted")
def test_instances_differ_in_shape_and_texture(tmp_path):
    overrides = (*TINY, 'mesh.shapes=["cube", "cylinder"]', "instances=2")
    folder, job = running.start("texture", overrides, tmp_path / "run", {})
    assert "relative errors over 2 instances" in job.run(folder)
    table = folder.read_json("instances.json")
    assert [row["name"] for row in table["parameters"]] == [DETERMINED]
    assert table["parameters"][0]["worst"] <= table["parameters"][0]["bar"] == 1e-8
    conditions = {one["spectrum"]["condition"] for one in table["records"]}
    assert len(conditions) == 2
