"""Corruptions of the lines that carry cotangents: made from the sources, none is listed.

A statement is corrupted if a name in it says that it holds a cotangent, or if it is what an adjoint
returns or calls. There are four ways:

    drop     a term is lost                  a + b -> a        c += d, f(c) -> nothing
    sign     a term has the wrong sign       a + b -> a - b    -a -> a     a -> -a
    swap     the wrong component is read     a[0] <-> a[1]
    stale    an old value is used            a = f(b, a) -> nothing
"""

import ast
import copy
from typing import NamedTuple


SUMS = {"add": 0, "madd": 1, "axpy": 2, "maxpy": 2, "matmul_add": 2}  # which argument is left
# What is called with shapes, indices, or for a type alone.
SHAPES = {"range", "zeros", "empty", "full", "slice", "uint64", "reshape", "len", "get3", "lit"}
SHAPES |= {"zeros_like", "empty_like"}


class Corruption(NamedTuple):
    """A file's tree with one statement corrupted, and where."""

    file: str
    function: str
    line: int
    kind: str
    was: str
    becomes: str
    tree: ast.Module


def corruptions(file: str, source: str, lines: set[int], most: int) -> list[Corruption]:
    """Return at most so many corruptions of statements that begin at some lines, spread evenly."""
    tree = ast.parse(source)
    candidates = []
    for function, statement in statements(tree):
        if statement.lineno not in lines or not carries(function, statement):
            continue
        ways = {kind: new for kind, way in WAYS.items() if (new := way(statement))}
        if ways:  # in turn, so that every kind has its share
            kind = list(ways)[len(candidates) % len(ways)]
            candidates.append((function.name, statement, kind, ways[kind]))
    step = max(1.0, len(candidates) / most)
    chosen = [candidates[int(k * step)] for k in range(min(len(candidates), most))]
    return [
        Corruption(
            *(file, function, old.lineno, kind),
            *(ast.unparse(old), ast.unparse(new), replaced(tree, old, new)),
        )
        for function, old, kind, new in chosen
    ]


def statements(tree: ast.AST, function: ast.FunctionDef | None = None):
    """Yield every simple statement inside a function, with that function."""
    for node in ast.iter_child_nodes(tree):
        is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if is_call or isinstance(node, ast.Assign | ast.AugAssign | ast.Return):
            if function is not None:
                yield function, node
        else:
            enclosing = node if isinstance(node, ast.FunctionDef) else function
            yield from statements(node, enclosing)


def carries(function: ast.FunctionDef, statement: ast.stmt) -> bool:
    """Whether a statement carries a cotangent."""
    names = {getattr(node, "id", None) or getattr(node, "attr", "") for node in ast.walk(statement)}
    is_result = isinstance(statement, ast.Return | ast.Expr) and "vjp" in function.name
    return is_result or any(name.lower().startswith("adj") for name in names)


def drop(old: ast.stmt) -> ast.stmt | None:
    """Lose a term."""
    if isinstance(old, ast.Expr):
        return ast.Pass()
    if isinstance(old, ast.AugAssign):
        return ast.Pass() if isinstance(old.op, ast.Add | ast.Sub | ast.BitOr) else None

    def change(node: ast.expr) -> ast.expr | None:
        if is_sum(node):
            return node.left
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in SUMS and node.args:
            return node.args[min(SUMS[node.func.id], len(node.args) - 1)]
        return None

    return with_first(old, change)


