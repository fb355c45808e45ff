"""Robots of URDF files: a rigid body for each link with a mass, a force for each joint.

The root link is at the origin of the world. `frames_at` finds the frames of joints where all are
at 0, so the coordinate of a joint is the file's. A link without mass is the world if it is the
root, and belongs to the body of its parent if it is fixed to that, as frames of tools are.

Tests: `tests/joints/test_urdf.py`. Source: the XML specification of URDF, wiki.ros.org/urdf/XML.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim import checks
from adjsim.joints.driven import HingeJoint, SliderJoint
from adjsim.joints.joint import Joint, WeldJoint, frames_at
from adjsim.meshes.files import read_mesh
from adjsim.meshes.shapes import shape
from adjsim.meshes.surfaces import blocks, prism
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.mass_properties import check_inertia, from_six, to_six
from adjsim.rigid.pose import BodyState
from adjsim.rotations import cross_matrix


CLASSES = {
    "revolute": HingeJoint, "continuous": HingeJoint, "prismatic": SliderJoint, "fixed": WeldJoint,
}  # fmt: skip
HOLDS = 9800.0  # k r/M of a chosen stiffness [m/s^2]: a joint gives way by r/1000 under all links
LOSS = 0.2  # of the rate of the stiffest motion: c over k and c_t over k_t, times that rate
AXES = ("xx", "yy", "zz", "xy", "xz", "yz")
N_AROUND = 24  # corners of a cylinder

Frame = tuple[np.ndarray, np.ndarray]  # where a link's origin is, and its axes as columns


@dataclass(frozen=True, eq=False)
class Robot:
    """What a URDF file describes.

    Attributes
    ----------
    bodies : RigidBodies
        One body for each link with a mass, in the order of the file.
    forces : dict
        A `HingeJoint`, `SliderJoint` or `WeldJoint` for each joint between bodies, by its name.
    state : BodyState
        Where the bodies start, at rest.
    links : dict
        The body of each link, as forces name it: "robot.2"; None for the world.
    """

    bodies: RigidBodies
    forces: dict[str, Joint]
    state: BodyState
    links: dict[str, str | None]


def read_urdf(
    path: str | os.PathLike,
    name: str = "robot",
    *,
    positions: Mapping[str, float] | None = None,
    stiffness: float | None = None,
    damping: float | None = None,
    angular_stiffness: float | None = None,
    angular_damping: float | None = None,
) -> Robot:
    """Return the bodies, the joints and the start of a robot in a URDF file.

    Parameters
    ----------
    path : path-like
        The file. Meshes are looked for beside it, and those with `package://` also above it.
    name : str
        Name of the set of bodies in the model.
    positions : mapping of str to float, optional
        Where joints start, by name [rad or m]; those left out start at 0.
    stiffness, damping, angular_stiffness, angular_damping : float, optional
        Of all joints, as of `Joint` and `FramedJoint`. None: k = 1000 M g/R with the mass M of all
        links and the largest radius of gyration R of one; a k_t that asks for the same step; c and
        c_t that shorten it by a tenth. With the largest eigenvalues k lambda and k_t mu of what
        forces and torques of all joints do to a body, over its inertia, k_t = k lambda/mu, c = 0.2
        sqrt(k/lambda) and c_t = 0.2 sqrt(k_t/mu). Limits push with k_t or k.

    Returns
    -------
    Robot
        `damping` and `friction` of the file become `viscous_friction` and `dry_friction`. A body's
        mesh is what its link has for collisions, or else what is drawn, or else one point. The
        largest effort and speed are not read. Without `lower` and `upper`, and where a hinge may
        turn by pi both ways, there are no limits.

    Raises
    ------
    FileNotFoundError
        If the file or one of its meshes is missing.
    ValueError
        If it is no URDF, a joint is of another type or mimics one, a link that moves has no mass,
        the links are no tree, or a joint starts beyond its limits; the message names it.
    """
    path = Path(checks.instance("path", path, (str, os.PathLike)))
    checks.instance("name", name, str)
    links, joints = _elements(path)
    leads = _leads(links, joints)
    owners: dict[str, str | None] = {}
    for link, joint in leads.items():
        with _within(f"link `{link}`"):
            mass = _numbers(links[link].find("inertial/mass"), "value")
        if mass > 0.0:
            owners[link] = link
        elif joint is None or joint.get("type") == "fixed":
            owners[link] = None if joint is None else owners[_end(joint, "parent")]
        else:
            raise ValueError(
                f"`path`: link `{link}` must have an <inertial> with a mass, because joint "
                f"`{joint.get('name')}` moves it."
            )
    heavy = {link: f"{name}.{k}" for k, link in enumerate(x for x in links if owners[x] == x)}
    if not heavy:
        raise ValueError("`path`: a link must have an <inertial> with a mass, got none.")
    owners = {link: owner and heavy[owner] for link, owner in owners.items()}
    bodies = _bodies({link: links[link] for link in heavy}, path)

    q = checks.mapping("positions", positions or {}, "{'elbow': 0.5}")
    movable = [key for key, joint in joints.items() if joint.get("type") != "fixed"]
    q = {checks.known_key("joint", k, movable): checks.number("positions", q[k]) for k in q}
    rest = _frames(leads, {})
    at_rest, start = (_state(bodies, [at[x] for x in heavy]) for at in (rest, _frames(leads, q)))
    framed = {}
    for key, joint in joints.items():
        child = _end(joint, "child")
        if child in heavy:
            pair, (x, axes) = (owners[_end(joint, "parent")], heavy[child]), rest[child]
            with _within(f"joint `{key}`"):
                framed[key] = pair, frames_at(pair, {name: at_rest}, x, axes @ _axis(joint))
    r = np.sqrt(np.linalg.eigvalsh(from_six(bodies.inertias))[:, 2] / bodies.masses)
    straight, turning = _responses(bodies, framed.values())
    k = HOLDS * bodies.masses.sum() / r.max() if stiffness is None else stiffness
    turn = k * straight / turning if angular_stiffness is None else angular_stiffness
    c, c_turn = LOSS * np.sqrt(k / straight), LOSS * np.sqrt(turn / turning)
    held = {
        "stiffness": k,
        "damping": c if damping is None else damping,
        "angular_stiffness": turn,
        "angular_damping": c_turn if angular_damping is None else angular_damping,
    }
    forces = {}
    for key, (pair, frames) in framed.items():
        with _within(f"joint `{key}`"):
            driven = _driven(joints[key], q.get(key, 0.0), held)
            forces[key] = CLASSES[joints[key].get("type", "")](pair, **held, **frames, **driven)
    return Robot(bodies, forces, start, {link: owners[link] for link in links})


def _responses(
    bodies: RigidBodies, framed: Iterable[tuple[tuple[str | None, str], Mapping[str, Any]]]
) -> tuple[float, float]:
    """Return how unit stiffnesses of all joints act on a body at most, over its inertia.

    Those of forces, lambda [1/kg], and of torques, mu [1/(kg m2)]: 1 without joints. As in
    `Joint.frame_bounds`, each of two bodies feels a joint twice.
    """
    sums = np.zeros((2, bodies.n_bodies, 6, 6))
    for pair, frames in framed:
        twice = 1.0 if pair[0] is None else 2.0
        for body, side in zip(pair, "ab", strict=True):
            if body is None:
                continue
            b = int(body.rsplit(".", 1)[1])
            J = np.concatenate([np.eye(3), -cross_matrix(frames[f"anchor_{side}"][0])], axis=1)
            sums[0, b] += twice * J.T @ J
            sums[1, b, 3:, 3:] += twice * np.eye(3)
    inertia = np.zeros((bodies.n_bodies, 6, 6))
    inertia[:, :3, :3] = bodies.masses[:, None, None] * np.eye(3)
    inertia[:, 3:, 3:] = from_six(bodies.inertias)
    lower = np.linalg.inv(np.linalg.cholesky(inertia))
    largest = np.linalg.eigvalsh(lower @ sums @ np.swapaxes(lower, 1, 2))[..., -1].max(axis=1)
    straight, turning = np.where(largest > 0.0, largest, 1.0)
    return float(straight), float(turning)


def _elements(path: Path) -> tuple[dict[str, Element], dict[str, Element]]:
    """Return the links and the joints of a file by name."""
    if not path.is_file():
        raise FileNotFoundError(f"`path`: there is no file {path}.")
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f"`path`: {path} must be a URDF file, but is no XML: {error}.") from error
    links, joints = (
        {e.get("name", ""): e for e in root.iterfind(tag)} for tag in ("link", "joint")
    )
    if not links or len(links) + len(joints) < len(root.findall("link") + root.findall("joint")):
        raise ValueError(f"`path`: {path} must have links, and names that differ, got {[*links]}.")
    return links, joints


def _leads(
    links: Mapping[str, Element], joints: Mapping[str, Element]
) -> dict[str, Element | None]:
    """Return the joint that leads to each link, parents before children; None to the root."""
    leads: dict[str, Element] = {}
    for name, joint in joints.items():
        with _within(f"joint `{name}`"):
            if joint.get("type") not in CLASSES or joint.find("mimic") is not None:
                given = "one with <mimic>" if joint.get("type") in CLASSES else joint.get("type")
                raise ValueError(f"its type must be one of {', '.join(CLASSES)}, got {given}.")
            for end in ("parent", "child"):
                checks.known_key("link", _end(joint, end), links)
            child = _end(joint, "child")
            if child in leads:
                other = leads[child].get("name")
                raise ValueError(f"link `{child}` must have one parent, but joint `{other}` too.")
            leads[child] = joint
    children: dict[str, list[str]] = {link: [] for link in links}
    for child, joint in leads.items():
        children[_end(joint, "parent")].append(child)
    roots = [link for link in links if link not in leads]
    for link in (order := [*roots]):
        order += children[link]
    if len(roots) != 1 or len(order) < len(links):
        raise ValueError(
            f"`path`: the links must be one tree, got the roots {roots or 'none'} and a loop of "
            f"{[link for link in links if link not in order] or 'none'}."
        )
    return {link: leads.get(link) for link in order}


def _frames(leads: Mapping[str, Element | None], q: Mapping[str, float]) -> dict[str, Frame]:
    """Return the frames of all links, with joints at q."""
    frames: dict[str, Frame] = {}
    for link, joint in leads.items():
        if joint is None:
            frames[link] = np.zeros(3), np.eye(3)
            continue
        name, (x, R) = joint.get("name", ""), frames[_end(joint, "parent")]
        with _within(f"joint `{name}`"):
            (at, turn), step = _origin(joint), q.get(name, 0.0) * _axis(joint)
        x, R = x + R @ at, R @ turn
        if joint.get("type") == "prismatic":
            frames[link] = x + R @ step, R
        else:
            frames[link] = x, R @ Rotation.from_rotvec(step).as_matrix()
    return frames


def _state(bodies: RigidBodies, frames: list[Frame]) -> BodyState:
    """Return the state of bodies in frames of their links, at rest."""
    x = [x + R @ c for (x, R), c in zip(frames, bodies.centers, strict=True)]
    return BodyState(x, Rotation.from_matrix([R for _, R in frames]).as_quat())


def _bodies(links: Mapping[str, Element], path: Path) -> RigidBodies:
    """Return a body for each link."""
    rows = []
    for link, element in links.items():
        with _within(f"link `{link}`"):
            at, weight = element.find("inertial"), element.find("inertial/inertia")
            (center, R), six = _origin(at), [_numbers(weight, f"i{ij}") for ij in AXES]
            inertia = to_six(R @ from_six(np.array(six)) @ R.T)
            check_inertia("inertia", inertia[None])
            mass = _numbers(element.find("inertial/mass"), "value")
            rows.append((_surface(element, center, path), mass, center, inertia))
    meshes, mass, center, inertia = zip(*rows, strict=True)
    return RigidBodies(meshes, mass=mass, center=center, inertia=inertia)


def _surface(link: Element, center: np.ndarray, path: Path) -> TriangleMesh | np.ndarray:
    """Return what a link has for collisions, or else what is drawn, or else its centre."""
    points, faces, n = [], [], 0
    for element in link.findall("collision") or link.findall("visual"):
        mesh, (x, R) = _geometry(element.find("geometry/*"), path), _origin(element)
        points.append(x + mesh.points @ R.T)
        faces.append(n + mesh.faces)
        n += len(mesh.points)
    return TriangleMesh(np.concatenate(points), np.concatenate(faces)) if n else center[None]


def _geometry(element: Element | None, path: Path) -> TriangleMesh:
    """Return a surface in its own axes."""
    tag = "none" if element is None else element.tag
    if tag == "box":
        size = _numbers(element, "size", (0.0, 0.0, 0.0))
        return blocks([(-0.5 * end, 0.5 * end) for end in size], np.ones((1, 1, 1)))
    if tag == "sphere":
        return shape("sphere", _numbers(element, "radius"))
    if tag == "cylinder":
        t = 2.0 * np.pi / N_AROUND * np.arange(N_AROUND)
        outline = _numbers(element, "radius") * np.column_stack([np.cos(t), np.sin(t)])
        return prism(outline, _numbers(element, "length"))
    if element is None or tag != "mesh":
        raise ValueError(f"<geometry> must be a box, sphere, cylinder or mesh, got {tag}.")
    file = element.get("filename", "").removeprefix("file://")
    folders = path.resolve().parents[: None if file.startswith("package://") else 1]
    places = [folder / file.removeprefix("package://") for folder in folders]
    mesh = read_mesh(next(filter(Path.is_file, places), places[0]))
    scale = _numbers(element, "scale", (1.0, 1.0, 1.0))
    faces = checks.instance("mesh", mesh, TriangleMesh).faces
    return TriangleMesh(mesh.points * scale, faces if scale.prod() > 0.0 else faces[:, ::-1])


def _driven(joint: Element, q: float, held: Mapping[str, Any]) -> dict[str, Any]:
    """Return friction and limits of a joint that starts at q."""
    kind, dynamics, limit = joint.get("type"), joint.find("dynamics"), joint.find("limit")
    if kind == "fixed":
        return {}
    named = {"viscous_friction": "damping", "dry_friction": "friction"}
    settings = {name: _numbers(dynamics, key) for name, key in named.items()}
    settings = {name: value for name, value in settings.items() if value}
    lower, upper = _numbers(limit, "lower", -np.inf), _numbers(limit, "upper", np.inf)
    reach = np.inf if kind == "prismatic" else np.pi
    if kind == "continuous" or min(-lower, upper) >= reach:
        return settings
    if not -reach <= lower <= q <= upper <= reach:
        raise ValueError(
            "<limit> must hold the start, and be between -pi and pi for a hinge, got "
            f"{lower:g} to {upper:g} with the start at {q:g}: give `positions`, narrow it, or make "
            "the joint continuous."
        )
    hold = held["stiffness" if kind == "prismatic" else "angular_stiffness"]
    return settings | {"limit_stiffness": hold, "lower": lower, "upper": upper}


def _end(joint: Element, end: str) -> str:
    """Return the name of a joint's "parent" or "child"."""
    element = joint.find(end)
    return "" if element is None else element.get("link", "")


