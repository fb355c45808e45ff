"""Run in a process of its own: corrupt one adjoint line after another and see who notices.

    python mutant_runner.py ROOT < jobs.json > verdicts.json

ROOT is a copy of the packages. Numba is switched off, so nothing is compiled and a changed
source takes effect when its package, and those that import it, are imported anew, which a
child process does: the others stay as this process has them. A job names a toy problem and, but
for the control, a file, a text that occurs in it once, and what to put in its place. The
verdict is "" if the toy passed, or what was wrong with it.
"""

import compileall
import importlib
import json
import os
import sys
from pathlib import Path
from py_compile import PycInvalidationMode

import numpy as np


PACKAGES = ("adjsim", "render", "adjoint")  # each imports those before it
SYSTEMS = "adjoint.verify.systems"
N_STEPS, SIZE = 2, (3, 4)
DOT_TOLERANCE = 1e-9
STEP, GRADIENT_TOLERANCE = 1e-5, 1e-6
LONGEST = 4000  # bytes of a verdict: a pipe takes them without a reader


class Systems:
    """The modules of the coverage table's systems, each imported when it is asked for."""

    def __getattr__(self, name):
        module = importlib.import_module(f"{SYSTEMS}.{name}")
        shrink()
        return module


def shrink():
    """Have the imported systems make problems small enough for plain Python."""
    pixels, views, solids = (
        sys.modules.get(f"{SYSTEMS}.{name}") for name in ("pixels", "views", "solids")
    )
    if pixels:
        pixels.Picture.__init__.__defaults__ = (SIZE,)
    if views:
        views.SIZE = SIZE
    if solids:
        solids.Scene.frames = property(lambda scene: list(range(scene.n_steps + 1)))


def roll(module, name, **options):
    """Return what makes the rollout of a scene a problem."""

    def make(systems):
        build = getattr(getattr(systems, module), name)
        return systems.solids.rollout_problem(lambda n_steps: build(n_steps, **options), N_STEPS)

    return make


def reduced(name):
    """Return what makes the rollout of a pendulum or of smoke a problem."""
    return lambda s: s.reduced.rollout_problem(getattr(s.reduced, name), N_STEPS)


def draw(name):
    """Return what makes a picture a problem."""
    return lambda s: s.pixels.picture_problem(getattr(s.pixels, name))


PICTURES = ("over", "softmax", "flat", "dibr", "hard", "samples", "seamless", "sky", "smooth")
PICTURES += ("glossy", "textured")
TOYS = {
    "density": roll("density", "tets"),
    "areal density": roll("density", "triangles"),
    "elastic": roll("solids", "elastic"),
    "viscous": roll("solids", "viscous"),
    "driven": roll("solids", "driven"),
    "stick": roll("solids", "stick"),
    "slip": roll("solids", "slip"),
    "elastic triangles": roll("shells", "elastic"),
    "triangles": roll("shells", "viscous"),
    "wind": roll("shells", "wind"),
    "springs": roll("springs", "net"),
    "pendulum": reduced("circling"),
    "signal": reduced("both_hanging"),
    "double": reduced("tumbling"),
    "smoke": reduced("racing"),
    "hinges": roll("hinges", "crumpled"),
    "undamped hinges": roll("hinges", "rolling"),
    "loads": roll("loads", "window"),
    "load series": roll("loads", "series"),
    "rods": lambda s: s.reduced.drawn_pendulum(),
    "fumes": lambda s: s.reduced.drawn_smoke(),
    "plane": roll("contacts", "plane_moving"),
    "sphere": roll("contacts", "sphere", moves=True),
    "box": roll("contacts", "box", moves=True),
    "capsule": roll("contacts", "capsule", moves=True),
    "pushed": roll("bodies", "pushed"),
    "brick in stick": roll("bodies", "stick"),
    "brick in slip": roll("bodies", "slip"),
    "drawn": lambda s: s.bodies.drawn(),
    "worlds": lambda s: s.worlds.batch_problem(N_STEPS),
    **{name: draw(name) for name in PICTURES},
    "outputs": lambda s: s.pixel_outputs.SYSTEMS[0].make(),
    "smooth sky": draw("smooth_sky"),
    "views": lambda s: s.views.several(),
}


def toy(name):
    """Return a problem of the coverage table, small enough for plain Python."""
    systems = Systems()
    if name in TOYS:
        return TOYS[name](systems)
    (make,) = (loss.make for loss in systems.losses.SYSTEMS if loss.name.split("/")[1] == name)
    return make()


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
    pixels = Systems().pixels
    terms_of = importlib.import_module("adjoint.render.terms").rasterize_jvp_terms
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


def import_everything():
    """Import all packages, and what any toy is made of."""
    (folder,) = importlib.import_module(SYSTEMS).__path__
    for path in Path(folder).glob("[a-z]*.py"):
        getattr(Systems(), path.stem)


def forget(package):
    """Have the next import read the sources of a package, and of those that import it, again."""
    changed = PACKAGES[PACKAGES.index(package) :]
    for module in [m for m in sys.modules if m.split(".")[0] in changed]:
        del sys.modules[module]


def verdict(root, job):
    """Return what a job found, or in which way its mutant does not run: that proves nothing."""
    if "file" not in job:
        return in_child(lambda: complaint(job["toy"]))
    path = root / job["file"]
    source = path.read_text()

    def corrupted():
        forget(job["file"].split("/")[0])
        return complaint(job["toy"])

    try:
        path.write_text(source.replace(job["line"], job["becomes"]))
        return in_child(corrupted)
    finally:
        path.write_text(source)


def in_child(work):
    """Return what a function returns in a child process, which forgets what it did."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        text = "ERROR it did not end"
        try:
            text = work()
        except Exception as error:
            text = f"ERROR {type(error).__name__}: {error}"
        finally:
            os.write(writer, text.encode()[:LONGEST])
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return text if status == 0 else f"ERROR it ended with {status}"


def main():
    root = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(root))
    sys.dont_write_bytecode = True
    # Most time would go to compiling unchanged sources; a checked hash notices a changed one.
    compileall.compile_dir(root, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    import_everything()
    verdicts = [verdict(root, job) for job in json.load(sys.stdin)]
    adjsim = importlib.import_module("adjsim")
    if not Path(adjsim.__file__).resolve().is_relative_to(root):
        raise RuntimeError(f"The copy was not used, but {adjsim.__file__}.")
    sys.stdout.write(json.dumps(verdicts))


if __name__ == "__main__":
    main()
