"""What studies ask of their settings: mistakes are named by their key, draws go in order."""

import numpy as np
import pytest

from studies import settings


TABLES = {
    "ball": {"radius": 0.5, "mass": 0.0, "position": [0.0, 0.5, 0.0]},
    "air": {"lift": 0.0, "drag": -1.0},
    "hidden": {"speed": [1.0, 2.0], "gravity": [9.0, 9.0], "angle": [2.0, 1.0], "spin": [1.0]},
}


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: settings.require_positive(TABLES, "ball", "radius", "mass"),
            "`ball.mass` must be positive, got 0",
        ),
        (
            lambda: settings.require_not_negative(TABLES, "air", "lift", "drag"),
            "`air.drag` must not be negative, got -1",
        ),
        (
            lambda: settings.bounds_of({"bounds": {"mu": [5.0, 1.0]}}, ["mu"]),
            r"`bounds.mu` must be \[low, high\] with low < high, got \[5, 1\]",
        ),
        (
            lambda: settings.require_chosen("free", [], ("mu", "lam")),
            r"`free` must name at least one of mu, lam, each once, got \[\]",
        ),
        (lambda: settings.require_chosen("free", ["mu"] * 2, ("mu", "lam")), "each once, got"),
        (
            lambda: settings.require_chosen("free", ["lamb"], ("mu", "lam")),
            "Unknown name in `free` `lamb`. Did you mean `lam`",
        ),
        (lambda: settings.require_ball_above_floor(TABLES), "`ball.position` must be above"),
        (lambda: settings.ends(TABLES, "hidden", ("spin",)), r"`hidden.spin` must have shape \(2,"),
        (lambda: draw_each("angle"), r"`hidden.angle` must be \[low, high\], got \[2, 1\]"),
    ],
)
def test_a_mistake_is_named_by_its_key(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


def draw_each(*names):
    """Draw from the hidden values."""
    return settings.draw_each(np.random.default_rng(3), TABLES, "hidden", names)


def test_numbers_are_drawn_in_order_between_their_ends():
    drawn = draw_each("speed", "gravity")
    assert list(drawn) == ["speed", "gravity"]
    assert drawn["speed"] == 1.0 + np.random.default_rng(3).uniform()
    assert drawn["gravity"] == 9.0
    assert draw_each("gravity", "speed")["speed"] != drawn["speed"]
