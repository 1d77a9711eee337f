"""`RaggedTensor`: a tensor whose rows, in one or several dimensions, have different lengths.

`values` has all rows one after the other; row i is ``values[row_splits[i]:row_splits[i + 1]]``. Where the
values are ragged themselves, there are several ragged dimensions: `ragged_rank` says how many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.dispatch import Ragged
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.numbers.reductions import reduce_max
from flowstone.ops.ragged.ragged_values import RaggedTensorValue, nested_value
from flowstone.ops.ragged.row_layouts import (
    as_partition,
    checked_splits,
    row_splits_to_segment_ids,
    splits_of_ids,
    splits_of_lengths,
)

__all__ = ["RaggedTensor", "as_ragged_or_tensor"]


class RaggedTensor(Ragged):
    """See the module; the class methods ``from_…`` make one."""

    def __init__(self, values: Any, row_splits: Tensor, internal: bool = False) -> None:
        if not internal:
            raise ValueError(
                "RaggedTensor constructor is private; please use one of the factory methods instead (e.g., "
                "RaggedTensor.from_row_lengths())"
            )
        if not isinstance(row_splits, Tensor):
            raise TypeError(f"Row-partitioning argument must be a Tensor, got {row_splits!r}")
        if not isinstance(values, (Tensor, RaggedTensor)):
            raise TypeError(f"values must be a Tensor or RaggedTensor, got {values!r}")
        values.shape.with_rank_at_least(1)
        row_splits.shape.assert_has_rank(1)
        row_splits.set_shape([None])
        if isinstance(values, RaggedTensor) and values.row_splits.dtype != row_splits.dtype:
            raise ValueError("row_splits and values.row_splits must have the same dtype.")
        if not Ragged.exist:
            from flowstone.ops.ragged import dispatching  # noqa: F401  # its operators and what functions do

            Ragged.exist = True
        self._values, self._row_splits = values, row_splits

    # ---- made from its parts

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Rows ``values[row_splits[i]:row_splits[i + 1]]``. ValueError for no splits."""
        if isinstance(row_splits, (list, tuple)) and not row_splits:
            raise ValueError("row_splits tensor may not be empty.")
        with get_default_graph().name_scope(name or "RaggedFromRowSplits"):
            values, splits = _with_splits(values, as_partition(row_splits, name="row_splits"))
            return cls(values, checked_splits(splits, _count(values), validate), internal=True)

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Rows of these lengths, one after the other."""
        with get_default_graph().name_scope(name or "RaggedFromRowLengths"):
            lengths = as_partition(row_lengths, name="row_lengths")
            values, splits = _with_splits(values, splits_of_lengths(lengths))
            return cls(values, checked_splits(splits, _count(values), validate), internal=True)

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None, validate: bool = True
    ) -> Any:
        """`value_rowids`, ascending, has the row of each value; `nrows`: how many rows, by default those up
        to the last one. ValueError for a negative number of rows, and one that is too small."""
        with get_default_graph().name_scope(name or "RaggedFromValueRowIds"):
            ids = as_partition(value_rowids, name="value_rowids")
            known, last = (None if nrows is None else _number(nrows)), static_value(ids)
            if known is not None and known < 0:
                raise ValueError(f"Expected nrows >= 0; got {known}")
            if known is not None and isinstance(last, np.ndarray) and last.size and last[-1] >= known:
                raise ValueError(
                    f"Expected nrows >= value_rowids[-1] + 1; got nrows={known}, value_rowids[-1]={last[-1]}"
                )
            if nrows is None:
                ends = concat([ids[-1:] + 1, F.Fill([1], convert_to_tensor(0, ids.dtype))], axis=0)
                nrows = reduce_max(ends)
            values, splits = _with_splits(values, splits_of_ids(ids, nrows))
            return cls(values, checked_splits(splits, _count(values), validate), internal=True)

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Rows that begin at these places of the values."""
        with get_default_graph().name_scope(name or "RaggedFromRowStarts"):
            starts = as_partition(row_starts, name="row_starts")
            values = as_ragged_or_tensor(values, name="values")
            end = F.Cast(_count(values), DstT=starts.dtype)
            return cls.from_row_splits(
                values, concat([starts, F.ExpandDims(end, 0)], axis=0), validate=validate
            )

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Rows that end before these places of the values."""
        with get_default_graph().name_scope(name or "RaggedFromRowLimits"):
            limits = as_partition(row_limits, name="row_limits")
            zero = F.Fill([1], convert_to_tensor(0, limits.dtype))
            return cls.from_row_splits(values, concat([zero, limits], axis=0), validate=validate)

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Several ragged dimensions, the splits of the outermost first. TypeError for splits that are no
        list."""
        return cls._nested(
            cls.from_row_splits, flat_values, nested_row_splits, "nested_row_splits", name, validate
        )

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Several ragged dimensions, the lengths of the outermost first."""
        return cls._nested(
            cls.from_row_lengths, flat_values, nested_row_lengths, "nested_row_lengths", name, validate
        )

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Any,
        nested_nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Several ragged dimensions, the rows of the outermost first. ValueError for another number of
        `nested_nrows`."""
        counts = [None] * len(nested_value_rowids) if nested_nrows is None else list(nested_nrows)
        if len(counts) != len(nested_value_rowids):
            raise ValueError("nested_nrows must have the same length as nested_value_rowids")
        result = flat_values
        with get_default_graph().name_scope(name or "RaggedFromNestedValueRowIds"):
            for ids, rows in reversed(list(zip(nested_value_rowids, counts))):
                result = cls.from_value_rowids(result, ids, rows, validate=validate)
        return result

    @classmethod
    def _nested(cls, make: Any, flat: Any, parts: Any, what: str, name: str | None, validate: bool) -> Any:
        if isinstance(parts, Tensor):
            raise TypeError(f"{what} must be a list of Tensors")
        result = flat
        with get_default_graph().name_scope(name or "RaggedFromNested"):
            for part in reversed(parts):
                result = make(result, part, validate=validate)
        return result

    # ---- its parts

    @property
    def values(self) -> Any:
        """All rows, one after the other: a Tensor or a RaggedTensor."""
        return self._values

    @property
    def row_splits(self) -> Tensor:
        """Where rows begin, and the last one ends: [rows + 1]."""
        return self._row_splits

    @property
    def flat_values(self) -> Tensor:
        """The innermost values."""
        found: Any = self._values
        while isinstance(found, RaggedTensor):
            found = found.values
        return found  # type: ignore[no-any-return]

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The splits of all ragged dimensions, the outermost first."""
        found, at = [], self
        while isinstance(at, RaggedTensor):
            found.append(at.row_splits)
            at = at.values
        return tuple(found)

    @property
    def ragged_rank(self) -> int:
        """How many dimensions are ragged."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._values.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape; ragged dimensions are None."""
        splits = self._row_splits.shape.as_list()[0]
        rows = None if splits is None else splits - 1
        return TensorShape([rows, None]).concatenate(self._values.shape[1:])

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self.shape

    @property
    def op(self) -> Any:
        """The operation that computes the innermost values."""
        return self.flat_values.op

    @property
    def graph(self) -> Any:
        """The graph that holds it."""
        return self.flat_values.graph

    def consumers(self) -> list[Any]:
        """The operations that take one of its tensors."""
        return [each for part in self._components() for each in part.consumers()]

    def nrows(self, out_type: Any = None, name: str | None = None) -> Tensor:
        """How many rows there are: a scalar."""
        kind = dtypes.as_dtype(out_type or self._row_splits.dtype)
        with get_default_graph().name_scope(name or "RaggedNRows"):
            return shape(self._row_splits, out_type=kind)[0] - 1

    def row_starts(self, name: str | None = None) -> Tensor:
        """Where rows begin."""
        with get_default_graph().name_scope(name or "RaggedRowStarts"):
            return self._row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Where rows end."""
        with get_default_graph().name_scope(name or "RaggedRowLimits"):
            return self._row_splits[1:]

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The lengths of the rows along `axis`: a vector, or ragged for an inner axis. ValueError for an axis
        that is not there."""
        if axis < 0:
            axis += self.shape.ndims or 0
        with get_default_graph().name_scope(name or "RaggedRowLengths"):
            if axis == 0:
                return self.nrows()
            if axis == 1:
                return self._row_splits[1:] - self._row_splits[:-1]
            if isinstance(self._values, RaggedTensor):
                return self.with_values(self._values.row_lengths(axis - 1))
            sizes = shape(self._values, out_type=self._row_splits.dtype)
            return self.with_values(F.Fill(F.ExpandDims(sizes[0], 0), sizes[axis - 1]))

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The row of each value."""
        with get_default_graph().name_scope(name or "RaggedValueRowIds"):
            return row_splits_to_segment_ids(self._row_splits)

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The lengths of all ragged dimensions, the outermost first."""
        return tuple(splits[1:] - splits[:-1] for splits in self.nested_row_splits)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The rows of the values of all ragged dimensions, the outermost first."""
        return tuple(row_splits_to_segment_ids(splits) for splits in self.nested_row_splits)

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: Any = None) -> Tensor:
        """The shape of the smallest dense tensor that holds it, or its size along `axis`."""
        kind = dtypes.as_dtype(out_type or self._row_splits.dtype)
        zero = convert_to_tensor([0], self._row_splits.dtype)
        with get_default_graph().name_scope(name or "RaggedBoundingBox"):
            if axis == 0:
                return self.nrows(kind)
            lengths = [reduce_max(concat([zero, each], 0)) for each in self.nested_row_lengths()]
            parts = [F.Cast(self.nrows(), DstT=kind), *(F.Cast(each, DstT=kind) for each in lengths)]
            inner = shape(self.flat_values, out_type=kind)[1:]
            whole: Tensor = concat([F.Pack(parts), inner], axis=0)
            return whole if axis is None else whole[axis]

    # ---- others of its form

    def with_values(self, new_values: Any) -> Any:
        """The same rows of other values. ValueError for another type of splits."""
        new_values = as_ragged_or_tensor(new_values)
        if isinstance(new_values, RaggedTensor) and new_values.row_splits.dtype != self._row_splits.dtype:
            new_values = new_values.with_row_splits_dtype(self._row_splits.dtype)
        return RaggedTensor(new_values, self._row_splits, internal=True)

    def with_flat_values(self, new_values: Any) -> Any:
        """The same rows, in all ragged dimensions, of other innermost values."""
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """The same with splits of another type. ValueError for others than int32 and int64."""
        kind = dtypes.as_dtype(dtype)
        if kind not in (dtypes.int32, dtypes.int64):
            raise ValueError("dtype must be int32 or int64")
        if kind == self._row_splits.dtype:
            return self
        values = self._values
        inner = values.with_row_splits_dtype(kind) if isinstance(values, RaggedTensor) else values
        return RaggedTensor(inner, F.Cast(self._row_splits, DstT=kind), internal=True)

    # ---- as a value of several tensors

    def _components(self) -> list[Tensor]:
        return [self.flat_values, *self.nested_row_splits]

    def _rebuilt(self, parts: Any) -> RaggedTensor:
        """One of the same form of other tensors."""
        flat, *splits = parts
        for each in reversed(splits):
            flat = RaggedTensor(flat, convert_to_tensor(each), internal=True)
        return flat  # type: ignore[no-any-return]

    def _fetched(self, *parts: Any) -> RaggedTensorValue:
        """The value of the components' values."""
        return nested_value(parts[0], parts[1:])

    def _fed(self, value: Any) -> list[tuple[Tensor, Any]]:
        """The components with their parts of a value, which is fed. TypeError for other values."""
        if not isinstance(value, RaggedTensorValue):
            raise TypeError(f"A RaggedTensor is fed a RaggedTensorValue, got {value!r}")
        return list(zip(self._components(), [value.flat_values, *value.nested_row_splits]))

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Its value in a session."""
        from_parts = [part.eval(feed_dict, session) for part in self._components()]
        return self._fetched(*from_parts)

    def to_list(self) -> Any:
        """ValueError: a graph's tensor has no value."""
        raise ValueError("RaggedTensor.to_list() is only supported in eager mode")

    def __repr__(self) -> str:
        return f"tf.RaggedTensor(values={self._values}, row_splits={self._row_splits})"

    __str__ = __repr__


