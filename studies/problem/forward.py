"""Where everything that is drawn is: at the start, without a rollout, and at given times."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim import checks
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from studies.problem.contact_steps import tried_steps
from studies.problem.scene_maps import system_at
from studies.problem.steps import Sampling, first_steps, sample_steps, shortest_interval
from studies.runs.errors import NotFiniteError, StudyError
from studies.scene.building import BuiltScene, build
from studies.scene.checking import check_scene
from studies.scene.declared import Scene
from studies.scene.filming import Hulls
from studies.scene.motion import Motion, Settled
from studies.scene.steps import longest_step


SINGLE = 1.0 / 30.0  # between frames where there is one time [s]


@dataclass(frozen=True, eq=False)
class Simulated:
    """A scene at given times.

    Attributes
    ----------
    times : numpy.ndarray
        (n_times,) [s].
    surfaces : dict of str to array
        Vertices of every body and drawn obstacle, by name, (n_times, n_vertices, 3) [m].
    built : BuiltScene
        `built.meshes` and `built.lights` are what the renderer draws with these vertices.
    dt : float
        The time step that was chosen [s].
    """

    times: np.ndarray
    surfaces: dict[str, np.ndarray]
    built: BuiltScene
    dt: float


def simulate(scene: Scene, times: Any, values: Mapping[str, Any] | None = None) -> Simulated:
    """Return where everything that is drawn is at given times.

    Parameters
    ----------
    scene : studies.scene.declared.Scene
    times : array_like
        From 0 on, increasing, (n_times,) [s].
    values : mapping, optional
        Values by scene path that replace the scene's own, e.g. {"duck.E": 2e5}.

    Raises
    ------
    ValueError
        If something in the scene does not fit, or the times do not increase.

    Examples
    --------
    >>> from studies.api import simulate
    >>> from studies.scene.declared import Rigid, Scene
    >>> scene = Scene(bodies={"ball": Rigid(mesh="ball", size=(0.1,), mass=0.5)})
    >>> fall = simulate(scene, times=[0.0, 0.5])
    >>> print(fall.surfaces["ball"][-1].mean(axis=0)[1].round(2))
    -1.23
    """
    check_scene(scene)
    instants = np.asarray(times, np.float64)
    if (
        instants.ndim != 1
        or not instants.size
        or instants[0] < 0.0
        or (np.diff(instants) <= 0.0).any()
    ):
        raise StudyError(f"`times` must increase from 0 on, (n_times,) [s], got {times!r}.")
    replaced = {path: np.asarray(value, np.float64) for path, value in (values or {}).items()}
    built = build(scene)
    for path in replaced:
        checks.known_key("path in `values`", path, built.values)
    motion, at = motion_through(built, instants, longest_step(scene.world), replaced)
    run = motion.run()
    surfaces = {
        name: at.at(subject.vertices(motion, run)) for name, subject in built.subjects.items()
    }
    return Simulated(instants, surfaces, built, motion.dt)


def motion_through(
    built: BuiltScene, times: np.ndarray, given_dt: float | None, values: Mapping[str, np.ndarray]
) -> tuple[Motion, Sampling]:
    """Return the motion for values by scene path, and where times [s] lie among its frames.

    `given_dt` is the longest step that the scene file says, None where it is chosen.
    """
    interval = shortest_interval(times) if len(times) > 1 else SINGLE
    steps = first_steps(interval, given_dt, built.longest_dt)
    steps, notes = tried_steps(steps, built, values, float(times.max()))
    for note in notes:
        warnings.warn(note, stacklevel=3)
    system, _ = system_at(built, values, steps.dt)
    dt = steps.suited_to(system).dt if built.dt is None else built.dt
    kept, (at,) = sample_steps([times], dt, moves=[False])
    system, state = system_at(built, values, dt, varies=True)
    return Motion(system, state, dt, kept, step=built.step), at


def start_surfaces(built: BuiltScene) -> dict[str, np.ndarray]:
    """Return the vertices of everything that is drawn at the start, by name, (n, 3) [m]."""
    motion = Motion(built.system, built.state, 1.0, np.array([0]))
    if isinstance(built.system, Settled):
        try:
            run = motion.run()
        except NotFiniteError as error:
            raise StudyError(f"At the start values: {error}") from error
        return {name: subject.vertices(motion, run)[0] for name, subject in built.subjects.items()}
    fields = {name: value for name, value in vars(built.state).items() if name != "bodies"}
    run = SimpleNamespace(**{k: np.asarray(v)[None] for k, v in fields.items() if v is not None})
    system: Any = built.system
    return {
        name: _hull(subject.set_of(system), built.state.bodies[subject.name])
        if isinstance(subject, Hulls)
        else subject.vertices(motion, run)[0]
        for name, subject in built.subjects.items()
    }


def _hull(bodies: RigidBodies, state: BodyState) -> np.ndarray:
    theta, nominal = state.rotation[0].copy(), state.orientation[0].copy()
    turned = Rotation.from_rotvec(theta) * Rotation.from_quat(nominal)
    return state.position[0] + turned.apply(bodies.arms[bodies.hull])