def _axis(joint: Element) -> np.ndarray:
    """Return the axis of a joint in its frame, of length 1; some files give 0 to fixed ones."""
    given = None if joint.get("type") == "fixed" else joint.find("axis")
    axis = checks.length("axis", _numbers(given, "xyz", (1.0, 0.0, 0.0)))
    return axis / np.linalg.norm(axis)


def _origin(element: Element | None) -> Frame:
    """Return the <origin> of an element."""
    origin = None if element is None else element.find("origin")
    turn = Rotation.from_euler("xyz", _numbers(origin, "rpy", (0.0, 0.0, 0.0)))
    return _numbers(origin, "xyz", (0.0, 0.0, 0.0)), turn.as_matrix()


def _numbers(element: Element | None, key: str, default: Any = 0.0) -> Any:
    """Return the numbers of an attribute, as many as there are by default, and finite as these."""
    text = None if element is None else element.get(key)
    if text is None:
        return np.array(default)[()]
    try:
        numbers = np.array(text.split(), np.float64).reshape(np.shape(default))
        if np.isfinite(default).all() or np.isnan(numbers).any():
            checks.array(key, numbers)
        return numbers[()]
    except ValueError as error:
        n = np.size(default)
        numbers = "a finite number" if n == 1 else f"{n} finite numbers"
        raise ValueError(f"`{key}` must be {numbers}, got {text!r}.") from error


@contextmanager
def _within(what: str) -> Iterator[None]:
    """Name the link or joint that an error is about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"`path`: {what}: {error}") from error
