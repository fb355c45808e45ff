"""Tables in tiny versions, made of the toys of the studies."""

import json

from tests.studies.toys import TOYS


def settings_of(scene, study, *more):
    """Return the override of a table that makes the study behind a scene tiny."""
    return f"{scene}.settings={json.dumps([*TOYS[study].overrides, *more])}"


TABLE1 = ("count=3", settings_of("mass", "rigid-mass"))
