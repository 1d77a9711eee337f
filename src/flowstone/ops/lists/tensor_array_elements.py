"""`ArrayElements`: what a TensorArray handle stands for while a step runs.

A slot of its list is None (never written), a tensor, or, after a read that cleared it, the shape that the
tensor had, a tuple. Elements are kept as they come, uncopied: a write holds on to its value (the operation
declares `keeps`), a read hands it out, and nobody overwrites either. Matrices whose rows lie apart in what is
scattered, such as the time steps of a batch of sequences, are copied there all at once, since machine code
that reads them would copy each.

The array of gradients of an array (`gradients_for`) adds up what is written to one slot, and reads zeros of
the element's shape from a slot that nothing was written to.

Methods are called with a step's values; `index` and `places` are Python integers or 0-d integer tensors.
Mistakes are InvalidArgumentErrors, to which the step adds the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as as_int
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType, wire_name
from flowstone.framework.types.shape import Dims, format_dims, fully_known, is_compatible, merge
from flowstone.ops.arrays.arrays import invalid


def _shape_text(dims: Any) -> str:
    return "<unknown>" if dims is None else format_dims(tuple(dims))


class ArrayElements:
    """The elements of one array in one step.

    `dims`: the static shape that every element must have; `identical`: the first element decides it further;
    `dynamic`: a write past the end makes the array longer; `clears`: an element can be read once.
    """

    __slots__ = (
        "_accepted",
        "_common",
        "_gradients",
        "_read",
        "clears",
        "device",
        "dims",
        "dtype",
        "dynamic",
        "elements",
        "forward",
        "identical",
        "is_closed",
        "name",
        "prefix",
    )

    def __init__(
        self,
        name: str,
        dtype: DType,
        size: int,
        *,
        dims: Dims = None,
        dynamic: bool = False,
        clears: bool = True,
        identical: bool = False,
        device: torch.device | None = None,
    ) -> None:
        self.name, self.dtype, self.dims, self.device = name, dtype, dims, device
        self.dynamic, self.clears, self.identical, self.is_closed = dynamic, clears, identical, False
        self.elements: list[Any] = [None] * size
        self.forward: ArrayElements | None = None
        self.prefix: tuple[int, ...] = ()
        self._accepted: Any = None  # a shape that is known to fit
        self._common: Any = None  # the shape of all elements, where it must be the same
        self._read: set[int] | None = None if clears else set()
        self._gradients: dict[str, ArrayElements] = {}

    @property
    def tensor(self) -> ArrayElements:
        """Itself: a handle passed by reference is no variable that could be read."""
        return self

    # ---- one element

    def write(self, index: Any, value: Any, flow: Any, dtype: DType, dims: Dims = None) -> Any:
        """Puts `value`, whose shape is `dims` if that is known, into the slot; returns `flow`."""
        i = as_int(index)
        elements = self.elements
        if dtype is not self.dtype or not 0 <= i < len(elements):
            self._make_room(i, dtype)
        if (dims or value.shape) != self._accepted:
            self._accept(i, value)
        if elements[i] is None and not self._read:
            elements[i] = value
        else:
            self._write_again(i, value)
        return flow

    def read(self, index: Any, dtype: DType) -> Any:
        """The element; of an array that clears, for the only time."""
        i = as_int(index)
        elements = self.elements
        if dtype is not self.dtype or not 0 <= i < len(elements):
            self._refuse_read(i, dtype)
        value = elements[i]
        if value is None or isinstance(value, tuple):
            value = self._missing(i)
        if self._read is None:
            elements[i] = self._common or value.shape
        else:
            self._read.add(i)
        return value

    def _make_room(self, i: int, dtype: DType) -> None:
        self.check_open()
        if dtype is not self.dtype:
            raise invalid(
                f"TensorArray dtype is {wire_name(self.dtype)} but Op is trying to write dtype "
                f"{wire_name(dtype)}."
            )
        size = len(self.elements)
        if i < 0 or not self.dynamic:
            raise invalid(
                f"TensorArray {self.name}: Tried to write to index {i} but array is not resizeable "
                f"and size is: {size}"
            )
        self.elements.extend([None] * (i + 1 - size))

    def _refuse_read(self, i: int, dtype: DType) -> None:
        self.check_open()
        self._check_type_read(dtype)
        raise invalid(f"Tried to read from index {i} but array size is: {len(self.elements)}")

    def _check_type_read(self, dtype: DType) -> None:
        if dtype is not self.dtype:
            raise invalid(
                f"TensorArray dtype is {wire_name(self.dtype)} but Op requested dtype {wire_name(dtype)}."
            )

    def _accept(self, i: int, value: Any) -> None:
        """Notes that this shape fits the array, if it does."""
        shape = tuple(value.shape)
        if not is_compatible(self.dims, shape):
            raise invalid(
                f"TensorArray {self.name}: Could not write to TensorArray index {i} because the value shape "
                f"is {_shape_text(shape)} which is incompatible with the TensorArray's inferred element "
                f"shape: {_shape_text(self.dims)} (consider setting infer_shape=False)."
            )
        if self.identical:
            self.dims = shape
        if self.forward is not None:
            expected = self._expected_dims(i)
            if expected is not None and not is_compatible(expected, shape):
                raise self._cannot_add(i, expected, shape)
        self._accepted = value.shape
        self._common = value.shape if self.identical else None

    def _write_again(self, i: int, value: Any) -> None:
        before = self.elements[i]
        if isinstance(before, tuple) or (self._read and i in self._read):
            raise invalid(
                f"TensorArray {self.name}: Could not write to TensorArray index {i} because it has already "
                "been read."
            )
        if before is None:
            self.elements[i] = value
        elif self.forward is None:
            raise invalid(
                f"TensorArray {self.name}: Could not write to TensorArray index {i} because it has already "
                "been written to."
            )
        elif before.shape != value.shape:
            raise self._cannot_add(i, before.shape, value.shape)
        else:
            self.elements[i] = torch.add(before, value)

    def _cannot_add(self, i: int, before: Any, shape: Any) -> errors.InvalidArgumentError:
        return invalid(
            f"TensorArray {self.name}: Could not aggregate to TensorArray index {i} because the existing "
            f"shape is {_shape_text(before)} but the new input shape is {_shape_text(shape)}."
        )

    def _missing(self, i: int) -> Any:
        """What is read from a slot that holds no tensor: zeros if its shape is known."""
        if self.elements[i] is not None:
            raise invalid(
                f"TensorArray {self.name}: Could not read index {i} twice because it was cleared after a "
                "previous read (perhaps try setting clear_after_read = false?)."
            )
        dims = self._expected_dims(i)
        shape = fully_known(dims)
        if shape is None:
            raise invalid(
                f"TensorArray {self.name}: Could not read from TensorArray index {i}.  Furthermore, the "
                f"element shape is not fully defined: {_shape_text(dims)}.  It is possible you are working "
                "with a resizeable TensorArray and stop_gradients is not allowing the gradients to be "
                "written.  If you set the full element_shape property on the forward TensorArray, the proper "
                "all-zeros tensor will be returned instead of incurring this error."
            )
        if self.dtype.torch is None:
            raise invalid(f"tensor_array::TensorSetZero type not supported: {wire_name(self.dtype)}")
        return torch.zeros(shape, dtype=self.dtype.torch, device=self.device)

    def _expected_dims(self, i: int) -> Dims:
        """What the array, or the one that it holds the gradients of, tells of the shape of an element."""
        forward = self.forward
        if forward is None or (self.dims is not None and None not in self.dims):
            return self.dims
        value = forward.elements[i]
        dims = forward.dims if value is None else tuple(getattr(value, "shape", value))
        return None if dims is None else (*self.prefix, *dims)

    # ---- many elements

    def gather(self, places: Sequence[int] | None, dtype: DType, dims: Dims) -> Any:
        """The elements at `places` (None: all), joined along a new first axis; `dims` is the shape that each
        must have, which tells what a slot without a tensor holds.
        """
        if dims is not None and is_compatible(self.dims, dims):
            self.dims = merge(self.dims, dims)
        joined = self._stack_all() if places is None and dtype is self.dtype else None
        if joined is None:
            values = self._read_all(places, dtype)
            if not values:
                return self._empty(dims, "element shape", "packing")
            wrong = _inconsistent(values, 0, "")
            if wrong is not None:
                raise wrong
            joined = torch.stack(values) if dtype.torch is not None else np.stack(values)
        if dims is not None and not is_compatible(dims, tuple(joined.shape[1:])):
            raise invalid(
                f"TensorArray was passed element_shape {_shape_text(dims)} which does not match the Tensor "
                f"at index 0: {_shape_text(joined.shape[1:])}"
            )
        return joined

    def _stack_all(self) -> Any:
        """All elements joined; None where a slot holds no tensor, or their shapes differ."""
        if self.dtype.torch is None:
            return None
        try:
            joined = torch.stack(self.elements)
        except (RuntimeError, TypeError):
            return None
        if self._read is None:
            self.elements = [joined.shape[1:]] * len(self.elements)
        else:
            self._read.update(range(len(self.elements)))
        return joined

    def concatenate(self, dtype: DType, dims: Dims) -> tuple[Any, Any]:
        """All elements joined along their first axis, and their lengths (int64); `dims` is the shape that
        each must have but for its first axis.
        """
        values = self._read_all(None, dtype)
        if not values:
            return self._empty(dims, "element_shape_except0", "concatenating"), torch.zeros(0).long()
        for i, value in enumerate(values):
            if not value.shape:
                raise invalid(
                    f"Concat saw a scalar shape at index {i} but requires at least vectors.  Did you mean to "
                    "call pack?"
                )
            if dims is not None and not is_compatible(dims, tuple(value.shape[1:])):
                raise invalid(
                    f"TensorArray was passed element_shape_except0 {_shape_text(dims)} but index {i} has "
                    f"(excepting dimension 0) shape: {_shape_text(value.shape[1:])} which does not match."
                )
        wrong = _inconsistent(values, 1, "(excepting dimension 0) ")
        if wrong is not None:
            raise wrong
        joined = torch.cat(values) if dtype.torch is not None else np.concatenate(values)
        return joined, torch.tensor([value.shape[0] for value in values], dtype=torch.int64)

    def _read_all(self, places: Sequence[int] | None, dtype: DType) -> list[Any]:
        if dtype is not self.dtype or self.is_closed:
            self.check_open()
            self._check_type_read(dtype)
        elements, size = self.elements, len(self.elements)
        if places is None:
            places = range(size)
        values = []
        for i in places:
            if not 0 <= i < size:
                self._refuse_read(i, dtype)
            value = elements[i]
            if value is None or isinstance(value, tuple):
                value = self._missing(i)
            values.append(value)
            if self._read is None:
                elements[i] = value.shape
        if self._read is not None:
            self._read.update(places)
        return values

    def _empty(self, dims: Dims, what: str, doing: str) -> Any:
        if dims is None and self.dims is not None:
            dims = self.dims if what == "element shape" else self.dims[1:]
        shape = fully_known(dims)
        if shape is None:
            raise errors.UnimplementedError(
                None,
                None,
                f"TensorArray has size zero, but {what} {_shape_text(dims)} is not fully defined. Currently "
                f"only static shapes are supported when {doing} zero-size TensorArrays.",
            )
        if self.dtype.torch is None:
            return np.empty((0, *shape), dtype=object)
        return torch.zeros((0, *shape), dtype=self.dtype.torch, device=self.device)

    def scatter(self, places: Sequence[int], value: Any, flow: Any, dtype: DType) -> Any:
        """Writes the rows of `value`, as many as there are `places`, to these; returns `flow`."""
        if not value.shape:
            raise invalid("Input value for unpack must be at least a vector but received shape: []")
        if len(places) != value.shape[0]:
            raise invalid(
                f"Expected len(indices) == values.shape[0], but saw: {len(places)} vs. {value.shape[0]}"
            )
        if not places:
            return flow
        last = max(places)
        if last >= len(self.elements) and not self.dynamic and not self.is_closed:
            raise invalid(f"Max scatter index must be < array size ({last} vs. {len(self.elements)})")
        first = min(places)
        if last >= len(self.elements) or first < 0 or dtype is not self.dtype:
            self._make_room(first if first < 0 else last, dtype)
        rows, elements = _rows(value, dtype), self.elements
        if rows[0].shape != self._accepted:
            self._accept(places[0], rows[0])
        for i, row in zip(places, rows):
            if elements[i] is None and not self._read:
                elements[i] = row
            else:
                self._write_again(i, row)
        return flow

    def split(self, value: Any, lengths: Any, flow: Any, dtype: DType) -> Any:
        """Writes as many rows of `value` as `lengths` (int64 vector) says to the slots, in order; returns
        `flow`.
        """
        if lengths.dim() != 1:
            raise invalid(f"Expected lengths to be a vector, received shape: {_shape_text(lengths.shape)}")
        if not value.shape:
            raise invalid("Expected value to be at least a vector, but received shape: []")
        sizes = lengths.tolist()
        if sum(sizes) != value.shape[0] or min(sizes, default=0) < 0:
            raise invalid(
                "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
                f"{sum(sizes)} and value's shape is: {_shape_text(value.shape)}"
            )
        count = len(self.elements)
        if count != len(sizes) and not (self.dynamic and count < len(sizes)):
            self.check_open()
            raise invalid(
                f"TensorArray's size is not equal to the size of lengths ({count} vs. {len(sizes)}), and the "
                "TensorArray is not marked as dynamically resizeable"
            )
        parts: Sequence[Any]
        if dtype.torch is not None:
            parts = torch.split(value, sizes)
        else:
            parts = np.split(value, np.cumsum(sizes)[:-1])
        for i, part in enumerate(parts):
            self.write(i, part, flow, dtype)
        return flow

    # ---- the whole

    def size(self) -> Any:
        """The number of slots, an int32 scalar."""
        self.check_open()
        return torch.tensor(len(self.elements), dtype=torch.int32)

    def close(self) -> None:
        """Drops the elements; nothing but closing is allowed afterwards."""
        self.elements, self.is_closed, self.dynamic = [], True, False

    def check_open(self) -> None:
        """Raises InvalidArgumentError if the array was closed."""
        if self.is_closed:
            raise invalid(f"TensorArray {self.name} has already been closed.")

    def gradients_for(self, source: str, prefix: tuple[int, ...] = ()) -> ArrayElements:
        """The array of gradients of this name, the same one each time; this array keeps its size from now on.

        `prefix`: sizes that the gradients' shapes have before the elements'.
        """
        found = self._gradients.get(source)
        if found is None:
            self.check_open()
            if self.forward is not None:
                raise invalid(f"TensorArray {self.name} holds gradients: it has no gradients of its own")
            self.dynamic = False
            found = ArrayElements(
                f"{self.name}@{source}",
                self.dtype,
                len(self.elements),
                dims=None if self.dims is None else (*prefix, *self.dims),
                identical=self.identical,
                device=self.device,
            )
            found.forward, found.prefix = self, prefix
            found = self._gradients.setdefault(source, found)
        return found


def _rows(value: Any, dtype: DType) -> Sequence[Any]:
    if dtype is dtypes.string:
        return [value[i, ...] for i in range(len(value))]
    rows = value.unbind(0)
    if rows and len(rows[0].shape) == 2 and not rows[0].is_contiguous():
        rows = value.contiguous().unbind(0)
    return rows  # type: ignore[no-any-return]


def _inconsistent(values: list[Any], skipped: int, remark: str) -> errors.InvalidArgumentError | None:
    first = tuple(values[0].shape[skipped:])
    for i, value in enumerate(values):
        if tuple(value.shape[skipped:]) != first:
            return invalid(
                f"TensorArray has inconsistent shapes.  Index 0 has {remark}shape: {_shape_text(first)} but "
                f"index {i} has {remark}shape: {_shape_text(value.shape[skipped:])}"
            )
    return None
