"""Observations of a scene file as observers: cameras, scenes to draw, and where points are."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from adjsim.model import Model
from adjsim.pairs.nearest import SurfaceSearch
from adjsim.reduced.smoke import SmokeState
from render.blending import Hard
from render.scene import Material, Mesh, Scene, SphericalHarmonics
from render.soft_raster import SoftRasterizer, softness
from studies.problem.clouds import CloudObserver, require_on_surface, surface_samples
from studies.problem.depths import JUMP, DepthObserver
from studies.problem.encoders import EncoderObserver
from studies.problem.films import FilmObserver
from studies.problem.forces import ForceObserver
from studies.problem.forward import start_surfaces
from studies.problem.observations.clouds import read_cloud
from studies.problem.observations.depths import DepthData, read_depth
from studies.problem.observations.films import FilmData
from studies.problem.observations.point_files import METRES, PointData
from studies.problem.observations.points import advice_on_fall, read_points, read_states
from studies.problem.observers import Observer
from studies.problem.pixels import posed, to_pixels
from studies.problem.points import (
    MILLIMETRE,
    PointObserver,
    ReshapedCarriers,
    advice_on_markers,
    carried_by_surface,
    carried_by_tets,
    first_hit,
)
from studies.problem.smoke import SmokeObserver
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.building import BuiltScene, Lit
from studies.scene.cameras import make_camera, require_outside
from studies.scene.force_sensor import FORCE, OBSTACLE
from studies.scene.joints import affine_weights, ends_of
from studies.scene.motion import Settled, model_of
from studies.scene.seams import with_seams
from studies.scene.series import read_series


PIXEL = 1.0  # default standard deviation
# Columns with their units, of a file of forces with other columns.
COMPONENTS = {1: {"force": "N"}, 3: dict.fromkeys(("fx", "fy", "fz"), "N")}
FORCE_PART = 0.01  # the same of a force, as a part of the largest
ENCODER_ANGLE, ENCODER_LENGTH = 0.1, 1e-4  # likewise [deg], [m]
ANGULAR = {"deg": 1.0, "rad": 180.0 / np.pi}
LONGEST = 1.0  # between rows of a table [s]: a chosen time step makes thousands of steps of it


def make_observers(
    file: declared.SceneFile,
    built: BuiltScene,
    films: Mapping[str, FilmData],
    *,
    names: Collection[str] | None = None,
    device: str = "cpu",
) -> list[Observer]:
    """Return what is observed, or what these names are of it, but for residuals of one's own.

    Films are drawn on `device`, and still without a background.
    """
    making = _Observing(file, built, films, device)
    specs = {k: file.observations[k] for k in (file.observations if names is None else names)}
    return [
        getattr(making, spec.kind)(name, spec)
        for name, spec in specs.items()
        if not isinstance(spec, declared.OwnObservation)  # which `declared_own` makes
    ]


def check_forces(file: declared.SceneFile) -> None:
    """Raise on a mistake in a file of forces, before anything is compiled or settles."""
    for name, spec in file.observations.items():
        if isinstance(spec, declared.Force) and spec.simulate is None:
            _read_force(spec, f"observations.{name}")


def _read_force(spec: declared.Force, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return times (n,) [s] and forces (n, 3) or (n, 1) [N] of the file of a force."""
    assert spec.file is not None
    n = 3 if spec.axis is None else 1
    times, forces = read_series(f"{key}.file", spec.file, {n}, COMPONENTS[n])
    return times, forces.reshape(len(times), n)


