"""Five published mistakes in gradients, re-created on our functions, and what our checks print.

    NUMBA_DISABLE_JIT=1 python -m tests.verify.published_mistakes

Each mistake is one line of ours, changed as its thread describes it. The last one is in a force;
the lines that differentiate it change with it, as automatic differentiation would have them. Checks
that miss a mistake, and checks that see it, are made with the right line and with the wrong one. No
file is written: a child process gives functions their new code. Page: `docs/wrong_gradients.md`.
"""

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adjoint.forces.neo_hookean import ELASTIC_TWIN
from adjoint.forces.registry import examples
from adjoint.pairs.pair_force import pair_vjp
from adjoint.rollout import record, rollout_jvp
from adjoint.schedules import EveryK
from adjoint.verify.dot_test import dot_test, symmetry_test
from adjoint.verify.gradcheck import gradcheck
from adjoint.verify.taylor_test import taylor_test
from adjsim.forces.neo_hookean import ELASTIC, rest_constants
from adjsim.joints.joint import BallJoint
from adjsim.model import Model, State
from adjsim.pairs.closest import EDGES, FACE
from adjsim.pairs.pair_force import pair_force, pair_jvp
from adjsim.pairs.surface_contact import SCALARS
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from tests.pairs.features import TURN, A, B, C, crossed
from tests.verify.mutant_runner import compiled, functions_by_file, in_child, new_codes


ROOT = Path(__file__).resolve().parents[2]
FIVE = EveryK(5)  # restarts after every five steps
ROUNDING, DIFFERENCES = 1e-12, 1e-7  # the bars of the dot test and of gradcheck


class Look(NamedTuple):
    """A check: what it is, the bar it has, whether it sees the mistake, and the number."""

    name: str
    bar: float
    sees: bool
    number: Callable[[], float]


class Mistake(NamedTuple):
    """A mistake: where it was published, what it was, our lines, and who looks at them."""

    project: str
    thread: str
    what: str
    changes: tuple[tuple[str, str, str], ...]  # a file, its line, and what the line becomes
    looks: tuple[Look, ...]


class Map(NamedTuple):
    """A map of named arrays to an array, with its tangent and its adjoint at a point."""

    point: Mapping[str, np.ndarray]
    forward: Callable[[Mapping[str, np.ndarray]], np.ndarray]
    jvp: Callable[[Mapping[str, np.ndarray]], np.ndarray]
    vjp: Callable[[np.ndarray], Mapping[str, np.ndarray]]


def element(functions: Any, point: Mapping[str, np.ndarray], consts: Any, params: Any) -> Map:
    """Return an element function of positions, and of velocities where the point has them."""
    force, jvp, vjp = functions
    series = (0.0,)

    def rows(values: Mapping[str, np.ndarray], name: str) -> tuple:
        return tuple(map(tuple, np.asarray(values[name]).tolist())) if name in values else ()

    still = {"v": np.zeros_like(point["x"])} | dict(point)
    x, v = rows(still, "x"), rows(still, "v")

    def forward(values: Mapping[str, np.ndarray]) -> np.ndarray:
        values = still | dict(values)
        return np.array(force(rows(values, "x"), rows(values, "v"), consts, params, series))

    def push(tan: Mapping[str, np.ndarray]) -> np.ndarray:
        tan = {name: np.zeros_like(each) for name, each in still.items()} | dict(tan)
        none = (0.0,) * len(params)
        return np.array(
            jvp(x, v, consts, params, series, rows(tan, "x"), rows(tan, "v"), none, series)
        )

    def pull(adj: np.ndarray) -> dict[str, np.ndarray]:
        adjoints = vjp(x, v, consts, params, series, rows({"f": adj}, "f"))
        return {name: np.array(each) for name, each in zip("xv", adjoints, strict=False)
                if name in point}  # fmt: skip

    return Map(point, forward, push, pull)


def dot(m: Map) -> float:
    """Return the residual of the dot test."""
    return dot_test(m.jvp, m.vjp, m.point).residual


def differences(m: Map, **options: Any) -> float:
    """Return the largest error of gradcheck: of all directions there are."""
    return gradcheck(m.forward, m.vjp, m.point, **options).max_error


