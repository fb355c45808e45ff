"""Tables in tiny versions, made of the toys of the studies."""

import json

from tests.studies.toy_beam import OVERRIDES as BEAM
from tests.studies.toys import TOYS


def settings_of(scene, overrides, *more):
    """Return the override of a table that makes the study behind a scene tiny."""
    return f"{scene}.settings={json.dumps([*overrides, *more])}"


BALL = TOYS["ball-material"].overrides
TABLE1 = (
    "count=3",
    settings_of("mass", TOYS["rigid-mass"].overrides),
    "reinforce.steps=4",
)
TABLE2 = ("count=2", settings_of("contact", TOYS["rigid-contact"].overrides, "optimizer.starts=1"))
TABLE3 = (
    "count=2",
    settings_of("masses", BALL, 'free=["mass"]'),
    settings_of("ball", BALL, 'free=["material"]'),
    settings_of("beam", BEAM),
    settings_of("cloth", TOYS["cloth-velocity"].overrides),
)
TABLES = {"table1": TABLE1, "table2": TABLE2, "table3": TABLE3}
