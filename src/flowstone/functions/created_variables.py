"""Variables that a traced function creates: they belong to the graph outside, and only the first trace
may.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.functions.function_graph import FunctionGraph
from flowstone.framework.functions.init_scope import init_scope
from flowstone.framework.graphs.graph import Graph, GraphKeys
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.variables.variables import Variable

__all__ = ["TracingGraph"]

_NOT_FIRST = "tf.function-decorated function tried to create variables on non-first call."


class TracingGraph(FunctionGraph):
    """The graph of a Python function that is being traced.

    `may_create`: whether the Python function may create variables; `created`: those that it created.
    """

    def __init__(self, outer: Graph, may_create: bool) -> None:
        super().__init__(outer)
        self.may_create, self.created = may_create, list[Any]()

    @property
    def variable_store(self) -> Any:
        """The outer graph's; what it makes is made there."""
        store = self.outer.variable_store
        return None if store is None else _Store(self, store)

    @variable_store.setter
    def variable_store(self, store: Any) -> None:
        if store is not None:
            self.outer.variable_store = type(store)(self.outer)

    def creator(self, following: Callable[..., Any], **keywords: Any) -> Any:
        """Makes a variable in the graph outside, as `tf.variable_creator_scope` asks."""
        if not self.may_create:
            raise ValueError(_NOT_FIRST)
        value = keywords.get("initial_value")
        with init_scope():
            if not callable(value):
                keywords["initial_value"] = _lifted(value, self)
            keywords["use_resource"] = True
            if keywords.get("collections") is None:
                keywords["collections"] = [GraphKeys.GLOBAL_VARIABLES]
            variable = Variable(**keywords)
        self.created.append(variable)
        return variable


class _Store:
    """The variable store that a traced function sees: variables are those of the outer graph."""

    def __init__(self, graph: TracingGraph, store: Any) -> None:
        self._tracing, self._store = graph, store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get_variable(self, *arguments: Any, **keywords: Any) -> Any:
        """The variable; one that is new must be a resource, and only the first trace may make it."""
        graph = self._tracing
        known = set(map(id, self._store._vars.values()))
        if not graph.may_create and (arguments or keywords):
            name = arguments[0] if arguments else keywords.get("name")
            scoped = f"{self._store.current_scope().name}/{name}".lstrip("/")
            if scoped not in self._store._vars:
                raise ValueError(_NOT_FIRST)
        with init_scope():
            variable = self._store.get_variable(*arguments, **{**keywords, "use_resource": True})
        if id(variable) not in known:
            graph.created.append(variable)
        return variable


def _lifted(value: Any, graph: FunctionGraph) -> Any:
    """An initial value of tensors of the traced graph, computed outside. ValueError if it needs arguments."""
    if not isinstance(value, Tensor) or value.graph is not graph:
        return value
    outside = {inside: tensor for tensor, inside in graph.captures.items()}
    copies: dict[Operation, Operation] = {}

    def copied(tensor: Tensor) -> Tensor:
        if tensor in outside:
            return outside[tensor]
        op = tensor.op
        if op.declaration.role == "placeholder":
            raise ValueError(
                f"Unable to lift tensor {value!r} because it depends transitively on placeholder {op!r}."
            )
        if op not in copies:
            place = scope.get_default_graph()
            inputs = [copied(x) for x in op.inputs]
            copies[op] = place.create(op.declaration, inputs, dict(op.attributes), op.group_sizes, op.name)
        return copies[op].outputs[tensor.value_index]

    return copied(value)
