"""Run in a process of its own: corrupt one adjoint line after another and see who notices.

    python mutant_runner.py ROOT < jobs.json > verdicts.json

ROOT is a copy of the packages. Numba is switched off, so nothing is compiled and a changed
source takes effect when its modules are imported anew. A job names a toy problem and, but
for the control, a file, a text that occurs in it once, and what to put in its place. The
verdict is "" if the toy passed, or what was wrong with it.
"""

import compileall
import importlib
import json
import sys
from functools import partial
from pathlib import Path
from py_compile import PycInvalidationMode

import numpy as np


PACKAGES = ("adjsim", "render", "adjoint")
N_STEPS, SIZE = 2, (3, 4)
DOT_TOLERANCE = 1e-9
STEP, GRADIENT_TOLERANCE = 1e-5, 1e-6


PICTURES = ("over", "softmax", "flat", "dibr", "hard", "samples", "seamless", "sky", "smooth")
PICTURES += ("glossy", "textured")


def toy(name):
    """Return a problem of the coverage table, small enough for plain Python."""
    solids = importlib.import_module("adjoint.verify.systems.solids")
    density = importlib.import_module("adjoint.verify.systems.density")
    shells = importlib.import_module("adjoint.verify.systems.shells")
    loads = importlib.import_module("adjoint.verify.systems.loads")
    hinges = importlib.import_module("adjoint.verify.systems.hinges")
    springs = importlib.import_module("adjoint.verify.systems.springs")
    contacts = importlib.import_module("adjoint.verify.systems.contacts")
    bodies = importlib.import_module("adjoint.verify.systems.bodies")
    pixels = importlib.import_module("adjoint.verify.systems.pixels")
    outputs = importlib.import_module("adjoint.verify.systems.pixel_outputs")
    reduced = importlib.import_module("adjoint.verify.systems.reduced")
    losses = importlib.import_module("adjoint.verify.systems.losses")
    views = importlib.import_module("adjoint.verify.systems.views")
    worlds = importlib.import_module("adjoint.verify.systems.worlds")
    pixels.Picture.__init__.__defaults__ = (SIZE,)
    views.SIZE = SIZE
    solids.Scene.frames = property(lambda scene: list(range(scene.n_steps + 1)))
    roll, draw = solids.rollout_problem, pixels.picture_problem
    makers = {
        "density": partial(roll, density.tets, N_STEPS),
        "areal density": partial(roll, density.triangles, N_STEPS),
        "elastic": partial(roll, solids.elastic, N_STEPS),
        "viscous": partial(roll, solids.viscous, N_STEPS),
        "driven": partial(roll, solids.driven, N_STEPS),
        "stick": partial(roll, solids.stick, N_STEPS),
        "slip": partial(roll, solids.slip, N_STEPS),
        "elastic triangles": partial(roll, shells.elastic, N_STEPS),
        "triangles": partial(roll, shells.viscous, N_STEPS),
        "wind": partial(roll, shells.wind, N_STEPS),
        "springs": partial(roll, springs.net, N_STEPS),
        "pendulum": partial(reduced.rollout_problem, reduced.circling, N_STEPS),
        "signal": partial(reduced.rollout_problem, reduced.both_hanging, N_STEPS),
        "double": partial(reduced.rollout_problem, reduced.tumbling, N_STEPS),
        "smoke": partial(reduced.rollout_problem, reduced.racing, N_STEPS),
        "hinges": partial(roll, hinges.crumpled, N_STEPS),
        "undamped hinges": partial(roll, hinges.rolling, N_STEPS),
        "loads": partial(roll, loads.window, N_STEPS),
        "load series": partial(roll, loads.series, N_STEPS),
        "rods": reduced.drawn_pendulum,
        "fumes": reduced.drawn_smoke,
        "plane": partial(roll, contacts.plane_moving, N_STEPS),
        "sphere": partial(roll, partial(contacts.sphere, moves=True), N_STEPS),
        "box": partial(roll, partial(contacts.box, moves=True), N_STEPS),
        "capsule": partial(roll, partial(contacts.capsule, moves=True), N_STEPS),
        "pushed": partial(roll, bodies.pushed, N_STEPS),
        "brick in stick": partial(roll, bodies.stick, N_STEPS),
        "brick in slip": partial(roll, bodies.slip, N_STEPS),
        "drawn": bodies.drawn,
        "worlds": partial(worlds.batch_problem, N_STEPS),
        **{name: partial(draw, getattr(pixels, name)) for name in PICTURES},
        "outputs": outputs.SYSTEMS[0].make,
        "smooth sky": partial(draw, pixels.smooth_sky),
        "views": views.several,
        **{system.name.split("/")[1]: system.make for system in losses.SYSTEMS},
    }
    return makers[name]()


