"""Static shapes: what is known of a tensor's shape while the graph is built.

A shape is a tuple with an int for each known dimension and None for each unknown one, or None where not even
the rank is known. The functions at the top work on these bare tuples (`Dims`); shape inference uses them for
every node. `TensorShape` and `Dimension` wrap them for users, with TensorFlow 1's behaviour: a TensorShape
iterates over Dimensions, and a comparison with an unknown Dimension is None, neither true nor false.

    >>> broadcast((2, None), (3,)), merge((2, None), (None, 3)), num_elements((2, None))
    ((2, 3), (2, 3), None)
    >>> shape = TensorShape([2, None])
    >>> shape, str(shape), shape[0] == 2, shape[1] == 3
    (TensorShape([Dimension(2), Dimension(None)]), '(2, ?)', True, None)
    >>> shape.merge_with([None, 3]).dims_tuple
    (2, 3)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any, TypeAlias

from flowstone.framework.types.dimension import Dimension, as_size

Dims: TypeAlias = "tuple[int | None, ...] | None"


def format_dims(dims: Dims) -> str:
    """A shape as errors of graph building print it: "[2,?]", "[]", or "?" for an unknown rank."""
    if dims is None:
        return "?"
    return "[" + ",".join("?" if size is None else str(size) for size in dims) + "]"


def fully_known(dims: Dims) -> tuple[int, ...] | None:
    """The shape if every dimension is known, else None."""
    if dims is None or None in dims:
        return None
    return dims  # type: ignore[return-value]


def is_compatible(a: Dims, b: Dims) -> bool:
    """Whether some shape fits both: the ranks agree, and the dimensions that both know, where known."""
    if a is None or b is None or a == b:
        return True
    return len(a) == len(b) and all(x is None or y is None or x == y for x, y in zip(a, b))


def merge(a: Dims, b: Dims) -> Dims:
    """The shape that knows all that `a` and `b` know.

    Raises:
        ValueError: the shapes contradict each other; the text names both.
    """
    if a is None:
        return b
    if b is None or a == b:
        return a
    if len(a) != len(b):
        raise ValueError(f"Shapes must be equal rank, but are {len(a)} and {len(b)}")
    for axis, (x, y) in enumerate(zip(a, b)):
        if x is not None and y is not None and x != y:
            raise ValueError(
                f"Dimension {axis} in both shapes must be equal, but are {x} and {y}. "
                f"Shapes are {format_dims(a)} and {format_dims(b)}."
            )
    return tuple(y if x is None else x for x, y in zip(a, b))


def broadcast(a: Dims, b: Dims) -> Dims:
    """The shape of an element-wise operation on `a` and `b`, aligned at the last dimension as in NumPy.

    An unknown dimension against a known one above 1 gives the known one (the unknown one is that or 1).

    Raises:
        ValueError: a pair of dimensions differs and neither is 1; the text names both shapes.
    """
    if a is None or b is None:
        return None
    if len(a) == len(b) and a == b:
        return a
    if not a or not b:
        return a or b
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    extra = len(longer) - len(shorter)
    return longer[:extra] + tuple(
        [
            x if x == y or y == 1 else y if x == 1 else _broadcast_unequal(x, y, a, b)
            for x, y in zip(longer[extra:], shorter)
        ]
    )


def _broadcast_unequal(x: int | None, y: int | None, a: Dims, b: Dims) -> int | None:
    """The result of two unequal dimensions of `longer` and `shorter`, neither of them 1."""
    if x is None:
        return y or None  # against 0, TensorFlow leaves it open
    if y is None:
        return x or None
    first, second = (x, y) if len(a or ()) >= len(b or ()) else (y, x)
    raise ValueError(
        f"Dimensions must be equal, but are {first} and {second}. "
        f"Incompatible shapes for broadcasting: {TensorShape.from_dims(a)} and {TensorShape.from_dims(b)}"
    )


def concatenate(a: Dims, b: Dims) -> Dims:
    """The dimensions of `a` followed by those of `b`; unknown if either rank is."""
    return None if a is None or b is None else a + b


def num_elements(dims: Dims) -> int | None:
    """The number of elements, or None where a dimension or the rank is unknown."""
    if dims is None or None in dims:
        return None
    return math.prod(dims)  # type: ignore[arg-type]


def _as_dims(value: Any) -> Dims:
    """The dimensions that a user's spelling of a shape names; see `TensorShape`."""
    if value is None:
        return None
    if isinstance(value, TensorShape):
        return value._dims
    if isinstance(value, (list, tuple)):
        return tuple([as_size(size) for size in value])
    if hasattr(value, "unknown_rank") and hasattr(value, "dim"):
        return None if value.unknown_rank else tuple(None if d.size == -1 else d.size for d in value.dim)
    if isinstance(value, str):
        raise TypeError(f"Failed to convert {value!r} to a shape: it is no int or iterable of dimensions")
    try:
        sizes = iter(value)
    except TypeError:
        return (as_size(value),)
    return tuple([as_size(size) for size in sizes])


