"""Run in a process of its own: corrupt one adjoint line after another and see who notices.

    python mutant_runner.py ROOT PER_FILE > verdicts.json

ROOT has the packages; nothing is written there. Numba is switched off, so a function does what
its code says. First every toy problem runs as it is, to see which lines of `adjoint/` it reaches.
Then `corruptions.py` corrupts lines that are reached, and the toys that reach them, the quickest
first, are asked. A child process takes the corruption and runs the toy. It gives the functions of
the file their new code where they are; if more than bodies of functions changed, or nobody noticed,
another one imports the file's package, and those that import it, anew. The verdict is "" if the
toys passed, or what was wrong with one.
"""

import ast
import gc
import importlib
import itertools
import json
import os
import sys
import time
from functools import cache, partial
from importlib.machinery import SourceFileLoader
from inspect import CO_OPTIMIZED, signature
from pathlib import Path
from types import CodeType, FunctionType

import numpy as np


sys.path.insert(0, str(Path(__file__).resolve().parent))
from corruptions import corruptions


PACKAGES = ("adjsim", "render", "adjoint")  # each imports those before it
SYSTEMS, TERMS = "adjoint.verify.systems", "adjoint.render.terms"
CHECKS = ("adjoint.verify.dot_test", "adjoint.verify.gradcheck")
N_WORKERS = 2
# In plain Python, or with few steps no test of gradients; other systems reach the same lines.
TOO_SLOW = {
    "equilibrium/blocks", "equilibrium/pressed", "implicit/block", "implicit/cloth", "chain/video",
}  # fmt: skip
N_STEPS, SIZE = 2, (3, 4)
DOT_TOLERANCE = 1e-9
STEP, GRADIENT_TOLERANCE = 1e-5, 1e-6
LOOPS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")  # in a module they have run


def systems():
    """Return the systems of the coverage table, with problems small enough for plain Python."""
    module = importlib.import_module(SYSTEMS)
    module.pixels.SIZE = module.views.SIZE = SIZE
    module.solids.Example.frames = property(lambda scene: list(range(scene.n_steps + 1)))
    return module


def toy(name):
    """Return a system of the coverage table as a problem, a rollout with few steps."""
    (system,) = (system for system in systems().SYSTEMS if system.name == name)
    has_steps = "n_steps" in signature(system.make).parameters
    return system.make(n_steps=N_STEPS) if has_steps else system.make()


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
    pixels = systems().pixels
    terms_of = importlib.import_module(TERMS).rasterize_jvp_terms
    picture, rng = pixels.softmax(), np.random.default_rng(0)
    problem = pixels.picture_problem(pixels.softmax)
    for path in sorted(problem.point, key=lambda path: path not in MOVERS):
        value = problem.point[path]
        tangent = rng.standard_normal(np.shape(value))

        def image(step, path=path, value=value, tangent=tangent):
            return problem.forward({**problem.point, path: value + step * tangent})

        terms = terms_of(*picture.arguments, {path: tangent})[1]
        slope = (image(STEP) - image(-STEP)) / (2 * STEP)
        error = np.abs(sum(terms.values()).ravel() - slope).max()
        if error > GRADIENT_TOLERANCE * max(np.abs(slope).max(), 1.0):
            return f"terms: those of {path} add up to something else, by {error:.1e}"
        moved = [term for term, change in terms.items() if change.any()]
        if path in MOVERS and moved != [MOVERS[path]]:
            return f"terms: {path} moves {', '.join(moved)}"
    return ""


def complaint(name):
    """Return what is wrong with the derivatives of a toy, "" if nothing is."""
    if name == "terms":
        return complaint_of_terms()
    dot_test, gradcheck = (
        getattr(importlib.import_module(check), check.split(".")[-1]) for check in CHECKS
    )
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
    """Import all packages, and what any toy is made of: a child would do it again and again."""
    for module in (SYSTEMS, TERMS, *CHECKS, "scipy.fft"):
        importlib.import_module(module)


def compiled(path, source):
    """Return the code of a source in the place of a file."""
    return compile(source, str(path), "exec", dont_inherit=True)


@cache
def code_of(path):
    """Return the code of a file as it stands."""
    return compiled(path, path.read_text())


@cache
def functions_by_file():
    """Return every function that there is, in modules, classes and closures, by its file."""
    by_file = {}
    for function in gc.get_objects():
        if isinstance(function, FunctionType):
            by_file.setdefault(function.__code__.co_filename, []).append(function)
    return by_file


def new_codes(path, code):
    """Return the functions of a file, each with what `code` makes of it; none: it takes more."""
    try:
        changes = list(changed_functions(code_of(path), code))
    except LookupError:
        return []
    return [
        (function, new)
        for function in functions_by_file().get(str(path), [])
        for old, new in changes
        if is_made_of(function.__code__, old)
    ]


def changed_functions(old, new, *, has_run=True):
    """Yield the codes of the functions in a module: the old, the new, and so on inside them.

    A LookupError if there are others, or what has run, the module, would not do the same again.
    """
    olds, news = ([c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new))
    if (has_run and acts(old) != acts(new)) or len(olds) != len(news):
        raise LookupError
    for before, after in zip(olds, news, strict=True):
        if before.co_freevars != after.co_freevars:
            raise LookupError
        is_function = before.co_flags & CO_OPTIMIZED and before.co_name not in LOOPS
        if is_function:
            yield before, after
        yield from changed_functions(before, after, has_run=has_run and not is_function)


