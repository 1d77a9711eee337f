"""Functions of the default graph: its scopes and collections, and conversions to what its operations take.

Each is the method of the default `Graph` of the same name, except `name_scope`, which also finds the graph
from values and chooses between two names:

>>> with name_scope("layer") as prefix:
...     prefix
'layer/'
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

import numpy as np

from flowstone.framework.graphs.graph import Graph, Operation
from flowstone.framework.tensors.composite import IndexedSlices, SparseTensor, SparseTensorValue
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.dtypes import as_dtype
from flowstone.framework.types.shape import TensorShape

__all__ = [
    "add_to_collection",
    "add_to_collections",
    "colocate_with",
    "container",
    "control_dependencies",
    "convert_to_tensor_or_indexed_slices",
    "convert_to_tensor_or_sparse_tensor",
    "device",
    "get_collection",
    "get_collection_ref",
    "get_static_value",
    "is_tensor",
    "name_scope",
    "op_scope",
]


def device(device_name_or_function: Any) -> contextlib.AbstractContextManager[None]:
    """Within the context new operations get this device: a name, a `DeviceSpec`, or a function of the
    operation that gives one. None clears the enclosing scopes' devices.
    """
    return get_default_graph().device(device_name_or_function)


def container(container_name: str) -> contextlib.AbstractContextManager[str]:
    """Within the context new stateful operations keep their state in this container (white paper 4.7)."""
    return get_default_graph().container(container_name)


def control_dependencies(control_inputs: Any) -> contextlib.AbstractContextManager[None]:
    """Within the context new operations run after `control_inputs`, a list of operations and tensors. None
    clears the enclosing scopes' dependencies.
    """
    return get_default_graph().control_dependencies(control_inputs)


def colocate_with(op: Any, ignore_existing: bool = False) -> contextlib.AbstractContextManager[None]:
    """Within the context new operations are placed where `op`, an operation or a tensor, is."""
    return get_default_graph().colocate_with(op, ignore_existing)


# ---- name scopes


def _graph_of(values: Iterable[Any]) -> Graph:
    """The graph of the tensors and operations among `values`, the default graph if there are none.

    ValueError if they disagree.
    """
    first: Any = None
    for value in values:
        graph = getattr(value, "graph", None)
        if not isinstance(graph, Graph):
            continue
        if first is None:
            first = value
        elif graph is not first.graph:
            raise ValueError(
                f"{value} must be from the same graph as {first} (graphs are {graph} and {first.graph})."
            )
    found: Graph = get_default_graph() if first is None else first.graph
    return found


class name_scope:
    """Names of operations created inside begin with the scope's; entering yields that prefix, with its slash.

    Args:
        name: the scope's name; a final '/' re-enters the scope of that name.
        default_name: is taken where `name` is None.
        values: tensors and operations, in whose graph the scope is entered.

    Entering raises ValueError if both names are None although `values` are given, if the name is malformed,
    or if the values belong to several graphs. Raises TypeError if `default_name` is not a string.
    """

    def __init__(self, name: str | None, default_name: str | None = None, values: Any = None) -> None:
        if not (default_name is None or isinstance(default_name, str)):
            raise TypeError(
                f"`default_name` type ({type(default_name)}) is not a string type. You likely meant to pass "
                "this into the `values` kwarg."
            )
        self._name = default_name if name is None else name
        self._given_name, self._default_name, self._values = name, default_name, values
        self._exits: list[contextlib.ExitStack] = []

    @property
    def name(self) -> str | None:
        """The name asked for."""
        return self._name

    def __enter__(self) -> str:
        if self._name is None and self._values is not None:
            raise ValueError(
                f"At least one of name ({self._given_name}) and default_name ({self._default_name}) "
                "must be provided."
            )
        graph = get_default_graph() if self._values is None else _graph_of(self._values)
        with contextlib.ExitStack() as stack:
            stack.enter_context(graph.as_default())
            prefix = stack.enter_context(graph.name_scope(self._name))
            self._exits.append(stack.pop_all())
        return prefix

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exits.pop().__exit__(kind, error, traceback)


@contextlib.contextmanager
def op_scope(values: Any, name: str | None, default_name: str | None = None) -> Iterator[str]:
    """`name_scope` with its arguments in the order of TensorFlow 0.x."""
    with name_scope(name, default_name, values) as prefix:
        yield prefix


# ---- collections


def add_to_collection(name: Any, value: Any) -> None:
    """Appends `value` to the collection. Raises RuntimeError if the graph is finalized."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """Appends `value` to each of the collections; `names` is a name or several."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """A copy of the collection; with `scope`, a regular expression, only items whose name begins with it."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    """The collection's own list: changing it changes the collection."""
    return get_default_graph().get_collection_ref(key)


# ---- conversions


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor or stands for tensors: a variable, a sparse tensor, indexed slices."""
    if isinstance(x, (Tensor, SparseTensor, IndexedSlices)):
        return True
    return hasattr(type(x), "_as_graph_element") and not isinstance(x, Operation)


def convert_to_tensor_or_indexed_slices(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """`value` if it is a tensor or `IndexedSlices`, else a tensor for it.

    Raises ValueError if its dtype is not `dtype`, TypeError if nothing converts it.
    """
    if not isinstance(value, IndexedSlices):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and not as_dtype(dtype).is_compatible_with(value.dtype):
        raise ValueError(
            f"Incompatible tensor conversion requested to `dtype` {as_dtype(dtype).name} for `value` "
            f"({value}) with dtype {value.dtype.name}."
        )
    return value


def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """`value` if it is a tensor or a `SparseTensor`, else one for it.

    Raises RuntimeError if a sparse tensor's dtype is not `dtype`; ValueError and TypeError as
    `convert_to_tensor`.
    """
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and not as_dtype(dtype).is_compatible_with(value.dtype):
        raise RuntimeError(
            f"Sparse dtype mismatch. Requested: {as_dtype(dtype).name},  Actual: {value.dtype.name}"
        )
    return value


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a tensor as far as it is known without running a step: an array, or None.

    With `partial`, a vector of sizes of which some are unknown gives an array of integers and Nones. What is
    no tensor is its own value.
    """
    if not is_tensor(tensor):
        return tensor
    value = static_value(tensor)
    if isinstance(value, tuple):
        if not partial and None in value:
            return None
        return np.array(value, object if None in value else tensor.dtype.as_numpy_dtype)
    if value is not None:
        # What is constant once is constant wherever it goes: nobody may feed another value.
        tensor.graph.prevent_feeding(tensor)
    return value.copy() if isinstance(value, np.ndarray) else value  # the caller's, who may write into it


def constant_value_as_shape(tensor: Any) -> TensorShape:
    """The shape that an integer vector describes, as far as it is known without running a step."""
    value = static_value(tensor)
    if value is None:
        rank = tensor.shape[0].value
        return TensorShape(None if rank is None else [None] * rank)
    return TensorShape([None if size is None or size < 0 else int(size) for size in value])