def along(m: Map, seed: int, *, at_random: bool = False) -> float:
    """Return the relative error of one slope, along the gradient or in a random direction."""
    rng = np.random.default_rng(seed)
    r = rng.standard_normal(m.forward(m.point).shape)
    gradient = m.vjp(r)
    d = {n: rng.standard_normal(g.shape) for n, g in gradient.items()} if at_random else gradient
    size = np.sqrt(sum(np.vdot(each, each) for each in d.values()))
    d = {name: each / size for name, each in d.items()}
    slope = directional(m, r, d)
    return abs(sum(np.vdot(gradient[name], d[name]) for name in d) - slope) / abs(slope)


def directional(m: Map, r: np.ndarray, d: Mapping[str, np.ndarray], h: float = 1e-6) -> float:
    """Return the derivative of r . f along a direction, by a central difference."""
    up, down = (
        np.vdot(r, m.forward({name: each + s * h * d[name] for name, each in m.point.items()}))
        for s in (1, -1)
    )
    return float(up - down) / (2 * h)


def params_of_pair(**given: float) -> tuple[float, ...]:
    """Return the parameters of a pair: 0 where none is given, but for the radii."""
    given = {"radius": 0.2, "other_radius": 0.2, **given}
    return tuple(given.get(name, 0.0) for name in SCALARS)


# 1. PolyFEM: one of the products of the derivatives of mollifier and barrier is missing.


def edges(angle: float, s: float = 0.4, t: float = 0.7) -> Map:
    """Return two edges that cross at an angle and touch by a thousandth of their length."""
    x = crossed(s, t, np.deg2rad(angle), gap=0.399) @ TURN.T
    functions = (pair_force, pair_jvp, pair_vjp)
    params = params_of_pair(stiffness=100.0)
    return element(functions, {"x": x[1:] - x[0]}, (float(EDGES), 1.0), params)


def asymmetry(angle: float) -> float:
    """Return how far the adjoint of an elastic force is from its own transpose."""
    m = edges(angle)
    return symmetry_test(lambda d: m.vjp(d["x"]), m.point).residual


def of_losses(m: Map, check: Callable[..., float] = along, **options: Any) -> list[float]:
    """Return the numbers of a check for the gradients of twenty random losses."""
    return [check(m, seed=seed, **options) for seed in range(20)]


def over_angles() -> list[list[float]]:
    """Return angles, and for each the least, the median and the largest error of gradcheck."""
    rows = []
    for angle in (90, 75, 60, 45, 30, 20, 14, 10, 7, 5, 3):
        errors = of_losses(edges(angle), differences, step=1e-6)
        rows.append([angle, *map(float, np.quantile(errors, (0.0, 0.5, 1.0)))])
    return rows


# 2. Genesis: velocities are stale after a state is restored.
# 3. MuJoCo Warp: the gradient of a constraint has the wrong sign.


def hanging(n_steps: int, path: str = "body.position", checkpoint: Any = None) -> Map:
    """Return where a brick on a ball joint is at the end, as a function of one parameter."""
    x = np.array([(a, b, c) for a in (-0.1, 0.1) for b in (-0.02, 0.02) for c in (-0.03, 0.03)])
    body = RigidBodies(x, mass=0.5, inertia=[4e-4, 2e-3, 2e-3, 0, 0, 0])
    joint = BallJoint(
        [(None, "body.0")], anchor_a=[(0.0, 0.01, 0.0)], anchor_b=[(-0.1, 0.0, 0.0)],
        stiffness=400.0, damping=10.0,
    )  # fmt: skip
    model = Model(forces={"joint": joint}, bodies={"body": body}, gravity=(0.0, -9.8, 0.3))
    start = State(bodies={"body": BodyState([[0.1, 0.0, 0.0]], angular_velocity=[[0.5, 1.0, -2]])})
    options = (1e-3, n_steps)
    run = record(model, start, *options, frames=[n_steps], checkpoint=checkpoint)
    point = {path: {**model.parameters(), **model.state_parameters(start)}[path]}

    def forward(values: Mapping[str, np.ndarray]) -> np.ndarray:
        moved = rollout(*model.with_values(start, values), *options, frames=[n_steps])
        return moved.bodies["body"].position.ravel()

    def push(tan: Mapping[str, np.ndarray]) -> np.ndarray:
        _, moved = rollout_jvp(model, start, *options, tan, frames=[n_steps])
        return moved.bodies["body"].position.ravel()

    def pull(adj: np.ndarray) -> dict[str, np.ndarray]:
        return run.vjp(bodies={"body": {"position": adj.reshape(1, 1, 3)}}, wrt=[path])

    return Map(point, forward, push, pull)