@dataclass(frozen=True, eq=False)
class _Observing:
    """How the observations of a file become observers: a method for each kind, by its name."""

    file: declared.SceneFile
    built: BuiltScene
    films: Mapping[str, FilmData]
    device: str

    @cached_property
    def surfaces(self) -> dict[str, np.ndarray]:
        """Vertices of everything that is drawn at the start."""
        return start_surfaces(self.built)

    @cached_property
    def bodies(self) -> np.ndarray:
        """Those of the bodies, (n, 3) [m]."""
        return np.concatenate([self.surfaces[name] for name in self.file.bodies])

    @cached_property
    def center(self) -> np.ndarray:
        """The middle of everything that moves at the start, (3,) [m]."""
        return 0.5 * (self.bodies.min(axis=0) + self.bodies.max(axis=0))

    def film(self, name: str, spec: declared.Film) -> FilmObserver | SmokeObserver:
        """Return a film from a camera, or of smoke."""
        if isinstance(self.built.state, SmokeState):
            return self._smoke(name, spec)
        data = self.films[name]
        meshes, view = self._view(spec, data.full_size)
        is_rgb = spec.compare == "rgb"
        drawn_as: dict[str, Any] = {"blend": Hard()}
        if spec.softness:
            sigma = softness(spec.softness, data.frames.shape[1])
            drawn_as = {"sigma": sigma, "seamless": not with_seams(self.file, self.built, spec)}
        if spec.simulate is not None and data.backdrop is not None:  # else it is found in the film
            drawn_as["background"] = data.backdrop if is_rgb else np.zeros_like(data.backdrop)
        observer = FilmObserver(
            **self._pictures(name, spec),
            **view,
            scene=Scene(meshes, self.built.lights) if is_rgb else _white(meshes),
            rasterizer=SoftRasterizer(**drawn_as),
            paths=_look_paths(meshes, self.built.lights) if is_rgb else {},
            device=self.device,
        )
        if spec.simulate is None:
            seen = [self.surfaces[body] for body in self._bodies(spec)]
            observer.require_in_picture(np.concatenate(seen))
        return observer

    def _bodies(self, spec: declared.Film | declared.Cloud | declared.Depth) -> Collection[str]:
        """Return the names of the bodies that are observed."""
        return self.file.bodies if spec.bodies is None else spec.bodies

    def _view(
        self, spec: declared.Film | declared.Depth, size: tuple[int, int]
    ) -> tuple[dict[str, Mesh], dict[str, Any]]:
        """Return what is drawn by name, and the camera of an observer, of pictures of this size."""
        which, bodies = self.file.camera_name(spec), self._bodies(spec)
        hidden = set(self.file.bodies).difference(bodies)
        meshes = {key: mesh for key, mesh in self.built.meshes.items() if key not in hidden}
        camera = make_camera(which, self.file.cameras[which], size, self.center)
        require_outside(which, camera, {k: (meshes[k].faces, self.surfaces[k]) for k in bodies})
        return meshes, {
            "camera": posed(camera, self.center), "camera_path": f"cameras.{which}",
            "center": self.center,
        }  # fmt: skip

    def _smoke(self, name: str, spec: declared.Film) -> SmokeObserver:
        """Return a film of smoke."""
        size, grid = self.films[name].size, self.built.state.density.shape
        if size != grid:
            raise StudyError(
                f"`observations.{name}.video` must be as large as the picture of the smoke's "
                f"density, {grid[0]} x {grid[1]} (height x width), got {size[0]} x {size[1]} after "
                "`downsample`."
            )
        background = np.asarray(spec.background.color or (0.0, 0.0, 0.0))
        return SmokeObserver(**self._pictures(name, spec), background=background)

    def _pictures(self, name: str, spec: declared.Film) -> dict[str, Any]:
        data, search = self.films[name], self.file.search
        return {
            **_observed(name, spec, data.times),
            "frames": data.frames,
            "levels": search.levels if search.loss == "pyramid" else 1,
            "growth": search.growth,
            "first": data.frames[0],
            "ignored": data.ignored,
        }

    def points(self, name: str, points: declared.Points) -> PointObserver:
        """Return tracked points as an observer."""
        key, subjects = f"observations.{name}", self.built.subjects
        spec, camera, size, path = None, None, None, ""
        if points.camera is not None:
            spec, path = self.file.cameras[points.camera], f"cameras.{points.camera}"
            size = self._picture_size(points.camera)
            camera = posed(make_camera(points.camera, spec, size, self.center), self.center)
        if points.simulate is None:
            data = read_points(points, spec, size, key)
            _require_seconds(data.times, self.file.world, key)
        else:
            data = _blank_points(points, frame_times(points, self.file.world, key), key)
        if points.body not in subjects:
            raise StudyError(
                f"`{key}.body` must be a body with a surface, got {points.body!r}. Known: "
                f"{', '.join(subjects)}."
            )
        surface = self.surfaces[points.body]
        faces = np.asarray(self.built.meshes[points.body].faces)
        places = np.zeros((len(data.names), 3))  # of the points on the body at its start
        is_soft = isinstance(self.file.bodies[points.body], declared.Soft)
        sags = is_soft and isinstance(self.built.system, Settled)  # it is seen where it rests
        missing = [point for point in data.names if point not in points.at]
        if sags and missing:
            point = missing[0]
            raise StudyError(
                f"`{key}.at.{point}` is missing: the file has the point where the body rests. Say "
                f"where it was before the body gave way by `at.{point} = [x, y, z]`."
            )
        for k, point in enumerate(data.names):
            if point in points.at:
                places[k] = points.at[point]
                continue
            row = int(np.argmax(np.isfinite(data.values[:, k, 0])))
            first, late = data.values[row, k], points.start + data.times[row]
            if late > 1.01 * np.diff(data.times).min(initial=np.inf):
                raise StudyError(
                    f"`{key}`: point {point!r} is first seen at {late:.4g} s, when its "
                    f"body has moved. Say where it is at the start by `at.{point} = [x, y, z]`."
                )
            if camera is None or size is None:
                places[k] = first
                continue
            ahead = surface - self.center
            hit = first_hit(camera, size, first, surface=ahead, faces=faces)
            if hit is None:
                raise StudyError(
                    f"`{key}`: point {point!r} begins at pixel "
                    f"({first[0]:.1f}, {first[1]:.1f}), where the camera does not see "
                    f"`bodies.{points.body}`. Say where it is by `at.{point} = [x, y, z]`, or "
                    "check the camera."
                )
            places[k] = hit + self.center
        matrix, subject = self._carriers(name, points.body, places)
        carrying = surface if subject else np.asarray(self.built.state.x)
        notes = advice_on_markers(key, matrix @ carrying, surface, faces)
        size = size or (1, 1)
        begun = places if camera is None else to_pixels(camera, places - self.center, size)
        return PointObserver(
            **_observed(name, points, data.times),
            places=data.values,
            error=points.error or (MILLIMETRE if camera is None else PIXEL),
            matrix=matrix,
            object=subject,
            camera=camera,
            camera_path=path,
            center=self.center,
            size=size,
            begun=begun if sags else None,
            reshaped=self._reshaped(points.body, matrix, places),
            notes=(*notes, *self._advice_on_fall(key, points, data)),
        )

    def _advice_on_fall(
        self, key: str, spec: declared.Points | declared.States, data: PointData
    ) -> list[str]:
        """Return what is doubtful about points in space of a body that nothing holds or pushes."""
        body = self.file.bodies[spec.body]
        is_held = isinstance(body, declared.Pendulum) or getattr(body, "held", None) is not None
        is_in_picture = getattr(spec, "camera", None) is not None
        if is_held or self.file.pushes or spec.simulate is not None or is_in_picture:
            return []
        return advice_on_fall(data.times, data.values, self.file.world.gravity, key)

    def _carriers(
        self, name: str, body: str, places: np.ndarray
    ) -> tuple[scipy.sparse.csr_array, str]:
        """Return the matrix to points on or beside a body, and the object whose vertices it takes.

        For a soft body it takes the nodes of the model.
        """
        built, kind = self.built, self.file.bodies[body]
        if not isinstance(kind, declared.Soft):
            is_stiff = isinstance(kind, declared.Rigid | declared.Pendulum)
            faces = np.asarray(built.meshes[body].faces)
            surface = self.surfaces[body]
            return carried_by_surface(name, surface, faces, places, is_stiff=is_stiff), body
        x, rows = np.asarray(built.state.x), built.nodes[body]
        model = model_of(built.system)
        assert isinstance(model, Model)
        tets = np.asarray(model.forces[body].nodes) - rows.start
        carriers = carried_by_tets(name, x[rows], tets, places).tocoo()
        row, column = carriers.coords
        entries = (carriers.data, (row, rows.start + column))
        return scipy.sparse.csr_array(entries, shape=(len(places), len(x))), ""

    def _reshaped(self, body: str, matrix: Any, places: np.ndarray) -> ReshapedCarriers | None:
        """Return what carries points (n, 3) of a body whose shape has an error."""
        shape = self.built.shapes.get(body)
        if shape is None:
            return None
        first, x = self.built.nodes[body].start, np.asarray(self.built.state.x)
        return ReshapedCarriers.of(shape, first, x, matrix=matrix, places=places)

    def _picture_size(self, name: str) -> tuple[int, int]:
        """Return height and width of the picture of a camera: of its film, or by K [pixels]."""
        for observed, film in self.file.films.items():
            if observed in self.films and self.file.camera_name(film) == name:
                return self.films[observed].full_size
        K, size = self.file.cameras[name].K, self.file.cameras[name].size
        if size is not None:
            return size
        if K is None:
            raise StudyError(
                f"`cameras.{name}` must have a film, or a `size` = [height, width], for points in "
                "its pixels."
            )
        return round(2 * K[1][2]) + 1, round(2 * K[0][2]) + 1

    def states(self, name: str, spec: declared.States) -> PointObserver:
        """Return positions of all nodes of a body, or their centre of mass, as an observer."""
        built, key = self.built, f"observations.{name}"
        if spec.body not in built.nodes:
            raise StudyError(
                f"`{key}.body` must be a body with nodes, got {spec.body!r}. Known: "
                f"{', '.join(built.nodes) or 'none'}."
            )
        n_nodes = len(built.state.x)
        rows = np.arange(n_nodes)[built.nodes[spec.body]]
        mass = built.system.parameters()["mass"][rows]
        n = 1 if spec.center else len(rows)
        if spec.simulate is None:
            data = read_states(spec, key)
            _require_seconds(data.times, self.file.world, key)
        else:
            times = frame_times(spec, self.file.world, key)
            data = PointData((), times, np.zeros((len(times), n, 3)))
        if data.values.shape[1] != n:
            nodes = f"the {n} nodes of `bodies.{spec.body}`"
            raise StudyError(
                f"`{key}.file` must have "
                f"{'one place, its centre of mass' if spec.center else nodes}, got "
                f"{data.values.shape[1]}: `x` is (n_times, n_nodes, 3)."
            )
        weights = mass / mass.sum() if spec.center else np.ones(n)
        entries = (weights, (np.zeros_like(rows) if spec.center else np.arange(n), rows))
        matrix = scipy.sparse.csr_array(entries, shape=(n, n_nodes))
        common = _observed(name, spec, data.times)
        return PointObserver(
            **common, places=data.values, error=spec.error, matrix=matrix, object="",
            is_center=spec.center, notes=tuple(self._advice_on_fall(key, spec, data)),
        )  # fmt: skip

    def force(self, name: str, spec: declared.Force) -> ForceObserver:
        """Return the force of a grip or an obstacle as an observer."""
        key, n = f"observations.{name}", 3 if spec.axis is None else 1
        on = "" if spec.body is None else f".{spec.body}"
        sensor = (
            f"{FORCE}{spec.grip}" if spec.obstacle is None else f"{OBSTACLE}{spec.obstacle}{on}"
        )
        if sensor not in self.built.sensors:
            raise StudyError(f"`{key}` needs a scene of bodies that move or settle.")
        if spec.simulate is None:
            times, forces = _read_force(spec, key)
            _require_seconds(times, self.file.world, key)
        else:
            times = frame_times(spec, self.file.world, key)
            forces = np.zeros((len(times), n))
        axis = None if spec.axis is None else np.array(spec.axis) / np.linalg.norm(spec.axis)
        largest = float(np.abs(forces).max())
        error = spec.error or FORCE_PART * largest or (spec.simulate and spec.simulate.noise)
        if not error:
            raise StudyError(
                f"`{key}.error` is missing: a standard deviation of the force [N], of a file that "
                "is 0 throughout or of what is simulated without `noise`."
            )
        return ForceObserver(
            **_observed(name, spec, times), forces=forces, error=float(error), axis=axis,
            sensor=sensor,
        )  # fmt: skip

    def cloud(self, name: str, spec: declared.Cloud) -> CloudObserver:
        """Return a cloud of points in space as an observer."""
        key, bodies = f"observations.{name}", self._bodies(spec)
        if missing := [body for body in bodies if body not in self.built.subjects]:
            raise StudyError(f"`{key}.bodies` must have surfaces, and {missing[0]!r} has none.")
        begun = {body: np.asarray(self.surfaces[body], np.float64) for body in bodies}
        counts = np.cumsum([0, *(len(x) for x in begun.values())])
        faces = np.concatenate(
            [
                self.built.meshes[body].faces + first
                for body, first in zip(bodies, counts, strict=False)
            ]
        )
        surface = np.concatenate(list(begun.values()))
        search, samples = SurfaceSearch.of(faces, surface), None
        if spec.simulate is None:
            data = read_cloud(spec, key)
            _require_seconds(data.times, self.file.world, key)
            require_on_surface(data, search, surface, spec=spec, key=key)
            times, clouds = data.times, data.padded()
        else:
            times = frame_times(spec, self.file.world, key)
            clouds = np.zeros((len(times), spec.simulate.points, 3))
            seed = spec.simulate.seed or 0
            samples = surface_samples(surface, faces, spec.simulate.points, seed)
        return CloudObserver(
            **_observed(name, spec, times), clouds=clouds, error=spec.error, search=search,
            begun=begun, is_two_sided=spec.two_sided, samples=samples,
        )  # fmt: skip

    def depth(self, name: str, spec: declared.Depth) -> DepthObserver:
        """Return a depth film as an observer."""
        key, which = f"observations.{name}", self.file.camera_name(spec)
        if spec.simulate is None:
            data = read_depth(spec, self.file.cameras[which], key, camera_key=f"cameras.{which}")
            _require_seconds(data.times, self.file.world, key)
        else:
            times, size = frame_times(spec, self.file.world, key), spec.simulate
            data = DepthData(
                times, np.zeros((len(times), size.height, size.width)), (size.height, size.width)
            )
        meshes, view = self._view(spec, data.full_size)
        observer = DepthObserver(
            **_observed(name, spec, data.times), **view, depths=data.depths, error=spec.error,
            scene=_white(meshes), begun={k: self.surfaces[k] for k in meshes},
            jump=JUMP * float(np.linalg.norm(np.ptp(self.bodies, axis=0))),
            is_simulated=spec.simulate is not None,
        )  # fmt: skip
        if spec.simulate is None:
            observer.require_compared()
        return observer

    def encoder(self, name: str, spec: declared.Encoder) -> EncoderObserver:
        """Return the encoder of a joint as an observer."""
        key, joint = f"observations.{name}", self.file.joints.get(spec.joint)
        if not isinstance(joint, declared.HingeJoint | declared.SliderJoint):
            moving = [
                k
                for k, each in self.file.joints.items()
                if isinstance(each, declared.HingeJoint | declared.SliderJoint)
            ]
            raise StudyError(
                f"`{key}.joint` must be a hinge or a slider, got {spec.joint!r}. Known: "
                f"{', '.join(moving) or 'none'}."
            )
        is_hinge = isinstance(joint, declared.HingeJoint)
        unit = spec.units or ("deg" if is_hinge else "m")
        if (unit in ANGULAR) != is_hinge:
            raise StudyError(
                f"`{key}.units` must be {'deg or rad' if is_hinge else 'm or mm'} of a "
                f"{joint.kind}, got {unit!r}."
            )
        factor = {**ANGULAR, **METRES}[unit]
        if spec.simulate is None:
            assert spec.file is not None
            times, numbers = read_series(f"{key}.file", spec.file, {1})
            _require_seconds(times, self.file.world, key)
        else:
            times = frame_times(spec, self.file.world, key)
            numbers = np.zeros(len(times))
        along = np.asarray(joint.axis) / np.linalg.norm(joint.axis)
        axes = scipy.linalg.null_space(along[None]).T  # two, across it
        if np.linalg.det([*axes, along]) < 0.0:
            axes = axes[::-1]
        tips = axes if is_hinge else np.stack([along, axes[0]])
        points = np.asarray(joint.anchor) + np.concatenate([np.zeros((1, 3)), tips])
        bodies = [body for body in ends_of(joint.between) if body is not None]
        weights = {
            body: np.stack([affine_weights(self.surfaces[body], point) for point in points])
            for body in bodies
        }
        return EncoderObserver(
            **_observed(name, spec, times), measured=factor * numbers, factor=factor, unit=unit,
            offset=spec.offset, error=spec.error or (ENCODER_ANGLE if is_hinge else ENCODER_LENGTH),
            is_hinge=is_hinge, weights=weights, points=points,
        )  # fmt: skip