MOVERS = {
    "rasterizer.sigma": "coverage",
    "rasterizer.gamma": "depth",
    "rasterizer.epsilon": "depth",
    "rasterizer.background": "shading",
    "sun.color": "shading",
}


def complaint_of_terms():
    """Return what is wrong with the four terms of the tangents of a picture, "" if nothing is.

    They must add up to differences of the picture, and what only one term feels must move it.
    """
    pixels = importlib.import_module("adjoint.verify.systems.pixels")
    terms_of = importlib.import_module("adjoint.render.terms").rasterize_jvp_terms
    pixels.Picture.__init__.__defaults__ = (SIZE,)
    picture, rng = pixels.softmax(), np.random.default_rng(0)
    problem = pixels.picture_problem(pixels.softmax)
    for path, value in problem.point.items():
        tangent = rng.standard_normal(np.shape(value))

        def image(step, path=path, value=value, tangent=tangent):
            return problem.forward({**problem.point, path: value + step * tangent})

        terms = terms_of(*picture.arguments, {path: tangent})[1]
        slope = (image(STEP) - image(-STEP)) / (2 * STEP)
        error = np.abs(sum(terms.values()).ravel() - slope).max()
        if error > GRADIENT_TOLERANCE * max(np.abs(slope).max(), 1.0):
            return f"terms: those of {path} add up to something else, by {error:.1e}"
        moved = [term for term, part in terms.items() if part.any()]
        if path in MOVERS and moved != [MOVERS[path]]:
            return f"terms: {path} moves {', '.join(moved)}"
    return ""


def complaint(name):
    """Return what is wrong with the derivatives of a toy, "" if nothing is."""
    if name == "terms":
        return complaint_of_terms()
    dot_test = importlib.import_module("adjoint.verify.dot_test").dot_test
    gradcheck = importlib.import_module("adjoint.verify.gradcheck").gradcheck
    problem = toy(name)
    point = {path: value for path, value in problem.point.items() if path not in problem.inert}
    wrt = list(point)
    dot = dot_test(
        problem.jvp, lambda c: problem.vjp(c, wrt), point, n_pairs=1, tolerance=DOT_TOLERANCE
    )
    if not dot.passed:
        return f"dot test: {dot.reason}"
    y = problem.forward(problem.point)
    r = np.random.default_rng(0).standard_normal(y.shape)

    def loss(values):
        return float(r @ problem.forward({**problem.point, **values}))

    check = gradcheck(
        loss, problem.vjp(r, wrt), point,
        n_directions=1, step=STEP, tolerance=GRADIENT_TOLERANCE,
    )  # fmt: skip
    return "" if check.passed else f"gradcheck: {check.reason}"


def forget_packages():
    """Have the next import read the sources again."""
    for module in [m for m in sys.modules if m.split(".")[0] in PACKAGES]:
        del sys.modules[module]


def verdict(root, job):
    """Return what a job found."""
    forget_packages()
    if "file" not in job:
        return complaint(job["toy"])
    path = root / job["file"]
    source = path.read_text()
    try:
        path.write_text(source.replace(job["line"], job["becomes"]))
        return complaint(job["toy"])
    finally:
        path.write_text(source)


def main():
    root = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(root))
    sys.dont_write_bytecode = True
    # Most time would go to compiling unchanged sources; a checked hash notices a changed one.
    compileall.compile_dir(root, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    verdicts = []
    for job in json.load(sys.stdin):
        try:
            verdicts.append(verdict(root, job))
        except Exception as error:  # a mutant that does not run proves nothing
            verdicts.append(f"ERROR {type(error).__name__}: {error}")
    adjsim = importlib.import_module("adjsim")
    if not Path(adjsim.__file__).resolve().is_relative_to(root):
        raise RuntimeError(f"The copy was not used, but {adjsim.__file__}.")
    sys.stdout.write(json.dumps(verdicts))


if __name__ == "__main__":
    main()
