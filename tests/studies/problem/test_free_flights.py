"""Free flights of a body between touches, from exact and noisy places of its middle."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.films.solver_bounces import ball
from render.posed_camera import PosedCamera
from studies.problem.free_flights import Flights, of_touches
from studies.problem.pixels import to_pixels


START, VELOCITY, G = np.array([-0.5, 0.5, -0.1]), np.array([0.9, 0.0, 0.2]), (0.0, -9.81, 0.0)
RADIUS, SIZE, ERROR = 0.06, (240, 320), 0.5
E, FRICTION = 0.6, 0.04
TIMES = np.arange(40) / 40.0


def flights(noise, rng, missing=(), n=40):
    """The flights of a ball that bounces three times, seen by a camera."""
    times = TIMES[:n]
    centres = ball(
        RADIUS, {"centre": START, "velocity": VELOCITY, "spin": np.zeros(3)}, times,
        gravity=np.array(G), floor=0.0, restitution=E, friction=FRICTION,
    )  # fmt: skip
    eye = np.array([0.05, 0.45, 1.6])
    back = (eye - [0.0, 0.22, 0.0]) / np.linalg.norm(eye - [0.0, 0.22, 0.0])
    right = np.cross([0.0, 1.0, 0.0], back) / np.linalg.norm(np.cross([0.0, 1.0, 0.0], back))
    N = np.stack([right, np.cross(back, right), back])
    camera = PosedCamera(np.zeros(3), -N @ eye, N, fov_y=36.0)
    places = to_pixels(camera, centres, SIZE)
    places = places + noise * rng.standard_normal(places.shape)
    places[list(missing)] = np.nan
    track: Any = SimpleNamespace(
        places=places[:, None], start=0.0, times=times, camera=camera, size=SIZE, error=ERROR
    )
    return Flights(track, START, np.array(G)), centres


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_velocity_restitution_and_friction_follow_from_the_places(noise, rng):
    trajectory, centres = flights(noise, rng, missing=(0, 7))
    assert len(trajectory.touches) >= 3
    np.testing.assert_allclose(trajectory.velocities[0], VELOCITY, rtol=0, atol=0.05)
    # In the short last flight little is seen of the depth.
    np.testing.assert_allclose(trajectory.at(TIMES[:32]), centres[:32], rtol=0, atol=0.03)
    n = np.array([0.0, 1.0, 0.0])
    numbers = of_touches("floor", [(n, b, a) for _, b, a in trajectory.blows() if b @ n < 0.0])
    assert numbers["floor.restitution"] == pytest.approx(E, abs=0.03)
    assert numbers["floor.friction"] < 0.2


def test_a_flight_without_a_touch_is_one_parabola(rng):
    parabola, _ = flights(0.2, rng, n=12)
    assert not parabola.blows()
    np.testing.assert_allclose(parabola.velocities[0], VELOCITY, rtol=0, atol=0.1)
