"""The variables of one graph by name, and the stack of variable scopes of each thread."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flowstone.framework.graphs.graph import Graph, GraphKeys
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.ops.variables.initializers import GlorotUniform, Zeros
from flowstone.ops.variables.partitioned_variables import get_partitioned_variable
from flowstone.ops.variables.scope_defaults import VariableScope, type_of_value
from flowstone.ops.variables.variable_creation import (
    VariableSynchronization,
    scope_default_use_resource,
    synchronization_of,
)
from flowstone.ops.variables.variables import Variable

# Under these collections TensorFlow 1 keeps the store and the scope in force; libraries look there.
STORE_KEY = ("__variable_store",)
SCOPE_KEY = ("__varscope",)


def store_of(graph: Graph) -> VariableStore:
    """The graph's store, made on first use."""
    if graph.variable_store is None:
        store = graph.variable_store = VariableStore(graph)
        graph.get_collection_ref(STORE_KEY)[:] = [store]
        graph._collections[SCOPE_KEY] = CurrentScope(store, graph._collections.get(SCOPE_KEY, ()))
    return graph.variable_store  # type: ignore[no-any-return]


def outside_control_flow(graph: Graph) -> contextlib.AbstractContextManager[None]:
    """Within it, nodes belong to no branch or loop: of a loss made in a loop there would be no one value."""
    if graph._scopes.control_flow_context is None:
        return contextlib.nullcontext()
    return graph.control_dependencies(None)


def _as_before(**_: Any) -> list[int]:
    """Stands for the partitioner that a partitioned variable was made with."""
    return []


class _ScopeStack(threading.local):
    def __init__(self) -> None:
        self.scopes: list[VariableScope] = []
        self.counts: dict[str, int] = {}  # how often a default name was taken, by full name


class CurrentScope(list[Any]):
    """The collection of one item, the scope in force; another scope put there becomes the one in force.

    `given`: what a program has put into the collection before the store was made.
    """

    def __init__(self, store: VariableStore, given: Sequence[VariableScope]) -> None:
        super().__init__()
        self._store = store
        if given:
            self[0] = given[0]

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return [self._store.current_scope()][index]

    def __setitem__(self, index: Any, scope: Any) -> None:
        self._store.replace_scope(scope)

    def __iter__(self) -> Iterator[Any]:
        return iter([self._store.current_scope()])


