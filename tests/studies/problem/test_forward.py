import numpy as np
import pytest

from studies.problem.forward import simulate
from studies.scene.declared import PlaneObstacle, Rigid, Scene, SphereObstacle, World


def ball(**more):
    return Rigid(mesh="shape:sphere", size=(0.1,), position=(0.0, 1.0, 0.0), density=500.0, **more)


def test_a_body_falls_and_what_is_drawn_stays():
    obstacles = {
        "floor": PlaneObstacle(),
        "post": SphereObstacle(center=(2, 0, 0), radius=0.1, draw=True),
    }
    run = simulate(Scene(bodies={"ball": ball()}, obstacles=obstacles), [0.0, 0.1, 0.25])
    assert set(run.surfaces) == {"ball", "post"} == set(run.built.meshes)
    moved = run.surfaces["ball"] - run.surfaces["ball"][0]
    expected = -0.5 * 9.81 * run.times**2
    # between two steps the way is a line
    assert np.abs(moved[..., 1] - expected[:, None]).max() <= 9.81 * run.dt**2 / 8.0 + 1e-12
    assert np.ptp(run.surfaces["post"], axis=0).max() == 0.0


def test_values_replace_those_of_the_scene():
    scene = Scene(bodies={"ball": ball()})
    run = simulate(
        scene, [0.0, 0.5], {"world.gravity": np.zeros(3), "ball.velocity": (0.4, 0.0, 0.0)}
    )
    assert run.surfaces["ball"][1] - run.surfaces["ball"][0] == pytest.approx(
        np.array([[0.2, 0, 0]] * len(run.surfaces["ball"][0]))
    )


def test_a_mistake_is_named():
    scene = Scene(bodies={"ball": ball()})
    with pytest.raises(ValueError, match="`times` must increase"):
        simulate(scene, [0.1, 0.0])
    with pytest.raises(ValueError, match=r"ball\.density"):
        simulate(scene, [0.0, 0.1], {"ball.densty": 3.0})
    long = Scene(bodies={"ball": ball()}, world=World(dt=1e-3))
    with pytest.raises(ValueError, match=r"at most 100,000,000 steps, got 1e\+12 steps of 0.001 s"):
        simulate(long, [0.0, 1e9])
