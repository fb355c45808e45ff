"""The rules of the house that a machine can check. There is no list of exceptions.

A file is on the differentiated path when it holds device functions and numbers the lines
that carry derivatives, `# (1)` to `# (n)`, or when it has a kind of force.
"""

import ast
import re
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest


ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "adjsim": set(),
    "render": {"adjsim"},
    "adjoint": {"adjsim", "render"},
    "studies": {"adjsim", "render", "adjoint"},
    "baselines": {"adjsim", "render", "adjoint", "studies"},
    "benchmarks": {"adjsim", "render", "adjoint", "studies", "baselines"},
}
# Folders and files of a package, from the bottom up: each may import what stands on lower floors,
# and nothing of its neighbours on the same one.
FLOORS = {
    "adjsim": [
        ["checks", "extras", "lazy", "rotations"],
        ["courses", "jit"],
        ["algebra", "meshes", "series"],
        ["tiles", "values"],  # elements by tiles: arrays, loops, sums of nodes
        ["rigid", "system"],
        ["forces", "reduced"],
        ["joints", "pairs", "stable_step"],
        ["model"],
        ["series_files", "worlds"],
        ["engine"],  # models packed, and the loops that run them
        ["field"],
        ["descent", "losses", "measured_rate"],
        ["steps"],
        ["contact_margins", "rollout", "support_force"],
        ["equilibrium"],
        ["equilibria"],
    ],
    "render": [
        ["shaders", "projection", "textures"],
        ["lenses", "scene"],
        ["camera"],
        ["faces"],  # faces as a camera sees them
        ["blending"],
        ["seamless"],
        ["raster"],  # from scenes to fragments and pixels
        ["soft_raster"],
        ["losses", "outputs", "pendulum", "picture"],
        ["picture_files", "posed_camera", "pyramid_boxes", "shape_losses", "smoke"],
        ["textured_files", "unwrapping"],
    ],
    "adjoint": [
        ["algebra", "checkpoint_actions", "courses", "rotations", "system", "values", "vectors"],
        ["examples", "schedules", "series"],
        ["rigid", "tiles"],
        ["forces", "reduced"],
        ["joints", "pairs"],
        ["engine"],  # the reverse sweep and the tangent
        ["field"],
        ["steps"],
        ["support_force", "worlds"],
        ["system_registry"],
        ["hessian", "inspector"],
        ["rollout"],
        ["losses", "operators", "render"],
        ["equilibrium", "objective"],
        ["equilibria"],
        ["bridges", "verify"],
    ],
    "studies": [
        ["runs"],  # the run folder: files, logs, resume, pool
        ["scene"],  # a declared scene: files -> model, cameras, lights
        ["bundled", "optimizers"],
        ["problem"],  # a scene and what was observed of it: theta -> residuals, gradient, Jacobian
        ["search"],
        ["answer"],  # what an answer is worth
        ["control"],
        ["reports"],
        ["fitting"],  # the run of a problem: search, judge, certify, write
        ["api", "datasets", "exercises", "paper", "scans"],
        ["cli"],
    ],
}
ON_CUDA = re.compile(r"numba\.cuda(\.|$)|cupy(\.|$)")
FRAMEWORK = re.compile(r"(torch|jax)(\.|$)")
WRITES_LLVM = re.compile(r"llvmlite\.ir|numba\.(extending|core\.cgutils)")
NUMBERED = re.compile(r"#\s*\(\d+\)")
MOST_PARAMETERS = 12
VAGUE = {"one", "own", "found", "part", "given", "known", "made", "shown"}
VAGUEST = {"one", "own", "found", "part"}
# No function binds any of `VAGUEST`, nor two of `VAGUE` but in tests
PLAINLY_NAMED = ("adjsim", "render", "adjoint", "studies", "benchmarks", "baselines")
ALONE = re.compile(r"\n\n\ndef ([a-z]\w*)")  # a function of a file, without a decorator
CLEAN = tuple(MAY_IMPORT)
COLUMN = re.compile(r"(?:^|[._])(?:params|consts|series)\[(?:.*?(?:, |:))?[1-9]\d*(?:[:,].*)?\]$")


