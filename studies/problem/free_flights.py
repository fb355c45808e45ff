r"""The flights of a rigid body between touches, from the places of its middle in a film.

Between touches the middle flies on a parabola, and a touch changes its velocity at once. So where
it is at a time t is a spline,

    x(t) = x_0 + v_0 t + g t^2/2 + sum_k dv_k max(0, t - t_k)

that is linear in v_0 and in all dv_k. Touches are added one by one, each at the time that explains
most of what is left, until the places are followed, and all numbers are then fitted together. A
touch near an obstacle with the normal n, there from the velocity v- to v+, has the restitution
-(n.v+)/(n.v-) and, if it slides, the friction |dv_t|/(n.dv). They and v_0 are start values of a
search: no simulation was needed for them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from adjsim.contact_margins import contact_margins
from adjsim.model import Model
from adjsim.rollout import rollout
from studies.problem.points import PointObserver, to_pixels
from studies.problem.problem import SceneProblem


MOST = 6  # touches that are looked for
FOLLOWED = 1.0  # times the error of a middle: places that are followed
BETTER = 0.8  # of what was left: a touch that explains less is none
PER_FRAME = 2  # times at which a touch may be
WIDE = 30.0  # standard deviation of velocities and their changes [m/s], so that depth has a bound
NEAR = 0.5  # of the size: how far the body may be from an obstacle that it touches
STEP = 1e-4  # of the size, of the differences that give a normal
LARGE = 0.5  # of the largest blow: smaller ones say little of friction


class Flights:
    """The flights of a body that begins at `start` (3,) [m], by the places of its middle."""

    def __init__(self, track: PointObserver, start: np.ndarray, gravity: np.ndarray) -> None:
        places = track.places[:, 0]
        seen_at = np.isfinite(places[:, 0])
        self.places, self.times = places[seen_at], (track.start + track.times)[seen_at]
        self.track, self.start, self.gravity = track, start, gravity
        self.touches, self.velocities = np.zeros(0), np.zeros((1, 3))
        self._fit()
        while len(self.touches) < MOST and self.left > FOLLOWED:
            before = self.touches, self.velocities, self.left
            self._add_touch()
            if self.left > BETTER * before[2]:
                self.touches, self.velocities, self.left = before
                break

    def at(self, t: np.ndarray) -> np.ndarray:
        """Return where the body is, (n, 3) [m]."""
        return self._places(t, self.touches, self.velocities)

    def blows(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return the place of each touch, in time, and the velocities before and after it."""
        order = np.argsort(self.touches)
        after = np.cumsum(np.concatenate([self.velocities[:1], self.velocities[1:][order]]), axis=0)
        times = self.touches[order]
        falls = times[:, None] * self.gravity
        return list(zip(self.at(times), after[:-1] + falls, after[1:] + falls, strict=True))

    def _places(self, t: np.ndarray, touches: np.ndarray, velocities: np.ndarray) -> np.ndarray:
        ramps = np.maximum(0.0, t[:, None] - np.concatenate([[0.0], touches]))
        return self.start + ramps @ velocities + 0.5 * t[:, None] ** 2 * self.gravity

    def _residuals(self, numbers: np.ndarray) -> np.ndarray:
        """Return what is left of the places, over their error; `numbers` are t_k, v_0 and dv_k."""
        n = len(self.touches)
        velocities = numbers[n:].reshape(-1, 3)
        x = self._places(self.times, numbers[:n], velocities)
        off = to_pixels(self.track.camera, x, self.track.size) - self.places
        return np.concatenate([off.ravel() / self.track.error, velocities.ravel() / WIDE])

    def _fit(self) -> None:
        """Fit all numbers together from where they are."""
        start = np.concatenate([self.touches, self.velocities.ravel()])
        scale = np.concatenate([np.full(len(self.touches), 0.1), np.ones(self.velocities.size)])
        done = least_squares(self._residuals, start, x_scale=scale, method="lm", max_nfev=2000)
        self.touches = done.x[: len(self.touches)]
        self.velocities = done.x[len(self.touches) :].reshape(-1, 3)
        self.left = float(np.sqrt(np.mean(np.square(done.fun[: self.places.size]))))

    def _add_touch(self) -> None:
        """Add the touch that explains most, and fit all numbers."""
        times = np.linspace(self.times[0], self.times[-1], PER_FRAME * len(self.times) + 1)[1:-1]
        touches, velocities = self.touches, self.velocities
        self.velocities = np.concatenate([velocities, np.zeros((1, 3))])
        least = np.inf
        for time in times:
            self.touches = np.append(touches, time)
            numbers = np.concatenate([self.touches, self.velocities.ravel()])
            r, J = self._residuals(numbers), []
            for k in range(len(self.touches), len(numbers)):
                J.append((self._residuals(numbers + 1e-4 * (np.arange(len(numbers)) == k)) - r))
            step = np.linalg.lstsq(np.array(J).T / 1e-4, -r, rcond=None)[0]
            after = float(np.linalg.norm(r + np.array(J).T @ step / 1e-4))
            if after < least:
                least, best = after, (self.touches, self.velocities + step.reshape(-1, 3))
        self.touches, self.velocities = best
        self._fit()


