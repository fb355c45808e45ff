"""What estimators that look at nothing are expected to err by: closed forms, and draws."""

import numpy as np
import pytest

from studies import config
from studies.paper.tables.baselines import AVERAGE, RANDOM, expected_of_average, expected_of_random
from studies.paper.tables.table import Case
from studies.paper.tables.table1 import TABLE
from studies.registry import RunOptions
from tests.studies.paper.tables.toy import TABLE1


# Intervals of the gradSim paper, and what its set-up makes of them: derived by hand, 3 digits.
KNOWN = [
    ((0.2, 0.3), 0.102, 0.136),
    ((1.0, 500.0), 2.43, 2.62),
    ((0.2, 1.0), 0.441, 0.558),
    ((2.0, 12.0), 0.500, 0.626),
]


@pytest.mark.parametrize(("ends", "average", "random"), KNOWN)
def test_the_expectations_are_the_known_ones(ends, average, random):
    assert float(expected_of_average(*map(np.array, ends))) == pytest.approx(average, rel=5e-3)
    assert float(expected_of_random(*map(np.array, ends))) == pytest.approx(random, rel=5e-3)


@pytest.mark.parametrize("ends", [one[0] for one in KNOWN])
def test_the_expectations_are_the_integrals(ends):
    low, high = map(np.array, ends)
    n = 2000
    p = low + (high - low) * (np.arange(n) + 0.5) / n
    middle = 0.5 * (low + high)
    # the midpoint rule errs by (width/n)^2 f''/24, f'' up to 2 width/low^3, and at the kink
    bar = 1e-4 * (high / low) ** 2 / n + 1e-6
    average = np.mean(np.abs(middle - p) / p)
    assert float(expected_of_average(low, high)) == pytest.approx(average, abs=bar + 1e-3 / n)
    random = np.mean(np.abs(p[:, None] - p) / p)
    assert float(expected_of_random(low, high)) == pytest.approx(random, abs=bar + 1.0 / n)


def test_a_range_of_one_value_is_known():
    one = np.array([0.7])
    assert expected_of_average(one, one) == expected_of_random(one, one) == 0.0


def test_drawn_errors_have_the_expected_mean():
    settings = config.resolve("table1", TABLE1).values
    errors = {AVERAGE: [], RANDOM: []}
    count = 60
    for k in range(count):
        case = Case(settings, TABLE.scenes[0], RunOptions(), k)
        for row, own in errors.items():
            found = row.estimate(case)
            own.append(case.fit.errors(found.theta)["body.mass"]["mean"])
    for row, own in errors.items():
        spread = np.std(own) / np.sqrt(count)
        assert np.mean(own) == pytest.approx(found_expected(row), abs=4.0 * spread)


def found_expected(row):
    low, high = np.array(0.2), np.array(0.3)
    return float((expected_of_average if row is AVERAGE else expected_of_random)(low, high))