def python_files(root, *folders):
    """Every source below the given folders, as paths relative to the root."""
    files = (path.relative_to(root) for folder in folders for path in (root / folder).rglob("*.py"))
    return sorted(path for path in files if not any(name.startswith(".") for name in path.parts))


class Facts(NamedTuple):
    """What the rules ask of a file."""

    imports: list[str]  # at any depth: `from a import b` counts as a and a.b
    has_device_functions: bool
    choices: list[int]  # lines of loops over `prange` whose argument holds a choice
    parameters: dict[str, int]  # the most that a function of a name takes
    vague: list[tuple[str, set[str]]]  # functions with the names in `VAGUE` that they bind
    columns: list[str]  # of packed rows that are read by number


@cache
def facts(path):
    """Return the facts of a file, whose tree is walked once for all rules."""
    of_file = Facts([], False, [], {}, [], [])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            of_file.imports.extend(imported(node))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            args = node.args
            count = len([*args.posonlyargs, *args.args, *args.kwonlyargs])
            of_file.parameters[node.name] = max(count, of_file.parameters.get(node.name, 0))
            of_file.vague.append((node.name, VAGUE & bound_names(node)))
            if "device_fn" in (getattr(name, "id", "") for name in node.decorator_list):
                of_file = of_file._replace(has_device_functions=True)
        elif isinstance(node, ast.Call) and has_choice_in_prange(node):
            of_file.choices.append(node.lineno)
        elif isinstance(node, ast.Subscript) and COLUMN.search(text := ast.unparse(node)):
            of_file.columns.append(text)
    return of_file


def bound_names(function):
    """Return the names that a function binds; a function in it has names of its own."""
    args = function.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    names, nodes = {arg.arg for arg in every if arg}, list(function.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
        ):
            nodes.extend(ast.iter_child_nodes(node))
    return names


def has_choice_in_prange(call):
    """Whether a call is one of `prange` whose argument holds a choice."""
    return getattr(call.func, "id", "") == "prange" and any(
        isinstance(node, ast.IfExp | ast.BoolOp) for node in ast.walk(call)
    )


def imported(node):
    """What an import names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def against_the_arrow(root):
    """Imports of a package that the importing one must not know."""
    return [
        f"{path} imports {name}"
        for path in python_files(root, *MAY_IMPORT)
        for name in facts(root / path).imports
        if name.split(".")[0]
        in {*MAY_IMPORT, "tests"} - MAY_IMPORT[path.parts[0]] - {path.parts[0]}
    ]


def outside_of_jit(root):
    """Files that import CUDA and are not devices.py, or that write LLVM's code elsewhere."""
    folder = Path("adjsim/jit")
    return [
        f"{path} imports {name}"
        for path in python_files(root, *MAY_IMPORT)
        for name in facts(root / path).imports
        if (path != folder / "devices.py" and ON_CUDA.match(name))
        or (path.parent != folder and WRITES_LLVM.match(name))
    ]


def outside_of_bridges(root):
    """Files that import a framework and are no bridge to one, or that import a bridge.

    Baselines and benchmarks stand beside the packages.
    """
    folder = Path("adjoint/bridges")
    return [
        f"{path} imports {name}"
        for path in python_files(root, "adjsim", "render", "adjoint", "studies")
        if path.parent != folder
        for name in facts(root / path).imports
        if FRAMEWORK.match(name) or name.startswith("adjoint.bridges")
    ]


def is_differentiated(root, path):
    """Whether a file is on the differentiated path."""
    text = (root / path).read_text()
    is_force = path.parts[:2] == ("adjsim", "forces") and "ElementKind(" in text
    is_on_path = is_force or bool(NUMBERED.search(text))
    return facts(root / path).has_device_functions and is_on_path


def twin(path):
    """adjsim/P -> adjoint/P, render/P -> adjoint/render/P."""
    return Path("adjoint", *path.parts[1 if path.parts[0] == "adjsim" else 0 :])


