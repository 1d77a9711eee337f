"""`TensorList`: the value of a variant that holds a list of tensors, as later TensorFlow's loops use them.

A list never changes: what adds or replaces an element makes a new list, which shares the elements with the
old one. An element is a tensor, or None where none was set; that one reads as zeros, if its shape is known.
Elements are kept as they come, uncopied (the operations declare `keeps`), and nobody overwrites them.

Methods are called with a step's values: `index` and `size` are Python integers or 0-d integer tensors, `dims`
the shape that the reader knows of an element, None for nothing. Mistakes are InvalidArgumentErrors, to which
the step adds the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as as_int
from typing import Any

import numpy as np
import torch

from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, format_dims, is_compatible, merge
from flowstone.ops.arrays.arrays import invalid


def _text(dims: Any) -> str:
    return "<unknown>" if dims is None else format_dims(tuple(dims))


def _is_known(dims: Dims) -> bool:
    return dims is not None and None not in dims


def _zeros(dims: Any, dtype: DType, device: torch.device | None) -> Any:
    if dtype.torch is None:
        return np.full(dims, b"", dtype=object)
    return torch.zeros(dims, dtype=dtype.torch, device=device)


def as_list(value: Any) -> TensorList:
    """`value`, if it is a list; else an error: a variant may hold other things."""
    if type(value) is not TensorList:
        raise invalid(f"Input handle is not a list. Saw: '{type(value).__name__}'")
    return value


class TensorList:
    """Tensors of type `dtype` whose shapes fit `dims`; at most `limit` of them (negative: any number)."""

    __slots__ = ("device", "dims", "dtype", "limit", "values")
    shape = ()  # it is itself a scalar

    def __init__(
        self, dtype: DType, dims: Dims, values: list[Any], limit: int = -1, device: torch.device | None = None
    ) -> None:
        self.dtype, self.dims, self.values, self.limit, self.device = dtype, dims, values, limit, device

    def __repr__(self) -> str:
        return f"<TensorList of {len(self.values)} {self.dtype.name} {_text(self.dims)}>"

    def with_values(self, values: list[Any]) -> TensorList:
        """A list like this one with these elements."""
        return TensorList(self.dtype, self.dims, values, self.limit, self.device)

    # ---- one element

    def push(self, value: Any, dtype: DType) -> TensorList:
        """The list with `value` at its end."""
        self._check_type(dtype)
        self._check_shape(value, "append a tensor with incompatible shape to a list. Op")
        if 0 <= self.limit <= len(self.values):
            raise invalid(
                f"Tried to push item into a full list list size: {len(self.values)} "
                f"max_num_elements: {self.limit}"
            )
        return self.with_values([*self.values, value])

    def pop(self, dims: Dims, dtype: DType) -> tuple[TensorList, Any]:
        """The list without its last element, and that element."""
        self._check_type(dtype)
        if not self.values:
            raise invalid("Trying to pop from an empty list.")
        return self.with_values(self.values[:-1]), self._element(len(self.values) - 1, dims)

    def get(self, index: Any, dims: Dims, dtype: DType) -> Any:
        """The element of this index."""
        self._check_type(dtype)
        i = as_int(index)
        if not 0 <= i < len(self.values):
            raise invalid(f"Trying to access element {i} in a list with {len(self.values)} elements.")
        return self._element(i, dims)

    def put(self, index: Any, value: Any, dtype: DType, grows: bool = False) -> TensorList:
        """The list with `value` at this index, which may lie behind the end of a list that `grows`."""
        self._check_type(dtype)
        self._check_shape(value, "set a tensor with incompatible shape at a list index. Item")
        i, values = as_int(index), self.values.copy()
        if grows and i >= len(values):
            values.extend([None] * (i + 1 - len(values)))
        if not 0 <= i < len(values):
            raise invalid(f"Trying to modify element {i} in a list with {len(values)} elements.")
        values[i] = value
        return self.with_values(values)

    def _check_type(self, dtype: DType) -> None:
        if dtype is not self.dtype:
            raise invalid(f"Invalid data types; op elements {dtype.name} but list elements {self.dtype.name}")

    def _check_shape(self, value: Any, doing: str) -> None:
        if not is_compatible(self.dims, tuple(value.shape)):
            raise invalid(
                f"Tried to {doing} element shape: {_text(value.shape)} list shape: {_text(self.dims)}"
            )

    def _element(self, i: int, dims: Dims) -> Any:
        value = self.values[i]
        if value is None:
            return _zeros(self._shape_of_unset(dims), self.dtype, self.device)
        if dims is not None and not is_compatible(dims, tuple(value.shape)):
            raise invalid(
                f"Incompatible shapes: list element {i} has shape {_text(value.shape)}, not {_text(dims)}"
            )
        return value

    def _shape_of_unset(self, dims: Dims) -> Dims:
        """The shape of an element that was not set: that of the others, if any tells it."""
        known = self._merged(dims)
        if not _is_known(known):
            raise invalid(
                "Trying to read an uninitialized tensor but element_shape is not fully defined: "
                f"{_text(known)} and no list element is set."
            )
        return known

    def _merged(self, dims: Dims, skipped: int = 0) -> Dims:
        """What the list, the reader and the elements say of an element's shape behind `skipped` axes."""
        known = self.dims if skipped == 0 or self.dims is None else self.dims[skipped:]
        shapes = [dims if skipped == 0 or dims is None else dims[skipped:]]
        shapes += [tuple(value.shape)[skipped:] for value in self.values if value is not None]
        for shape in shapes:
            if not is_compatible(known, shape):
                raise invalid(
                    f"PartialTensorShape: Incompatible shapes during merge: {_text(known)} vs. {_text(shape)}"
                )
            known = merge(known, shape)
        return known

    # ---- all elements

    def stack(self, dims: Dims, dtype: DType, count: int = -1) -> Any:
        """All elements, of which there must be `count` unless that is negative, along a new first axis."""
        self._check_type(dtype)
        if count >= 0 and count != len(self.values):
            raise invalid(
                f"Operation expected a list with {count} elements but got a list with "
                f"{len(self.values)} elements."
            )
        known = self._merged(dims)
        if not _is_known(known):
            what = (
                "list which only contains uninitialized tensors and has a" if self.values
                else "elements of an empty list with"
            )  # fmt: skip
            raise invalid(f"Tried to stack {what} non-fully-defined element_shape: {_text(known)}")
        return self._joined(self.values, known)

    def gather(self, places: Sequence[int], dims: Dims, dtype: DType) -> Any:
        """The elements at `places` along a new first axis."""
        self._check_type(dtype)
        for i in places:
            if not 0 <= i < len(self.values):
                raise invalid(f"Index {i} out o range; list only has {len(self.values)} elements.")
        known = self._merged(dims)
        if not _is_known(known):
            raise invalid(f"Tried to gather elements of non-fully-defined element_shape: {_text(known)}")
        return self._joined([self.values[i] for i in places], known)

    def _joined(self, values: list[Any], dims: Any) -> Any:
        if not values:
            return _zeros((0, *dims), self.dtype, self.device)
        if None in values if self.dtype.torch is None else any(value is None for value in values):
            unset = _zeros(dims, self.dtype, self.device)
            values = [unset if value is None else value for value in values]
        return torch.stack(values) if self.dtype.torch is not None else np.stack(values)

    def concatenate(self, dims: Dims, lengths: Sequence[int], dtype: DType) -> tuple[Any, Any]:
        """All elements along their first axis, and how long each is there (int64); one that was not set is as
        long as `lengths` says, if it says anything.
        """
        self._check_type(dtype)
        for value in self.values:
            if value is not None and not value.shape:
                raise invalid("Concat saw a scalar shape but requires at least vectors.")
        rows = self._merged(dims, 1)
        if not self.values or rows is None:
            if not _is_known(rows):
                raise invalid(
                    "All except the first dimension must be fully defined when concating an empty tensor "
                    f"list. element_shape: {_text(None if rows is None else (None, *rows))}"
                )
            return _zeros((0, *rows), self.dtype, self.device), torch.zeros(0, dtype=torch.int64)  # type: ignore[misc]
        values = [
            self._unset_rows(i, dims, rows, lengths) if value is None else value
            for i, value in enumerate(self.values)
        ]
        sizes = torch.tensor([value.shape[0] for value in values], dtype=torch.int64)
        return (torch.cat(values) if self.dtype.torch is not None else np.concatenate(values)), sizes

    def _unset_rows(self, i: int, dims: Dims, rows: Any, lengths: Sequence[int]) -> Any:
        if i < len(lengths):
            return _zeros((lengths[i], *rows), self.dtype, self.device)
        return _zeros(self._shape_of_unset(dims), self.dtype, self.device)

    # ---- lists from lists

    def resized(self, size: Any) -> TensorList:
        """The first `size` elements, and as many more that are not set as are missing."""
        count = as_int(size)
        if count < 0:
            raise invalid(f"TensorListSlice expects size to be non-negative. Got: {count}")
        return self.with_values(self.values[:count] + [None] * (count - len(self.values)))

    def scattered(self, places: Sequence[int], rows: Sequence[Any]) -> TensorList:
        """The list with `rows` at `places`, as long as these need."""
        if len(places) != len(rows):
            raise invalid(
                f"Invalid number of rows in input tensor. Expected: {len(places)} Actual: {len(rows)}"
            )
        if places and min(places) < 0:
            raise invalid("Indices in TensorListScatter must all be non-negative.")
        values = self.values + [None] * (max(places, default=-1) + 1 - len(self.values))
        for i, row in zip(places, rows):
            values[i] = row
        return self.with_values(values)

    def with_rows(self, places: Sequence[int], rows: Sequence[Any], dtype: DType) -> TensorList:
        """The list with `rows` at `places` beside what it has elsewhere, longer if these need it."""
        self._check_type(dtype)
        for row in rows:
            self._check_shape(row, "scatter a tensor with incompatible shape into a list. Row")
        return self.scattered(places, rows)

    def followed_by(self, other: TensorList, dtype: DType) -> TensorList:
        """The list with the elements of another behind its own."""
        self._check_type(dtype)
        other._check_type(dtype)
        if not is_compatible(self.dims, other.dims):
            raise invalid(
                f"input_a and input_b TensorList element shapes are not identical: {_text(self.dims)} vs. "
                f"{_text(other.dims)}"
            )
        return self.with_values(self.values + other.values)

    def zeros(self) -> TensorList:
        """The list of zeros in the place of each element that is set."""
        return self.with_values([None if x is None else _zeros_like(x) for x in self.values])

    def plus(self, other: TensorList) -> TensorList:
        """The list of the sums of two lists' elements; one that is not set counts as zeros."""
        if len(self.values) != len(other.values):
            raise invalid(
                "Trying to add two lists of tensors with different lengths. One is "
                f"{len(self.values)} and the other is {len(other.values)}"
            )
        values = [
            y if x is None else x if y is None else _sum(x, y) for x, y in zip(self.values, other.values)
        ]
        dims = self.dims if is_compatible(self.dims, other.dims) else None
        return TensorList(self.dtype, dims, values, self.limit, self.device)


def _zeros_like(element: Any) -> Any:
    return element.zeros() if type(element) is TensorList else torch.zeros_like(element)


def _sum(x: Any, y: Any) -> Any:
    return x.plus(as_list(y)) if type(x) is TensorList else torch.add(x, y)


def add_lists(*lists: Any) -> TensorList:
    """The list of the sums of the lists' elements."""
    total = as_list(lists[0])
    for other in lists[1:]:
        total = total.plus(as_list(other))
    return total


def zeros_like_list(value: Any) -> TensorList:
    """The list of zeros like the elements of a list."""
    return as_list(value).zeros()