def start_of_flights(tracks: SceneProblem) -> np.ndarray | None:
    """Return theta at what the flights of a rigid body say, whose velocity is free; None: nothing.

    `tracks` has its middle as a tracked point.
    """
    model, parameters = tracks.built.system, tracks.parameters
    values = parameters.scene_values(parameters.start)
    track: Any = tracks.observers[0]
    name = track.object
    if len(tracks.observers) > 1 or not isinstance(model, Model) or name not in model.bodies:
        return None
    contacts = {key: force for key, force in model.forces.items() if key.endswith(f"_{name}")}
    if f"{name}.velocity" not in values or f"{name}.position" in values:
        return None
    if len(contacts) < len(model.forces):  # something else than touches acts on it
        return None
    place = tracks.built.state.bodies[name].position
    flights = Flights(track, place[0], np.asarray(model.gravity, float))
    found = {f"{name}.velocity": flights.velocities[0]}
    for key in contacts:
        normals = _normals(tracks, name, key, [at for at, _, _ in flights.blows()])
        touches = [
            (n, before, after)
            for n, (_, before, after) in zip(normals, flights.blows(), strict=True)
            if n is not None and before @ n < 0.0
        ]
        if touches:
            found |= _of_touches(key.removesuffix(f"_{name}"), touches)
    natural = [
        np.ravel(np.clip(found.get(free.path, value), *free.bounds))
        for free, value in parameters.parts(parameters.natural(parameters.start))
    ]
    return np.clip(parameters.theta(np.concatenate(natural)), parameters.lower, parameters.upper)


def _normals(
    tracks: SceneProblem, name: str, contact: str, places: Sequence[np.ndarray]
) -> list[np.ndarray | None]:
    """Return the normal of an obstacle where it is near a body at a place, else None."""
    model, state = tracks.built.system, tracks.built.state
    body = state.bodies[name]
    size = float(np.ptp(model.bodies[name].arms[model.bodies[name].hull], axis=0).max())
    out = []
    for place in places:
        depths = []
        for step in STEP * size * np.concatenate([np.zeros((1, 3)), np.eye(3)]):
            there = replace(state, bodies={**state.bodies, name: replace(body, position=place + step)})
            margins = contact_margins(model, rollout(model, there, 1e-9, 1, frames=[0]))
            depths.append(float(margins[contact].touch.max()))
        n = depths[0] - np.array(depths[1:])
        out.append(n / np.linalg.norm(n) if depths[0] > -NEAR * size and n.any() else None)
    return out


def _of_touches(
    name: str, touches: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
) -> dict[str, np.ndarray]:
    """Return restitution and friction of an obstacle from normals and velocities."""
    n, before, after = (np.array(each) for each in zip(*touches, strict=True))
    into, out = -(before * n).sum(axis=1), (after * n).sum(axis=1)
    change = after - before
    blow = into + out
    along = np.linalg.norm(change - (change * n).sum(axis=1)[:, None] * n, axis=1)
    large = blow > LARGE * blow.max()
    return {
        f"{name}.restitution": np.array(into @ out / (into @ into)),
        f"{name}.friction": np.array((along[large] / blow[large]).max()),
    }
