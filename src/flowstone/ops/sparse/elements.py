"""The values of sparse tensors, tensors or arrays of strings, moved about.

ATen's indexing with a tensor takes every type, unlike `index_select`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from flowstone.ops.arrays.row_additions import add_rows


def taken(values: Any, places: torch.Tensor) -> Any:
    """The elements at these places, or those where the mask `places` is true."""
    return values[places] if isinstance(values, torch.Tensor) else values[places.numpy()]


def joined(parts: Sequence[Any]) -> Any:
    """The elements of all parts, one part after the other."""
    return torch.cat(list(parts)) if isinstance(parts[0], torch.Tensor) else np.concatenate(parts)


def copied(values: Any) -> Any:
    """The same elements in memory of their own."""
    return values.clone() if isinstance(values, torch.Tensor) else values.copy()


def filled(default: Any, count: int) -> Any:
    """A vector that holds `count` times the scalar `default`."""
    if isinstance(default, torch.Tensor):
        return default.reshape(1).expand(count).clone(memory_format=torch.contiguous_format)
    result = np.empty(count, object)
    result[:] = default[()] if isinstance(default, np.ndarray) else default
    return result


def put(target: Any, places: torch.Tensor, values: Any) -> None:
    """Overwrites the elements of the vector `target` at these places, which differ."""
    if isinstance(target, torch.Tensor):
        _signed(target)[places] = _signed(values)
    else:
        target[places.numpy()] = values


def add_at(target: torch.Tensor, places: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Adds rows of values to the rows of `target` at these places, which may repeat; returns `target`."""
    add_rows(_signed(target), places, _signed(values))
    return target


def _signed(values: torch.Tensor) -> torch.Tensor:
    """The same bits in a type that ATen moves and adds."""
    twin = _TWINS.get(values.dtype)
    return values if twin is None else values.view(twin)


_TWINS = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