def _observed(name: str, spec: declared.Observation, times: np.ndarray) -> dict[str, Any]:
    common = {"name": name, "weight": spec.weight, "start": spec.start}
    return {**common, "times": times, "index": np.arange(len(times))}


def _require_seconds(times: np.ndarray, world: declared.World, key: str) -> None:
    if times[0] < 0.0:
        raise StudyError(
            f"`{key}.file` must begin at time 0 or later, got {times[0]:g} s. Leave earlier rows "
            "out, by `frames` where the table has it, which makes the first one time 0."
        )
    apart = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    if apart >= LONGEST and world.dt is None and world.motion != declared.EQUILIBRIUM:
        raise StudyError(
            f"`{key}.file`: times must be in seconds, but rows are {apart:.4g} s apart. Divide "
            "them by 1000 if they are milliseconds (`units` is that of places). If they are "
            "seconds, give the time step, `world.dt`."
        )


def _white(meshes: Mapping[str, Mesh]) -> Scene:
    white = Material(ambient=np.ones(3), diffuse=np.zeros(3))
    return Scene({name: Mesh(mesh.faces, material=white) for name, mesh in meshes.items()})


def _look_paths(meshes: Mapping[str, Mesh], lights: Mapping[str, Lit]) -> dict[str, str]:
    """Return the scene paths of looks and lights by the renderer's; under a sky, no material's."""
    in_sky = any(isinstance(light, SphericalHarmonics) for light in lights.values())
    paths: dict[str, str] = {}
    for name, mesh in meshes.items():
        keys = [] if in_sky else ["ambient", "diffuse"]
        keys += ["specular", "shininess"] if mesh.material.specular is not None else []
        keys += ["texels"] if mesh.texture is not None else []
        keys += ["vertex_colors"] if mesh.vertex_colors is not None else []
        paths |= {f"{name}.{key}": f"{name}.look.{key}" for key in keys}
    for name in lights:
        keys = ["coefficients"] if in_sky else ["direction", "color"]
        paths |= {f"{name}.{key}": f"lights.{name}.{key}" for key in keys}
    return paths


def frame_times(spec: declared.Observation, world: declared.World, key: str) -> np.ndarray:
    """Return when the frames of a simulated observation are, the last at the end, (n,) [s]."""
    assert spec.simulate is not None
    duration = spec.simulate.duration
    if duration is None:
        duration = 0.0 if world.motion == declared.EQUILIBRIUM else world.duration
    if duration is None:
        raise StudyError(
            f"`{key}.simulate.duration` is missing: give it, or `world.duration`, in seconds."
        )
    if duration == 0.0 and spec.simulate.frames > 1:
        raise StudyError(
            f"`{key}.simulate.frames` must be 1 where the duration is 0, got "
            f"{spec.simulate.frames}."
        )
    n = spec.simulate.frames
    return np.arange(1, n + 1) * (duration / n)


def _blank_points(points: declared.Points, times: np.ndarray, key: str) -> PointData:
    """Return the points of `at` at places that are still 0."""
    if not points.at:
        raise StudyError(
            f"`{key}.at` must say where the points are that are simulated: NAME = [x, y, z]."
        )
    columns = 3 if points.camera is None else 2
    return PointData(tuple(points.at), times, np.zeros((len(times), len(points.at), columns)))
