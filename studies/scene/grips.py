r"""Grips: nodes that are led along a path, and those that are held where they are.

The nodes of a grip move as a rigid body from where they are at the start, X:

    x(t) = p(t) + R(t) R(0)^T (X - p(0)),   R = exp([theta]x)                                  (2)

with p the place and theta the rotation vector of the grip, which are given at some times and
interpolated between them, linear or by a cubic spline that is at rest at both ends:

    p = W p_i,   theta = W theta_i                                                             (1)

at times that are close enough for nodes to go straight in between. Places after the first are the
value "grips.NAME.position", rotation vectors the value "grips.NAME.rotation". Or the file has x.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from adjoint.rotations import rotation_matrix_vjp
from adjsim.courses import Signal
from adjsim.forces.grip import Grip
from adjsim.rotations import rotation_matrix, rotation_matrix_jvp
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.arrays import read_node_arrays
from studies.scene.bodies.part import Additions, NodePart, held_nodes, linear
from studies.scene.maps import Arrays, ParameterMap
from studies.scene.motions import NodeMotion
from studies.scene.series import METRES, Varying, read_series
from studies.scene.shared_checks import check_direction


PLACE, POSE, QUATERNION = 3, 6, 7  # columns of a file of poses beside the time
NAMES = {PLACE: "xyz", POSE: ("rx", "ry", "rz"), QUATERNION: ("qx", "qy", "qz", "qw")}
TURN = np.radians(1.0)  # between two times: a chord is then 4e-5 of the arm off its arc
PIECES = 16  # between two times of a cubic, or of a rotation that is free
FULL = 2.0 * np.pi
MILLIMETRES = 1000.0  # in a metre
MUCH_LONGER = 100.0  # than what is observed: times that are not in seconds


@dataclass(frozen=True, eq=False)
class Led:
    """Where what is led is at times (n,) [s], linear between them: what varies in time."""

    key: str  # of the scene file
    body: str  # whose nodes are led; "" where an obstacle is
    times: np.ndarray
    # at the declared values, (n, n_held, 3) [m]; of an obstacle its centre or a point of its plane
    places: np.ndarray
    start: np.ndarray  # before the first step, (n_held, 3) [m]
    size: float  # of the body [m]
    # 1 where row k is the place after step k, 0 where that of the step's start
    ahead: int = 1

    def course(self, dt: float, values: np.ndarray | None = None) -> Signal:
        return Signal(self.times / dt - self.ahead, self.places if values is None else values)

    def check(self, end: float, dt: float) -> None:
        """Raise if the path ends before what is observed, at `end` [s], or jumps in a step dt [s].

        Or if it is so much longer that its times must be milliseconds.
        """
        if 0.0 < MUCH_LONGER * end < self.times[-1]:
            raise StudyError(
                f"`{self.key}` ends at {self.times[-1]:.4g} s, what is observed at {end:.4g} s. "
                "Divide its times by 1000 if they are milliseconds; else cut its last rows."
            )
        if self.times[-1] < end * (1.0 - 1e-6):
            raise StudyError(
                f"`{self.key}` ends at {self.times[-1]:.4g} s, before what is observed, at "
                f"{end:.4g} s. Give places until then: the last one again, if it stops."
                + (
                    " Or divide the times of what is observed by 1000, if they are milliseconds."
                    if end > MUCH_LONGER * self.times[-1]
                    else ""
                )
            )
        x = np.concatenate([self.start[None], self.places])
        steps = np.maximum(np.diff(self.times, prepend=0.0) / dt, 1.0)
        moves = np.linalg.norm(np.diff(x, axis=0), axis=2).max(axis=1) / steps
        if moves.max() > self.size:
            k = int(moves.argmax())
            raise StudyError(
                f"`{self.key}` moves by {moves[k]:.3g} m in a step of {dt:.3g} s before "
                f"{self.times[k]:.4g} s, more than the size of the body, {self.size:.3g} m. Places "
                "are in metres and times in seconds; is a row missing, or a path of another body?"
                + (
                    " Divide the places by 1000 if they are in millimetres."
                    if moves[k] < MILLIMETRES * self.size
                    else ""
                )
            )


def paths_in(varying: Mapping[str, Varying]) -> dict[str, Led]:
    """Return what is led along a path among what varies, by target."""
    return {target: value for target, value in varying.items() if isinstance(value, Led)}


def with_grips(body: NodePart, grips: Mapping[str, declared.Grip]) -> NodePart:
    """Return a body whose nodes in grips are held."""
    masks = [_grip_mask(name, grip, body) for name, grip in grips.items() if grip.body == body.name]
    return replace(body, held=np.any([body.held, *masks], axis=0))


def _grip_mask(name: str, grip: declared.Grip, body: NodePart) -> np.ndarray:
    """Return the mask of the nodes of a body that a grip holds, (n,).

    On a mesh that was made twice as fine a midpoint between two held nodes is held.
    """
    if grip.body == name:  # `held` of the body
        return body.held
    key = f"grips.{name}.where"
    mask = held_nodes(key, grip.where, body.points, numbered=True)
    if body.finer is not None:
        before = body.points[: body.finer.n_before]
        mask |= body.finer.selected(held_nodes(key, grip.where, before, numbered=True))
    return mask


def make_grips(
    grips: Mapping[str, declared.Grip],
    parts: Sequence[NodePart],
    motions: Mapping[str, NodeMotion],
    free: frozenset[str],
) -> tuple[Additions, dict[str, np.ndarray]]:
    """Return what the grips that move add to a model, and the rows of the nodes of all.

    `motions` are the maps to where bodies start, by name.
    """
    out, rows, by_name = Additions(), {}, {body.name: body for body in parts}
    for name, grip in grips.items():
        body, target = by_name[grip.body], f"{name}_grip.positions"
        mask = _grip_mask(name, grip, body)
        rows[name] = body.first + np.flatnonzero(mask)
        if grip.path is None:
            continue
        key = f"grips.{name}.path" if grip.body != name else f"bodies.{name}.held.path"
        led = {"key": key, "body": grip.body, "start": body.points[mask], "size": body.size}
        if isinstance(grip.path, str) and Path(grip.path).suffix == ".npz":
            varying = Led(**led, **_by_node(key, grip.path, mask))
        else:
            turns = f"grips.{name}.rotation" in free
            poses = Poses.of(key, grip, turns=turns)
            path = RigidPath(name, poses, motions[grip.body], np.flatnonzero(mask))
            position, rotation = path.sources[:2]
            out.values[position] = linear(poses.positions[1:], "m", body.size)
            out.values[rotation] = linear(poses.rotations[1:], "rad", np.pi)
            out.maps.append(path)
            varying = Led(**led, times=poses.fine, places=path.at(poses, body.points[mask]))
        out.varying[target] = varying
        out.forces[f"{name}_grip"] = Grip(rows[name], varying.course(1.0))
    return out, rows


def _by_node(key: str, file: str, mask: np.ndarray) -> dict[str, Any]:
    """Return times and places of nodes, of a file that has those of a grip or of its body."""
    times, x = read_node_arrays(key, file)
    if x.shape[1] == len(mask):
        x = x[:, mask]
    if x.shape[1] != mask.sum():
        raise StudyError(
            f"`{key}` must have the {mask.sum()} nodes of the grip or the {len(mask)} of its body, "
            f"got {x.shape[1]}: `x` is (n_times, n_nodes, 3)."
        )
    return {"times": times, "places": x}


@dataclass(frozen=True, eq=False)
class Poses:
    """Poses at given times, the first at time 0 or later, and how they go on in between."""

    positions: np.ndarray  # (n, 3) [m]
    rotations: np.ndarray  # rotation vectors, (n, 3) [rad]
    fine: np.ndarray  # times between which nodes go straight, (n_fine,) [s]
    weights: np.ndarray  # W, (n_fine, n)

    @classmethod
    def of(cls, key: str, grip: declared.Grip | declared.Obstacle, *, turns: bool) -> "Poses":
        """Return the declared poses of a grip or an obstacle; `turns`: its rotation is free."""
        times, poses = _read_poses(key, grip.path)
        is_cubic = grip.interpolation == "cubic"
        if is_cubic and len(times) < 2:
            raise StudyError(f"`{key}` must have two times or more for a cubic, got {len(times)}.")
        if times[0] < 0.0 and is_cubic:
            raise StudyError(
                f"`{key}` must begin at time 0 or later for a cubic, which is at rest there, got "
                f'{times[0]:g} s. Leave out earlier rows, or take interpolation = "linear".'
            )
        if times[0] < 0.0:  # what is before the scene begins
            at_start = weights_at(times, np.zeros(1), is_cubic=is_cubic) @ poses
            times, poses = (
                np.concatenate([[0.0], times[times > 0.0]]),
                np.concatenate([at_start, poses[times > 0.0]]),
            )
        angles = np.linalg.norm(np.diff(poses[:, 3:], axis=0), axis=1)
        least = PIECES if is_cubic or turns else 1
        pieces = np.maximum(np.ceil(angles / TURN - 1e-9), least).astype(int)
        parts = [
            np.linspace(low, high, n, endpoint=False)
            for low, high, n in zip(times[:-1], times[1:], pieces, strict=True)
        ]
        fine = np.concatenate([*parts, times[-1:]])
        return cls(poses[:, :3], poses[:, 3:], fine, weights_at(times, fine, is_cubic=is_cubic))


def weights_at(times: np.ndarray, at: np.ndarray, *, is_cubic: bool = False) -> np.ndarray:
    """Return the matrix from values at times to values at others, (n_at, n_times)."""
    unit = np.eye(len(times))
    if is_cubic:
        return CubicSpline(times, unit, bc_type="clamped")(np.clip(at, times[0], times[-1]))
    return np.stack([np.interp(at, times, row) for row in unit], axis=1)


def _check_names(key: str, path: str, count: int) -> None:
    with Path(path).open(encoding="utf-8-sig") as file:
        names = [name.strip().lower() for name in file.readline().split(",")]
    names = [name for name in names if name != "time"]
    expected = [*NAMES[PLACE], *(NAMES[count] if count != PLACE else ())]
    if names != expected and sorted(names) == sorted(expected):
        raise StudyError(
            f"`{key}`: the columns of {path} must be in the order time, {', '.join(expected)}, got "
            f"{', '.join(names)}."
        )


def _read_poses(key: str, path: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return times (n,) [s], places [m] and rotation vectors [rad], (n, 6)."""
    if isinstance(path, declared.Displacement):
        check_direction(f"{key}.axis", path.axis)
        times, along = read_series(f"{key}.file", path.file, {1}, {"displacement": path.units})
        positions = METRES[path.units] * np.outer(
            along, np.divide(path.axis, np.linalg.norm(path.axis))
        )
        turned = np.empty((0, 3))
    elif isinstance(path, str):
        times, values = read_series(key, path, {PLACE, POSE, QUATERNION})
        _check_names(key, path, values.shape[1])
        positions, turned = values[:, :PLACE], values[:, PLACE:]
        if values.shape[1] == QUATERNION:
            if not np.linalg.norm(turned, axis=1).all():
                raise StudyError(f"`{key}`: a quaternion in {path} is 0: it is no rotation.")
            turned = np.degrees(Rotation.from_quat(turned).as_rotvec())
    else:
        times = np.array(path.times, float)
        positions, turned = (np.array(rows, float) for rows in (path.positions, path.rotations))
        for name, rows in (("positions", positions), ("rotations", turned)):
            if len(rows) != len(times) and (len(rows) or name == "positions"):
                raise StudyError(
                    f"`{key}.{name}` must have one row for each of the {len(times)} `times`, got "
                    f"{len(rows)}."
                )
        if not len(times) or (np.diff(times) <= 0.0).any():
            raise StudyError(f"`{key}.times` must increase, at least one, got {times.tolist()}.")
    rotations = np.zeros_like(positions)
    for k, turn in enumerate(np.radians(turned) if turned.size else ()):
        rotations[k] = _nearest(turn, rotations[max(k - 1, 0)])
    return times, np.concatenate([positions, rotations], axis=1)


