"""The graph that tensors are of, and the name scope in force."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flowstone as tf


def get_graph_from_inputs(op_input_list: Iterable[Any], graph: Any = None) -> Any:
    """The graph of tensors and operations: `graph`, else theirs, else the default one.

    Raises:
        ValueError: they are of different graphs.
    """
    origin = "not from the passed-in graph"
    first = None
    for item in op_input_list:
        own = getattr(item, "graph", None)
        if not isinstance(own, tf.Graph):
            continue
        if graph is None:
            graph, first = own, item
            origin = f"not from the same graph as {first}"
        elif own is not graph:
            raise ValueError(f"{item} is {origin}.")
    return tf.get_default_graph() if graph is None else graph


def get_name_scope() -> str:
    """The name scope in force, without a slash behind it; empty at the top."""
    scope: str = tf.get_default_graph().get_name_scope()
    return scope


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """A node's name inside a scope; marks of control inputs (^) and colocation (loc:@) stay in front."""
    if not import_scope:
        return name
    mark = _mark(name)
    return f"{mark}{import_scope.rstrip('/')}/{name[len(mark) :]}"


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """A node's name without the scope that it is in; a name outside that scope stays as it is."""
    if not export_scope:
        return name
    mark = _mark(name)
    own, scope = name[len(mark) :], export_scope.rstrip("/") + "/"
    return mark + own.removeprefix(scope)


def _mark(name: str) -> str:
    return next((mark for mark in ("loc:@", "^") if name.startswith(mark)), "")