class TensorShape:
    """A tensor's static shape: of known rank with each dimension known or not, or of unknown rank.

    Args:
        dims: None (unknown rank), an iterable of dimensions, one dimension (a vector), a TensorShape or a
            TensorShapeProto.

    Raises:
        TypeError: a dimension is no integer.
        ValueError: a dimension is negative.
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: Any) -> None:
        self._dims = _as_dims(dims)

    @classmethod
    def from_dims(cls, dims: Dims) -> TensorShape:
        """The shape of a tuple of int and None, or None; nothing is checked."""
        shape = object.__new__(cls)
        shape._dims = dims
        return shape

    @property
    def dims_tuple(self) -> Dims:
        """The shape as a tuple of int and None, or None for an unknown rank."""
        return self._dims

    @property
    def dims(self) -> list[Dimension] | None:
        """The list of Dimensions, or None for an unknown rank."""
        return None if self._dims is None else [Dimension(size) for size in self._dims]

    @property
    def ndims(self) -> int | None:
        """The number of dimensions, or None."""
        return None if self._dims is None else len(self._dims)

    rank = ndims

    def as_list(self) -> list[int | None]:
        """The dimensions as ints and None. ValueError for an unknown rank."""
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def as_proto(self) -> Any:
        """The shape as a TensorShapeProto; an unknown dimension has size -1."""
        # Here, because it is slow to import and seldom needed.
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

        if self._dims is None:
            return TensorShapeProto(unknown_rank=True)
        sizes = [-1 if size is None else size for size in self._dims]
        return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])

    def num_elements(self) -> int | None:
        """The number of elements, or None where the shape is not fully known."""
        return num_elements(self._dims)

    def is_fully_defined(self) -> bool:
        """Whether the rank and all dimensions are known."""
        return self._dims is not None and None not in self._dims

    def is_compatible_with(self, other: Any) -> bool:
        """Whether some shape fits both."""
        return is_compatible(self._dims, _as_dims(other))

    def merge_with(self, other: Any) -> TensorShape:
        """What both shapes know together. ValueError if they contradict each other."""
        dims = _as_dims(other)
        if not is_compatible(self._dims, dims):
            raise ValueError(f"Shapes {self} and {TensorShape.from_dims(dims)} are not compatible")
        return TensorShape.from_dims(merge(self._dims, dims))

    def concatenate(self, other: Any) -> TensorShape:
        """The dimensions of this shape followed by those of `other`; unknown if either rank is."""
        return TensorShape.from_dims(concatenate(self._dims, _as_dims(other)))

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The most that can be said of a tensor that has one shape or the other."""
        dims = _as_dims(other)
        if self._dims is None or dims is None or len(self._dims) != len(dims):
            return unknown_shape()
        return TensorShape.from_dims(tuple(x if x == y else None for x, y in zip(self._dims, dims)))

    def with_rank(self, rank: int | None) -> TensorShape:
        """This shape, which is of `rank` from here on. ValueError if it has another rank."""
        if self._dims is None:
            return unknown_shape(rank)
        self.assert_has_rank(rank)
        return self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape. ValueError if its rank is known and below `rank`."""
        if self._dims is not None and len(self._dims) < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """This shape. ValueError if its rank is known and above `rank`."""
        if self._dims is not None and len(self._dims) > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_has_rank(self, rank: int | None) -> None:
        """Raises ValueError if both ranks are known and differ."""
        if rank is not None and self.ndims not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        """Raises ValueError if both ranks are known and differ."""
        other = as_shape(other)
        if None not in (self.ndims, other.ndims) and self.ndims != other.ndims:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError unless some shape fits both."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError unless the rank and all dimensions are known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self) -> Iterator[Dimension]:
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter([Dimension(size) for size in self._dims])

    def __getitem__(self, key: Any) -> Any:
        """A Dimension for an integer, a TensorShape for a slice. IndexError outside a known rank."""
        if isinstance(key, slice):
            return TensorShape.from_dims(self._slice(key))
        return Dimension(None if self._dims is None else self._dims[key])

    def _slice(self, key: slice) -> Dims:
        if self._dims is not None:
            return self._dims[key]
        if key.step is not None:
            raise ValueError("Steps are not yet handled")
        start, stop = 0 if key.start is None else operator.index(key.start), key.stop
        if stop is None or operator.index(stop) < 0 or start < 0:
            return None  # counted from an end that is not known
        return (None,) * max(0, operator.index(stop) - start)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == _as_dims(other)
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        sizes = ["?" if size is None else str(size) for size in self._dims]
        return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"

    def __repr__(self) -> str:
        return f"TensorShape({self.dims})"

    def __reduce__(self) -> tuple[type[TensorShape], tuple[Dims]]:
        return TensorShape, (self._dims,)


def as_shape(shape: Any) -> TensorShape:
    """`shape` itself if it is a TensorShape, otherwise `TensorShape(shape)`."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(ndims: int | None = None) -> TensorShape:
    """A shape of `ndims` unknown dimensions, or of unknown rank."""
    return TensorShape.from_dims(None if ndims is None else (None,) * ndims)


def scalar() -> TensorShape:
    """The shape of a scalar."""
    return TensorShape.from_dims(())


def vector(length: Any) -> TensorShape:
    """The shape of a vector of `length` elements (None if unknown)."""
    return TensorShape([length])


def matrix(rows: Any, cols: Any) -> TensorShape:
    """The shape of a matrix; None for an unknown side."""
    return TensorShape([rows, cols])