def _nearest(rotation: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return the rotation vector of the same rotation that is nearest to another, (3,) [rad]."""
    angle = float(np.linalg.norm(rotation))
    if angle == 0.0:
        turns = np.rint(np.linalg.norm(before) / FULL)
        return turns * FULL * before / np.linalg.norm(before) if turns else rotation
    axis = rotation / angle
    return axis * (angle + FULL * np.rint((axis @ before - angle) / FULL))


class RigidPath(ParameterMap):
    """From poses of a grip, and where its body starts, to the places of its nodes.

    `nodes` are those of the body that it holds, (n_held,).
    """

    def __init__(self, name: str, poses: Poses, motion: NodeMotion, nodes: np.ndarray) -> None:
        self.sources = (f"grips.{name}.position", f"grips.{name}.rotation", *motion.sources)
        self.targets = (f"{name}_grip.positions",)
        self.poses, self.motion = poses, motion
        self.rows = motion.rows.start + nodes
        self.back = rotation_matrix(poses.rotations[0]).T  # R(0)^T

    def _at_times(self, first: np.ndarray, others: Any) -> np.ndarray:
        """Return a value at the fine times, (n_fine, 3), of the first one and of the others."""
        return self.poses.weights @ np.concatenate([first[None], np.asarray(others)])  # (1)

    def at(self, poses: Poses, X: np.ndarray) -> np.ndarray:
        """Return x at the fine times for declared poses and a start."""
        return self._places(poses.positions[1:], poses.rotations[1:], X)

    def _places(self, positions: Any, rotations: Any, X: np.ndarray) -> np.ndarray:
        p = self._at_times(self.poses.positions[0], positions)
        R = rotation_matrix(self._at_times(self.poses.rotations[0], rotations))
        return p[:, None] + self._arms(X) @ R.swapaxes(1, 2)  # (2)

    def _arms(self, X: np.ndarray) -> np.ndarray:
        """Return R(0)^T (X - p(0))."""
        return (X - self.poses.positions[0]) @ self.back.T

    def _start(self, sources: Arrays) -> np.ndarray:
        return self.motion.values(sources)["state.x"][self.rows]

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        positions, rotations = (sources[path] for path in self.sources[:2])
        return {self.targets[0]: self._places(positions, rotations, self._start(sources))}

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return tan_p + tan_R r + R tan_r."""
        zero, none = np.zeros_like(sources[self.sources[0]]), np.zeros(3)
        tan_p, tan_theta = (
            self._at_times(none, tangents.get(path, zero)) for path in self.sources[:2]
        )
        theta = self._at_times(self.poses.rotations[0], sources[self.sources[1]])
        tan_X = self.motion.jvp(sources, tangents)["state.x"][self.rows]
        tan = self._arms(self._start(sources)) @ rotation_matrix_jvp(theta, tan_theta).swapaxes(
            1, 2
        )
        tan += tan_X @ self.back.T @ rotation_matrix(theta).swapaxes(1, 2)
        return {self.targets[0]: tan_p[:, None] + tan}

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        adj = adjoints.get(self.targets[0])
        if adj is None:
            return {path: np.zeros_like(sources[path]) for path in self.sources}
        theta = self._at_times(self.poses.rotations[0], sources[self.sources[1]])
        r, W = self._arms(self._start(sources)), self.poses.weights
        adj_theta = rotation_matrix_vjp(theta, np.einsum("tni,nj->tij", adj, r))
        adj_x = np.zeros((self.motion.n, 3))
        adj_x[self.rows] = np.einsum("tni,tij->nj", adj, rotation_matrix(theta)) @ self.back
        adj_poses = [(W.T @ rows)[1:] for rows in (adj.sum(axis=1), adj_theta)]
        by_start = self.motion.vjp(sources, {"state.x": adj_x})
        return {**by_start, **dict(zip(self.sources[:2], adj_poses, strict=True))}
