"""The beam study: a soft cantilever whose mu and lam are identified from a rendered video."""

from typing import Any

import numpy as np

from adjsim import checks
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.model import Model, State
from render.scene import Material, Mesh
from studies.errors import StudyError
from studies.filming import MeshFilming, Skin, make_filming
from studies.fit import Fit
from studies.motion import Motion
from studies.noise import Noise
from studies.parameters import Parameters, lame_block
from studies.registry import RunOptions
from studies.search.local import make_loss, make_search
from studies.settings import bounds_of, require_vectors
from studies.timeline import frame_steps
from studies.truth import Truth
from studies.video_problem import VideoProblem


NAME = "beam"
RAMP = np.array([[0.85, 0.32, 0.22], [0.95, 0.75, 0.3], [0.25, 0.6, 0.75]])  # root to tip
CHECKS = (4.0, 1.0)  # periods of the light and dark pattern, along the length and the height
DEPTH = 0.25  # of that pattern, half of its range


def prepare(settings: dict[str, Any], options: RunOptions) -> Fit:
    """Check the settings, render the target video, and return the search for mu and lam.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    check_settings(settings)
    mesh = beam_mesh(settings)
    motion = beam_motion(settings, mesh, options)
    filming = beam_filming(settings, mesh, options.device)
    truth = filming.shoot(motion, motion.run())
    noise = Noise.of(settings["noise"])
    rng = np.random.default_rng(options.seed)
    start, bounds = settings["start"], settings["bounds"]
    block = lame_block(
        NAME, start["mu"], start["lam"], {f"{NAME}.{key}": bounds[key] for key in ("mu", "lam")}
    )
    problem = VideoProblem(
        motion, filming, Parameters([block]), make_loss(settings["loss"]), noise.apply(truth, rng)
    )
    beam = settings["beam"]
    hidden = Truth({f"{NAME}.{key}": beam[key] for key in ("mu", "lam")}, truth, noise.apply)
    return Fit(
        problem,
        make_search(settings["optimizer"]),
        options,
        title="A soft beam, identified from video",
        units={f"{NAME}.mu": "Pa", f"{NAME}.lam": "Pa"},
        truth=hidden,
        noise_repeats=settings["noise"]["repeats"],
        what=f"{mesh.n_tets} tetrahedra, {mesh.n_points} nodes",
    )


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    beam = settings["beam"]
    checks.integers("beam.cells", beam["cells"], (3,))
    require_vectors(settings, "beam", "size")
    require_vectors(settings, "motion", "gravity")
    for key in ("mu", "lam", "density", "size", "cells"):
        checks.positive(f"beam.{key}", beam[key])
    checks.non_negative("beam.viscosity", beam["viscosity"])
    for table in ("beam", "start"):
        mu, lam = settings[table]["mu"], settings[table]["lam"]
        checks.positive(f"{table}.mu", mu)
        if not lam > mu / 8.0:
            raise StudyError(
                f"`{table}.lam` must be greater than {table}.mu/8 = {mu / 8.0:g} for a stable "
                f"rest shape, got {lam:g}. Raise it, or lower `{table}.mu`."
            )
    for key, bounds in bounds_of(settings, ("mu", "lam")).items():
        checks.positive(f"bounds.{key}", bounds)


def beam_mesh(settings: dict[str, Any]) -> TetMesh:
    """Return the beam along x, its root at x = 0."""
    beam = settings["beam"]
    return box_tets(beam["cells"], beam["size"])


def beam_motion(settings: dict[str, Any], mesh: TetMesh, options: RunOptions) -> Motion:
    """Return the beam let go from a twist and a stretch, its root pinned."""
    beam, motion = settings["beam"], settings["motion"]
    dt, steps = frame_steps(settings["time"])
    viscosity = beam["viscosity"] or None
    force = NeoHookeanTets(mesh.tets, mesh.points, beam["mu"], beam["lam"], viscosity=viscosity)
    x = mesh.points
    centre = np.array([0.0, *beam["size"][1:]]) / 2.0
    arm = x - centre
    v = np.zeros_like(x)
    v[:, 0] = motion["stretch"] * x[:, 0]
    v[:, 1] = -motion["twist"] * x[:, 0] * arm[:, 2]
    v[:, 2] = motion["twist"] * x[:, 0] * arm[:, 1]
    model = Model(
        force.lumped_mass(beam["density"]),
        {NAME: force},
        gravity=motion["gravity"],
        pinned=x[:, 0] <= 1e-9 * beam["size"][0],
    )
    return Motion(
        model, State(x, v), dt, steps, options.dtype,
        device=options.device, checkpoint=options.checkpoint,
    )  # fmt: skip


def beam_filming(settings: dict[str, Any], mesh: TetMesh, device: str = "cpu") -> MeshFilming:
    """Return the camera on the beam.

    Its colours are smooth: warm to cold from root to tip, with a soft light and dark
    pattern that follows the material, so that motion inside the silhouette shows. Front
    and back of a place have one colour, which hides the seams between soft faces.
    """
    surface = mesh.surface()
    place = mesh.points[surface.nodes] / settings["beam"]["size"]
    ramp = [np.interp(place[:, 0], [0.0, 0.5, 1.0], channel) for channel in RAMP.T]
    wave = np.cos(np.pi * CHECKS[0] * place[:, 0]) * np.cos(np.pi * CHECKS[1] * place[:, 1])
    colors = np.stack(ramp, axis=1) * (1.0 - DEPTH + DEPTH * wave)[:, None]
    drawn = Mesh(surface.local_faces, vertex_colors=colors, material=Material(0.8, 0.2))
    skin = Skin.of_nodes(surface.nodes, mesh.n_points)
    return make_filming(settings, {NAME: (drawn, skin)}, device=device)