def restarts(step: float) -> float:
    """Return the error of a gradient whose sweep restarts after every five steps."""
    return differences(hanging(40, checkpoint=FIVE), step=step)


def other_bits() -> float:
    """Return how far the gradient with restarts is from that which keeps all states."""
    adj = np.array([1.0, -0.5, 2.0])
    whole, pieces = (
        hanging(40, checkpoint=each).vjp(adj)["body.position"] for each in (None, FIVE)
    )
    return float(np.abs(whole - pieces).max())


# 4. Kaolin: the size of the friction does not change with the slip.


def sliding(speed: float, *, wrt: str = "xv") -> Map:
    """Return a vertex that slides on a face, with a stiff contact."""
    x = np.array([0.3 * A + 0.3 * B + 0.4 * C + [0, 0, 0.399], A, B, C]) @ TURN.T
    v = np.zeros((3, 3))
    v[:] = -speed * np.array([0.8, 0.6, 0.0]) @ TURN.T
    functions = (pair_force, pair_jvp, pair_vjp)
    params = params_of_pair(stiffness=1e5, friction_stiffness=200.0, friction=0.3)
    point = {name: each for name, each in (("x", x[1:] - x[0]), ("v", v)) if name in wrt}
    whole = element(functions, {"x": x[1:] - x[0], "v": v}, (float(FACE), 1.0), params)
    if wrt == "xv":
        return whole

    def pull(adj: np.ndarray) -> dict[str, np.ndarray]:
        return {name: each for name, each in whole.vjp(adj).items() if name in wrt}

    return Map(point, whole.forward, whole.jvp, pull)


# 5. gradSim: the first invariant of the deformation is that of its diagonal alone.

QUARTER = np.array([(1.0, 0, 0), (0, 1, 0), (0, 0, 1)])  # edges of a tetrahedron at rest


def tetrahedron() -> Map:
    """Return a stretched tetrahedron."""
    x = QUARTER + 0.2 * np.random.default_rng(7).standard_normal((3, 3))
    consts = rest_constants(tuple(map(tuple, QUARTER.tolist())))
    functions = (ELASTIC.force, ELASTIC.jvp, ELASTIC_TWIN.vjp)
    return element(functions, {"x": x}, consts, (3.0, 1.0, 1.4))


def slope_of_taylor() -> float:
    """Return 1.9 minus the slope of the remainder, in a random direction: above 0 it fails."""
    m = tetrahedron()
    r = np.random.default_rng(8).standard_normal((3, 3))
    return 1.9 - taylor_test(lambda x: float(np.vdot(r, m.forward(x))), m.vjp(r), m.point).slope1


def turned() -> float:
    """Return how far the force of a turned tetrahedron is from the turned force."""
    m = tetrahedron()
    force, other = m.forward(m.point), m.forward({"x": m.point["x"] @ TURN.T})
    return float(np.abs(other - force @ TURN.T).max() / np.abs(force).max())


