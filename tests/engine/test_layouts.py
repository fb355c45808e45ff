"""Layouts are found again by what decides them, and by nothing less."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import numpy as np
import pytest

import adjsim.engine.layouts
from adjsim.engine.layouts import KEPT_LAYOUTS, lay_out
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.model import Model
from adjsim.rigid.bodies import RigidBodies
from tests.rigid.scenes import box


GRID = box_tets((2, 1, 1), (0.2, 0.1, 0.1))


def _model(tets=GRID.tets, mu=1e4, **options):
    solid = NeoHookeanTets(tets, GRID.points, mu=mu, lam=2e4, **options)
    floor = HalfSpaceContact(normal=(0.0, 1.0, 0.0), height=-1.0)
    return Model(mass=np.full(len(GRID.points), 0.1), forces={"solid": solid, "floor": floor})


@pytest.fixture(autouse=True)
def kept(monkeypatch):
    layouts = {}
    monkeypatch.setattr(adjsim.engine.layouts, "_kept", layouts)
    return layouts


def _same(a, b):
    return all(np.array_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))


def test_a_model_with_other_numbers_has_the_layout_of_the_first(kept):
    first = lay_out([_model()], [[1, 1]], 1)
    assert lay_out([_model(mu=3e4)], [[1, 1]], 1) is first
    assert len(kept) == 1


def _one_more_node():
    points = np.concatenate([GRID.points, [[5.0, 5.0, 5.0]]])
    floor = HalfSpaceContact(height=-1.0, contact_nodes=range(len(GRID.points)))
    forces = {"solid": NeoHookeanTets(GRID.tets, points, mu=1e4, lam=2e4), "floor": floor}
    return Model(mass=np.full(len(points), 0.1), forces=forces)


OTHERS = {
    "a node more": (lambda: [_one_more_node()], [[1, 1]], 1),
    "a body beside": (
        lambda: [replace(_model(), bodies={"block": RigidBodies([box()], density=100.0)})],
        [[1, 1]],
        1,
    ),
    "elements in another order": (lambda: [_model(GRID.tets[::-1])], [[1, 1]], 1),
    "fewer elements": (lambda: [_model(GRID.tets[1:])], [[1, 1]], 1),
    "another kind": (lambda: [_model(viscosity=1.0)], [[1, 1]], 1),
    "a longer series": (lambda: [_model()], [[7, 1]], 1),
    "two worlds": (lambda: [_model(), _model()], [[1, 1], [1, 1]], 1),
    "two worlds in two parts": (lambda: [_model(), _model()], [[1, 1], [1, 1]], 2),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_decides_a_layout_makes_another(kept, other):
    first = lay_out([_model()], [[1, 1]], 1)
    models, n_rows, n_parts = other[0](), *other[1:]
    layout = lay_out(models, n_rows, n_parts)
    assert not _same(layout, first)
    kept.clear()
    assert _same(lay_out(models, n_rows, n_parts), layout)


def test_the_oldest_layouts_are_forgotten_first(kept):
    model = _model()
    first, second = (lay_out([model], [[k, 1]], 1) for k in (1, 2))
    for k in range(3, KEPT_LAYOUTS + 1):
        lay_out([model], [[k, 1]], 1)
    assert lay_out([model], [[1, 1]], 1) is first  # and now it is the youngest
    lay_out([model], [[100, 1]], 1)
    assert len(kept) == KEPT_LAYOUTS
    assert lay_out([model], [[1, 1]], 1) is first
    assert lay_out([model], [[2, 1]], 1) is not second


def test_large_models_keep_none(kept, monkeypatch):
    monkeypatch.setattr(adjsim.engine.layouts, "KEPT_SIZE", len(GRID.tets))
    assert _same(lay_out([_model()], [[1, 1]], 1), lay_out([_model()], [[1, 1]], 1))
    assert kept == {}


def test_threads_that_lay_out_at_once_do_not_end_each_other():
    model, before = _model(), sys.getswitchinterval()

    def work(first):
        return [lay_out([model], [[1 + (first + k) % 40, 1]], 1) for k in range(2000)]

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            per_thread = list(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(before)
    assert all(len(layouts) == 2000 for layouts in per_thread)
