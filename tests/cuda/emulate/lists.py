"""The lists of pairs that the emulated device finds, beside the CPU's; what came of it, as JSON."""

import json
import sys

import numpy as np

from adjoint.rollout import record
from adjsim.engine.cuda_pairs import CORNERS
from adjsim.forces.springs import Springs
from adjsim.jit.device_arrays import to_device, to_host
from adjsim.jit.devices import Device
from adjsim.model import Model, State
from adjsim.pairs.surface import surface_of
from adjsim.pairs.surface_contact import SurfaceContact
from adjsim.rollout import rollout
from adjsim.system import RolloutError, RunSettings, make_stepper
from adjsim.tiles.assembly import TILE
from adjsim.worlds import stack
from tests.cuda.emulate import install  # noqa: F401
from tests.cuda.emulate.driver import DEVICE, ORDERS
from tests.cuda.pair_scenes import DT, close_nets, stone_on_nets
from tests.pairs.scenes import patch


def folded():
    """A sheet that lies on itself, with positions at rest in which it does not."""
    flat, faces = patch(9, 0.1, 0.0, 0.3)
    x = np.where(flat[:, :1] > 0.0, flat * [-0.9, 1.0, 1.0] + [0.0, 0.02, 0.04], flat)
    touch = SurfaceContact(triangles=faces, radius=0.03, stiffness=1.0, rest_positions=flat)
    springs = Springs(surface_of(faces).edges, stiffness=1.0, rest_positions=x)
    return Model(np.ones(len(x)), {"springs": springs, "touch": touch}), State(x)


def of_all_sizes():
    """Triangles of 1 mm to 100 m, which lie in cells of several levels."""
    rng, sizes = np.random.default_rng(2), np.repeat(10.0 ** np.arange(-3, 3), 6)
    x = (sizes[:, None, None] * rng.standard_normal((36, 3, 3))).reshape(-1, 3)
    touch = SurfaceContact(triangles=np.arange(108).reshape(-1, 3), radius=1e-4, skin=0.1)
    return Model(np.ones(108), {"touch": touch}), State(x)


def many():
    """Three worlds."""
    models, states = zip(close_nets(), stone_on_nets(), close_nets(turn=0.7), strict=True)
    return stack(models), states


SCENES = {
    "nets": close_nets,
    "stone": stone_on_nets,
    "folded": folded,
    "of all sizes": of_all_sizes,
    "three worlds": many,
}


def places(x):
    """Positions after the first ones, by name."""
    rng = np.random.default_rng(3)
    lost = x.copy()
    lost[5:9, 1] = np.nan, np.inf, -np.inf, 1e6
    yield "at first", x
    yield "a little later", x + 0.01 * rng.standard_normal(x.shape)
    yield "far away", x - 1e4
    yield "in a crowd", 0.02 * x
    yield "much larger", 30.0 * x
    yield "not finite", lost


def expected(search, x):
    """What the search has to find, by the CPU's search and by NumPy; and distances."""
    per_contact, _ = search.find_on_host([x[contact.rows] for contact in search.sets])
    columns = [np.concatenate(column) for column in zip(*(f[:3] for f in per_contact), strict=True)]
    counts = [len(pairs.gaps) for pairs in per_contact]
    columns[0] = columns[0] + np.repeat(search.element_ptr[:-1], counts)[:, None]
    entries = np.argsort(columns[0].ravel(), kind="stable")
    m, a = np.divmod(entries, CORNERS)
    slots = (m // TILE * CORNERS + a) * 3 * TILE + m % TILE
    sums = np.bincount(columns[0].ravel(), minlength=search.element_ptr[-1])
    rows, numbers, gaps = columns
    return (rows, numbers, np.cumsum([0, *sums]), slots), gaps


def lists():
    """Of each scene and place: how many pairs, whether all orders find the CPU's, and counts."""
    for name, scene in SCENES.items():
        model, state = scene()
        stepper = make_stepper(model, RunSettings(DT, 1, device="cuda"))
        first = stepper.initial(state)[0]
        search = stepper.changing
        search.begin(first)
        for place, x in places(first):
            (wanted, gaps), same, faults = expected(search, x), [], []
            rounding = 4.0 * np.finfo(float).eps * np.abs(x[np.isfinite(x)]).max()
            for order in ORDERS:
                there = to_device(x, Device.CUDA)
                DEVICE.reset()
                DEVICE.order = order
                search.find(there, checked=False, since_last=False)
                faults += DEVICE.faults
                counts = dict(DEVICE.counts)
                host_pairs, pairs = to_host(search.found_pairs), search.pairs
                got = (*host_pairs[:2], *to_host((pairs.sum_ptr, pairs.sum_slots)))
                same.append(all(map(np.array_equal, got, wanted)))
                same.append(np.allclose(host_pairs.gaps, gaps, rtol=0.0, atol=rounding))
            yield f"{name}, {place}", {
                "pairs": len(wanted[0]), "same": all(same), "faults": faults, "counts": counts
            }  # fmt: skip


def troubles():
    """What a checked search says of nets, apart and through each other, and of the way there."""
    model, state = close_nets()
    stepper = make_stepper(model, RunSettings(DT, 1, device="cuda"))
    first = stepper.initial(state)[0]
    upper = np.unique(model.forces["touch"].other_triangles)
    through, beyond, away = (first.copy() for _ in range(3))
    through[upper[:4], 2] -= 0.06
    beyond[upper, 2] -= 0.06
    away[upper, 2] += 0.2
    search = stepper.changing
    search.begin(first)
    for name, way in {
        "apart": (first, first + 1e-3),
        "through": (first, through),
        "beyond": (first, beyond),
        "found beyond": (beyond, beyond),
        "fast": (first, away),
    }.items():
        said = [
            search.find(to_device(x, Device.CUDA), checked=True, since_last=k > 0)
            for k, x in enumerate(way)
        ]
        yield name, said


def errors():
    """What both devices say of a net that goes through another one."""
    model, state = close_nets(stiffness=0.1)
    for device in ("cpu", "cuda"):
        try:
            rollout(model, State(state.x, 20.0 * state.v), DT, 30, device=device)
        except RolloutError as error:
            yield device, str(error)


def kept():
    """How often a run and its sweep back search, with room for the pairs of the run or without."""
    model, state = close_nets(skin=0.005)
    adj, gradients = np.ones((1, model.n_nodes, 3)), {}
    all_states = record(model, state, DT, 30, frames=[30], device="cuda").cost.bytes
    for name, room in {"with room": 100 * all_states, "without": all_states}.items():
        DEVICE.reset()
        run = record(model, state, DT, 30, frames=[30], device="cuda", checkpoint=room)
        forward = searches()
        gradients[name] = run.vjp(adj)
        yield name, [forward, searches()]
    first, second = gradients.values()
    yield "same", all(np.array_equal(first[path], second[path]) for path in first)


def searches():
    """Return how often pairs were looked for since the device was reset."""
    return sum(
        kernel["launches"] for name, kernel in DEVICE.kernels.items() if "box_thread" in name
    )


def main():
    report = {"lists": dict(lists()), "troubles": dict(troubles()), "errors": dict(errors())}
    report["kept"] = dict(kept())
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
