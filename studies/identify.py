"""Which material moves as the user's video shows the user's mesh?

    adjsim run identify mesh=part.stl video=clip.mp4

Without arguments it runs the shipped example; a correct run ends with body.mu within 1 %
of 1.2e5 Pa and a certificate that passed.
"""

import math
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.files import find_mesh
from adjsim.model import Model, State
from studies.body import Body, check_body, fillings, lam_over_mu, read_body
from studies.errors import StudyError
from studies.fillings import told_of_filling
from studies.fit import Fit
from studies.footage import (
    Footage,
    advice_on_stillness,
    check_footage,
    make_skin_filming,
    read_footage,
)
from studies.motion import Motion
from studies.parameters import Block, Parameters, block, lame_block, positive_block
from studies.registry import RunOptions
from studies.search.local import make_loss, make_search
from studies.settings import (
    bounds_of,
    ends,
    require_directions,
    require_not_negative,
    require_positive,
    require_vectors,
)
from studies.transforms import Identity
from studies.video_problem import VideoProblem
from studies.wires import Outer, Wire, Wires


__all__ = ["fillings"]  # with `prepare`, `advice` and `advice_on_job`, what is asked of a study
ASSETS, SHIPPED = Path(__file__).resolve().parent / "assets", "adjsim:"
PATHS = {
    "mu": "body.mu",
    "lam": "body.lam",
    "viscosity": "body.viscosity",
    "density": "density",
    "friction": "floor.friction",
    "velocity": "velocity",
}
UNITS = {
    "body.mu": "Pa",
    "body.lam": "Pa",
    "body.viscosity": "Pa s",
    "density": "kg/m3",
    "floor.friction": "-",
    "velocity": "m/s",
}


def prepare(settings: dict[str, Any], options: RunOptions) -> Fit:
    """Read mesh and video, check the settings, and return the search.

    Raises
    ------
    ValueError
        If a setting is out of range, or mesh and video do not fit them.
    FileNotFoundError
        If a file is missing.
    """
    search = make_search(settings["optimizer"])
    body, problem = make_problem(settings, options)
    return Fit(
        problem,
        search,
        options,
        title=f"{Path(settings['mesh']).name}, identified from {Path(settings['video']).name}",
        units={path: UNITS[path] for path in free_paths(settings)},
        what=f"{body.mesh.n_tets} tetrahedra, {body.mesh.n_points} nodes",
        findings=partial(findings, body, settings["body"]["edge_length"]),
    )


def findings(body: Body, edge_length: float, _theta: np.ndarray) -> list[str]:
    """Return what the study has to say of its optimum: what it owes to the filling."""
    return [told_of_filling(edge_length)] if body.is_filled else []


def advice(settings: dict[str, Any], given: Collection[str]) -> list[str]:
    """Return what looks like a mistake: the user's mesh or video, the rest the example's.

    `given` are the dotted keys that the user set.
    """
    if not has_files(settings):
        return []  # the missing file is what to tell of, where it is read
    tables = {key.partition(".")[0] for key in given}
    lines = []
    if "mesh" in given and "body.scale" not in given:
        lines.append(
            f"`mesh` is yours, but `body.scale` is still {settings['body']['scale']:g}, the "
            "example's: set the factor from your mesh's units to metres."
        )
    if "mesh" in given and "video" not in given:
        lines.append(
            "`mesh` is yours, but `video` is still the example's: name the film of your body, "
            "an mp4, a gif or a folder of PNG frames."
        )
    if "video" in given and "mesh" not in given:
        lines.append(
            "`video` is yours, but `mesh` is still the example's: name the mesh of what is filmed."
        )
    if "mesh" in given and "pinned" not in tables:
        lines.append(
            "`mesh` is yours, but `[pinned]` is still the example's: say which nodes are held, by "
            "`pinned.shape` = box (`pinned.lower`, `pinned.upper`), plane (`pinned.point`, "
            "`pinned.normal`) or none."
        )
    if yours := [key for key in ("mesh", "video") if key in given and "camera" not in tables]:
        lines.append(
            f"`{yours[0]}` is yours, but `[camera]` is still the example's: set where your camera "
            "stood and looked: `camera.eye`, `camera.target`, `camera.up` and `camera.fov_y`."
        )
    return lines


def advice_on_job(job: Fit) -> list[str | None]:
    """Return what looks like a mistake once mesh and video were read."""
    return [advice_on_stillness(job.problem.targets)]


def has_files(settings: dict[str, Any]) -> bool:
    """Whether mesh and video are there."""
    try:
        find_mesh(settings["mesh"])
    except FileNotFoundError:
        return False
    return Path(shipped(settings["video"])).exists()


def make_problem(settings: dict[str, Any], options: RunOptions) -> tuple[Body, VideoProblem]:
    """Return the body and the loss of its video."""
    check_settings(settings)
    loss, blocks = make_loss(settings["loss"]), make_blocks(settings)
    body = read_body(settings)
    footage = read_footage(settings, shipped(settings["video"]))
    motion, wires = make_motion(settings, body, footage, options)
    parameters = Parameters(blocks, wires)
    filming, targets = make_skin_filming(settings, body, footage, device=options.device)
    return body, VideoProblem(motion, filming, parameters, loss, targets)