LAW = "adjoint/forces/contact_law.py"
FORCE, TWIN = "adjsim/forces/neo_hookean.py", "adjoint/forces/neo_hookean.py"
DIAGONAL = "E[0][0] * W[0][0] + E[1][1] * W[1][1] + E[2][2] * W[2][2]"
MISTAKES = (
    Mistake(
        "PolyFEM",
        "https://github.com/polyfem/polyfem/pull/501",
        "one of the products of the derivatives of mollifier and barrier is missing",
        (
            (
                "adjoint/pairs/pair_force.py",
                "    adj_c += (params[K_E] + params[K] * c * c) * c * adj_energy\n",
                "",
            ),
        ),
        (
            Look(
                "differences, at 90°, largest of 20", DIFFERENCES, False,
                lambda: max(of_losses(edges(90), differences, step=1e-6)),
            ),
            Look(
                "along the gradient, at 90°, with a tolerance of 5 %", 0.05, False,
                lambda: float(np.median(of_losses(edges(90)))),
            ),
            Look(
                "along the gradient, at 6°, with a tolerance of 5 %", 0.05, True,
                lambda: float(np.median(of_losses(edges(6)))),
            ),
            Look(
                "in a random direction, at 90°, with a tolerance of 5 %", 0.05, False,
                lambda: float(np.median(of_losses(edges(90), at_random=True))),
            ),
            Look(
                "in a random direction, at 6°, with a tolerance of 5 %", 0.05, True,
                lambda: float(np.median(of_losses(edges(6), at_random=True))),
            ),
            Look(
                "differences, at 3°, least of 20", DIFFERENCES, True,
                lambda: min(of_losses(edges(3), differences, step=1e-6)),
            ),
            Look("dot test, at 3°", ROUNDING, True, lambda: dot(edges(3))),
            Look("the Hessian is symmetric, at 3°", ROUNDING, True, lambda: asymmetry(3)),
        ),
    ),
    Mistake(
        "Genesis",
        "https://github.com/Genesis-Embodied-AI/genesis-world/pull/3087",
        "velocities are those of another step after a state was restored",
        (
            (
                "adjoint/engine/checkpoint_states.py",
                "        self.stepper.complete(np.arange(1), self.work)\n",
                "        self.stepper.complete(np.arange(1), (self.work[0], +self.work[1], "
                "*self.work[2:]))\n",
            ),
        ),
        (
            Look(
                "differences, all states kept", DIFFERENCES, False,
                lambda: differences(hanging(40), step=1e-3),
            ),
            Look(
                "differences, 8 restarts, with a tolerance of 1e-4", 1e-4, False,
                lambda: restarts(1e-3),
            ),
            Look("differences of 1e-3, 8 restarts", DIFFERENCES, True, lambda: restarts(1e-3)),
            Look("differences of 1e-5, 8 restarts", DIFFERENCES, True, lambda: restarts(1e-5)),
            Look(
                "dot test, 8 restarts", ROUNDING, True, lambda: dot(hanging(40, checkpoint=FIVE))
            ),
            Look("the same bits with and without restarts", 0.0, True, other_bits),
        ),
    ),
    Mistake(
        "MuJoCo Warp",
        "https://github.com/google-deepmind/mujoco_warp/pull/1423",
        "the gradient of a constraint that connects two points has the wrong sign",
        (
            (
                "adjoint/joints/laws.py",
                "    return (scale(joint[K], adj_f), scale(joint[C], adj_f), none, ",
                "    return (scale(-joint[K], adj_f), scale(joint[C], adj_f), none, ",
            ),
        ),
        (
            Look(
                "differences by gravity, 1 step", DIFFERENCES, False,
                lambda: differences(hanging(1, "gravity")),
            ),
            Look(
                "differences, 1 step, with a tolerance of 5 %", 0.05, False,
                lambda: differences(hanging(1)),
            ),
            Look("differences, 1 step", DIFFERENCES, True, lambda: differences(hanging(1))),
            Look("differences, 40 steps", DIFFERENCES, True, lambda: differences(hanging(40))),
            Look("dot test, 1 step", ROUNDING, True, lambda: dot(hanging(1))),
        ),
    ),
    Mistake(
        "Kaolin",
        "https://github.com/NVIDIAGameWorks/kaolin/pull/983",
        "the chain rule of friction through the slip is missing",
        ((LAW, "        adj_u_t = axpy(adj_s / s, u_t, adj_u_t)\n", ""),),
        (
            Look("differences, in stick", DIFFERENCES, False, lambda: differences(sliding(0.01))),
            Look(
                "differences, in slip, with a tolerance of 1 %", 0.01, False,
                lambda: differences(sliding(2.0)),
            ),
            Look(
                "differences, in slip", DIFFERENCES, True,
                lambda: differences(sliding(2.0)),
            ),
            Look(
                "differences, in slip, by velocities alone", DIFFERENCES, True,
                lambda: differences(sliding(2.0, wrt="v")),
            ),
            Look("dot test, in slip", ROUNDING, True, lambda: dot(sliding(2.0))),
        ),
    ),
    Mistake(
        "gradSim",
        "https://github.com/gradsim/gradsim/blob/fbbc183c/gradsim/dflex/sim.py#L749",
        "the first invariant of the deformation is that of its diagonal alone",
        (
            (FORCE, "    I_C = frobenius(E, W)  # (2)\n", f"    I_C = {DIAGONAL}\n"),
            (
                FORCE,
                "    tan_I_C = lit(2, W[0][0]) * frobenius(tan_E, W)",
                f"    tan_I_C = 2 * ({DIAGONAL.replace('E', 'tan_E')})",
            ),
            (
                TWIN,
                "    return maxpy(adj_I_C + adj_I_C, W, adj_E)\n",
                "    return maxpy(adj_I_C + adj_I_C, ((W[0][0], 0.0, 0.0), (0.0, W[1][1], 0.0), "
                "(0.0, 0.0, W[2][2])), adj_E)\n",
            ),
        ),
        (
            Look("dot test", ROUNDING, False, lambda: dot(tetrahedron())),
            Look("differences", DIFFERENCES, False, lambda: differences(tetrahedron())),
            Look("1.9 minus the slope of the Taylor test", 0.0, False, slope_of_taylor),
            Look("the force of a turned body is the turned force", ROUNDING, True, turned),
        ),
    ),
)  # fmt: skip


