"""Arguments of datasets, as tensors and static shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.numbers.casts import cast
from flowstone.ops.randomness.op_seeds import get_seed


def as_int64(value: Any, name: str | None = None) -> Tensor:
    return convert_to_tensor(value, dtypes.int64, name=name)


def as_bool(value: Any, name: str = "drop_remainder") -> Tensor:
    return convert_to_tensor(value, dtypes.bool, name=name)


def seed_tensors(seed: Any) -> tuple[Tensor, Tensor]:
    """The two seeds of an op with this seed, a number or tensor; 0 and 0 for None, which means random
    ones."""
    graph = get_default_graph()
    first: Any
    second: Any
    if isinstance(seed, Tensor):
        first, second = get_seed(0)[0], F.FloorMod(seed, seed.dtype.as_numpy_dtype(2**31 - 1), name="mod")
    else:
        first, second = get_seed(seed)
    if first is None:
        return as_int64(0, "seed"), as_int64(0, "seed2")
    of_graph = as_int64(first, "seed")
    with graph.name_scope("seed2") as scope:
        own = cast(second, dtypes.int64) if isinstance(second, Tensor) else as_int64(second)
        are_zeros = F.LogicalAnd(F.Equal(of_graph, np.int64(0)), F.Equal(own, np.int64(0)))
        return of_graph, F.Select(are_zeros, as_int64(2**31 - 1), own, name=scope)


def prefixed_by(size: Tensor, drops: Tensor) -> Callable[[TensorShape], TensorShape]:
    """What a batch's shape is made with: its size, if all batches have it and it is known."""
    known = static_value(size) if static_value(drops) else None
    first = [None if known is None else int(known)]
    return lambda shape: TensorShape(first).concatenate(shape)
