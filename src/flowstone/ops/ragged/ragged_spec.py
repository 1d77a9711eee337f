"""`RaggedTensorSpec`: the type of a ragged tensor."""

from __future__ import annotations

from typing import Any

from flowstone.framework.tensors.type_specs import BatchableTypeSpec, TensorSpec
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.ops.ragged.ragged_tensor import RaggedTensor

__all__ = ["RaggedTensorSpec"]


class RaggedTensorSpec(BatchableTypeSpec):
    """Ragged tensors of a static shape, whose ragged dimensions are None.

    Args:
        shape: the shape, or None for any.
        dtype: the element type.
        ragged_rank: how many dimensions are ragged; by default all but the first.
        row_splits_dtype: int32 or int64.

    Raises ValueError for a ragged rank that does not fit the shape, and one that nothing says.
    """

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> None:
        self._shape, self._dtype = as_shape(shape), dtypes.as_dtype(dtype)
        self._row_splits_dtype = dtypes.as_dtype(row_splits_dtype)
        rank = self._shape.ndims
        if ragged_rank is None:
            if rank is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = rank - 1
        if not isinstance(ragged_rank, int):
            raise TypeError("ragged_rank must be an int")
        if rank is not None and ragged_rank >= rank:
            raise ValueError("ragged_rank must be less than rank.")
        self._ragged_rank = ragged_rank

    @classmethod
    def from_value(cls, value: RaggedTensor) -> RaggedTensorSpec:
        """That of a ragged tensor."""
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)

    @property
    def value_type(self) -> type:
        """RaggedTensor."""
        return RaggedTensor

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._shape

    @property
    def dtype(self) -> dtypes.DType:
        """The element type."""
        return self._dtype

    @property
    def _component_specs(self) -> list[TensorSpec]:
        """The specs of the innermost values and the splits."""
        inner = None if self._shape.ndims is None else self._shape.as_list()[self._ragged_rank + 1 :]
        flat = TensorSpec(None if inner is None else [None, *inner], self._dtype)
        rows = None if self._shape.ndims is None else self._shape.as_list()[0]
        first = [TensorSpec([None if rows is None else rows + 1], self._row_splits_dtype)]
        inner_splits = [TensorSpec([None], self._row_splits_dtype)] * (self._ragged_rank - 1)
        return [flat, *first, *inner_splits] if self._ragged_rank else [flat]

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype

    def _batch(self, batch_size: Any) -> RaggedTensorSpec:
        whole = TensorShape([batch_size]).concatenate(self._shape)
        return RaggedTensorSpec(whole, self._dtype, self._ragged_rank + 1, self._row_splits_dtype)

    def _unbatch(self) -> RaggedTensorSpec:
        return RaggedTensorSpec(self._shape[1:], self._dtype, self._ragged_rank - 1, self._row_splits_dtype)


RaggedTensor._type_spec = property(RaggedTensorSpec.from_value)