def looked_at(mistake: Mistake) -> list[float]:
    """Return the numbers of all checks."""
    return [float(look.number()) for look in mistake.looks]


def with_mistake(mistake: Mistake, work: Callable[[], Any]) -> Any:
    """Return what a function returns where a mistake was made, in a child process."""

    def made() -> str:
        make(mistake)
        return json.dumps(work())

    said = in_child(made)
    if said.startswith("ERROR"):
        raise RuntimeError(f"{mistake.project}: {said}")
    return json.loads(said)


def make(mistake: Mistake) -> None:
    """Give functions the code that they have with a mistake."""
    sources: dict[Path, str] = {}
    for file, line, becomes in mistake.changes:
        path = ROOT / file
        source = sources.get(path, path.read_text())
        if source.count(line) != 1:
            raise ValueError(
                f"`{line.strip()}` must be once in {file}, it is {source.count(line)}."
            )
        sources[path] = source.replace(line, becomes)
    for path, source in sources.items():
        functions = new_codes(path, compiled(path, source))
        if not functions:
            raise ValueError(f"No function of {path.name} was changed.")
        for function, code in functions:
            function.__code__ = code


def all_numbers() -> list[tuple[Mistake, list[float], list[float]]]:
    """Return every mistake, with the numbers of its checks for the right line and the wrong."""
    return [(m, looked_at(m), with_mistake(m, partial(looked_at, m))) for m in MISTAKES]


def main() -> None:
    """Print the numbers of all checks as text, or as JSON for a test or for a picture."""
    examples()  # twins are imported where they are asked for
    functions_by_file()  # before anything makes more
    if "--angles" in sys.argv:
        text = json.dumps([over_angles(), with_mistake(MISTAKES[0], over_angles)])
    elif "--json" in sys.argv:
        text = json.dumps([[right, wrong] for _, right, wrong in all_numbers()])
    else:
        text = "\n".join(table(*entry) for entry in all_numbers())
    sys.stdout.write(text)


def table(mistake: Mistake, right: list[float], wrong: list[float]) -> str:
    """Return the numbers of a mistake's checks as lines of text."""
    lines = [f"{mistake.project:55} tolerance    right    wrong"]
    for look, r, w in zip(mistake.looks, right, wrong, strict=True):
        seen = "missed" if w <= look.bar else "SEEN"
        lines.append(f"  {look.name:55} {look.bar:7.0e}  {r:7.0e}  {w:7.0e}  {seen}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
