"""Lists of operations and tensors, who consumes what, and placeholders that stand for tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flowstone as tf

__all__ = [
    "ControlOutputs",
    "check_graphs",
    "get_consuming_ops",
    "get_generating_ops",
    "get_tensors",
    "get_unique_graph",
    "items_of",
    "make_list_of_op",
    "make_list_of_t",
    "make_placeholder_from_dtype_and_shape",
    "make_placeholder_from_tensor",
    "placeholder_name",
    "scope_basename",
    "scope_dirname",
    "scope_finalize",
    "unique",
]


def unique(items: Iterable[Any]) -> list[Any]:
    """The items without repetitions, in order."""
    return list(dict.fromkeys(items))


def items_of(given: Any) -> list[Any]:
    """The items of what can be iterated over, as a dictionary's values; else, and for a tensor, itself."""
    return list(given) if isinstance(given, Iterable) and not isinstance(given, tf.Tensor) else [given]


def check_graphs(*args: Any) -> None:
    """Raises ValueError if the arguments, None aside, have different graphs."""
    graphs = unique(each.graph for each in args if each is not None and each.graph is not None)
    if len(graphs) > 1:
        raise ValueError("Argument has a wrong graph: all arguments must be in the same graph.")


def get_unique_graph(tops: Any, check_types: Any = None, none_if_empty: bool = False) -> Any:
    """The one graph of operations and tensors.

    Raises TypeError for what is neither (or not of `check_types`), ValueError for several graphs, or for none
    unless `none_if_empty`.
    """
    if isinstance(tops, tf.Graph):
        return tops
    types = check_types or (tf.Operation, tf.Tensor)
    graph = None
    for each in items_of(tops):
        if not isinstance(each, types):
            raise TypeError(f"Expected a type in {types}, got: {type(each)}")
        if graph is not None and each.graph is not graph:
            raise ValueError(f"{each} does not belong to given graph")
        graph = each.graph
    if graph is None and not none_if_empty:
        raise ValueError("Can't find the unique graph of an empty list")
    return graph


def _make_list(given: Any, kept: Any, check_graph: bool, ignored: Any) -> list[Any]:
    found = [] if given is None else items_of(given)
    if ignored is not None:
        found = [each for each in found if not isinstance(each, ignored)]
    for each in found:
        if not isinstance(each, kept):
            raise TypeError(f"Expected a type in ({kept}), got: {type(each)}")
    if check_graph and found:
        get_unique_graph(found, kept)
    return found


def make_list_of_op(
    ops: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ts: bool = False
) -> list[Any]:
    """The operations of an operation, of several, or of a graph.

    With `ignore_ts` tensors are left out. TypeError for what is none, ValueError for several graphs.
    """
    if isinstance(ops, tf.Graph):
        if not allow_graph:
            raise TypeError("allow_graph is False: cannot convert a tf.Graph.")
        return list(ops.get_operations())
    return _make_list(ops, tf.Operation, check_graph, tf.Tensor if ignore_ts else None)


def make_list_of_t(
    ts: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ops: bool = False
) -> list[Any]:
    """The tensors of a tensor, of several, or of a graph.

    With `ignore_ops` operations are left out. TypeError for what is none, ValueError for several graphs.
    """
    if isinstance(ts, tf.Graph):
        if not allow_graph:
            raise TypeError("allow_graph is False: cannot convert a tf.Graph.")
        return get_tensors(ts)
    return _make_list(ts, tf.Tensor, check_graph, tf.Operation if ignore_ops else None)


def get_tensors(graph: Any) -> list[Any]:
    """All tensors of a graph. TypeError for what is no graph."""
    if not isinstance(graph, tf.Graph):
        raise TypeError(f"Expected a graph, got: {type(graph)}")
    return [tensor for op in graph.get_operations() for tensor in op.outputs]


def get_generating_ops(ts: Any) -> list[Any]:
    """The operations whose outputs the tensors are."""
    return unique(tensor.op for tensor in make_list_of_t(ts, allow_graph=False))


def get_consuming_ops(ts: Any) -> list[Any]:
    """The operations that have one of the tensors as an input."""
    return unique(op for tensor in make_list_of_t(ts, allow_graph=False) for op in tensor.consumers())


class ControlOutputs:
    """The control outputs of a graph's operations. TypeError for what is no graph."""

    def __init__(self, graph: Any) -> None:
        if not isinstance(graph, tf.Graph):
            raise TypeError(f"Expected a tf.Graph, got: {type(graph)}")
        self._graph = graph
        self._found: dict[Any, list[Any]] = {}
        self._version: int | None = None
        self.update()

    def update(self) -> ControlOutputs:
        """Looks at the graph again, if it has grown. Returns this object."""
        if self._version != self._graph.version:
            self._found = {}
            for op in self._graph.get_operations():
                for control in op.control_inputs:
                    outputs = self._found.setdefault(control, [])
                    if op not in outputs:
                        outputs.append(op)
            self._version = self._graph.version
        return self

    def get_all(self) -> dict[Any, list[Any]]:
        """From each operation that has control outputs to those."""
        return self._found

    def get(self, op: Any) -> Any:
        """The control outputs of an operation."""
        return self._found.get(op, ())

    @property
    def graph(self) -> Any:
        """The graph."""
        return self._graph


def scope_finalize(scope: str) -> str:
    """The scope with a slash at its end; "" stays."""
    return f"{scope}/" if scope and not scope.endswith("/") else scope


def scope_dirname(scope: str) -> str:
    """What is before the last part, with its slash: "a/b/" of "a/b/c"."""
    return scope.rstrip("/").rpartition("/")[0] + "/" if "/" in scope.rstrip("/") else ""


def scope_basename(scope: str) -> str:
    """The last part."""
    return scope.rpartition("/")[2]


def placeholder_name(t: Any = None, scope: str | None = None, prefix: str = "geph") -> str:
    """The name of a placeholder for tensor `t`: `prefix`, the operation's own name and the output's index.

    `scope` goes before it; default: the tensor's. TypeError for what is no tensor.
    """
    if scope is not None:
        scope = scope_finalize(scope)
    if t is None:
        return f"{scope or ''}{prefix}"
    if not isinstance(t, tf.Tensor):
        raise TypeError(f"Expected a tf.Tensor, got: {type(t)}")
    name = f"{prefix}__{scope_basename(t.op.name)}_{t.value_index}"
    return (scope_dirname(t.op.name) if scope is None else scope) + name


def make_placeholder_from_tensor(t: Any, scope: str | None = None, prefix: str = "geph") -> Any:
    """A placeholder of the tensor's type and shape in the default graph."""
    name = placeholder_name(t, scope=scope, prefix=prefix)
    return tf.placeholder(dtype=t.dtype, shape=t.get_shape(), name=name)


def make_placeholder_from_dtype_and_shape(
    dtype: Any, shape: Any = None, scope: str | None = None, prefix: str = "geph"
) -> Any:
    """A placeholder of a type and shape in the default graph."""
    return tf.placeholder(dtype=dtype, shape=shape, name=placeholder_name(scope=scope, prefix=prefix))
