"""Rectangular parts of tensors.

A `TensorSlice` has (start, length) for each dimension; the length -1 stands for all of it. As text it is
``0,10:-``: a dimension each, ``-`` for all.

>>> part = TensorSlice.parse("2,3:-")
>>> part.shape((10, 4)), part.where((10, 4)), str(part)
((3, 4), (slice(2, 5, None), slice(0, 4, None)), '2,3:-')
>>> part.intersection(TensorSlice.parse("4,9:1,2"), (20, 4))
TensorSlice(extents=((4, 1), (1, 2)))
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowstone.framework import errors
from flowstone.io.proto.tensor_slice_pb2 import TensorSliceProto

Shape = tuple[int, ...]


class TensorSlice(NamedTuple):
    """`extents`: (start, length) of each dimension, (0, -1) for all of it."""

    extents: tuple[tuple[int, int], ...]

    @classmethod
    def full(cls, rank: int) -> TensorSlice:
        """All of a tensor."""
        return cls(((0, -1),) * rank)

    @classmethod
    def parse(cls, text: str) -> TensorSlice:
        """The slice that `text` says. InvalidArgumentError if it says none."""
        extents = []
        for part in text.split(":") if text else ():
            try:
                start, length = (0, -1) if part == "-" else map(int, part.split(","))
            except ValueError:
                start, length = -1, 0
            if start < 0 or (length <= 0 and part != "-"):
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"Expected a pair of numbers or '-' but got '{part}': string = {text}",
                )
            extents.append((start, length))
        return cls(tuple(extents))

    @classmethod
    def from_proto(cls, proto: Any) -> TensorSlice:
        """The slice of a TensorSliceProto."""
        return cls(tuple((e.start, e.length) if e.HasField("length") else (0, -1) for e in proto.extent))

    def as_proto(self) -> Any:
        """The TensorSliceProto."""
        proto = TensorSliceProto()
        for start, length in self.extents:
            extent = proto.extent.add()
            if length >= 0:
                extent.start, extent.length = start, length
        return proto

    def __str__(self) -> str:
        return ":".join(f"{start},{length}" if length >= 0 else "-" for start, length in self.extents)

    def fits(self, shape: Shape) -> bool:
        """Whether a tensor of this shape has such a part."""
        return len(self.extents) == len(shape) and all(
            length == -1 or (start >= 0 and length >= 0 and start + length <= size)
            for (start, length), size in zip(self.extents, shape)
        )

    def ranges(self, shape: Shape) -> tuple[tuple[int, int], ...]:
        """Begin and end in each dimension of a tensor of this shape."""
        return tuple(
            (0, size) if length < 0 else (start, start + length)
            for (start, length), size in zip(self.extents, shape)
        )

    def is_full(self, shape: Shape) -> bool:
        """Whether it is all of a tensor of this shape."""
        return self.ranges(shape) == tuple((0, size) for size in shape)

    def shape(self, shape: Shape) -> Shape:
        """The shape of this part of a tensor of shape `shape`."""
        return tuple(end - begin for begin, end in self.ranges(shape))

    def where(self, shape: Shape) -> tuple[slice, ...]:
        """What NumPy takes this part out of an array of shape `shape` by."""
        return tuple(slice(begin, end) for begin, end in self.ranges(shape))

    def intersection(self, other: TensorSlice, shape: Shape) -> TensorSlice | None:
        """What both have of a tensor of shape `shape`; None where that is nothing."""
        extents = []
        for (begin, end), (other_begin, other_end) in zip(self.ranges(shape), other.ranges(shape)):
            first, last = max(begin, other_begin), min(end, other_end)
            if first >= last:
                return None
            extents.append((first, last - first))
        return TensorSlice(tuple(extents))

    def within(self, whole: TensorSlice, shape: Shape) -> tuple[slice, ...]:
        """What NumPy takes this part by out of an array that is `whole` of a tensor of shape `shape`."""
        pairs = zip(self.ranges(shape), whole.ranges(shape))
        return tuple(slice(begin - origin, end - origin) for (begin, end), (origin, _) in pairs)