def shipped(path: str) -> str:
    """Return the path of a file; "adjsim:NAME" is one that is shipped with adjsim."""
    if path.startswith(SHIPPED):
        return str(ASSETS / path.removeprefix(SHIPPED))
    return path


def free_paths(settings: dict[str, Any]) -> list[str]:
    """Return the paths of the free parameters."""
    return [PATHS[name] for name in settings["free"]["parameters"]]


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key: all that needs neither mesh nor video."""
    material, free = settings["material"], settings["free"]["parameters"]
    for name in free:
        checks.known_key("name in `free.parameters`", name, PATHS)
    if not free or len(set(free)) != len(free):
        raise StudyError(f"`free.parameters` must name one or more, each once, got {free}.")
    if "friction" in free and not settings["floor"]["exists"]:
        raise StudyError("`free.parameters` has friction, but there is no floor: set floor.exists.")
    require_positive(settings, "material", "mu", "density")
    require_not_negative(settings, "material", "lam", "viscosity", "friction")
    require_vectors(settings, "material", "velocity")
    require_vectors(settings, "motion", "gravity")
    if settings["floor"]["exists"]:
        require_directions(settings, "floor", "normal")
        require_not_negative(settings, "floor", "stiffness", "damping", "friction_stiffness")
    require_vectors(settings, "appearance", "color")
    require_directions(settings, "appearance", "light")
    if 0.0 < material["lam"] <= material["mu"] / 8.0:
        raise StudyError(
            f"`material.lam` must be greater than mu/8 = {material['mu'] / 8.0:g} for a stable "
            f"rest shape, got {material['lam']:g}; 0 takes it from body.poisson_ratio."
        )
    checks.positive("time.dt", settings["time"]["dt"])
    check_body(settings)
    check_footage(settings)
    ends(settings, "bounds", PATHS)
    bounds_of(settings, free)  # the others mean nothing


def start_values(settings: dict[str, Any]) -> dict[str, Any]:
    """Return every path's value at the start; lam from Poisson's ratio if not given."""
    material = settings["material"]
    lam = material["lam"] or lam_over_mu(settings["body"]["poisson_ratio"]) * material["mu"]
    return {PATHS[name]: material[name] for name in PATHS} | {"body.lam": lam}


def is_tied(settings: dict[str, Any]) -> bool:
    """Whether lam follows mu."""
    return not settings["material"]["lam"] and "lam" not in settings["free"]["parameters"]


def make_blocks(settings: dict[str, Any]) -> list[Block]:
    """Return the blocks of free parameters: mu and lam as a pair, positive ones by log."""
    free, start, given = free_paths(settings), start_values(settings), settings["bounds"]
    bounds = {path: given[name] for name, path in PATHS.items()}
    blocks = []
    if "body.mu" in free and "body.lam" in free:
        blocks.append(lame_block("body", start["body.mu"], start["body.lam"], bounds))
        free = [path for path in free if path not in ("body.mu", "body.lam")]
    for path in free:
        if path == "velocity":
            blocks.append(block((path,), Identity(), [start[path]], bounds))
        else:
            blocks.append(positive_block(path, start[path], bounds))
    return blocks


def make_motion(
    settings: dict[str, Any], body: Body, footage: Footage, options: RunOptions
) -> tuple[Motion, Wires]:
    """Return the body at the start values, filmed at the frames of the video, and its wires."""
    start, free = start_values(settings), free_paths(settings)
    viscous = start["body.viscosity"] or "body.viscosity" in free
    solid = NeoHookeanTets(
        body.mesh.tets,
        body.mesh.points,
        start["body.mu"],
        start["body.lam"],
        viscosity=start["body.viscosity"] if viscous else None,
    )
    forces: dict[str, Any] = {"body": solid}
    if settings["floor"]["exists"]:
        plane = {key: value for key, value in settings["floor"].items() if key != "exists"}
        forces["floor"] = HalfSpaceContact(**plane, friction=start["floor.friction"])
    moving = np.where(body.pinned, 0.0, 1.0)
    wires = make_wires(settings, solid.lumped_mass(1.0), moving)
    model = Model(
        solid.lumped_mass(start["density"]),
        forces,
        gravity=settings["motion"]["gravity"],
        pinned=body.pinned,
    )
    per_frame = math.ceil(1.0 / (footage.fps * settings["time"]["dt"]) - 1e-9)
    motion = Motion(
        model,
        State(body.mesh.points, np.multiply.outer(moving, start["velocity"])),
        1.0 / (footage.fps * per_frame),
        per_frame * np.arange(len(footage.frames)),
        options.dtype,
        device=options.device,
        checkpoint=options.checkpoint,
    )
    return motion, wires


def make_wires(settings: dict[str, Any], unit_mass: np.ndarray, moving: np.ndarray) -> Wires:
    """Return the way of density, velocity and, where lam follows it, mu.

    `unit_mass` is every node's mass at density 1, `moving` is 0 where a node is held.
    """
    wires = [
        Wire("density", "mass", Outer(unit_mass)),
        Wire("velocity", "state.v", Outer(moving)),
    ]
    if is_tied(settings):
        ratio = lam_over_mu(settings["body"]["poisson_ratio"])
        wires += [Wire("body.mu", "body.mu"), Wire("body.mu", "body.lam", Outer(ratio))]
    return Wires(tuple(wires))
