"""What is of the wrong kind is named, wherever it is given: no bare error, nothing taken as is.

Wrong shapes and values are tested beside what they are given to.
"""

import numpy as np
import pytest

from adjoint.bridges.functions import Rollout
from adjoint.equilibrium import equilibrium_vjp
from adjoint.render.losses import loss_vjp
from adjoint.render.soft_raster import rasterize_jvp, record_images
from adjoint.rollout import record, rollout_jvp
from adjoint.verify.gradcheck import gradcheck
from adjoint.verify.kinks import rollout_margins
from adjsim import checks
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.forces.tracks import path_angular_velocity, path_velocity
from adjsim.meshes.embedding import embedding
from adjsim.meshes.files import read_mesh, write_tet_mesh
from adjsim.meshes.grid import box_tets, grid_tets
from adjsim.meshes.surfaces import blocks
from adjsim.meshes.tetrahedralise import tetrahedralise
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.reduced.smoke import Smoke, SmokeState
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from adjsim.series_files import write_bodies, write_moved, write_series
from adjsim.worlds import stack
from render.camera import Camera
from render.losses import Mse, PyramidMse
from render.scene import DirectionalLight, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize, softness
from tests.rigid.scenes import box


MODEL = Model(np.ones(4), {"floor": HalfSpaceContact()})
STATE = State(np.zeros((4, 3)))
BATCH = stack([MODEL, MODEL])
BODIES = RigidBodies(box(), density=1.0)
BODY_MODEL = Model(bodies={"block": BODIES})
BODY_STATE = State(bodies={"block": BodyState((0.0, 0.0, 0.0))})
PENDULUM, HANGING = SimplePendulum(1.0), PendulumState(0.1)
SMOKE, CALM = Smoke((4, 4)), SmokeState(np.full((4, 4, 2), 0.3), np.ones((4, 4)))
TETS = box_tets(cells=(1, 1, 1), size=(1.0, 1.0, 1.0))
TRIANGLE = np.eye(3)
FACE = TriangleMesh(TRIANGLE, [[0, 1, 2]])
SCENE = Scene({"face": Mesh([[0, 1, 2]])})
CAMERA = Camera((0.0, 0.0, 3.0), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0))
DRAWN = (SCENE, CAMERA, SoftRasterizer(), {"face": TRIANGLE}, (4, 4))
IMAGE = np.zeros((1, 4, 4, 4))
ADJ = np.ones((1, 4, 3))

