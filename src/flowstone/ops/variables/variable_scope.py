"""`variable_scope` and `get_variable`: variables by name, made once and shared.

Each graph has one `VariableStore` (``graph.variable_store``): its variables by full name, and per thread
the stack of `VariableScope` s in force. A scope holds a name prefix and defaults (initialiser, regulariser,
partitioner …), and says whether `get_variable` makes new variables (reuse False), finds existing ones
(True), or either (AUTO_REUSE). Entering one also enters a name scope for operations, whose name is made
unique although the variables' prefix is not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flowstone.framework.graphs.graph import Graph, GraphKeys
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.ops.variables.scope_defaults import AUTO_REUSE, VariableScope
from flowstone.ops.variables.variable_creation import (
    VariableAggregation,
    VariableSynchronization,
)
from flowstone.ops.variables.variable_store import VariableStore, store_of

__all__ = [
    "create_partitioned_variables",
    "get_local_variable",
    "get_variable",
    "get_variable_scope",
    "no_regularizer",
    "variable_op_scope",
    "variable_scope",
]


def no_regularizer(_: Any) -> None:
    """A regulariser that adds no loss: turns off the scope's for one variable."""


def get_variable_scope() -> VariableScope:
    """The variable scope in force."""
    return store_of(get_default_graph()).current_scope()


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Callable[..., Any] | None = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Callable[..., Any] | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Callable[..., Any] | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """The variable of this name in the scope in force: an existing one, or a new one, as the scope's
    `reuse` says.

    Args:
        name: inside the scope.
        shape: must be fully known for a new variable, unless `initializer` is a value.
        dtype: default: the scope's.
        initializer: an initialiser, a function of no arguments, or a value (then without `shape`). Default:
        the
            scope's, else uniform (Glorot) for floating-point types, zeros for the others.
        regularizer: function whose result for the variable goes to the collection REGULARIZATION_LOSSES.
        trainable, collections, caching_device, validate_shape, constraint, use_resource: see `Variable`.
        partitioner: function of shape and dtype giving the number of parts along each dimension; the result
        is then
            a `PartitionedVariable`.
        custom_getter: called as ``custom_getter(getter, name, …)`` in place of the getter.

    Raises ValueError if the variable exists and may not be reused, must be reused and does not exist, or
    exists with another shape or dtype.
    """
    store = store_of(get_default_graph())
    return store.current_scope().get_variable(
        store,
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        partitioner=partitioner,
        validate_shape=validate_shape,
        use_resource=use_resource,
        custom_getter=custom_getter,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Callable[..., Any] | None = None,
    trainable: bool = False,
    collections: Any = None,
    *arguments: Any,
    **keywords: Any,
) -> Any:
    """As `get_variable`, for a variable that is not trainable and in the collection LOCAL_VARIABLES."""
    collections = [*(collections or ()), GraphKeys.LOCAL_VARIABLES]
    return get_variable(
        name, shape, dtype, initializer, regularizer, False, collections, *arguments, **keywords
    )


