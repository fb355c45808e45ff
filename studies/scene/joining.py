"""What the tables `contacts` and `joints` must agree on with the bodies that they name."""

from typing import Any

from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.components import split_component
from studies.scene.declared import WORLD, Scene
from studies.scene.shared_checks import check_direction, check_held, check_law, check_reference


SURFACES = (declared.Soft, declared.Cloth, declared.Rigid)  # what may touch each other
NODES = (declared.Soft, declared.Cloth, declared.Springs)  # what may be pinned


def check_contact(name: str, scene: Scene) -> None:
    """Raise if a contact is between what cannot touch."""
    contact, key = scene.contacts[name], f"contacts.{name}"
    a, b = contact.between
    for side in (a, b):
        check_reference(f"{key}.between", "body", side, scene.bodies)
        body = scene.bodies[side]
        if not isinstance(body, SURFACES):
            raise StudyError(
                f"`{key}.between` must name bodies that are soft, cloth or rigid, got "
                f"`bodies.{side}`, which is {body.kind}. Take it out, or give the body "
                "another kind."
            )
    if a == b and isinstance(scene.bodies[a], declared.Rigid):
        raise StudyError(
            f"`{key}.between` must name two bodies, got the rigid body `bodies.{a}` twice, which "
            "cannot touch itself. Name another body."
        )
    _check_take(key, contact.between, scene)
    others = list(scene.contacts)[: list(scene.contacts).index(name)]
    for other in others:
        if set(scene.contacts[other].between) == {a, b}:
            raise StudyError(
                f"`{key}.between` must be a pair that has no contact yet, got `{a}` and `{b}`, "
                f"which `contacts.{other}` keeps apart. Leave one of the two out."
            )
    check_law(key, contact)


def check_joint(name: str, scene: Scene) -> None:
    """Raise if a joint is between what it cannot join, or its numbers exclude each other."""
    joint, key = scene.joints[name], f"joints.{name}"
    a, b = joint.between
    if a == b:
        raise StudyError(
            f'`{key}.between` must name two different bodies, or "{WORLD}" and a body, got '
            f"`{a}` twice."
        )
    for end in (a, b):
        check_reference(f"{key}.between", "body", end, (*scene.bodies, WORLD))
    _check_take(key, joint.between, scene)
    if isinstance(joint, declared.PinJoint):
        _check_pin(key, joint, scene)
        return
    for end in (a, b):
        if end != WORLD and not isinstance(body := scene.bodies[end], declared.Rigid):
            raise StudyError(
                f'`{key}.between` must name rigid bodies or "{WORLD}" for a joint of the kind '
                f'"{joint.kind}", got `bodies.{end}`, which is {body.kind}. Nodes are held by the '
                'kind "pin".'
            )
    if isinstance(joint, declared.HingeJoint | declared.SliderJoint):
        check_direction(f"{key}.axis", joint.axis)
        _check_drive(key, joint)


def _check_pin(key: str, joint: declared.PinJoint, scene: Scene) -> None:
    first, second = joint.between
    check_held(f"{key}.where", joint.where)
    if WORLD in joint.between:
        raise StudyError(
            f'`{key}.between` must name two bodies for a pin, got "{WORLD}". Nodes that stay where '
            "they are have the key `held` of their body."
        )
    if not isinstance(body := scene.bodies[first], NODES):
        raise StudyError(
            f"`{key}.between` must name the body whose nodes are pinned first, got "
            f"`bodies.{first}`, which is {body.kind}. Swap the two, or take another kind of joint."
        )
    if not isinstance(body := scene.bodies[second], (*NODES, declared.Rigid)):
        raise StudyError(
            f"`{key}.between` must name soft bodies, cloth, springs or rigid bodies, got "
            f"`bodies.{second}`, which is {body.kind}."
        )


def _check_drive(key: str, joint: Any) -> None:
    """Raise if limits exclude the start, or one comes without the other."""
    unit = "deg" if joint.kind == "hinge" else "m"
    lower, upper = joint.lower, joint.upper
    if lower is None and upper is None:
        if joint.limit_stiffness is not None:
            raise StudyError(
                f"`{key}.limit_stiffness` needs the limits `lower` and `upper`, which are not "
                "given."
            )
        return
    if lower is None or upper is None:
        missing = "lower" if lower is None else "upper"
        raise StudyError(
            f"`{key}.{missing}` is missing: limits need both `lower` and `upper` [{unit}]."
        )
    if not lower <= 0.0 <= upper:
        raise StudyError(
            f"`{key}.lower` and `upper` must hold the start, where the joint is at 0, got "
            f"[{lower:g}, {upper:g}] {unit}. They count from the bodies as they are declared: "
            "shift the limits, or turn or move a body."
        )
    if joint.kind == "hinge" and not -180.0 <= lower <= upper <= 180.0:
        raise StudyError(
            f"`{key}.lower` and `upper` must be within -180 and 180 deg, got [{lower:g}, "
            f"{upper:g}]: a hinge does not count turns."
        )


def _check_take(key: str, between: tuple[str, str], scene: Scene) -> None:
    takes = {getattr(scene.bodies[end], "take", "") for end in between if end != WORLD}
    if len(takes) > 1:
        raise StudyError(
            f"`{key}.between` must name bodies of one take, got {' and '.join(between)}: bodies of "
            "different takes do not meet."
        )


def check_joined(key: str, path: str, scene: Scene) -> None:
    """Raise on a free pose of a body that a joint holds, at the place where it is declared."""
    owner, _, name = split_component(path)[0].rpartition(".")
    joint = next((k for k, spec in scene.joints.items() if owner in spec.between), None)
    if joint is not None and name in ("position", "rotation"):
        raise StudyError(
            f"`{key}` must be left out: `joints.{joint}` holds `bodies.{owner}` where it is "
            "declared, and another start would tear it off."
        )