FORCES = [
    (lambda: HalfSpaceContact(stiffness="1e4"), "`stiffness` must .* it has text, got '1e4'"),
    (lambda: HalfSpaceContact(stiffness=True), "`stiffness` must .* it has truth values, got True"),
    (lambda: HalfSpaceContact(friction=None), "`friction` must .* it has no number, got None"),
    (
        lambda: NeoHookeanTets.moduli("soft", 0.3),
        "`youngs_modulus` must be an array of float64: it has text",
    ),
    (
        lambda: NeoHookeanTets.moduli(1.0, None),
        "`poisson_ratio` must be an array of float64: it has no number",
    ),
    (lambda: NeoHookeanTriangles.moduli(1.0, "0.3"), "`poisson_ratio` must be an array of float64"),
    (lambda: path_velocity(ADJ[0], None), "`dt` must be an array of float64: it has no number"),
    (lambda: path_angular_velocity(ADJ[0], "1"), "`dt` must be an array of float64: it has text"),
]
SYSTEMS = [
    (lambda: rollout(MODEL, STATE, "1e-4", 2), "`dt` must be a number of seconds or 'auto'"),
    (
        lambda: rollout(PENDULUM, HANGING, 0.1, 2, threads="two"),
        "`threads` must be a whole number of at least 1",
    ),
    (lambda: rollout(BATCH, None, 0.1, 2), "`state` must be a list .* per world, 2, got NoneType"),
    (lambda: rollout(BATCH, [STATE, None], 0.1, 2), "World 1: `state` must be a State, got None"),
    (lambda: stack(None), "`models` must be Models, got NoneType for world 0"),
    (lambda: stack(3), "`models` must be Models, got int for world 0"),
    (lambda: MODEL.with_values(STATE, None), "`values` must be a mapping, .* got NoneType"),
    (lambda: MODEL.with_values(None, {}), "`state` must be a State, got NoneType"),
    (lambda: BATCH.with_values([STATE] * 2, ["mass"]), "`values` must be a mapping, .* got list"),
    (lambda: BATCH.with_values([STATE], {}), "`state` must have one entry per world, 2, got 1"),
    (lambda: PENDULUM.with_values(HANGING, 3), "`values` must be a mapping, .* got int"),
    (lambda: PENDULUM.with_values(CALM, {}), "`state` must be a PendulumState, got SmokeState"),
    (lambda: SMOKE.with_values(CALM, [3]), "`values` must be a mapping, .* got list"),
    (lambda: SMOKE.with_values(STATE, {}), "`state` must be a SmokeState, got State"),
]
GRADIENTS = [
    (lambda: record(MODEL, STATE, 0.1, 2).vjp(), "A cotangent must be given, `adj_x` or `adj_v`"),
    (lambda: record(MODEL, STATE, 0.1, 2).vjp(ADJ, wrt=3), "`wrt` must be a sequence of paths"),
    (lambda: reverse_body(np.ones(13)), r"`bodies\['block'\]` must be a mapping, .* got ndarray"),
    (lambda: reverse_body(None), r"`bodies\['block'\]` must be a mapping, .* got NoneType"),
    (lambda: record(BODY_MODEL, BODY_STATE, 0.1, 2).vjp(bodies=3), "`bodies` must be a mapping"),
    (lambda: reverse_batch(3), "`adj_x` must be a list with one entry per world, 2, got int"),
    (lambda: reverse_batch([None, None]), "`adj_x`, `adj_v` or `bodies` must be given for some"),
    (lambda: rollout_jvp(BATCH, [STATE] * 2, 0.1, 2, 3), "`tangents` must be a list .* got int"),
    (lambda: rollout_jvp(BATCH, [STATE] * 2, 0.1, 2, [3, {}]), "`tangents` must be a mapping"),
    (lambda: rollout_margins(MODEL, STATE, None, 2), "`dt` must be an array of float64"),
    (lambda: Rollout(MODEL, STATE, 0.1, 2, frame=[1]), "Unknown setting `frame`. Did you mean"),
    (
        lambda: Rollout(MODEL, STATE, 0.1, 2, device="gpu"),
        "`device` must be cpu or cuda, got 'gpu'",
    ),
    (lambda: equilibrium_vjp(None, ADJ[0]), "`resting` must be an Equilibrium, got NoneType"),
    (lambda: gradcheck(np.sum, ADJ, ADJ, n_directions=0), "`n_directions` must be a whole number"),
]
MESHES = [
    (lambda: read_mesh(None), "`path` must be a str or a PathLike, got NoneType"),
    (lambda: read_mesh("beam.vtu", scale="mm"), "`scale` must be an array of float64: it has text"),
    (lambda: write_tet_mesh(None, TETS), "`path` must be a str or a PathLike, got NoneType"),
    (lambda: write_tet_mesh("a.vtu", FACE), "`mesh` must be a TetMesh, got TriangleMesh"),
    (lambda: write_tet_mesh("/no/folder/a.vtu", TETS), "`path`: there is no folder /no/folder"),
    (lambda: write_series("a.pvd", TETS, None), "`trajectory` must be a Trajectory, got NoneType"),
    (lambda: write_series("a.pvd", None, None), "`mesh` must be a TetMesh or a TriangleMesh, got"),
    (lambda: moved(fields=3), "`fields` must be a mapping, such as .* got int"),
    (lambda: moved(fields={3: np.ones(3)}), "`a name in fields` must be a str, got int"),
    (lambda: write_moved("a.pvd", FACE, np.ones((0, 3, 3)), []), "`points` must have at least one"),
    (lambda: write_bodies("a.pvd", None, None, None), "`bodies` must be a RigidBodies, got None"),
    (lambda: write_bodies("a.pvd", BODIES, None, [0.0]), "`states` must be a BodyTrajectory, got"),
    (lambda: blocks(None, None), "`axes` must be a list with one entry per direction, x, y and z"),
    (lambda: grid_tets(None), "`index` must hold integers, got object"),
    (lambda: grid_tets(np.zeros((2, 2), int)), r"`index` must have shape \(n_x \+ 1, "),
    (lambda: embedding(FACE, TRIANGLE), "`mesh` must be a TetMesh, got TriangleMesh"),
    (lambda: tetrahedralise(TETS), "`surface` must be a TriangleMesh, got TetMesh"),
    (lambda: tetrahedralise(box(), envelope=None), "`envelope` must be an array of float64"),
]
PICTURES = [
    (lambda: CAMERA.with_values(None), "`values` must be a mapping, .* got NoneType"),
    (lambda: Scene(None), "`objects` must be a mapping, .* got NoneType"),
    (lambda: Scene({}, [DirectionalLight((0, 0, 1))]), "`lights` must be a mapping, .* got list"),
    (lambda: Scene({3: Mesh([[0, 1, 2]])}), "`objects` must not use the name 3"),
    (lambda: Mesh([[0, 1, 2]], smooth_normals="no"), "`smooth_normals` must be True or False, got"),
    (lambda: SoftRasterizer(cull=1), "`rasterizer.cull` must be True or False, got 1"),
    (lambda: rasterize(*DRAWN[:3], None, (4, 4)), "`vertices` must be a mapping, .* got NoneType"),
    (lambda: rasterize(*DRAWN[:3], TRIANGLE, (4, 4)), "`vertices` must be a mapping, .* ndarray"),
    (lambda: record_images(*DRAWN).vjp(IMAGE[0], wrt=3), "`wrt` must be a sequence of paths"),
    (lambda: record_images(*DRAWN).vjp(IMAGE[0], wrt="light"), r"`wrt` .* pass \['light'\]"),
    (lambda: rasterize_jvp(*DRAWN, None), "`tangents` must be a mapping, such as .* got NoneType"),
    (lambda: loss_vjp(None, IMAGE, IMAGE), "`loss` must be a Mse or a Huber or .* got NoneType"),
    (lambda: Mse()(IMAGE, None), "`targets` must be float64 or float32, got object"),
    (lambda: PyramidMse(True), "`levels` must be a whole number of at least 1, got True"),
    (lambda: softness(1.0, "tall"), "`height` must be an array of float64: it has text"),
]


def reverse_body(adj):
    """Pull a cotangent of the block's states back."""
    return record(BODY_MODEL, BODY_STATE, 0.1, 2).vjp(bodies={"block": adj})


def reverse_batch(adj):
    """Pull cotangents of two worlds back."""
    return record(BATCH, [STATE] * 2, 0.1, 2).vjp(adj)


def moved(**given):
    """Write one frame of a triangle."""
    return write_moved("a.pvd", FACE, TRIANGLE[None], [0.0], **given)


@pytest.mark.parametrize(("call", "message"), FORCES + SYSTEMS + GRADIENTS + MESHES + PICTURES)
def test_what_is_of_the_wrong_kind_is_named(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        call()
    assert not list(tmp_path.iterdir())  # nothing half written


def test_an_index_into_nothing_is_named():
    with pytest.raises(ValueError, match="`edges` must index points: there are none"):
        checks.indices("edges", [[0, 1]], (1, 2), 0)
