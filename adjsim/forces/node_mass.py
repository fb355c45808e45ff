"""The masses of a model's nodes: given, or the sum of what the forces' densities give."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.forces.element import Force


def lumped_masses(forces: Mapping[str, Force]) -> dict[str, np.ndarray]:
    """Return the node masses, (n_nodes,) [kg], of each force that has a density."""
    masses = {name: force.node_mass() for name, force in forces.items()}
    return {name: mass for name, mass in masses.items() if mass is not None}


def check_length(count: int, forces: Mapping[str, Force]) -> None:
    """Raise if there is not a mass for each row of the forces' rest positions.

    Where these differ among themselves, one of them is wrong: `Force.bind` names it.
    """
    rests = {name: getattr(force, "rest_positions", None) for name, force in forces.items()}
    rows = {name: len(rest) for name, rest in rests.items() if rest is not None}
    if len(set(rows.values())) == 1 and count not in rows.values():
        name, expected = next(iter(rows.items()))
        raise ValueError(
            f"`mass` must have shape (n_nodes,) = ({expected},), one for each row of "
            f"`{name}.rest_positions`, got ({count},)."
        )


def check_mass(
    given: Any, lumped: Mapping[str, np.ndarray], forces: Mapping[str, Force]
) -> np.ndarray:
    """Return the node masses: those given, or the sum of those that densities give.

    Raise a ValueError if both are there, or neither, or a node has none, or there are too few or
    too many.
    """
    if given is not None:
        if lumped:
            raise ValueError(
                f"`mass` is given, and `{next(iter(lumped))}.density` too: masses would be given "
                "twice. Leave one of the two out."
            )
        mass = checks.positive("mass", checks.array("mass", given, ("n_nodes",)))
        check_length(len(mass), forces)
        return mass
    if not lumped:
        raise ValueError(
            "`mass` must be given, one entry per node, unless a force has a `density` to compute "
            "it from."
        )
    sizes = {name: len(mass) for name, mass in lumped.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"`rest_positions` must have one row per node of the model, got {sizes}.")
    total = np.sum(list(lumped.values()), axis=0)
    if not (total > 0.0).all():
        raise ValueError(
            f"`mass` must be positive, but node {int(np.argmin(total))} is in no element of "
            f"{', '.join(lumped)}, from whose density its mass would come. Leave the node out, or "
            "give `mass`."
        )
    return total