class variable_scope:
    """Context manager that enters a variable scope and a name scope.

    Args:
        name_or_scope: a name inside the present scope, or a `VariableScope` to enter again; None takes
        `default_name`.
        default_name: made unique if `name_or_scope` is None.
        values: tensors whose graph must be the default one.
        initializer … constraint: new defaults, the enclosing scope's where None.
        reuse: True, AUTO_REUSE, or None and False to inherit.
        auxiliary_name_scope: whether a name scope is entered too.

    Yields the `VariableScope`. Raises TypeError or ValueError for other arguments.
    """

    def __init__(
        self,
        name_or_scope: Any,
        default_name: str | None = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Callable[..., Any] | None = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: bool | None = None,
        constraint: Callable[..., Any] | None = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if default_name is None and name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if name_or_scope is not None and not isinstance(name_or_scope, (str, VariableScope)):
            raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
        if reuse is False:
            reuse = None
        if not (reuse is None or reuse is True or reuse is AUTO_REUSE):
            raise ValueError("The reuse parameter must be True or False or None.")
        if not isinstance(auxiliary_name_scope, bool):
            raise TypeError(
                f"The auxiliary_name_scope must be `True` or `False`, while get {auxiliary_name_scope}"
            )
        self._name_or_scope, self._default_name, self._values = name_or_scope, default_name, values
        self._reuse, self._auxiliary = reuse, auxiliary_name_scope
        self._settings = {
            "initializer": initializer,
            "regularizer": regularizer,
            "caching_device": caching_device,
            "partitioner": partitioner,
            "custom_getter": custom_getter,
            "dtype": dtype,
            "use_resource": use_resource,
            "constraint": constraint,
        }
        self._entered: list[Any] = []

    def __enter__(self) -> VariableScope:
        stack = contextlib.ExitStack()
        try:
            result = self._enter(stack)
        except BaseException:
            stack.close()
            raise
        self._entered.append(stack)
        return result

    def __exit__(self, *exception: Any) -> None:
        self._entered.pop().close()

    def _enter(self, stack: contextlib.ExitStack) -> VariableScope:
        graph = _graph_of_values(self._values)
        if graph is not get_default_graph():
            stack.enter_context(graph.as_default())
        store = store_of(graph)
        if self._name_or_scope is not None:
            return self._enter_named(stack, graph, store)
        if self._reuse:
            raise ValueError("reuse=True cannot be used without a name_or_scope")
        name_scope = _name_scope_of(graph)
        if self._auxiliary:
            name_scope = stack.enter_context(graph.name_scope(self._default_name))
        name = store.unique_name(self._default_name or "")
        return stack.enter_context(store.entered(self._child(store, name, name_scope)))

    def _enter_named(self, stack: contextlib.ExitStack, graph: Graph, store: VariableStore) -> VariableScope:
        if isinstance(self._name_or_scope, VariableScope):
            scope = self._name_or_scope
            if self._auxiliary and (leaf := scope.name.rpartition("/")[2]):
                stack.enter_context(graph.name_scope(leaf))
            return stack.enter_context(store.entered(self._again(scope)))
        name: str = self._name_or_scope or ""
        name_scope = _name_scope_of(graph)
        if self._auxiliary and name:
            name_scope = stack.enter_context(graph.name_scope(name))
        return stack.enter_context(store.entered(self._child(store, name, name_scope)))

    def _again(self, scope: VariableScope) -> VariableScope:
        """A copy of `scope` under its own name."""
        fresh = VariableScope(
            scope.reuse if not self._reuse else self._reuse, scope.name, name_scope=scope.original_name_scope
        )
        return self._with_settings(fresh, scope)

    def _child(self, store: VariableStore, name: str, name_scope: str) -> VariableScope:
        """A scope `name` inside the present one."""
        parent = store.current_scope()
        full_name = f"{parent.name}/{name}" if parent.name else name  # "l/" for "" within "l": TensorFlow's
        fresh = VariableScope(self._reuse or parent.reuse, full_name, name_scope=name_scope)
        return self._with_settings(fresh, parent)

    def _with_settings(self, fresh: VariableScope, defaults: VariableScope) -> VariableScope:
        for key, value in self._settings.items():
            inherited = getattr(defaults, key)
            if key == "custom_getter" and value is not None and inherited is not None:
                value = _composed(inherited, value)
            setattr(fresh, f"_{key}", inherited if value is None else value)
        if fresh._dtype is not None and not isinstance(fresh._dtype, DType):
            fresh._dtype = dtypes.as_dtype(fresh._dtype)
        return fresh


def _name_scope_of(graph: Graph) -> str:
    """The name scope that is entered, as names in it begin."""
    name = graph.get_name_scope()
    return f"{name}/" if name else ""


def _graph_of_values(values: Any) -> Graph:
    for value in values or ():
        graph = getattr(value, "graph", None)
        if isinstance(graph, Graph):
            return graph
    return get_default_graph()


def _composed(outer: Callable[..., Any], inner: Callable[..., Any]) -> Callable[..., Any]:
    def composed(getter: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        return inner(lambda *a, **k: outer(getter, *a, **k), *arguments, **keywords)

    return composed


@contextlib.contextmanager
def variable_op_scope(
    values: Any,
    name_or_scope: Any,
    default_name: str | None = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    constraint: Any = None,
) -> Iterator[VariableScope]:
    """The older form of `variable_scope`, with `values` first."""
    with variable_scope(
        name_or_scope, default_name, values, initializer, regularizer, caching_device, partitioner,
        custom_getter, reuse, dtype, use_resource, constraint,
    ) as scope:  # fmt: skip
        yield scope


def create_partitioned_variables(
    shape: Sequence[int],
    slicing: Sequence[int],
    initializer: Any,
    dtype: Any = dtypes.float32,
    trainable: bool = True,
    collections: Any = None,
    name: str | None = None,
    reuse: Any = None,
) -> list[Any]:
    """The parts of a new variable of `shape`, cut into `slicing` parts along each dimension; see
    `get_variable`.

    Raises ValueError if the lengths differ, or more than one dimension is cut.
    """
    if len(shape) != len(slicing):
        raise ValueError(
            "The 'shape' and 'slicing' of a partitioned Variable must have the length: "
            f"shape: {shape}, slicing: {slicing}"
        )
    if len(shape) < 1:
        raise ValueError(f"A partitioned Variable must have rank at least 1: shape: {shape}")
    with variable_scope(name, "PartitionedVariable", reuse=reuse):
        whole = get_variable(
            "",
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            trainable=trainable,
            partitioner=lambda **_: slicing,
            collections=collections,
        )
        return list(whole)