def mirror(path):
    """adjsim/a/b.py -> tests/a/test_b.py, render/a/b.py -> tests/render/a/test_b.py."""
    folders = path.parent.parts[1 if path.parts[0] == "adjsim" else 0 :]
    return Path("tests", *folders, f"test_{path.name}")


def without_partner(root):
    """Files on the differentiated path that lack their twin or their test."""
    return [
        f"{path} needs {partner(path)}"
        for path in python_files(root, "adjsim", "render")
        if is_differentiated(root, path)
        for partner in (twin, mirror)
        if not (root / partner(path)).exists()
    ]


def serial_loops(root):
    """Loops over `prange` that Numba would run on one thread without a word.

    It does so where the argument holds a choice, which is a block of its own.
    """
    return [
        f"{path}:{line} has a choice inside `prange`"
        for path in python_files(root, *MAY_IMPORT)
        for line in facts(root / path).choices
    ]


def import_cycle(root):
    """Files that import each other in a circle; imports for annotations and in functions count."""
    paths = python_files(root, *CLEAN)
    modules = {".".join(path.with_suffix("").parts): path for path in paths}
    graph = {
        path: {modules[name] for name in facts(root / path).imports if name in modules}
        for path in paths
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(path) for path in error.args[1]]
    return []


def against_the_floors(root):
    """Imports inside a package that do not lead to a lower floor, or name none of the floors."""
    wrong = []
    for package, floors in FLOORS.items():
        level = {name: k for k, names in enumerate(floors) for name in names}
        for path in python_files(root, package):
            home = path.with_suffix("").parts[1]
            if home == "__init__":
                continue
            for name in sorted(set(facts(root / path).imports)):
                parts = name.split(".")
                if parts[0] != package or len(parts) == 1 or parts[1] == home:
                    continue
                if level.get(parts[1], len(floors)) >= level.get(home, -1):
                    wrong.append(f"{path} imports {name}")
    return wrong


def many_parameters(root):
    """Functions that take more than `MOST_PARAMETERS`, but for commands of the command line."""
    return [
        f"{path} {name} takes {count}"
        for path in python_files(root, *CLEAN)
        for name, count in facts(root / path).parameters.items()
        if count > MOST_PARAMETERS
    ]


def vague_names(root):
    """Functions with names that do not say what the thing is."""
    return [
        f"{path} {function}: {', '.join(sorted(names))}"
        for path in python_files(root, *PLAINLY_NAMED, "tests")
        for function, names in facts(root / path).vague
        if names & VAGUEST or (len(names) > 1 and path.parts[0] != "tests")
    ]


def columns_by_number(root):
    """Columns of packed rows, but for the first, that are read by number and not by name."""
    return [
        f"{path} {column}"
        for path in python_files(root, "adjsim", "render", "adjoint")
        for column in facts(root / path).columns
    ]


def public_for_no_one(root):
    """Functions of studies that only their own file names, and that start with no underscore."""
    paths = python_files(root, *MAY_IMPORT, "tests")
    texts = {path: (root / path).read_text() for path in paths}
    users = Counter(name for text in texts.values() for name in set(re.findall(r"\w+", text)))
    return [
        f"{path} {name}"
        for path, text in texts.items()
        if path.parts[0] == "studies" and "tasks" not in path.parts
        for name in ALONE.findall(text)
        if users[name] == 1
    ]


