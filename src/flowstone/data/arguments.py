"""Arguments of datasets, as tensors and static shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.randomness.op_seeds import get_seed


def as_int64(value: Any, name: str) -> Tensor:
    return convert_to_tensor(value, dtypes.int64, name=name)


def as_bool(value: Any) -> Any:
    """A constant as Python's, a tensor as it is."""
    return value if isinstance(value, Tensor) else bool(value)


def seed_tensors(seed: Any) -> tuple[Tensor, Tensor]:
    """The two seeds of an op with this seed, a number or tensor; 0 and 0 for None, which means random
    ones."""
    if isinstance(seed, Tensor):
        of_graph, own = as_int64(get_seed(0)[0], "seed"), F.Cast(seed, DstT=dtypes.int64)
        is_zero = F.Equal(F.BitwiseOr(of_graph, own), as_int64(0, "zero"))
        return of_graph, F.SelectV2(is_zero, as_int64(2**31 - 1, "largest"), own)
    first, second = get_seed(seed)
    if first == 0 and second == 0:
        second = 2**31 - 1
    return as_int64(first or 0, "seed"), as_int64(second or 0, "seed2")


def prefixed_by(size: Tensor, drops: Any) -> Callable[[TensorShape], TensorShape]:
    """What a batch's shape is made with: its size, if all batches have it and it is known."""
    known = static_value(size) if drops is True else None
    first = [None if known is None else int(known)]
    return lambda shape: TensorShape(first).concatenate(shape)


def common_shape(a: TensorShape, b: TensorShape) -> TensorShape:
    """The shape of which both are special cases."""
    if a.ndims is None or b.ndims is None or a.ndims != b.ndims:
        return TensorShape(None)
    return TensorShape([m.value if m.value == n.value else None for m, n in zip(a, b)])
