"""`FunctionGraph`: the graph in which a Python function builds the body of a function (`function.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flowstone.framework.declarations.operation import F, OpDeclaration
from flowstone.framework.graphs.graph import Graph, GraphKeys, Operation
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes

_SHARED_COLLECTIONS = (
    GraphKeys.GLOBAL_VARIABLES,
    GraphKeys.LOCAL_VARIABLES,
    GraphKeys.TRAINABLE_VARIABLES,
)


class FunctionGraph(Graph):
    """The graph of a function under construction.

    `captures`: by tensor from outside the placeholder that stands for it, in order of first use; none if
    `by_value`: then what computes the tensor is copied. Functions and variables belong to the graph outside;
    `called` are the functions that the body calls, `control_captures` the operations outside that calls of
    the function wait for, because something within is to run after them.
    """

    def __init__(self, outer: Graph, by_value: bool = False) -> None:
        self.outer, self._by_value = outer, by_value
        self._copies: dict[Operation, Operation] = {}
        self.captures: dict[Tensor, Tensor] = {}
        self.called: list[Any] = []
        self.control_captures: list[Operation] = []
        super().__init__()
        self.seed = outer.seed
        self._functions = outer._functions
        for name in _SHARED_COLLECTIONS:
            self._collections[name] = outer.get_collection_ref(name)

    @property
    def building_function(self) -> bool:
        """Always true."""
        return True

    @property
    def variable_store(self) -> Any:
        """The outer graph's, but what it makes is made there, and resource variables are read there."""
        store = self.outer.variable_store
        return None if store is None else _OuterStore(self, store)

    @variable_store.setter
    def variable_store(self, store: Any) -> None:
        if store is not None:
            self.outer.variable_store = type(store)(self.outer)

    def create(
        self, declaration: OpDeclaration, inputs: list[Tensor], attributes: dict[str, Any],
        group_sizes: tuple[int, ...], name: str, **options: Any,
    ) -> Operation:  # fmt: skip
        """As in every graph, but inputs from outside are captured. TypeError if one must be a reference."""
        if any(x.op.graph is not self for x in inputs):
            if declaration.has_references:
                types = ", ".join(f"tf.{x.dtype.base_dtype.name}" for x in inputs)
                raise TypeError(
                    f"In op '{declaration.name}', input types ([{types}]) are not compatible with the "
                    "references it expects: a function's arguments are values"
                )
            base = name[:-1] if name.endswith("/") else name
            inputs = [x if x.op.graph is self else self.capture(x, f"{base}/placeholder") for x in inputs]
        if name.endswith("/") and name[:-1] in self._by_name:  # a scope of the outer graph
            name = name[:-1].rpartition("/")[2]
        return super().create(declaration, inputs, attributes, group_sizes, name, **options)

    @contextmanager
    def control_dependencies(self, control_inputs: Any) -> Iterator[None]:
        """As in every graph, but for operations and tensors of a graph outside calls of the function wait."""
        if isinstance(control_inputs, (list, tuple, set)):
            outside = [self._outside(x) for x in control_inputs]
            control_inputs = [x for x, found in zip(control_inputs, outside) if found is None]
            self.control_captures += [x for x in outside if x and x not in self.control_captures]
        with super().control_dependencies(control_inputs):
            yield

    def _outside(self, item: Any) -> Operation | None:
        """The operation of a graph outside that `item` stands for; None if it is none."""
        item = item._as_graph_element() if hasattr(item, "_as_graph_element") else item
        operation = item.op if isinstance(item, Tensor) else item
        graph: Any = self
        while isinstance(operation, Operation) and isinstance(graph, FunctionGraph):
            graph = graph.outer
            if graph is operation.graph:
                return operation
        return None

    def capture(self, tensor: Tensor, name: str = "placeholder") -> Tensor:
        """The placeholder that stands for a tensor from outside, or its copy.

        ValueError for a copy of a placeholder, or of what has state.
        """
        if self._by_value:
            return self._copy(tensor.op).outputs[tensor.value_index]
        found = self.captures.get(tensor)
        if found is None:
            dtype = tensor.dtype.base_dtype
            with self.as_default(), self.control_dependencies(None), self.device(None):
                found = F.Placeholder(dtype=dtype, shape=tensor.dims, name=name)
            self.captures[tensor] = found
        return found

    def _copy(self, operation: Operation) -> Operation:
        """A copy of an operation from outside, and of all that it needs."""
        found = self._copies.get(operation)
        if found is None:
            kind = "placeholder" if operation.declaration.role == "placeholder" else "stateful node"
            if kind == "placeholder" or (operation.declaration.stateful and not _has_none_inside(operation)):
                raise ValueError(
                    f"Cannot capture a {kind} (name:{operation.name}, type:{operation.type}) by value."
                )
            inputs = [self._copy(x.op).outputs[x.value_index] for x in operation.inputs]
            with self.as_default(), self.control_dependencies(None), self.device(None):
                found = super().create(
                    operation.declaration,
                    inputs,
                    dict(operation.attributes),
                    operation.group_sizes,
                    operation.name,
                )
            self._copies[operation] = found
        return found

    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Any:
        """As in every graph; what is outside has no place inside, so nothing is colocated with it."""
        element = getattr(op, "_as_graph_element", lambda: op)()
        if getattr(element, "graph", self) is not self:
            return self._scopes.having(colocation=(), devices=())
        return super().colocate_with(op, ignore_existing)


def _has_none_inside(operation: Operation) -> bool:
    """Whether it keeps nothing, though declared to have state: it describes a dataset, or looks at files."""
    is_dataset = [x.dtype for x in operation.outputs] == [dtypes.variant] and operation.type.endswith(
        "Dataset"
    )
    return is_dataset or operation.declaration.role == "files"


class _OuterStore:
    """The variable store that a function's body sees: the outer graph's."""

    def __init__(self, graph: FunctionGraph, store: Any) -> None:
        self._function_graph, self._store = graph, store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get_variable(self, *arguments: Any, **keywords: Any) -> Any:
        """The variable; a resource variable's value instead, read outside before the call."""
        with self._function_graph.outer.as_default():
            variable = self._store.get_variable(*arguments, **keywords)
            handle = getattr(variable, "handle", None)
            if not isinstance(handle, Tensor):
                return variable
            value = variable.value()
        return self._function_graph.capture(value)