class VariableStore:
    """A graph's variables by full name; partitioned ones apart. `current_scope()` is the thread's variable
    scope.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._vars: dict[str, Any] = {}
        self._partitioned_vars: dict[str, Any] = {}
        self._stack = _ScopeStack()

    # ---- scopes

    def current_scope(self) -> VariableScope:
        """The innermost `VariableScope` of this thread; the root one outside all."""
        if not self._stack.scopes:
            self._stack.scopes.append(VariableScope(False))
        return self._stack.scopes[-1]

    def replace_scope(self, scope: VariableScope) -> None:
        """Has `scope` be the current one in place of the innermost."""
        self.current_scope()
        self._stack.scopes[-1] = scope

    @contextlib.contextmanager
    def entered(self, scope: VariableScope) -> Iterator[VariableScope]:
        """Within the context `scope` is the current one."""
        self.current_scope()
        counts = dict(self._stack.counts)
        self.open(scope.name)
        self._stack.scopes.append(scope)
        try:
            yield scope
        finally:
            self._stack.scopes.pop()
            self._close(scope.name, counts)

    def open(self, name: str) -> None:
        """Notes that a scope of this full name is in use."""
        self._stack.counts[name] = self._stack.counts.get(name, 0) + 1

    def _close(self, name: str, counts: dict[str, int]) -> None:
        """Forgets the scopes below `name`, so that their default names start over when it is
        entered again.
        """
        for key in self._stack.counts:
            if not name or key.startswith(name + "/"):
                self._stack.counts[key] = 0
        if not name:
            self._stack.counts = counts

    def unique_name(self, prefix: str) -> str:
        """`prefix` inside the current scope, with ``_1`` … where a scope of that name is or was in use."""
        base = self.current_scope().name
        full = f"{base}/{prefix}" if base else prefix
        if not self._stack.counts.get(full):
            return prefix
        count = 1
        while self._stack.counts.get(f"{full}_{count}"):
            count += 1
        return f"{prefix}_{count}"

    # ---- variables

    def get_variable(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        custom_getter: Callable[..., Any] | None = None,
        constraint: Callable[..., Any] | None = None,
        **others: Any,
    ) -> Any:
        """The variable of this full name: an existing or a new one, by `reuse`; see `tf.get_variable`."""
        if custom_getter is not None and not callable(custom_getter):
            raise ValueError(f"Passed a custom_getter which is not callable: {custom_getter}")
        if trainable is None:
            synchronization = synchronization_of(others.get("synchronization"), name)
            trainable = synchronization is not VariableSynchronization.ON_READ
        keywords = {
            "shape": shape,
            "dtype": dtype,
            "initializer": initializer,
            "regularizer": regularizer,
            "reuse": reuse,
            "trainable": trainable,
            "collections": collections,
            "caching_device": caching_device,
            "partitioner": partitioner,
            "validate_shape": validate_shape,
            "use_resource": use_resource,
            "constraint": constraint,
            **others,
        }
        if custom_getter is not None:
            return custom_getter(getter=self._get, name=name, **keywords)
        return self._get(name, **keywords)

    def _get(self, name: str, shape: Any = None, dtype: Any = dtypes.float32, **keywords: Any) -> Any:
        dtype = dtypes.as_dtype(dtype).base_dtype
        partitioner, reuse = keywords.pop("partitioner", None), keywords.pop("reuse", None)
        shape = None if shape is None else as_shape(shape)
        is_scalar = shape is not None and shape.ndims == 0
        if reuse is True and partitioner is None and name in self._partitioned_vars:
            partitioner = _as_before
        if partitioner is not None and not is_scalar:
            if not callable(partitioner):
                raise ValueError(f"Partitioner must be callable, but received: {partitioner}")
            with self._graph.name_scope(None):
                chosen = None if partitioner is _as_before else partitioner
                return get_partitioned_variable(self, name, chosen, shape, dtype, reuse, **keywords)
        if f"{name}/part_0" in self._vars:
            raise ValueError(
                "No partitioner was provided, but a partitioned version of the variable was "
                f"found: {name}/part_0. "
                "Perhaps a variable of the same name was already created with partitioning?"
            )
        return self.get_single(name, shape, dtype, reuse, **keywords)

    def get_single(
        self,
        name: str,
        shape: TensorShape | None,
        dtype: DType,
        reuse: Any,
        partition_info: Any = None,
        **keywords: Any,
    ) -> Any:
        """An unpartitioned variable; `partition_info` if it is a part of a larger one."""
        if name in self._vars:
            return self._existing(name, shape, dtype, reuse)
        if reuse is True:
            raise ValueError(
                f"Variable {name} does not exist, or was not created with tf.get_variable(). Did "
                "you mean to set "
                "reuse=tf.AUTO_REUSE in VarScope?"
            )
        return self._create(name, shape, dtype, partition_info, **keywords)

    def _existing(self, name: str, shape: TensorShape | None, dtype: DType, reuse: Any) -> Any:
        found = self._vars[name]
        if not reuse:
            raise ValueError(
                f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
                f"reuse=tf.AUTO_REUSE in VarScope?{_definition(found)}"
            )
        if shape is not None and not shape.is_compatible_with(found.shape):
            raise ValueError(
                f"Trying to share variable {name}, but specified shape {shape} and found shape {found.shape}."
            )
        if not dtype.is_compatible_with(found.dtype):
            raise ValueError(
                f"Trying to share variable {name}, but specified dtype {dtype.name} and found "
                f"dtype {found.dtype.name}."
            )
        return found

    def _create(
        self,
        name: str,
        shape: TensorShape | None,
        dtype: DType,
        partition_info: Any,
        initializer: Any = None,
        regularizer: Any = None,
        use_resource: bool | None = None,
        **keywords: Any,
    ) -> Any:
        if initializer is None:
            initializer = self._default_initializer(name, shape, dtype)
        is_value = not callable(initializer)
        if is_value and shape is not None:
            raise ValueError("If initializer is a constant, do not specify shape.")
        if is_value:
            dtype = type_of_value(initializer)
        initial = initializer if is_value else _initial_value(name, initializer, shape, dtype, partition_info)
        variable_type: DType | None = dtype
        if not is_value and shape is None:
            variable_type = None
        if use_resource is None:
            use_resource = scope_default_use_resource()
        with self._graph.control_dependencies(None):
            variable = Variable(  # type: ignore[call-arg]  # the metaclass takes `use_resource`
                initial_value=initial, name=name, dtype=variable_type, use_resource=use_resource, **keywords
            )
        self._vars[name] = variable
        if regularizer:  # an empty dict of them, too, is none
            self._regularize(name, variable, regularizer)
        return variable

    def _default_initializer(self, name: str, shape: TensorShape | None, dtype: DType) -> Any:
        if shape is None:
            raise ValueError(
                f"Variable {name} did not get an initializer, so its `shape` argument must be specified."
            )
        if dtype.is_floating:
            return GlorotUniform()
        if dtype.is_integer or dtype.is_unsigned or dtype.is_bool or dtype == dtypes.string:
            return Zeros()
        raise ValueError(f"An initializer for variable {name} of {dtype!r} is required")

    def _regularize(self, name: str, variable: Any, regularizer: Callable[..., Any]) -> None:
        with (
            outside_control_flow(self._graph),
            self._graph.colocate_with(variable.op),
            self._graph.name_scope(f"{name}/Regularizer/"),
        ):
            loss = regularizer(variable)
        if loss is not None:
            self._graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def by_name(self) -> dict[str, Any]:
        """All variables by full name, a partitioned one as one."""
        parts = {part.op.name for whole in self._partitioned_vars.values() for part in whole}
        alone = {name: each for name, each in self._vars.items() if each.op.name not in parts}
        return {**alone, **self._partitioned_vars}

    def has_single(self, name: str) -> bool:
        """Whether a variable of this full name is there, unpartitioned."""
        return name in self._vars

    # ---- partitioned ones

    def partitioned(self, name: str) -> Any:
        """The partitioned variable of this full name, or None."""
        return self._partitioned_vars.get(name)

    def add_partitioned(self, name: str, variable: Any) -> None:
        """Keeps a partitioned variable under its full name."""
        self._partitioned_vars[name] = variable


def _definition(variable: Any) -> str:
    trace = getattr(variable.op, "user_line", None)
    if trace is None:
        return ""
    return f' Originally defined at:\n\n  File "{trace[0]}", line {trace[1]}, in {trace[2]}\n'


def _initial_value(
    name: str, initializer: Any, shape: TensorShape | None, dtype: DType, partition_info: Any
) -> Callable[[], Any]:
    """A function of no arguments that makes the initial value."""
    if isinstance(initializer, type):
        initializer = initializer()
    if shape is not None and shape.is_fully_defined():
        sizes = shape.as_list()
        if any(p.name == "partition_info" for p in _parameters(initializer)):
            return lambda: initializer(sizes, dtype=dtype, partition_info=partition_info)
        if _takes(initializer, "dtype"):
            return lambda: initializer(sizes, dtype=dtype)
        return lambda: initializer(sizes) if _required(initializer) else initializer()
    if not _required(initializer):
        return initializer  # type: ignore[no-any-return]
    raise ValueError(
        "The initializer passed is not valid. It should be a callable with no arguments and the "
        "shape should not be "
        "provided or an instance of `tf.keras.initializers.*' and `shape` should be fully defined."
    )


def _parameters(function: Any) -> list[Any]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def _takes(function: Any, name: str) -> bool:
    return any(p.name == name or p.kind is p.VAR_KEYWORD for p in _parameters(function))


def _required(function: Any) -> bool:
    """Whether the function has a positional parameter without a default."""
    kinds = [p for p in _parameters(function) if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return any(p.default is p.empty for p in kinds)
