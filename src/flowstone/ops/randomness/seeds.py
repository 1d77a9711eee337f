"""Seeds of two integers made from others."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.randomness.stateless import stateless_uniform

__all__ = ["fold_in", "split"]


def split(seed: Any, num: Any = 2, alg: Any = "auto_select") -> Tensor:
    """New seeds [num, 2], of the type of `seed` [2], which is not to be used again."""
    seed = convert_to_tensor(seed)
    return stateless_uniform([num, 2], seed, None, None, seed.dtype, alg=alg)


def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """A new seed [2] of the type of `data`, an integer scalar such as the number of a step."""
    data = convert_to_tensor(data)
    first = stateless_uniform([], seed, None, None, dtypes.as_dtype(data.dtype), alg=alg)
    return F.Pack([first, data], name="stack")
