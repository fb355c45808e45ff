"""Films of one row of pixels: a bar that is clamped, sags and swings, drawn with a wrong model."""

import numpy as np
from scipy.optimize import least_squares


TIMES = np.linspace(0.0, 4.0, 31)
PIXELS = np.linspace(-0.15, 1.15, 66)
FRAMES = np.repeat(np.arange(len(TIMES)), len(PIXELS))
DT = 0.01


def motion(k, c, times=TIMES, *, law=0.0):
    """Return the displacement of the tip under a unit load, (n_times,); k x (1 + law x)."""
    x = v = 0.0
    xs = [0.0]
    for _ in range(round(float(times[-1]) / DT)):
        v += DT * (1.0 - k * x * (1.0 + law * x) - c * v)
        x += DT * v
        xs.append(x)
    return np.interp(times, DT * np.arange(len(xs)), xs)


def draw(x, *, scale=1.0, shift=0.0, soft=0.035, texture=0.0):
    """Return the bar from its clamp to its tip, (n_frames, n_pixels)."""
    ends = [(end - 0.5) * scale + 0.5 + shift for end in (0.0 * x, 0.35 + x)]
    first, last = (0.5 * (1.0 + np.tanh((PIXELS - end[:, None]) / soft)) for end in ends)
    return first * (1.0 - last) * (1.0 + texture * np.sin(40.0 * PIXELS))


def predict(theta, times=TIMES):
    """Return the film of log k and log c, flat."""
    k, c = np.exp(theta)
    return draw(motion(k, c, times)).ravel()


def jacobian(theta, times=TIMES, h=1e-5):
    """Return d predict / d theta by central differences."""
    sides = [(predict(theta + e, times) - predict(theta - e, times)) for e in h * np.eye(2)]
    return np.stack(sides, axis=1) / (2.0 * h)


def make_film(rng, kind):
    """Return log k and log c, and a film made with another model than `predict` has."""
    k, c = np.exp(rng.uniform(np.log([3.0, 0.2]), np.log([12.0, 0.8])))
    noise, codec = 0.01, False
    law, times, look = 0.0, TIMES, {}
    if kind == "noise":
        noise = rng.uniform(0.005, 0.05)
    elif kind == "camera":
        look = {"scale": 1.0 + rng.uniform(-0.01, 0.01), "shift": rng.uniform(-0.01, 0.01)}
    elif kind == "texture":
        look = {"texture": rng.uniform(-0.3, 0.3), "soft": rng.uniform(0.025, 0.05)}
    elif kind == "frame rate":
        times = TIMES * (1.0 + rng.uniform(-0.01, 0.01))
    elif kind == "law":
        law = rng.uniform(-0.25, 0.25)
    elif kind == "codec":
        codec = True
    film = draw(motion(k, c, times, law=law), **look)
    film = film + noise * rng.standard_normal(film.shape)
    return np.log([k, c]), np.round(12.0 * film) / 12.0 if codec else film


def fit(film, theta, n_frames=None):
    """Return the optimum of the first frames."""
    target, times = film[:n_frames].ravel(), TIMES[:n_frames]
    optimum = least_squares(
        lambda at: predict(at, times) - target,
        theta,
        jac=lambda at: jacobian(at, times),  # pyright: ignore[reportArgumentType]
        max_nfev=20,
    )
    return optimum.x
