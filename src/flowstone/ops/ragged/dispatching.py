"""Which public function does what where an argument is ragged, and the operators of ragged tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.dispatch import handle
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.masks import boolean_mask
from flowstone.ops.arrays.shapes import squeeze
from flowstone.ops.numbers import arithmetic, comparisons, division
from flowstone.ops.ragged import conversions, functions, ragged_reductions
from flowstone.ops.ragged.elementwise import binary, of_list, unary
from flowstone.ops.ragged.indexing import gather_nd, getitem
from flowstone.ops.ragged.ragged_spec import RaggedTensorSpec
from flowstone.ops.ragged.ragged_tensor import RaggedTensor, as_ragged_or_tensor
from flowstone.ops.ragged.row_layouts import counted

__all__ = ["RaggedTensor", "RaggedTensorSpec", "rank", "size"]


def rank(input: Any, name: str | None = None) -> Any:
    """How many dimensions there are."""
    return F.Rank(input.flat_values, name=name) + input.ragged_rank


def size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Any:
    """How many values there are."""
    return F.Size(input.flat_values, out_type=out_type, name=name)


def _instead(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _, *args, **kwargs: function(*args, **kwargs)


def _one_hot(function: Callable[..., Any], indices: Any, *args: Any, **kwargs: Any) -> Any:
    return indices.with_flat_values(function(indices.flat_values, *args, **kwargs))


def _where(
    function: Callable[..., Any], condition: Any, x: Any = None, y: Any = None, name: Any = None
) -> Any:
    """The places of what is true; with values, of each place one or the other's."""
    if x is None and y is None:
        numbers = condition.with_flat_values(F.Cast(condition.flat_values, DstT=dtypes.int32))
        sparse = conversions.to_sparse(numbers)
        return boolean_mask(sparse.indices, F.NotEqual(sparse.values, 0))
    if isinstance(condition, RaggedTensor):
        return functions.map_flat_values(function, condition, x, y, name=name)
    rows = functions.concat([x, y], axis=0)
    count = as_ragged_or_tensor(x).nrows()
    own = counted(count)
    return functions.gather(rows, F.SelectV2(condition, own, own + count))


def _dynamic_partition(
    _: Any, data: Any, partitions: Any, num_partitions: int, name: Any = None
) -> list[Any]:
    found = functions.stack_dynamic_partitions(data, partitions, num_partitions, name)
    return [found[i] for i in range(num_partitions)]


def _segments(
    function: Callable[..., Any], data: Any, segment_ids: Any, num_segments: Any, name: Any = None
) -> Any:
    return ragged_reductions.segment_aggregate(function, data, segment_ids, num_segments)


def _squeeze(_: Any, input: Any, axis: Any = None, name: Any = None, squeeze_dims: Any = None) -> Any:
    axis = squeeze_dims if axis is None else axis
    if axis is None:
        raise ValueError("Ragged.squeeze must have an axis argument.")
    found, ndims = input, input.shape.ndims
    axes = [axis] if isinstance(axis, int) else list(axis)
    for each in sorted({each + ndims if each < 0 else each for each in axes}, reverse=True):
        if not isinstance(found, RaggedTensor):
            found = squeeze(found, [each])
        elif each == 0:
            found = found.values
        elif each > found.ragged_rank:
            found = found.with_flat_values(squeeze(found.flat_values, [each - found.ragged_rank]))
        else:
            raise ValueError(f"axis {each} is ragged, and may have rows of several values")
    return found


def _operator(function: Callable[..., Any], reverse: bool = False) -> Callable[..., Any]:
    if reverse:
        return lambda self, other: function(other, self)
    return lambda self, other: function(self, other)


def _install() -> None:
    handle("unary", unary)
    handle("binary", binary)
    handle("of_list", of_list)
    handle("one_hot", _one_hot)
    handle("where", _where)
    handle("dynamic_partition", _dynamic_partition)
    handle("segments", _segments)
    handle("squeeze", _squeeze)
    for name in ("batch_gather", "concat", "expand_dims", "gather", "stack", "tile"):
        handle(name, _instead(getattr(functions, name)))
    for name in ragged_reductions.__all__[:-1]:
        handle(name, _instead(getattr(ragged_reductions, name)))
    handle("gather_nd", _instead(gather_nd))
    handle("rank", _instead(rank))
    handle("size", _instead(size))
    ragged: Any = RaggedTensor
    ragged.__getitem__ = getitem
    ragged.to_tensor = conversions.to_tensor
    ragged.to_sparse = conversions.to_sparse
    ragged.from_tensor = staticmethod(conversions.from_tensor)
    ragged.from_sparse = staticmethod(conversions.from_sparse)
    pairs = {
        "add": arithmetic.add, "sub": arithmetic.subtract, "mul": arithmetic.multiply, "pow": arithmetic.pow,
        "truediv": division.truediv, "floordiv": division.floordiv, "mod": division.floormod,
        "and": comparisons.logical_and, "or": comparisons.logical_or, "xor": comparisons.logical_xor,
    }  # fmt: skip
    for name, function in pairs.items():
        setattr(ragged, f"__{name}__", _operator(function))
        setattr(ragged, f"__r{name}__", _operator(function, reverse=True))
    for name, function in {
        "lt": comparisons.less, "le": comparisons.less_equal, "gt": comparisons.greater,
        "ge": comparisons.greater_equal,
    }.items():  # fmt: skip
        setattr(ragged, f"__{name}__", _operator(function))
    ragged.__neg__, ragged.__abs__ = arithmetic.negative, arithmetic.abs
    ragged.__invert__ = comparisons.logical_not
    ragged.__bool__ = _no_truth


def _no_truth(self: Any) -> bool:
    raise TypeError("RaggedTensor may not be used as a boolean.")


_install()
