"""The tables of a scene file, as dataclasses with the same names.

A scene file is TOML; `studies.scene.reading.read_scene` turns it into a `SceneFile`, and the same
can be written in Python with these classes. Units are SI, angles are in degrees. What is None is
chosen when the scene is built, from the mesh, the material or the footage.

    SceneFile = Scene (bodies, obstacles, cameras, lights, world)
              + observations + free + search
"""

from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from studies.runs.errors import StudyError
from studies.runs.files import files_of


try:
    from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationInfo
    from pydantic.dataclasses import dataclass
except ModuleNotFoundError as error:
    from adjsim.extras import missing_package  # which imports Numba

    raise ModuleNotFoundError(missing_package(error) or str(error), name=error.name) from None


STRICT = ConfigDict(extra="forbid", strict=False, allow_inf_nan=False)
Vector = tuple[float, float, float]
Color = tuple[
    Annotated[float, Field(ge=0.0, le=1.0)],
    Annotated[float, Field(ge=0.0, le=1.0)],
    Annotated[float, Field(ge=0.0, le=1.0)],
]
Positive = Annotated[float, Field(gt=0.0)]
NotNegative = Annotated[float, Field(ge=0.0)]
# A standard uncertainty of a declared number, as a part of it; 0 is exact, None is chosen
# (`studies/problem/declared_errors.py`).
PartError = Annotated[float, Field(ge=0.0, lt=1.0)] | None
Tilt = Annotated[float, Field(ge=0.0, le=45.0)] | None  # the same of a direction [deg]
# Of what is counted, and of a side of a picture: no encoder takes a longer one.
Count = Annotated[int, Field(ge=1, le=100_000)]
Pixels = Annotated[int, Field(ge=1, le=16_384)]
Texels = Annotated[int, Field(ge=2, le=16_384)]
Restitution = Annotated[float, Field(gt=0.0, le=1.0)]
# One for all links of a pendulum, or one for each.
Radii = Annotated[NotNegative | tuple[NotNegative, ...], "a number >= 0, or a list of them"]
Colors = Annotated[
    Color | tuple[Color, ...],
    "a list of red, green and blue from 0 to 1, or one of these for each link",
]
Name = str  # of a body, camera, light, obstacle or observation
ASSETS = Path(__file__).resolve().parents[1] / "bundled" / "assets"
FROM_VIEWS = "from-views"  # a mesh that is built from the first frames of films
GENERATORS = ("box", "ball", "sheet", "walker", "chain")


def resolved(name: str, key: str, folder: Path) -> str:
    """Return the absolute path of a file that must be there; a mesh that is no file as it is.

    A `file` may also be a pattern such as `depth/*.png`.
    """
    is_mesh = key == "mesh"
    if is_mesh and (name in (*GENERATORS, FROM_VIEWS) or name.startswith(("pyvista:", "shape:"))):
        return name
    if not name.strip():
        raise StudyError(f" must name a file, got {name!r}.")
    path = ASSETS / name[7:] if name.startswith("adjsim:") else folder / Path(name).expanduser()
    is_there = path.is_file() or path.is_dir() or (key == "file" and files_of(path))
    if not is_there:  # nor a pipe, which would be waited for
        others = f", nor is it one of {', '.join(GENERATORS)}" if is_mesh else ""
        here = "" if path.is_absolute() else " Paths begin at the folder of the scene file."
        raise StudyError(f": there is no file or folder {path}{others}.{here}")
    return str(path.resolve())


def _in_folder(name: str, info: ValidationInfo) -> str:
    """Return a path from the folder of the scene file on, where one is read."""
    folder = (info.context or {}).get("folder")
    return name if folder is None else resolved(name, info.field_name or "", folder)


# Texts in these annotations say what is expected.
FieldName = Annotated[str, Field(pattern=r"^field:.+"), '"field:NAME"']  # an array of the mesh file
File = Annotated[str, AfterValidator(_in_folder), "path of a file"]
# With columns `time` [s], and one for each value.
Series = Annotated[str, AfterValidator(_in_folder), "path of a CSV file"]


def _as_rows(value: Any) -> Any:
    """Return a list, or a list of lists, as rows; anything else as it is."""
    if not isinstance(value, list | tuple):
        return value
    rows = value if all(isinstance(row, list | tuple) for row in value) else [value]
    return tuple(tuple(row) for row in rows)