def sign(old: ast.stmt) -> ast.stmt | None:
    """Give a term the wrong sign."""
    if isinstance(old, ast.AugAssign) and isinstance(old.op, ast.Add):
        return ast.AugAssign(old.target, ast.Sub(), old.value)

    def change(node: ast.expr) -> ast.expr | None:
        if is_sum(node):
            other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            return ast.BinOp(node.left, other, node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return None if isinstance(node.operand, ast.Constant) else node.operand
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return ast.UnaryOp(ast.USub(), node)
        return None

    return with_first(old, change) or negated(old)


def negated(old: ast.stmt) -> ast.stmt | None:
    """Return minus what is returned or put in its place, or minus a dictionary's first value."""
    new = copy.deepcopy(old)
    is_put = isinstance(new, ast.Assign) and isinstance(new.targets[0], ast.Subscript)
    if not (is_put or isinstance(new, ast.Return)):
        return None
    if isinstance(new.value, ast.Dict) and new.value.values:
        new.value.values[0] = ast.UnaryOp(ast.USub(), new.value.values[0])
        return new
    is_zero = isinstance(new.value, ast.Call) and called(new.value) in SHAPES
    if isinstance(new.value, ast.Name | ast.Subscript | ast.Call | ast.IfExp) and not is_zero:
        new.value = ast.UnaryOp(ast.USub(), new.value)
        return new
    return None


def swap(old: ast.stmt) -> ast.stmt | None:
    """Read the wrong component."""

    def change(node: ast.expr) -> ast.expr | None:
        if not isinstance(node, ast.Subscript):
            return None
        last = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) else node.slice
        if not isinstance(last, ast.Constant) or last.value not in (0, 1):
            return None
        other = ast.Constant(1 - last.value)
        inner = isinstance(node.slice, ast.Tuple)
        index = ast.Tuple([*node.slice.elts[:-1], other], ast.Load()) if inner else other
        return ast.Subscript(node.value, index, node.ctx)

    return with_first(old, change)


def stale(old: ast.stmt) -> ast.stmt | None:
    """Use an old value."""
    if not isinstance(old, ast.Assign) or not isinstance(old.targets[0], ast.Name):
        return None
    parts = list(ast.walk(old.value))
    read = {node.id for node in parts if isinstance(node, ast.Name)}
    is_check = "checks" in read or any(isinstance(node, ast.IfExp) for node in parts)
    return ast.Pass() if old.targets[0].id in read and not is_check else None


WAYS = {"drop": drop, "sign": sign, "swap": swap, "stale": stale}


def is_sum(node: ast.AST) -> bool:
    """Whether an expression is a sum or a difference of numbers."""
    texts = (ast.Tuple, ast.List, ast.JoinedStr, ast.Set, ast.Dict)
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add | ast.Sub)
        and not isinstance(node.left, texts)
        and not isinstance(node.right, texts)
        and not isinstance(getattr(node.right, "value", None), str)
    )


def with_first(statement: ast.stmt, change) -> ast.stmt | None:
    """Return a statement with the first part of its value that can be changed, changed.

    Not what is an index, a shape or a choice.
    """
    new = copy.deepcopy(statement)
    done = False

    def visit(node: ast.expr) -> ast.expr:
        nonlocal done
        if done:
            return node
        changed = change(node)
        if changed is not None:
            done = True
            return changed
        for field in parts_of(node):
            child = getattr(node, field)
            new_part = (
                [visit(element) for element in child] if isinstance(child, list) else visit(child)
            )
            setattr(node, field, new_part)
        return node

    if new.value is None:
        return None
    new.value = visit(new.value)
    return new if done else None


def parts_of(node: ast.expr) -> tuple[str, ...]:
    """Return the fields of an expression that hold what may be changed."""
    if isinstance(node, ast.Call):
        return () if called(node) in SHAPES else ("args",)
    fields = {
        ast.BinOp: ("left", "right"), ast.UnaryOp: ("operand",), ast.Dict: ("values",),
        ast.Tuple: ("elts",), ast.List: ("elts",),
    }  # fmt: skip
    return fields.get(type(node), ())


def called(node: ast.Call) -> str:
    """Return the name of what is called."""
    return getattr(node.func, "id", None) or getattr(node.func, "attr", "")


def replaced(tree: ast.Module, old: ast.stmt, new: ast.stmt) -> ast.Module:
    """Return a copy of a tree with another statement in the place of one."""
    ast.copy_location(new, old)

    class Replace(ast.NodeTransformer):
        def generic_visit(self, node):
            is_there = isinstance(node, type(old)) and node.lineno == old.lineno
            if is_there and node.col_offset == old.col_offset:
                return new
            return super().generic_visit(node)

    return ast.fix_missing_locations(Replace().visit(copy.deepcopy(tree)))
