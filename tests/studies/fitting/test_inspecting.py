"""What a run is told of its adjoint: growth before it begins, and where objects trade places."""

import numpy as np

from render.scene import Mesh, Scene
from studies.fitting.inspecting import depth_swaps, growth_warnings
from studies.problem.films import Scenery
from studies.problem.making import make_problem
from studies.scene.drawing import instance_of
from studies.scene.files import BUNDLED
from studies.scene.reading import read_scene
from tests.render.scenes import camera


SQUARE = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0.0]])


def test_depth_swaps_are_counted_where_both_objects_are():
    mesh = Mesh([(0, 1, 2), (0, 2, 3)])
    scene = Scene({"wall": mesh, "card": mesh})
    lifts = np.array([-0.1, 0.1, 0.2, -0.1])[:, None, None] * [0.0, 0.0, 1.0]
    vertices = {"wall": np.stack([SQUARE] * 4), "card": 0.4 * SQUARE + lifts}
    view = camera(eye=(0, 0, 4.0), target=(0, 0, 0), up=(0, 1, 0), near=1.0, far=10.0)
    counts = depth_swaps(Scenery(scene, view, vertices, (30, 30)))
    np.testing.assert_array_equal(counts > 0, [False, True, False, True])
    half = 0.4 / (4.0 - np.array([0.1, -0.1])) / np.tan(np.radians(view.fov_y) / 2)
    np.testing.assert_allclose(counts[[1, 3]], (30 * half) ** 2, rtol=0.25)


def test_a_gradient_that_grows_is_warned_of_and_a_short_first_stage_is_not():
    longer = ("world.duration=12", "observations.film.simulate.frames=12")
    problem = make_problem(
        instance_of(read_scene(BUNDLED / "double-pendulum.toml", longer), 0, 0)
    ).problem
    start = problem.parameters.start
    (text,) = growth_warnings(problem, start, "Try stages.")
    assert text.startswith("the gradient grows ")
    assert "times in 12 s of motion, 10 times every" in text
    assert "Try stages. `adjsim inspect` says" in text
    assert growth_warnings(problem, start, "Try stages.", 0.05) == []
