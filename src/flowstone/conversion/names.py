"""Which names a piece of a function reads and writes, and which are live after each statement.

A name is live where its value may still be read. `mark_live` goes backwards through a function whose jumps
have been lowered (`jumps.py`), so that every statement is followed by the next one, and notes on each `if`
and loop the names that are live after it (`live_out`), on loops also those live at the head of an iteration
(`live_head`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

__all__ = ["captured_names", "composite_targets", "mark_live", "reads", "writes"]

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _each(nodes: Any) -> list[Any]:
    return list(nodes) if isinstance(nodes, (list, tuple)) else [nodes]


def reads(nodes: Any) -> set[str]:
    """The names that are read anywhere in these nodes, nested functions included."""
    return {
        each.id
        for node in _each(nodes)
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Store)
    } | {each.target.id for node in _each(nodes) for each in ast.walk(node)
         if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name)}  # fmt: skip


def writes(nodes: Any) -> set[str]:
    """The names of the function itself that these nodes bind or delete."""
    return set(_written(_each(nodes)))


def _written(nodes: Iterable[Any]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
            continue
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
        if isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
            continue
        yield from _written(ast.iter_child_nodes(node))


def captured_names(function: Any) -> set[str]:
    """What nested functions, comprehensions and declarations refer to: live everywhere."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
        elif isinstance(node, _SCOPES) and node is not function:
            found |= reads(list(ast.iter_child_nodes(node)))
    return found


def composite_targets(nodes: Any, written: set[str]) -> dict[str, ast.expr]:
    """Attributes and items that these nodes assign, by their text, of names that they leave alone."""
    found: dict[str, ast.expr] = {}
    pending = _each(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            if _is_plain(node) and not reads(node) & written:
                found[ast.unparse(node)] = node
        pending.extend(ast.iter_child_nodes(node))
    return dict(sorted(found.items()))


def _is_plain(node: Any) -> bool:
    """Whether an expression is a name, with attributes and items by constants and names."""
    if isinstance(node, ast.Attribute):
        return _is_plain(node.value)
    if isinstance(node, ast.Subscript):
        return _is_plain(node.value) and isinstance(node.slice, (ast.Name, ast.Constant))
    return isinstance(node, ast.Name)


def mark_live(function: Any) -> None:
    """Notes on each `if` and loop of a function what is live after it."""
    captured = captured_names(function)
    _before(function.body, set(captured), captured)


def _before(statements: Sequence[Any], after: set[str], always: set[str]) -> set[str]:
    live = set(after)
    for statement in reversed(statements):
        live = _before_one(statement, live, always) | always
    return live


def _before_one(node: Any, after: set[str], always: set[str]) -> set[str]:
    if isinstance(node, ast.If):
        node.live_out = after  # type: ignore[attr-defined]
        return reads(node.test) | _before(node.body, after, always) | _before(node.orelse, after, always)
    if isinstance(node, (ast.While, ast.For)):
        return _before_loop(node, after, always)
    if isinstance(node, ast.With):
        inside = _before(node.body, after, always)
        return (inside - writes(node.items)) | reads(node.items)
    if isinstance(node, ast.Try):
        everything = after | reads(node)
        for part in (node.body, node.orelse, node.finalbody, *[each.body for each in node.handlers]):
            _before(part, everything, always)
        return everything
    if isinstance(node, (ast.Return, ast.Raise)):
        return reads(node)
    return (after - writes(node)) | reads(node)


def _before_loop(node: Any, after: set[str], always: set[str]) -> set[str]:
    is_for = isinstance(node, ast.For)
    test = set(getattr(node, "flags", ())) if is_for else reads(node.test)
    targets = writes(node.target) if is_for else set()
    head = after | test
    for _ in range(2):  # what an iteration needs of the one before
        head |= _before(node.body, head, always) - targets
    node.live_out, node.live_head = after, head
    return head | (reads(node.iter) if is_for else set())
