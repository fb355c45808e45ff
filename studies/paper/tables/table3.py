"""Table 3 of the gradSim paper: masses, material and velocities of deformable bodies.

    adjsim run table3 count=10

A correct run ends with mean relative errors from video of at most 1e-2 for the masses of a ball's
particles, 1e-4 for mu and lam of balls and beams, and 1e-3 for the velocities of a curtain.
"""

from functools import partial

from studies.paper.tables.baselines import AVERAGE, RANDOM
from studies.paper.tables.from_video import VIDEO
from studies.paper.tables.job import prepare_table
from studies.paper.tables.reinforce import REINFORCE
from studies.paper.tables.soft_scenes import BallScene, BeamScene, ClothScene
from studies.paper.tables.states import STATES
from studies.paper.tables.table import Column, Statistic, Table


def lame_columns(name: str) -> tuple[Column, ...]:
    """Return the columns of mu and lam of a body; the paper has one of each for all bodies."""
    published = {
        "mu": {"video": 5.4e-3, "states": 2.5e-3},
        "lam": {"video": 5.6e-3, "states": 2.4e-3},
    }
    return tuple(
        Column(f"{name}.{key}", f"{key} of a {name}", 1e-4, Statistic.MEAN, both)
        for key, both in published.items()
    )


MASSES = Column("mass", "masses of a ball", 1e-2, Statistic.MEAN, {"video": 0.048, "states": 0.032})
VELOCITIES = Column(
    "velocity",
    "velocities of a curtain",
    1e-3,
    Statistic.MEAN,
    {"video": 0.026, "states": 0.127},
)
TABLE = Table(
    "table3",
    "Table 3: deformable bodies from video",
    (
        BallScene("masses", "ball-material", (MASSES,)),
        BallScene("ball", "ball-material", lame_columns("ball")),
        BeamScene("beam", "beam", lame_columns("beam")),
        ClothScene("cloth", "cloth-velocity", (VELOCITIES,)),
    ),
    (VIDEO, STATES, REINFORCE, AVERAGE, RANDOM),
    differs=(
        "The ball has 55 particles where the paper's has 162, with masses within 50 % of each "
        "other and a start of even mass; the curtain has 24 points where theirs has 231, and each "
        "is thrown with a velocity of its own; the paper does not say what its beams are. It has "
        "one figure for mu and one for lam of all bodies, which stands beside balls and beams."
    ),
)
prepare = partial(prepare_table, TABLE)
