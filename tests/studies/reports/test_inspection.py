"""The page of an inspected adjoint: whole in one file, whatever the system is."""

import json
import re

import numpy as np
import pytest

from adjoint.rollout import record
from adjsim.reduced.double_pendulum import DoublePendulum
from adjsim.reduced.pendulum import PendulumState
from studies.reports.inspection import Pixels, inspection_page, model_meshes
from tests.physics import sliding_box


@pytest.fixture(scope="module")
def inspected():
    """A box on a floor."""
    model, state = sliding_box(np.random.default_rng(5), 12)
    run = record(model, state, 3e-4, 12, frames=[4, 12])
    return model, run.inspect(np.ones((2, 27, 3)))


def data_of(page):
    (text,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page)
    return json.loads(text)


def test_a_page_has_curves_and_a_view_of_every_pause(inspected):
    model, inspection = inspected
    page = inspection_page(inspection, "A box <fell>", model_meshes(model, inspection.trajectory))
    data = data_of(page)
    assert "A box &lt;fell&gt;" in page
    assert data["steps"] == list(range(12))
    titles = {chart["title"] for chart in data["curves"]}
    assert {"Size of the adjoint", "What makes it grow", "Contact"} <= titles
    for chart in data["curves"]:
        assert all(len(line) == 12 for line in chart["lines"].values())
    assert data["view"]["at"]["count"] == 27
    assert max(data["view"]["edges"]) < data["view"]["points"]["count"]


def test_parts_of_gradients_end_at_one(inspected):
    chart = next(
        curve
        for curve in data_of(inspection_page(inspected[1]))["curves"]
        if "comes from" in curve["title"]
    )
    assert all(line[0] == pytest.approx(1.0) for line in chart["lines"].values())


def test_a_system_without_positions_has_no_view():
    run = record(DoublePendulum((1.0, 1.0), (1.0, 1.0)), PendulumState((2.0, 2.5)), 1e-3, 20)
    page = inspection_page(run.inspect([[1.0, 0.0]], thorough=True))
    assert data_of(page)["view"] is None
    assert 'id="view"' not in page
    assert "mean growth of the adjoint" in page


def test_pixels_are_red_where_they_raise_the_loss_and_blue_where_they_lower_it(inspected):
    adj = np.zeros((1, 4, 6, 3))
    adj[0, 1, 2], adj[0, 2, 3] = 3.0, -1.0
    film = Pixels("front", np.array([0.5]), np.full((1, 4, 6, 3), 0.5), adj, np.array([7]))
    page = inspection_page(inspected[1], films=[film])
    assert "Pixels of front" in page
    assert data_of(page)["films"] == [[0.5]]
    assert 'id="frame"' in page
    assert 'id="frame"' not in inspection_page(inspected[1])
    assert data_of(page)["marks"]["events"]["front: depth swap"] == [0.5]
    assert "0.5 s: 5.48; the 20 strongest pixels are 100% of it" in page
