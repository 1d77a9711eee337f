"""Values made of several tensors: sparse tensors and slices of a tensor.

A `SparseTensor` holds the values at some places of a larger tensor; `IndexedSlices` some slices along its
first dimension, as the gradient of a gather does. Outside the graph their values are the named tuples
`SparseTensorValue` and `IndexedSlicesValue`, which is what feeding takes and fetching gives.
"""

from __future__ import annotations

import functools
from abc import ABC
from collections import namedtuple
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor, evaluating_session
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import TensorShape

if TYPE_CHECKING:
    from flowstone.framework.graphs.graph import Graph, Operation

_Function = TypeVar("_Function", bound=Callable[..., Any])
SparseTensorValue = namedtuple("SparseTensorValue", ["indices", "values", "dense_shape"])
IndexedSlicesValue = namedtuple("IndexedSlicesValue", ["values", "indices", "dense_shape"])


class IndexedSlices:
    """Slices ``values[i]`` of a tensor at the positions ``indices[i]`` of its first dimension.

    Args:
        values: Tensor of shape [n, d1, …].
        indices: integer Tensor of shape [n]; positions may repeat, their slices then add up.
        dense_shape: integer Tensor, the shape of the whole; None if it is not known.
    """

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        if isinstance(values, Tensor):
            for other in (indices, dense_shape):
                if isinstance(other, Tensor) and other.graph is not values.graph:
                    raise ValueError(f"{other!r} must be from the same graph as {values!r}.")
        self._values, self._indices, self._dense_shape = values, indices, dense_shape

    @property
    def values(self) -> Tensor:
        """The slices, [n, d1, …]."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """Where they stand, [n]."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the whole, or None."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The static shape of the whole, as far as `dense_shape` tells."""
        if self._dense_shape is None:
            return TensorShape(None)
        return _shape_of_sizes(self._dense_shape)

    def get_shape(self) -> TensorShape:
        """The static shape of the whole."""
        return self.shape

    @property
    def name(self) -> str:
        """The name of `values`."""
        return self._values.name

    @property
    def device(self) -> str:
        """The device requested for `values`."""
        return self._values.device

    @property
    def op(self) -> Operation:
        """The operation that computes `values`."""
        return self._values.op

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._values.dtype

    @property
    def graph(self) -> Graph:
        """The graph that holds it."""
        return self._values.graph

    def consumers(self) -> list[Operation]:
        """The operations that take `values`."""
        return self._values.consumers()

    def __str__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape}"
        return f"IndexedSlices(indices={self._indices}, values={self._values}{shape})"


class SparseTensor:
    """A tensor of which only some elements are stored; all others are zero.

    Args:
        indices: int64, [n, rank]: where the elements stand, best in row-major order.
        values: any type, [n]: the elements.
        dense_shape: int64, [rank].

    What is no tensor is converted. Raises TypeError or ValueError for wrong types, ranks or lengths.
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        graph = next((x.graph for x in (indices, values, dense_shape) if isinstance(x, Tensor)), None)
        with (graph or get_default_graph()).name_scope("SparseTensor"):
            self._indices = convert_to_tensor(indices, dtypes.int64, "indices")
            self._values = convert_to_tensor(values, name="values")
            self._dense_shape = convert_to_tensor(dense_shape, dtypes.int64, "dense_shape")
        if self._indices.graph is not self._values.graph or self._values.graph is not self._dense_shape.graph:
            raise ValueError(f"{self._indices!r} must be from the same graph as {self._values!r}.")
        sizes = self._dense_shape.shape.with_rank(1)
        places = self._indices.shape.with_rank(2)
        elements = self._values.shape.with_rank(1)
        places[0].assert_is_compatible_with(elements[0])
        places[1].assert_is_compatible_with(sizes[0])
        self._static_shape = _shape_of_sizes(self._dense_shape)

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """A SparseTensor of a SparseTensorValue, or itself. TypeError for anything else."""
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        if not isinstance(sparse_tensor_value, SparseTensorValue):
            raise TypeError(
                f"Argument sparse_tensor_value={sparse_tensor_value} is neither a SparseTensor nor "
                "SparseTensorValue."
            )
        return cls(*sparse_tensor_value)

    @property
    def indices(self) -> Tensor:
        """Where the elements stand: int64, [n, rank]."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """The elements, [n]."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """The shape of the whole: int64, [rank]."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The static shape of the whole, as far as `dense_shape` or `set_shape` tells."""
        return self._static_shape

    def get_shape(self) -> TensorShape:
        """The static shape of the whole."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Adds what is known about the static shape. ValueError if `shape` contradicts it."""
        self._static_shape = self._static_shape.merge_with(shape)

    @property
    def op(self) -> Operation:
        """The operation that computes `values`."""
        return self._values.op

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._values.dtype

    @property
    def graph(self) -> Graph:
        """The graph that holds it."""
        return self._indices.graph

    def consumers(self) -> list[Operation]:
        """The operations that take one of the three tensors."""
        users = self._indices.consumers() + self._values.consumers() + self._dense_shape.consumers()
        return list(dict.fromkeys(users))

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Runs it in `session` (default: the default session); returns a SparseTensorValue of arrays."""
        return evaluating_session(session, self.graph, "eval").run(self, feed_dict)

    def __str__(self) -> str:
        parts = f"indices={self._indices}, values={self._values}, dense_shape={self._dense_shape}"
        return f"SparseTensor({parts})"


def _shape_of_sizes(sizes: Tensor) -> TensorShape:
    known = static_value(sizes)
    if known is not None:
        return TensorShape([None if n is None or n < 0 else int(n) for n in known])
    dims = sizes.dims
    return TensorShape(None if not dims or dims[0] is None else [None] * dims[0])


class TensorLike(ABC):  # noqa: B024 (it is only asked)
    """Tensors, and the values made of several: `isinstance(x, TensorLike)`. Variables are none."""


for _kind in (Tensor, SparseTensor, IndexedSlices):
    TensorLike.register(_kind)
_TensorLike = TensorLike  # its name in tensorflow.python.framework.ops


def of_stored_values(function: _Function) -> _Function:
    """The function, which of a SparseTensor is one of the results for its values."""

    @functools.wraps(function)
    def call(x: Any, name: str | None = None) -> Any:
        if isinstance(x, SparseTensor):
            return SparseTensor(x.indices, function(x.values, name=name), x.dense_shape)
        return function(x, name=name)

    return cast(_Function, call)
