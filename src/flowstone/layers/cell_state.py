"""The sizes of a recurrent cell's state and outputs: a size is an integer, a list of integers or a
TensorShape, without the batch dimension, and there may be nested structures of them.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.tensors import nest
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dimension import Dimension
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.ops.arrays.constants import constant, zeros
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import expand_dims

__all__ = ["check_is_cell", "full_shape", "static_shape", "zero_state", "zeros_of_size"]


def _as_vector(part: Any) -> Tensor:
    """A size or batch size as a vector. ValueError if it is not fully known."""
    if isinstance(part, Tensor):
        return expand_dims(part, 0) if part.shape.ndims == 0 else part
    sizes = _sizes(part)
    if any(size is None for size in sizes):
        raise ValueError(f"Provided a prefix or suffix that is not fully known: {part}")
    return constant(sizes, dtypes.int32)


def _sizes(part: Any) -> list[int | None]:
    if isinstance(part, (int, Dimension)) or part is None:
        return as_shape([part]).as_list()
    return as_shape(part).as_list()


def full_shape(batch_size: Any, size: Any) -> Tensor:
    """The shape [batch_size, *size] as an int32 vector. ValueError if a part is None."""
    if batch_size is None or size is None:
        raise ValueError(
            f"Prefix or suffix can't be None. Received prefix = {batch_size} and suffix = {size}"
        )
    return concat([_as_vector(batch_size), _as_vector(size)], 0)


def static_shape(prefix: Any, size: Any) -> TensorShape:
    """The static shape [*prefix, *size].

    TensorFlow makes tensors of what is known of it, which nobody reads; so do we, for the number of nodes.
    """
    parts = [part for part in (prefix, size) if isinstance(part, Tensor) or None not in _sizes(part)]
    for part in parts:
        _as_vector(part)
    if isinstance(size, Tensor):
        return TensorShape(None)
    known = [None] if isinstance(prefix, Tensor) else _sizes(prefix)
    return TensorShape([*known, *_sizes(size)])


def zeros_of_size(size: Any, batch_size: Any, dtype: Any) -> Tensor:
    """Zeros of the shape [batch_size, *size]."""
    return zeros(full_shape(batch_size, size), dtype)


def zero_state(state_size: Any, batch_size: Any, dtype: Any) -> Any:
    """Zeros [batch_size, *size] for every size in the structure `state_size`."""

    def of_size(size: Any) -> Tensor:
        state = zeros_of_size(size, batch_size, dtype)
        state.set_shape(static_shape(batch_size, size))
        return state

    return nest.map_structure(of_size, state_size)


def check_is_cell(argument: str, cell: Any) -> None:
    """Raises TypeError if `cell`, the value of `argument`, lacks an attribute of recurrent cells."""
    faults = [
        f"'{name}' property is missing" for name in ("output_size", "state_size") if not _has(cell, name)
    ]
    if not _has(cell, "zero_state") and not _has(cell, "get_initial_state"):
        faults.append("either 'zero_state' or 'get_initial_state' method is required")
    if not callable(cell):
        faults.append("is not callable")
    if faults:
        raise TypeError(f"The argument '{argument}' ({cell}) is not an RNNCell: {', '.join(faults)}.")


def _has(cell: Any, name: str) -> bool:
    return name in dir(cell)  # also counts a property that raises
