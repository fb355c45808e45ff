r"""Soft bodies: tetrahedra of neo-Hookean material, with one of two laws of volume.

E and nu, or mu and lam, are small-strain constants (`studies/scene/bodies/materials.py`). Rest is
stable with every E > 0 and -1 < nu < 1/2, and with Lame constants that have lam_L > -2/3 mu_L.
"""

from functools import partial
from typing import Any

import numpy as np

from adjsim.forces.element import Force
from adjsim.values import values_under
from studies.runs.errors import StudyError
from studies.scene.bodies.materials import (
    SOLID_LAWS,
    SolidLaw,
    lumping_of,
    mass_of,
    require_pair,
    solid_curves,
)
from studies.scene.bodies.muscles import make_muscles
from studies.scene.bodies.part import (
    Cage,
    NodePart,
    field_or_number,
    held_nodes,
    linear,
    mass_factors,
    node_velocities,
    positive,
)
from studies.scene.bodies.shape import SHAPE, WeighedShape, make_shape
from studies.scene.declared import Soft
from studies.scene.looks import drawn_mesh
from studies.scene.maps import Moduli, ParameterMap, Scaled, Value, Weighed, all_targets, values_of
from studies.scene.mesh_source import Source, read_source, skin_of, volume_of


NU = 0.4  # where only E is given
LOCKS = 0.45  # above it linear tetrahedra lock
NU_BOUNDS = (0.0, 0.49)


def make_soft(name: str, body: Soft, free: frozenset[str], *, refined: bool = False) -> NodePart:
    """Return a soft body; `free` are the scene's free paths. `refined` makes its mesh finer."""
    key = f"bodies.{name}"
    notes: list[str] = []
    has_E = require_pair(key, body)
    if has_E and body.nu is None:
        notes.append(f"`{key}.nu` is not given: {NU} is taken.")
    if body.nu is not None and body.nu > LOCKS:
        notes.append(
            f"`{key}.nu` = {body.nu:g} is near 0.5, where linear tetrahedra are too stiff (they "
            f"lock), and an E that is fitted comes out too low. Take {LOCKS} or less."
        )
    source = read_source(key, body)
    volume = volume_of(key, source, body.edge_length, body.shape_error or 0.0)
    is_filled = volume is not source.mesh
    if is_filled:
        notes.append(
            f"`{key}.mesh` is a surface: it was filled with {volume.n_tets} tetrahedra of "
            f"`edge_length` = {body.edge_length:g}, on which the answer depends; a run says how "
            "much."
        )
    skin, surface = skin_of(source, volume)
    drawn = drawn_mesh(f"{key}.look", body.look, surface, source)
    muscles = make_muscles(
        name, body, volume.tets, volume.points, target=f"{name}.actuation", free=free
    )
    held = held_nodes(f"{key}.held", body.held, volume.points, numbered=not is_filled)
    shape = make_shape(name, body, volume) if body.shape_error else None
    if shape is None and f"{name}{SHAPE}" in free:
        raise StudyError(
            f"`{key}.shape_error` is missing, and `{name}{SHAPE}` is free. Say how far the surface "
            "may be from where the mesh has it, as a standard deviation [m]."
        )
    grid = Cage(volume, source, held, skin, body.mass_factors)
    if refined:
        grid = grid.refined(key, body, muscles)
        volume = grid.mesh
        shape = shape and shape.at_points(grid.finer)
    values = _material(name, body, grid.source, is_filled=is_filled) | muscles.values
    if body.viscosity > 0.0 or f"{name}.viscosity" in free:
        values[f"{name}.viscosity"] = positive(body.viscosity, "Pa s", 100.0)
    lumping = lumping_of(volume.tets, volume.volumes, volume.n_points)
    values |= mass_factors(name, grid.mass_factors, lumping)
    numbers = values_of(values)
    weigh = partial(Weighed, name, lumping)
    if shape is not None:
        values[shape.path] = shape.value
        weigh = partial(WeighedShape, shape, volume)
    law = SOLID_LAWS[body.law]
    material = [*_material_maps(name, values, law), *muscles.maps]
    _check_stable(key, all_targets(material, numbers), name, law)

    def forces(rest: np.ndarray, first: int, targets: dict[str, Any]) -> dict[str, Force]:
        return {name: law.tets(first + volume.tets, rest, **values_under(name, targets))}

    hull = volume.surface()
    return NodePart(
        name, volume.points, grid.held, mass_of(name, numbers, lumping), hull.nodes, hull.faces,
        values, material, weigh, forces, drawn, grid.skin,
        node_velocities(name, body, grid.source, volume.points, numbered=not is_filled),
        varying=muscles.varying, notes=tuple(notes), finer=grid.finer, dimension=3, shape=shape,
    )  # fmt: skip


def _material(name: str, body: Soft, source: Source, *, is_filled: bool) -> dict[str, Value]:
    """Return the values of the material by path."""

    def read(which: str) -> Any:
        return field_or_number(
            f"bodies.{name}.{which}", getattr(body, which), source, is_filled=is_filled
        )

    values = {f"{name}.density": positive(read("density"), "kg/m3")}
    if body.E is not None:
        nu = NU if body.nu is None else body.nu
        low, high = NU_BOUNDS
        bounds = (min(low, 1.1 * nu), max(high, 0.5 * (nu + 0.5)))
        values[f"{name}.E"] = positive(read("E"), "Pa")
        values[f"{name}.nu"] = Value(np.array(nu, np.float64), "-", "linear", bounds)
        return values
    values[f"{name}.mu"] = positive(read("mu"), "Pa")
    lam = np.array(read("lam"), np.float64)
    values[f"{name}.lam"] = (
        positive(lam, "Pa")
        if lam.min() > 0.0
        else linear(lam, "Pa", 30.0 * float(values[f"{name}.mu"].value.max()))
    )
    return values


def _material_maps(name: str, values: dict[str, Value], law: SolidLaw) -> list[ParameterMap]:
    maps: list[ParameterMap] = []
    if f"{name}.E" in values:
        maps.append(Moduli(name, solid_curves(name, law), {}))
    else:
        mu, lam = f"{name}.mu", f"{name}.lam"
        maps += [Scaled(mu, {mu: law.in_mu, lam: law.in_lam}), Scaled(lam, {lam: 1.0})]
    if (path := f"{name}.viscosity") in values:
        maps.append(Scaled(path, {path: 1.0}))
    return maps


def _check_stable(key: str, targets: dict[str, np.ndarray], name: str, law: SolidLaw) -> None:
    mu, lam = targets[f"{name}.mu"], targets[f"{name}.lam"]
    stable = lam > law.tets.LEAST_LAM * mu
    if not np.all(stable):
        raise StudyError(
            f"`{key}.lam` must be above -2/3 of `{key}.mu` (a positive bulk modulus), as "
            "small-strain constants. Raise it, or give `E` and `nu`."
        )