def acts(code):
    """Return what a code does, whatever the bodies of its functions are."""
    plain = [c.co_name if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return code.co_code, code.co_names, code.co_freevars, plain


def is_made_of(candidate, code):
    """Whether a function's own code is this one, under any name."""
    return candidate.co_firstlineno == code.co_firstlineno and candidate == code.replace(
        co_name=candidate.co_name, co_qualname=candidate.co_qualname
    )


def import_anew(root, file, code):
    """Have the next import read a package, and those that import it, again, one file corrupted."""
    path, read = str(root / file), SourceFileLoader.get_code
    SourceFileLoader.get_code = lambda self, name: code if self.path == path else read(self, name)
    changed = PACKAGES[PACKAGES.index(file.split("/")[0]) :]
    for module in [m for m in sys.modules if m.split(".")[0] in changed]:
        del sys.modules[module]


def control(root, name):
    """Return what is wrong with a toy, how long it takes, and the lines of adjoints it reaches."""
    reached, top = {}, str(root / "adjoint")

    def local(frame, event, _):
        if event == "line":
            reached.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
        return local

    def called(frame, event, _):
        del event
        file = frame.f_code.co_filename
        return local if file.startswith(top) and "verify" not in file else None

    def work():
        sys.settrace(called)
        start = time.perf_counter()
        try:
            wrong = complaint(name)
        finally:
            sys.settrace(None)
        lines = {
            str(Path(file).relative_to(root)): sorted(numbers) for file, numbers in reached.items()
        }
        return json.dumps([wrong, time.perf_counter() - start, lines])

    text = in_child(work)
    return [text, 0.0, {}] if text.startswith("ERROR") else json.loads(text)


def all_corruptions(root, controls, per_file):
    """Return corruptions of the lines that toys reach, and by file and line who reaches it."""
    reach = {}
    for name in sorted(controls, key=lambda name: controls[name][1]):
        for file, lines in controls[name][2].items():
            for line in lines:
                reach.setdefault(file, {}).setdefault(line, []).append(name)
    chosen = []
    for file, lines in sorted(reach.items()):
        source = (root / file).read_text()
        chosen += corruptions(file, source, set(lines), per_file)
    return [(corruption, reach[corruption.file][corruption.line]) for corruption in chosen], reach


def unreached(root, reach):
    """Return the adjoint functions that no toy reaches."""
    missed = []
    for path in sorted((root / "adjoint").rglob("*.py")):
        file = str(path.relative_to(root))
        if "verify" in file:
            continue
        for function in ast.walk(ast.parse(path.read_text())):
            is_function = isinstance(function, ast.FunctionDef) and "vjp" in function.name
            if is_function and "overload" not in map(ast.unparse, function.decorator_list):
                body_lines = range(function.body[0].lineno, function.end_lineno + 1)
                if not any(line in reach.get(file, {}) for line in body_lines):
                    missed.append(f"{file}: {function.name}")
    return missed


def verdict(root, job):
    """Return what a job found, or in which way its mutant does not run: that proves nothing."""
    corrupted, toys = job
    path = root / corrupted.file
    code = compiled(path, corrupted.tree)
    functions = new_codes(path, code)

    def in_place(toy):
        for function, new in functions:
            function.__code__ = new
        return complaint(toy)

    def anew(toy):
        import_anew(root, corrupted.file, code)
        return complaint(toy)

    ways = [in_place, anew] if functions else [anew]
    for way, toy in itertools.product(ways, toys):
        said = in_child(lambda way=way, toy=toy: way(toy))
        if said:
            return said
    return ""


def in_child(work):
    """Return what a function returns in a child process, which forgets what it did."""
    return answer(started(work))


def started(work):
    """Have a child process call a function that returns a text; return it and where it answers."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        text, code = "ERROR it did not end", 1
        try:
            text = work()
        except Exception as error:
            text = f"ERROR {type(error).__name__}: {error}"
        finally:
            try:
                with os.fdopen(writer, "w", encoding="utf-8", errors="replace") as pipe:
                    pipe.write(text)
                code = 0
            finally:
                os._exit(code)
    os.close(writer)
    return child, reader


def answer(running):
    """Return the text of a child process when it has ended."""
    child, reader = running
    with os.fdopen(reader, encoding="utf-8", errors="replace") as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return text if status == 0 else f"ERROR it ended with {status}"


def shared_out(find, jobs):
    """Return what a function finds for all jobs, in workers that are children of this process."""
    shares = [jobs[k::N_WORKERS] for k in range(N_WORKERS)]
    running = [
        started(lambda share=share: json.dumps([find(job) for job in share])) for share in shares
    ]
    results = [None] * len(jobs)
    for k, worker in enumerate(running):
        results[k::N_WORKERS] = json.loads(answer(worker))
    return results


def main():
    root = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(root))
    import_everything()
    functions_by_file()  # now, before a toy makes more
    gc.freeze()  # what a child's collector looks at is copied for it
    names = [system.name for system in systems().SYSTEMS if system.name not in TOO_SLOW]
    names.append("terms")
    controls = dict(zip(names, shared_out(partial(control, root), names), strict=True))
    jobs, reach = all_corruptions(root, controls, int(sys.argv[2]))
    verdicts = shared_out(partial(verdict, root), jobs)
    adjsim = importlib.import_module("adjsim")
    if not Path(adjsim.__file__).resolve().is_relative_to(root):
        raise RuntimeError(f"Not {root} was used, but {adjsim.__file__}.")
    outcome = {
        "controls": {name: facts[0] for name, facts in controls.items()},
        "unreached": unreached(root, reach),
        "corruptions": [
            {**corruption._asdict(), "tree": None, "verdict": said}
            for (corruption, _), said in zip(jobs, verdicts, strict=True)
        ],
    }
    sys.stdout.write(json.dumps(outcome))


if __name__ == "__main__":
    main()