# First column and row, and last ones [pixels], from 0 at the upper left.
Rectangle = tuple[int, int, int, int]
Ignored = Annotated[
    Annotated[tuple[Rectangle, ...], BeforeValidator(_as_rows)] | File,
    "a rectangle [x0, y0, x1, y1], a list of them, or a picture",
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Drawn:
    """A number that is drawn by the seed of the run and the number of the instance.

    `between` draws evenly between two numbers, `normal` normally with that standard deviation about
    `mean`. With `shape` it is an array of such numbers.
    """

    between: tuple[float, float] | None = None
    normal: NotNegative | None = None
    mean: float = 0.0
    shape: tuple[Count, ...] = ()


Number = float | Drawn
Numbers = Annotated[
    Number
    | tuple[Number, ...]
    | tuple[tuple[Number, ...], ...]
    | tuple[tuple[tuple[Number, ...], ...], ...],
    "a number, a list of numbers, or { between = [low, high] }",
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Box:
    """The nodes in a box: its lower and upper corner [m]."""

    lower: Vector
    upper: Vector


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Plane:
    """The nodes on a plane and behind it: a point of it [m] and its normal [-]."""

    point: Vector
    normal: Vector


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Ball:
    """The nodes within a distance of a point [m]."""

    center: Vector
    radius: Positive


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Poses:
    """Poses of a grip or an obstacle at some times [s], of which the first is that at the start.

    `rotations` are rotation vectors in world axes [deg]; without any it does not turn.
    """

    times: tuple[NotNegative, ...]
    positions: tuple[Vector, ...]  # [m]
    rotations: tuple[Vector, ...] = ()


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Displacement:
    """A displacement along an axis, as a testing machine writes it beside its force.

    It is the column `displacement` of a CSV file that has `time` [s] and perhaps others.
    """

    file: Series
    axis: Vector
    units: Literal["m", "cm", "mm"] = "m"


# Where a grip goes: its poses over time, or a file. A CSV file has a column `time` [s] and three
# of its place [m], and perhaps three of its rotation vector [deg] or four of its quaternion, x, y,
# z, w. An .npz file has `times` (n,) [s] and `x`, places of the nodes (n, n_nodes, 3) [m].
GripPath = Annotated[
    File | Poses | Displacement, "path of a file, or { times = [...], positions = [...] }"
]
Between = Literal["linear", "cubic"]  # how a path goes on between its times


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Held:
    """The nodes that are held: all that any of these selects, in the world's coordinates.

    Those of a body's `held` are led along a `path`, if it has one, as by a grip of its name.
    """

    box: Box | None = None
    plane: Plane | None = None
    ball: Ball | None = None
    nodes: tuple[int, ...] = ()
    path: GripPath | None = None
    interpolation: Between = "linear"
    path_error: PartError = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Grip:
    """Nodes of a body that are held where they are, or move along a `path` as a rigid body.

    A path goes on linearly between its times, or by a cubic that is at rest at both ends. What is
    free is "grips.NAME.position" and "grips.NAME.rotation" [rad]: poses after the first.
    `path_error` is the standard uncertainty of how far it goes, as a part of that.
    """

    body: Name
    where: Held
    path: GripPath | None = None
    interpolation: Between = "linear"
    path_error: PartError = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Policy:
    """Muscles in open loop: every element has weights W of sinusoids of its own.

    a(t) = scale tanh(sum over j of W_j sin(frequency t + 2 pi j/sines))

    The weights are 0, which is rest, unless they are free as "BODY.policy", or of the hinges of a
    cloth "BODY.bending_policy", (n_elements, sines). `where` leaves muscles only to the elements
    all of whose nodes it selects.
    """

    sines: Count = 8
    frequency: Positive  # [rad/s]
    scale: Positive  # largest actuation
    where: Held | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Look:
    """How a surface looks.

    `texels` makes a texture of so many rows and columns in `color`, to be found; beside `texture`,
    a picture, it is the size that this is brought to. `color` is ignored where `texture` or
    `vertex_colors` (an array of the mesh file by name) is given. A texture needs texture
    coordinates in the mesh, or `unwrap = true` makes them.
    """

    color: Color = (0.7, 0.7, 0.7)
    vertex_colors: str | None = None
    texture: File | None = None
    texels: tuple[Texels, Texels] | None = None
    unwrap: bool = False
    smooth: bool = True
    ambient: NotNegative = 0.5
    diffuse: NotNegative = 0.5
    specular: NotNegative | None = None
    shininess: Positive = 32.0
    fit: bool | None = None  # fit colour and light to the first frame; None: if it is from a file


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Body:
    """What all bodies with a mesh have.

    `scale_error`, `mass_error` (of density or mass) and `position_error` are standard uncertainties
    of what is declared, for the error budget of an answer.
    """

    # A file (any format that PyVista or meshio reads, or .tet), "pyvista:NAME", a generator:
    # "shape:NAME", "box", "ball", "sheet", "chain"; or "from-views", from films.
    mesh: File | None = None
    # Of a generator [m]: edges of a box or a sheet, radius of a ball.
    size: Annotated[tuple[float, ...], Field(min_length=1), "a list of numbers"] | None = None
    # Of a generator: how many cells along each edge; from views, along the longest one.
    cells: tuple[int, ...] | None = None
    # Factor from the mesh's units to metres, or one along each of its axes.
    scale: Positive | tuple[Positive, Positive, Positive] = 1.0
    position: Vector = (0.0, 0.0, 0.0)  # where the mesh's origin is in the world [m]
    # Rotation vector about the mesh's origin: axis times angle [deg].
    rotation: Vector = (0.0, 0.0, 0.0)
    # At the start [m/s]; or of each node, an array of the mesh file along the mesh's axes.
    velocity: Vector | FieldName = (0.0, 0.0, 0.0)
    spin: Vector = (0.0, 0.0, 0.0)  # at the start, about the centre of mass [rad/s]
    # Drag per mass: the force -drag_rate m v, and a moment alike [1/s].
    drag_rate: NotNegative = 0.0
    held: Held | None = None
    take: Name = ""  # whose copy it is, where a file has takes: it meets no body of other takes
    scale_error: PartError = None
    mass_error: PartError = None
    position_error: NotNegative | None = None  # [m]
    look: Look = field(default_factory=Look)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Soft(_Body):
    """A soft solid: E and nu, or mu and lam, in the small-strain sense [Pa].

    A closed surface is filled with tetrahedra of `edge_length` times the bounding box's diagonal.
    `law` is the stable neo-Hookean law, or the textbook's, with log J, which no element may invert.
    `actuation` is a number, a series or a policy: a > 0 swells. What `density` gives to each node
    is multiplied by `mass_factors`, 1 by default; "even" gives every node the same mass.
    `nu_error` is the standard uncertainty of nu, `shape_error` that of where the surface is, seen
    on a grid with `shape_cells` along the body's longest side.
    """

    kind: Literal["soft"] = "soft"
    law: Literal["stable", "log"] = "stable"
    edge_length: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.08
    E: Positive | FieldName | None = None
    nu: Annotated[float, Field(gt=-1.0, lt=0.5)] | None = None
    nu_error: NotNegative | None = None
    mu: Positive | FieldName | None = None
    lam: float | FieldName | None = None
    density: Positive | FieldName = 1000.0
    mass_factors: tuple[Positive, ...] | Literal["even"] | None = None
    viscosity: NotNegative = 0.0
    actuation: float | Series | Policy | None = None
    shape_error: NotNegative | None = None  # [m]
    shape_cells: Annotated[int, Field(ge=1, le=8)] = 3


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Cloth(_Body):
    """A thin shell of a triangle mesh.

    E and nu [Pa, -] and `thickness` [m] give the membrane's and the bending stiffness; `bending`
    [N m], the flexural rigidity D, replaces the latter. `density` is that of the material [kg/m3].
    `actuation` a > 0 swells the membrane; `bending_actuation` turns the rest angle of hinges by
    -2 a. `thickness_error`, as a part of it, and `nu_error` are standard uncertainties.
    """

    kind: Literal["cloth"] = "cloth"
    thickness: Positive = 1e-3
    thickness_error: PartError = None
    E: Positive | FieldName | None = None
    nu: Annotated[float, Field(gt=-1.0, lt=1.0)] = 0.3
    nu_error: NotNegative | None = None
    bending: NotNegative | None = None
    bending_damping: NotNegative = 0.0
    density: Positive | FieldName = 1000.0
    mass_factors: tuple[Positive, ...] | Literal["even"] | None = None
    viscosity: NotNegative = 0.0
    drag: NotNegative = 0.0
    lift: NotNegative = 0.0
    actuation: float | Series | Policy | None = None
    bending_actuation: float | Series | Policy | None = None  # [rad]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Rigid(_Body):
    """A rigid body, given its density [kg/m3], its mass or that of each vertex [kg].

    With `vertex_mass`, one number or one for each of them, all of its mass is at the vertices of
    the mesh. Beside `mass`, a body that is not uniform has an `inertia` about its centre of mass
    and along the axes of the mesh [kg m2], three moments or three rows, and perhaps a
    `center_of_mass`. `held` is not allowed.
    """

    kind: Literal["rigid"] = "rigid"
    density: Positive | None = None
    mass: Positive | None = None
    vertex_mass: Positive | tuple[Positive, ...] | None = None
    inertia: Vector | tuple[Vector, Vector, Vector] | None = None
    center_of_mass: Vector | None = None  # from the mesh's origin, along its axes [m]
    # What touches obstacles: the points of the mesh, or a ball about its centre of mass. None: a
    # ball where the mesh is a generated sphere.
    touches: Literal["ball", "points"] | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Springs(_Body):
    """Masses on the points of a mesh, and a damped spring on every edge.

    `rest_length` is the length at rest over that in the mesh, of all springs or of each.
    """

    kind: Literal["springs"] = "springs"
    stiffness: Positive = 1e3  # [N/m]
    damping: NotNegative = 0.0  # [N s/m]
    rest_length: Positive | tuple[Positive, ...] = 1.0
    mass: Positive = 1.0  # of the whole body [kg]
    radius: Positive = 0.01  # of the tubes that are drawn, where the mesh has no faces [m]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Pendulum:
    """One link, or two that hang on each other: lists with one value a link.

    It swings in the plane z = const through `pivot`; angles are from the vertical. A link is a
    point mass at the end of its length unless it has a `center_of_mass`, at this distance from its
    own joint, and an `inertia` about it. `friction` is dry, of the pivot and of the joint between
    the links; slower than `friction_width` it is viscous. A radius of 0 draws no rod or bob.
    `scale_error` (of lengths) and `mass_error` are standard uncertainties of what is declared.
    """

    kind: Literal["pendulum"] = "pendulum"
    length: tuple[Positive, ...]  # [m]
    angle: tuple[float, ...]  # [deg]
    rate: tuple[float, ...] | None = None  # [deg/s]
    mass: tuple[Positive, ...] | None = None  # [kg]
    center_of_mass: tuple[Positive, ...] | None = None  # [m]
    inertia: tuple[NotNegative, ...] | None = None  # [kg m2]
    damping: tuple[NotNegative, ...] | None = None  # one link: [kg/s], two: [N m s]
    friction: tuple[NotNegative, ...] | None = None  # [N m]
    friction_width: Positive = 0.5  # [deg/s]
    torque: tuple[float, ...] | Series | None = None  # [N m]
    pivot: Vector = (0.0, 0.0, 0.0)
    bob_radius: Radii = 0.1
    rod_radius: Radii = 0.02
    link_gap: float = 0.0  # of the second link in front of the first [m]
    bob_color: Colors | None = None  # None: the look's
    rod_color: Colors | None = None
    scale_error: PartError = None
    mass_error: PartError = None
    look: Look = field(default_factory=Look)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Smoke:
    """Smoke on a periodic grid, drawn as an image: a picture of the start.

    `waves` adds a wind and waves without divergence to the velocity, up to so many along an edge.
    They are 0 unless they are free as "BODY.wind" and "BODY.waves".
    """

    kind: Literal["smoke"] = "smoke"
    density: File  # picture of the density at the start
    velocity: File | None = None  # .npy, (height, width, 2) [cells per step]; None: at rest
    waves: Annotated[int, Field(ge=0, le=1000)] = 0
    steps_per_second: Positive = 30.0


Body = Annotated[Soft | Cloth | Rigid | Springs | Pendulum | Smoke, Field(discriminator="kind")]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Law:
    """How a contact pushes, loses energy and rubs; a None is chosen from the bodies.

    A contact loses energy by its `dissipation`, without jumps, or by its `damping`, which is not
    chosen: its force jumps at touch. A `restitution`, the same at every speed, may be given in
    place of them and of a `stiffness`; the contact then gives way by `depth` at `speed`. A
    `contact_time` may be given in place of `stiffness`: that of one point that arrives with all the
    mass of a rigid body, or of each node alone. It, and what is chosen, holds for arrival at
    `speed`, by default that of a fall from the body's own size that begins with its velocity.
    """

    restitution: Restitution | None = None  # part of the speed that is left [-]
    depth: Positive | None = None  # at the deepest, with a restitution [m]
    contact_time: Positive | None = None  # of one bounce [s]
    speed: Positive | None = None  # of arrival [m/s]
    stiffness: Positive | None = None  # of each node [N/m]
    dissipation: NotNegative | None = None  # [s/m]
    damping: NotNegative | None = None  # in place of a dissipation [N s/m]
    friction: NotNegative = 0.3  # coefficient mu [-]
    friction_error: PartError = None  # standard uncertainty, as a part of it
    friction_stiffness: Positive | None = None  # [N s/m]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Obstacle(_Law):
    """What all obstacles have. `bodies` are those that may touch it, all by default.

    An obstacle is fixed in the world, or to a rigid body, which carries it from where both are
    declared and feels the reaction. Or it moves along a `path` without turning, as a grip does; its
    positions after the first may be free as "OBSTACLE.position".
    `distance_error` is the standard uncertainty of its distance from the bodies, `path_error` that
    of how far it goes, as a part of that.
    """

    fixed_to: Name | None = None
    path: GripPath | None = None
    interpolation: Between = "linear"
    path_error: PartError = None
    bodies: tuple[Name, ...] | None = None
    draw: bool = False
    distance_error: NotNegative | None = None  # [m]
    look: Look = field(default_factory=Look)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PlaneObstacle(_Obstacle):
    """The half-space behind a plane; `tilt_error` is the standard uncertainty of its direction."""

    kind: Literal["plane"] = "plane"
    point: Vector = (0.0, 0.0, 0.0)
    normal: Vector = (0.0, 1.0, 0.0)
    tilt_error: Tilt = None
    extent: Positive = 10.0  # edge of the square that is drawn [m]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SphereObstacle(_Obstacle):
    """A sphere."""

    kind: Literal["sphere"] = "sphere"
    center: Vector
    radius: Positive


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BoxObstacle(_Obstacle):
    """A box: centre, edges and rotation vector [deg]."""

    kind: Literal["box"] = "box"
    center: Vector
    size: tuple[Positive, Positive, Positive]
    rotation: Vector = (0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CapsuleObstacle(_Obstacle):
    """All points within `radius` of the segment between two ends."""

    kind: Literal["capsule"] = "capsule"
    ends: tuple[Vector, Vector]
    radius: Positive


Obstacle = Annotated[
    PlaneObstacle | SphereObstacle | BoxObstacle | CapsuleObstacle, Field(discriminator="kind")
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Contact(_Law):
    """Contact between the surfaces of two soft bodies, cloths or rigid bodies.

    `between` names both; the name of one twice is its contact with itself. Surfaces push each other
    where they are closer than twice the `radius`, which is chosen from their edges unless given.
    """

    between: tuple[Name, Name]
    radius: Positive | None = None  # half of the thickness of each surface [m]


WORLD = "world"  # in the place of a body that a joint holds


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Joint:
    """What all joints have. `between` names what is joined; "world" is what does not move.

    A joint is stiff, not rigid: what holds it together is chosen from the bodies unless given.
    """

    between: tuple[Name, Name]
    stiffness: Positive | None = None  # of what holds the points together [N/m]
    damping: NotNegative | None = None  # [N s/m]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BallJoint(_Joint):
    """A ball joint of rigid bodies at a point of the scene, as the bodies are at the start."""

    kind: Literal["ball"] = "ball"
    anchor: Vector  # [m]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Framed(_Joint):
    """What holds axes beside a point has too."""

    anchor: Vector  # [m]
    angular_stiffness: Positive | None = None  # [N m/rad]
    angular_damping: NotNegative | None = None  # [N m s/rad]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class WeldJoint(_Framed):
    """A weld of rigid bodies, which leaves nothing free."""

    kind: Literal["weld"] = "weld"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Driven(_Framed):
    """What a hinge and a slider have too.

    Both are at 0 at the start. A hinge has torques [N m] and angles [deg], a slider forces [N] and
    lengths [m]; along `axis`, seen from the first body, both turn or move the second one.
    """

    axis: Vector  # in the scene, of any length
    motor: float | Series | None = None  # [N m] or [N]
    motor_error: PartError = None  # standard uncertainty, as a part of it
    viscous_friction: NotNegative = 0.0  # [N m s/rad] or [N s/m]
    dry_friction: NotNegative = 0.0  # [N m] or [N]
    # Slower than this dry friction is viscous [deg/s] or [m/s]; 0.5 deg/s or 0.01 m/s.
    friction_width: Positive | None = None
    spring_stiffness: NotNegative = 0.0  # [N m/rad] or [N/m]
    spring_rest: float = 0.0  # where the spring pulls to [deg] or [m]
    lower: float | None = None  # limits, both or none [deg] or [m]
    upper: float | None = None
    limit_stiffness: Positive | None = None  # [N m/rad] or [N/m]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class HingeJoint(_Driven):
    """A hinge of rigid bodies: the second turns about an axis of the first."""

    kind: Literal["hinge"] = "hinge"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SliderJoint(_Driven):
    """A slider of rigid bodies: the second moves along an axis of the first, and does not turn."""

    kind: Literal["slider"] = "slider"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PinJoint(_Joint):
    """Pins: nodes of the first body that are held where they are on the second.

    `where` selects them. The second body is rigid, or has nodes at the same places.
    """

    kind: Literal["pin"] = "pin"
    where: Held


Joint = Annotated[
    BallJoint | WeldJoint | HingeJoint | SliderJoint | PinJoint, Field(discriminator="kind")
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Push:
    """A known force on a body, in world axes."""

    body: Name
    # [N], or a CSV file with the columns time [s] and x, y, z [N], linear between its rows.
    force: Vector | Series
    force_error: PartError = None  # standard uncertainty, as a part of it
    # When a constant force acts: from the first to the last [s]; None: always.
    seconds: tuple[NotNegative, NotNegative] | None = None
    # "centre" of mass, or a point in the world at the start [m], of which the nearest vertex is
    # pushed. The force at the centre of a body made of nodes is shared by their masses.
    at: Literal["centre"] | Vector = "centre"
    # In place of `at`: vertices of the mesh by number; each gets the whole force.
    nodes: tuple[Annotated[int, Field(ge=0)], ...] = ()


@dataclass(frozen=True, kw_only=True, config=STRICT)
class OwnForce:
    """A force of your own on a body: a subclass of `adjsim.forces.element.Force`.

    `type` is its import path, "module:Class", and `values` are its arguments. Its module must have
    been imported, or be named in the environment variable ADJSIM_MODULES: a scene file runs no code
    otherwise. Nodes are counted from 0 in the body.
    """

    type: str
    body: Name
    values: dict[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Ring:
    """Views evenly around the target, about `up`, as of a turntable; `eye` is that of the first.

    The k-th is as high as the k-th of `elevations` in turn says [deg]; without any, as the first.
    A film by this camera is one picture of each: simulated, or of a folder in the order of names.
    """

    views: Annotated[int, Field(ge=2, le=1000)]
    elevations: tuple[Annotated[float, Field(gt=-90.0, lt=90.0)], ...] = ()


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Camera:
    """A pinhole camera: eye, target, up and fov_y [deg]; or K, R and t as OpenCV has them.

    x_c = R x_w + t with x right, y down, z ahead; K counts in pixels of the film. `distortion` is
    radial, k1 and k2. The errors are one standard deviation of position (as a part of the distance
    to the target), direction [deg] and field of view (as a part of it); what has an error of 0 is
    not fitted. Without fov_y and K, the field of view is that of the EXIF data of a JPEG picture.
    `size` is height and width of its pictures [pixels], for tracks in pixels without a film.
    """

    eye: Vector | None = None
    target: Vector | None = None
    up: Vector = (0.0, 1.0, 0.0)
    fov_y: Annotated[float, Field(gt=0.0, lt=180.0)] | None = None
    K: tuple[Vector, Vector, Vector] | None = None
    R: tuple[Vector, Vector, Vector] | None = None
    t: Vector | None = None
    distortion: tuple[float, float] = (0.0, 0.0)
    size: tuple[Pixels, Pixels] | None = None
    fit: bool | None = None
    position_error: NotNegative = 0.01
    angle_error: NotNegative = 1.0
    fov_error: NotNegative = 0.01
    ring: Ring | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Light:
    """A light from far away; `direction` points towards it. Fitted with the looks."""

    kind: Literal["sun"] = "sun"
    direction: Vector = (1.0, 2.0, 1.0)
    color: tuple[NotNegative, NotNegative, NotNegative] = (1.0, 1.0, 1.0)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Sky:
    """Light from everywhere, the only light of its scene. Fitted with the looks.

    `coefficients` are those of the spherical harmonics up to order 2, nine rows of RGB. By default
    it is white and even, with a shade of 1. Under a sky `ambient` and `diffuse` of looks have no
    meaning: the sky holds both.
    """

    kind: Literal["sky"] = "sky"
    coefficients: tuple[Vector, ...] | None = None


AnyLight = Annotated[Light | Sky, Field(discriminator="kind")]


EQUILIBRIUM = "equilibrium"  # what `world.motion` may be
SEMI_IMPLICIT, IMPLICIT = "semi-implicit", "implicit"  # what `world.step` may be


@dataclass(frozen=True, kw_only=True, config=STRICT)
class World:
    """What acts on everything; `dt` [s] is chosen unless it is given, `duration` [s] likewise.

    With `motion = "equilibrium"` soft bodies, cloth and springs are seen where they rest. With
    `step = "implicit"` a step is stable however long: one from frame to frame, unless `dt` or a
    contact between bodies asks for less; a step of one's own is `"module:Class"`. `gravity_error`
    is the standard uncertainty of gravity's direction.
    """

    gravity: Vector = (0.0, -9.81, 0.0)
    gravity_error: Tilt = None
    wind: Vector = (0.0, 0.0, 0.0)
    dt: Positive | None = None
    duration: Positive | None = None
    motion: Literal["dynamics", "equilibrium"] = "dynamics"
    step: str = SEMI_IMPLICIT


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Observation:
    """What all observations have.

    `start` is the scene's time of the first frame or of time 0 in a table [s]; it may be free as
    "observations.NAME.start". With `validate` it is predicted before it is fitted, to judge the
    answer. `fps_error` is the standard uncertainty of the rate of its times, as a part of it.
    Keys called `body`, `bodies` and `camera` are checked to name what is there.
    """

    SOURCE: ClassVar[str] = "file"  # the key of its file, in place of which it may be simulated
    NEEDS_CAMERA: ClassVar[bool] = False

    weight: Positive = 1.0
    start: float = 0.0
    validate: bool = False
    fps_error: PartError = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Simulated:
    """An observation that is simulated with the hidden truth, in place of one from a file."""

    frames: Count  # evenly spaced, the last at the end
    duration: NotNegative | None = None  # time of the end [s]; None: that of the world
    # Standard deviation of the noise of a pixel, where white is 1, or of a place [m or pixels].
    noise: Annotated[float, Field(ge=0.0, le=1e3)] = 0.0
    # Of the noise; None: drawn by the seed of the run and the number of the instance.
    seed: Annotated[int, Field(ge=0)] | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SimulatedFilm(Simulated):
    """A simulated film of this size [pixels]; with `eight_bit` its colours are rounded to bytes."""

    height: Pixels
    width: Pixels
    eight_bit: bool = False


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Background:
    """What is behind the bodies: a colour, a picture, or found in the film.

    A simulated film without either has a black one.
    """

    color: Color | None = None
    picture: File | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Film(_Observation):
    """A film, or one still picture, from a camera: mp4, gif, a folder of PNG frames, PNG or JPEG.

    Frames have the times of their stamps, or else `fps` a second. `frames` are the first frame, the
    end (the first one that is left out) and, where not every frame is read, the step; `masks` are
    pictures that are white where the bodies are. Blocks of `downsample` pixels a side become one.
    What `ignore` covers is not compared: rectangles, or a picture that is black elsewhere.
    `softness` is the width of soft edges [pixels], and with `seams` every face has them, not only
    outlines; None chooses it where a body may turn and its colours jump between faces. `bodies` are
    those that are in the film.
    """

    SOURCE, NEEDS_CAMERA = "video", True

    kind: Literal["film"] = "film"
    video: File | None = None
    simulate: SimulatedFilm | None = None
    camera: Name | None = None  # may be left out where there is one camera
    bodies: tuple[Name, ...] | None = None  # None: all
    compare: Literal["rgb", "silhouette"] = "rgb"
    masks: File | None = None
    ignore: Ignored | None = None
    fps: Annotated[float, Field(gt=0.0, le=1e7)] | None = None
    frames: tuple[int, int] | tuple[int, int, int] | None = None
    downsample: Pixels | None = None
    softness: Annotated[float, Field(ge=0.0, le=1e3)] = 0.4
    seams: bool | None = None
    background: Background = field(default_factory=Background)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Points(_Observation):
    """Tracked points of a body: a CSV file with the columns time, point, and x, y, z or u, v.

    Or a c3d file, or text that Tracker exported. x, y, z are in metres unless the file or `units`
    says otherwise; u, v in pixels of the camera's film: column and row, whole numbers at the
    centres of pixels. What is empty or marked as invalid is not compared. `rotation` and `position`
    put the file's axes into the world.

    `at` says where points are at the start, by name: [x, y, z] in the world. Points that it does
    not name are put where their first row has them, which for u, v is the surface that the camera
    sees there. They may be in or off a soft or rigid body, which carries them along. With
    `simulate` in place of `file` they are those of `at`, in space, or in pixels where a camera is
    given.
    """

    kind: Literal["points"] = "points"
    file: File | None = None
    simulate: Simulated | None = None
    body: Name
    camera: Name | None = None
    error: Positive | None = None  # one standard deviation [m] or [pixels]; 1 mm, 1 pixel
    points: tuple[str, ...] = ()  # names of those that are compared; none: all
    frames: tuple[int, int] | None = None  # the first, which is time 0 then, and the end
    units: Literal["m", "cm", "mm"] | None = None
    rotation: Vector | None = None  # rotation vector of the file's axes [deg]
    position: Vector | None = None  # where their origin is [m]
    at: dict[str, Vector] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class States(_Observation):
    """Positions of all nodes of a body: .npz with `times` (n,) [s] and `x` (n, n_nodes, 3) [m].

    Or `simulate` in place of `file`. With `center` it is their centre of mass alone: n_nodes is 1.
    """

    kind: Literal["states"] = "states"
    file: File | None = None
    simulate: Simulated | None = None
    body: Name
    center: bool = False
    error: Positive = 1e-3  # one standard deviation [m]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Force(_Observation):
    """The force of a grip or an obstacle on the bodies over time, as a load cell reads it [N].

    A CSV file with a column `time` [s] and three of the force along the world's axes; or one, along
    `axis`. `grip` is a grip's name, or that of a body with `held`. In place of it, `obstacle` names
    one: its force on `body`, or on all that may touch it. What a cell reads where it pulls or
    pushes is positive along the pull or push.
    """

    kind: Literal["force"] = "force"
    file: Series | None = None
    simulate: Simulated | None = None
    grip: Name | None = None
    obstacle: Name | None = None
    body: Name | None = None  # of those that may touch the obstacle
    axis: Vector | None = None
    error: Positive | None = None  # one standard deviation [N]; a hundredth of the largest force


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SimulatedCloud(Simulated):
    """A simulated cloud of so many points of the bodies' surfaces, drawn evenly."""

    points: Count = 500


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Cloud(_Observation):
    """Points in space that were measured on surfaces, by a depth camera or a scanner.

    `file` is a folder with a PLY, PCD, CSV (x, y, z) or NPZ (`points`) file for each frame, in the
    order of their names, or a pattern such as `scans/*.ply`. They have `fps`, or `times`, a CSV
    file with a column `time` [s]. Or it is a single file: CSV with the columns time, x, y, z, or
    NPZ with `times` (n,) [s] and `points` (n, n_points, 3), NaN behind the last one of a frame; or
    one of the others, of time 0.

    `rotation` and `position` put the file's axes into the world. Points outside of `box`, which is
    in the world, are left out; of others at most `most_points` a frame are compared. Points far
    from the surface count less (Huber, from three times `error` on). With `two_sided` vertices look
    for the nearest measured point, too: only for clouds of a whole surface.
    """

    kind: Literal["cloud"] = "cloud"
    file: File | None = None
    simulate: SimulatedCloud | None = None
    bodies: tuple[Name, ...] | None = None  # on which points lie; None: all
    fps: Annotated[float, Field(gt=0.0, le=1e7)] | None = None
    times: Series | None = None
    frames: tuple[int, int] | tuple[int, int, int] | None = None  # the first, the end, the step
    units: Literal["m", "cm", "mm"] = "m"
    rotation: Vector | None = None  # rotation vector of the file's axes [deg]
    position: Vector | None = None  # where their origin is [m]
    box: Box | None = None
    most_points: Count = 2000
    two_sided: bool = False
    error: Positive = 2e-3  # one standard deviation [m]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SimulatedDepth(Simulated):
    """A simulated depth film of this size [pixels]; `noise` is that of a depth [m]."""

    height: Pixels
    width: Pixels


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Depth(_Observation):
    """A depth film: how far what each pixel shows is along the view of a camera, with K, R and t.

    `file` is a folder of 16-bit PNG pictures, one a frame in the order of their names, or a pattern
    such as `depth/*.png`, which has `fps` or `times`; or an NPZ file with `depth` (n, height,
    width), and perhaps `times` (n,) [s].
    Their numbers times `scale` are metres; 0 and NaN are holes, which say nothing. Blocks of
    `downsample` pixels a side become one, their median.

    A pixel is compared where something is both measured and drawn, two pixels away from edges of
    either. Depths that are far off count less (Huber, from three times `error` on).
    """

    NEEDS_CAMERA = True

    kind: Literal["depth"] = "depth"
    file: File | None = None
    simulate: SimulatedDepth | None = None
    camera: Name | None = None  # may be left out where there is one camera
    bodies: tuple[Name, ...] | None = None  # that are seen; None: all
    scale: Positive | None = None  # None: 0.001 of PNG, whose numbers are millimetres, else 1
    fps: Annotated[float, Field(gt=0.0, le=1e7)] | None = None
    times: Series | None = None
    frames: tuple[int, int] | tuple[int, int, int] | None = None
    downsample: Pixels = 1
    error: Positive = 2e-3  # one standard deviation [m]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Encoder(_Observation):
    """The angle of a hinge or the length of a slider: CSV with `time` [s] and one more column.

    Both are 0 at the start of the scene, where the encoder says `offset`; it may be free as
    "observations.NAME.offset". Whole turns of an angle do not count. The file's numbers are in
    `units`, of a hinge degrees.
    """

    kind: Literal["encoder"] = "encoder"
    file: Series | None = None
    simulate: Simulated | None = None
    joint: Name
    units: Literal["deg", "rad", "m", "mm"] | None = None
    offset: float = 0.0  # [units]
    error: Positive | None = None  # one standard deviation [deg] or [m]; 0.1 deg, 0.1 mm


@dataclass(frozen=True, kw_only=True, config=STRICT)
class OwnObservation(_Observation):
    """Residuals of your own: what a function of yours returns, a `studies.api.OwnResiduals`.

    `type` is its import path, "module:function", and `values` are its arguments. Its module must be
    allowed as that of a force of your own.
    """

    SOURCE = ""

    kind: Literal["own"] = "own"
    type: str
    values: dict[str, Any] = field(default_factory=dict)

    simulate: ClassVar[None] = None  # as other observations may be


Observation = Annotated[
    Film | Points | States | Cloud | Depth | Encoder | Force | OwnObservation,
    Field(discriminator="kind"),
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Prior:
    """A Gaussian prior: mean, and the standard deviation in the value's unit.

    A positive parameter is searched in its logarithm; its prior is on the logarithm then, with the
    standard deviation divided by the mean.
    """

    mean: float | tuple[float, ...]
    error: Positive


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Free:
    """A free parameter; what is None is its default in the scene.

    Its path may name one component, as "world.gravity[1]". `tied_to` is another free path: the
    value is then `factor` times that one.

    The last three are of "BODY.vertices": weights of losses of shape beside that of the pictures,
    0: none. They are the mean square distance of a vertex from the middle of its neighbours, the
    mean square change of the lengths of edges, both over the half of the body's longest side, and
    the mean of 1 - cos of the angle between neighbouring faces.
    """

    start: Numbers | None = None
    bounds: tuple[float, float] | None = None
    transform: Literal["log", "linear"] | None = None
    prior: Prior | None = None
    tied_to: str | None = None
    factor: float = 1.0
    laplacian: NotNegative = 0.2
    edge_length: NotNegative = 0.005
    normals: NotNegative = 0.001


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Search:
    """How the answer is searched; what is None depends on how many numbers are free."""

    coarse: Annotated[int, Field(ge=0, le=100_000)] | None = None
    basins: Count = 3
    stages: Annotated[
        tuple[Annotated[float, Field(gt=0.0, le=1.0)], ...],
        Field(min_length=1),
        "a list with numbers above 0 and up to 1",
    ] = (0.3, 0.6, 1.0)
    softness: Annotated[
        tuple[Annotated[float, Field(ge=1.0, le=1e3)], ...],
        Field(min_length=1),
        "a list with numbers from 1 to 1000",
    ] = (1.0,)
    held_back: Annotated[float, Field(ge=0.0, lt=0.9)] = 0.2
    max_evaluations: Count = 200
    tolerance: Positive = 1e-5
    method: (
        Literal[
            "gauss-newton", "levenberg", "l-bfgs-b", "newton-cg", "adam", "gradient-descent",
            "polyak",
        ]
        | None
    ) = None  # fmt: skip
    learning_rate: Positive = 0.05
    decay: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    momentum: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.9
    beta1: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.9
    beta2: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.999
    memory: Count = 10
    loss: Literal["pyramid", "mse"] = "pyramid"
    levels: Count = 4
    growth: Positive = 1.0


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Goal:
    """Of a scene with the purpose "control": what counts as reached, and what a search is told."""

    # Least intersection over union of what the last picture and the target's show of the bodies.
    cover: Annotated[float, Field(gt=0.0, le=1.0)] = 0.9
    # Most distance between the centre of mass at the end and that of the goal [m], where it is
    # known; None: a twentieth of the bodies' size.
    distance: Positive | None = None
    # Of a goal that is meant to be out of reach: how much nearer than at the beginning the centre
    # of mass must end [m]; then nothing else counts.
    gain: Positive | None = None
    # "picture"; or "states": told the centre of mass of the goal in place of its picture.
    supervision: Literal["picture", "states"] = "picture"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Scene:
    """Bodies, obstacles, contacts, joints, cameras, lights, and what acts on them."""

    bodies: dict[Name, Body]
    obstacles: dict[Name, Obstacle] = field(default_factory=dict)
    contacts: dict[Name, Contact] = field(default_factory=dict)
    joints: dict[Name, Joint] = field(default_factory=dict)
    grips: dict[Name, Grip] = field(default_factory=dict)
    pushes: dict[Name, Push] = field(default_factory=dict)
    forces: dict[Name, OwnForce] = field(default_factory=dict)
    cameras: dict[Name, Camera] = field(default_factory=dict)
    lights: dict[Name, AnyLight] = field(default_factory=dict)
    world: World = field(default_factory=World)

    @property
    def every_grip(self) -> dict[Name, Grip]:
        """All grips: those of the tables, and what holds a body, by the body's name."""
        every = {}
        for name, body in self.bodies.items():
            held = getattr(body, "held", None)
            if held is not None:
                led = {key: getattr(held, key) for key in ("path", "interpolation", "path_error")}
                every[name] = Grip(body=name, where=held, **led)
        return {**every, **self.grips}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SceneFile(Scene):
    """A scene, what was observed of it, what is free, and how that is searched.

    `purpose` is "identify": which values explain what was observed; or "control": how to bring the
    bodies where the observations, a target, have them. `truth` are values by path with which
    observations are simulated, where they differ from the scene's, or of footage what was measured
    otherwise, which the result is compared with, and neither search nor verdict; "bodies.NAME.KEY"
    is a key of a body's table. `instances` random ones are run; `published` are relative errors of
    others by path; `draw` names a bundled module whose `draw(file, rng, instance)` fills in the
    rest. A `blind` search and verdict take what is simulated for footage, and do not know the
    truth.
    """

    title: str = ""
    purpose: Literal["identify", "control"] = "identify"
    goal: Goal = field(default_factory=Goal)
    truth: dict[str, Numbers | str] = field(default_factory=dict)
    instances: Count = 1
    blind: bool = False
    published: dict[str, Positive] = field(default_factory=dict)
    draw: str | None = None
    observations: dict[Name, Observation] = field(default_factory=dict)
    free: dict[str, Free] = field(default_factory=dict)
    search: Search = field(default_factory=Search)

    def __post_init__(self) -> None:
        """Search by Gauss-Newton where a shape is free: its intervals need Jacobians."""
        if self.search.method is None and any(path.endswith(".shape") for path in self.free):
            object.__setattr__(self, "search", replace(self.search, method="gauss-newton"))

    @property
    def is_simulated(self) -> bool:
        """Whether something that was observed is simulated."""
        return any(observation.simulate for observation in self.observations.values())

    @property
    def is_twin(self) -> bool:
        """Whether all that was observed is simulated, and known to be: a twin experiment."""
        every = self.observations.values()
        return bool(every) and all(observation.simulate for observation in every) and not self.blind

    @property
    def films(self) -> dict[str, Film]:
        """The observations that are films, by name."""
        return {name: film for name, film in self.observations.items() if isinstance(film, Film)}

    def camera_name(self, film: Film | Depth) -> str:
        """Return the name of the camera of a film: the only one, if it names none."""
        return film.camera or next(iter(self.cameras))

    def camera_of(self, film: Film) -> Camera | None:
        """Return the camera of a film; None of a film of smoke, which has none."""
        return self.cameras[self.camera_name(film)] if self.cameras else None

    def is_fitted(self, spec: Camera | Look) -> bool:
        """Return whether a camera or a look is fitted: by default unless this is a twin.

        Nor is it where the first picture is a target.
        """
        by_default = not self.is_twin and self.purpose == "identify"
        return by_default if spec.fit is None else spec.fit