def _number(value: Any) -> int | None:
    found = static_value(value) if isinstance(value, Tensor) else value
    return None if found is None else int(found)


def _count(values: Any) -> Any:
    """How many values there are: int64."""
    first = values.row_splits if isinstance(values, RaggedTensor) else values
    count = shape(first, out_type=dtypes.int64)[0]
    return count - 1 if isinstance(values, RaggedTensor) else count


def _with_splits(values: Any, splits: Tensor) -> tuple[Any, Tensor]:
    """Values as a tensor, and both with splits of one type."""
    values = as_ragged_or_tensor(values, name="values")
    if isinstance(values, RaggedTensor) and values.row_splits.dtype != splits.dtype:
        return values.with_row_splits_dtype(dtypes.int64), F.Cast(splits, DstT=dtypes.int64)
    return values, splits


def as_ragged_or_tensor(
    value: Any, dtype: Any = None, preferred_dtype: Any = None, name: str | None = None
) -> Any:
    """A RaggedTensor or its value as a RaggedTensor, all else as a Tensor. ValueError for another type."""
    if isinstance(value, RaggedTensor):
        if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
            raise ValueError(f"Tensor conversion requested dtype {dtype} for RaggedTensor with {value.dtype}")
        return value
    if isinstance(value, RaggedTensorValue):
        flat = convert_to_tensor(value.flat_values, dtype)
        parts = [constant(each, dtypes.as_dtype(each.dtype)) for each in value.nested_row_splits]
        return RaggedTensor.from_nested_row_splits(flat, parts, validate=False)
    return convert_to_tensor(value, dtype, name=name, preferred_dtype=preferred_dtype)
