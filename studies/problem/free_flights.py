r"""The flights of a rigid body between touches, from the places of its middle in a film.

Between touches the middle flies on a parabola, and a touch changes its velocity at once. So where
it is at a time t is a spline,

    x(t) = x_0 + v_0 t + g t^2/2 + sum_k dv_k max(0, t - t_k)

The film is followed frame by frame. Where the spline leaves the places, a touch is added at the
time that explains the next ones best, and all numbers are fitted together again. A touch near an
obstacle with the normal n, there from the velocity v- to v+, has the restitution -(n.v+)/(n.v-)
and, if it slides, the friction |dv_t|/(n.dv). They and v_0 are start values of a search: no
simulation was needed for them. Of a body that is no ball they are rough.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from adjsim.contact_margins import contact_margins
from adjsim.model import Model
from adjsim.rollout import rollout
from studies.problem.pixels import to_pixels
from studies.problem.points import PointObserver
from studies.problem.problem import SceneProblem


MOST = 6  # touches that are looked for
FIRST, LATEST = 4, 3  # places that a flight begins with, and that show whether it goes on
FOLLOWED = 2.0  # times the error of a middle, of the latest places: a touch came before
AHEAD = 3  # places after a touch that tell when it was
PER_FRAME = 8  # times between two frames at which a touch may be
NEAR = 0.5  # of the size: how far the body may be from an obstacle that it touches
STEP = 1e-4  # of the size, of the differences that give a normal
LARGE = 0.5  # of the largest blow: smaller ones say little of friction


class Flights:
    """The flights of a body that begins at `start` (3,) [m], by the places of its middle."""

    def __init__(self, track: PointObserver, start: np.ndarray, gravity: np.ndarray) -> None:
        places = track.places[:, 0]
        is_tracked = np.isfinite(places[:, 0])
        self.places, self.times = places[is_tracked], (track.start + track.times)[is_tracked]
        self.camera: Any = track.camera
        self.track, self.start, self.gravity = track, start, gravity
        # Standard deviation of velocities and their changes, so that depth has a bound [m/s].
        self.wide = 0.5 * float(np.linalg.norm(gravity)) * float(self.times[-1]) or 5.0
        self.touches, self.velocities = np.zeros(0), np.zeros((1, 3))
        count = FIRST
        while count <= len(self.times):
            self._fit(count)
            if self._latest(count) <= FOLLOWED:
                count += 1
            elif len(self.touches) < MOST:
                self._add_touch(count)
                count = min(count + AHEAD, len(self.times)) + 1
            else:
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

    def _latest(self, count: int) -> float:
        r = self._residuals(self._numbers(), count)[: 2 * count].reshape(-1, 2)[-LATEST:]
        return float(np.sqrt(np.square(r).mean()))

    def _numbers(self) -> np.ndarray:
        return np.concatenate([self.touches, self.velocities.ravel()])

    def _residuals(self, numbers: np.ndarray, count: int) -> np.ndarray:
        """Return what is left of the first places, over their error, and of the velocities.

        `numbers` are t_k, v_0 and dv_k.
        """
        n = len(self.touches)
        velocities = numbers[n:].reshape(-1, 3)
        x = self._places(self.times[:count], numbers[:n], velocities)
        off = to_pixels(self.camera, x, self.track.size) - self.places[:count]
        return np.concatenate([off.ravel() / self.track.error, velocities.ravel() / self.wide])

    def _fit(self, count: int) -> None:
        """Fit all numbers together to the first places, from where they are."""
        done = least_squares(self._residuals, self._numbers(), method="lm", args=(count,))
        self.touches = done.x[: len(self.touches)]
        self.velocities = done.x[len(self.touches) :].reshape(-1, 3)

    def _add_touch(self, count: int) -> None:
        """Add the touch before the latest of the first places that explains most of what follows.

        Only the change of velocity of this touch is moved to find its time.
        """
        last = min(count + AHEAD, len(self.times))
        first = self.times[max(count - LATEST - 2, 0)]
        times = np.linspace(first, self.times[count - 1], PER_FRAME * (LATEST + 1) + 1)[1:]
        touches, self.velocities = self.touches, np.concatenate([self.velocities, np.zeros((1, 3))])
        tried = []
        for time in times:
            self.touches = np.append(touches, time)
            start = self._numbers()

            def left(change: np.ndarray, start: np.ndarray = start) -> np.ndarray:
                return self._residuals(np.append(start[:-3], change), last)

            done = least_squares(left, np.zeros(3), method="lm")
            tried.append((done.cost, time, done.x))
        _, time, change = min(tried, key=lambda each: each[0])
        self.touches = np.append(touches, time)
        self.velocities[-1] = change
        self._fit(last)


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
    guesses = {f"{name}.velocity": flights.velocities[0]}
    for key in contacts:
        normals = _normals(tracks, name, key, [at for at, _, _ in flights.blows()])
        touches = [
            (n, before, after)
            for n, (_, before, after) in zip(normals, flights.blows(), strict=True)
            if n is not None and before @ n < 0.0
        ]
        if touches:
            guesses |= of_touches(key.removesuffix(f"_{name}"), touches)
    natural = [
        np.ravel(np.clip(guesses.get(free.path, value), *free.bounds))
        for free, value in parameters.parts(parameters.natural(parameters.start))
    ]
    return np.clip(parameters.theta(np.concatenate(natural)), parameters.lower, parameters.upper)


def _normals(
    tracks: SceneProblem, name: str, contact: str, places: Sequence[np.ndarray]
) -> list[np.ndarray | None]:
    """Return the normal of an obstacle where it is near a body at a place, else None."""
    model: Any = tracks.built.system
    state = tracks.built.state
    body = state.bodies[name]
    size = float(np.ptp(model.bodies[name].arms[model.bodies[name].hull], axis=0).max())
    out = []
    for place in places:
        depths = []
        for step in STEP * size * np.concatenate([np.zeros((1, 3)), np.eye(3)]):
            there = replace(
                state, bodies={**state.bodies, name: replace(body, position=place + step)}
            )
            margins = contact_margins(model, rollout(model, there, 1e-9, 1, frames=[0]))
            depths.append(float(margins[contact].touch.max()))
        n = depths[0] - np.array(depths[1:])
        out.append(n / np.linalg.norm(n) if depths[0] > -NEAR * size and n.any() else None)
    return out


def of_touches(
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