RULES = [
    against_the_arrow, outside_of_jit, outside_of_bridges, without_partner, serial_loops,
    import_cycle, against_the_floors, many_parameters, vague_names, columns_by_number,
    public_for_no_one,
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_the_packages_keep_the_rule(rule):
    assert rule(ROOT) == []


def test_the_rules_look_at_something():
    paths = python_files(ROOT, *MAY_IMPORT)
    assert {path.parts[0] for path in paths} == set(MAY_IMPORT)
    assert any(is_differentiated(ROOT, path) for path in paths)


def test_a_tree_that_breaks_every_rule_is_caught(tmp_path):
    sources = {
        "adjsim/forces/spring.py": "@device_fn\ndef spring_force(x):\n    return x\nElementKind()",
        "adjsim/algebra/vec3.py": "@device_fn\ndef add(a, b):\n    return a + b\n",
        "render/shade.py": "import numba.cuda\n@device_fn\ndef f(x):\n    return x  # (1)\n",
        "render/camera.py": "def f():\n    from adjoint.rollout import record\n    import cupy\n",
        "render/rows.py": "def f():\n    from llvmlite import ir\n",
        "adjsim/jit/rows.py": "from numba.extending import intrinsic\nimport numba.cuda\n",
        "adjoint/bridges/torch.py": "import torch\nfrom torch import nn\n",
        "adjoint/tensors.py": "def f():\n    import jax.numpy\n    import adjoint.bridges.torch\n",
        "adjoint/row.py": "p.adj_params[:, 2] + series[0] + consts[K]\n",
        "adjoint/loop.py": "for i in prange(n):\n    for j in prange(n if i else 0):\n        f()",
        "adjoint/vague.py": "def f(own):\n    def g(one): ...\n    return [part for part in own]",
        "studies/guess.py": "from baselines.videos import read_videos\n",
        "benchmarks/vague.py": "def f(given):\n    def g(part): ...\n",
        "studies/fine.py": "import adjoint\nimport adjsim.model\nfrom render import camera\n",
        "studies/alone.py": "import adjoint\n\n\ndef helper(): ...\n\n\ndef _helper(): ...\n",
        "studies/one.py": "def f():\n    from studies import other\n",
        "studies/other.py": "if TYPE_CHECKING:\n    from studies.one import f\n",
        "studies/runs/low.py": "if TYPE_CHECKING:\n    from studies.answer.kinks import Kink\n",
        "studies/paper/beside.py": "def f():\n    import studies.scans.spec\n",
        "studies/scans/below.py": "from studies.runs import low\nfrom studies.scans import spec\n",
        "benchmarks/wide.py": f"def f({', '.join('abcdefghijkl')}, *, m): ...\n",
    }
    for path, text in sources.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert against_the_arrow(tmp_path) == [
        "render/camera.py imports adjoint.rollout",
        "render/camera.py imports adjoint.rollout.record",
        "studies/guess.py imports baselines.videos",
        "studies/guess.py imports baselines.videos.read_videos",
    ]
    assert outside_of_jit(tmp_path) == [
        "adjsim/jit/rows.py imports numba.cuda",
        "render/camera.py imports cupy",
        "render/rows.py imports llvmlite.ir",
        "render/shade.py imports numba.cuda",
    ]
    assert outside_of_bridges(tmp_path) == [
        "adjoint/tensors.py imports jax.numpy",
        "adjoint/tensors.py imports adjoint.bridges.torch",
    ]
    assert without_partner(tmp_path) == [
        "adjsim/forces/spring.py needs adjoint/forces/spring.py",
        "adjsim/forces/spring.py needs tests/forces/test_spring.py",
        "render/shade.py needs adjoint/render/shade.py",
        "render/shade.py needs tests/render/test_shade.py",
    ]
    assert serial_loops(tmp_path) == ["adjoint/loop.py:2 has a choice inside `prange`"]
    assert set(import_cycle(tmp_path)) == {"studies/one.py", "studies/other.py"}
    assert against_the_floors(tmp_path) == [
        "adjoint/tensors.py imports adjoint.bridges.torch",
        "studies/one.py imports studies.other",
        "studies/other.py imports studies.one",
        "studies/other.py imports studies.one.f",
        "studies/paper/beside.py imports studies.scans.spec",
        "studies/runs/low.py imports studies.answer.kinks",
        "studies/runs/low.py imports studies.answer.kinks.Kink",
    ]
    assert many_parameters(tmp_path) == ["benchmarks/wide.py f takes 13"]
    assert vague_names(tmp_path) == [
        "adjoint/vague.py f: own, part",
        "adjoint/vague.py g: one",
        "benchmarks/vague.py g: part",
    ]
    assert columns_by_number(tmp_path) == ["adjoint/row.py p.adj_params[:, 2]"]
    assert public_for_no_one(tmp_path) == ["studies/alone.py helper"]
