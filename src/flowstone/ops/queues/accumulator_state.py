"""Conditional accumulators as runtime objects: sums of gradients that are fresh enough.

An accumulator has a time step. A gradient comes with the time step of the variables that it was computed
from; one from before the accumulator's is *stale* and dropped. Who takes the aggregate waits until enough
gradients have come, first come, first served (`waiting.py`); taking it empties the accumulator and moves its
time step on by one. So workers may be late, and yet no update mixes gradients of different parameters.

>>> from types import SimpleNamespace
>>> from flowstone.framework.types import dtypes
>>> step = SimpleNamespace(on_cancel=lambda callback: lambda: None)
>>> accumulator = DenseAccumulator("a", dtypes.float32, (2,))
>>> accumulator.take(step, lambda outputs, error: print(*outputs), 2)
>>> accumulator.apply(0, torch.tensor([1.0, 2.0]))
>>> accumulator.apply(0, torch.tensor([3.0, 4.0]))
tensor([2., 3.])
>>> accumulator.apply(0, torch.tensor([9.0, 9.0])), accumulator.count
(None, 0)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, format_dims, is_compatible
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.control.waiting import WAITS, WaitingList
from flowstone.ops.queues.queue_attempts import Done


class Accumulator:
    """What dense and sparse accumulators have in common; `is_mean`: the average is taken, else the sum."""

    def __init__(self, name: str, dtype: DType, dims: Dims, is_mean: bool = True) -> None:
        self.name, self.dtype, self.dims, self.is_mean = name, dtype, dims, is_mean
        self.count = 0
        self.time_step = 0
        self.waiting = WaitingList("TakeGradient")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.count} gradients>"

    @property
    def tensor(self) -> np.ndarray[Any, Any]:
        """What a fetch of its reference shows: container and name."""
        return np.array([b"localhost", self.name.encode()], dtype=object)

    def apply(self, local_step: int, *gradient: Any) -> None:
        """Adds a gradient of time step `local_step`, unless it is stale.

        InvalidArgumentError for one of another shape than the accumulator's, or than those before it.
        """

        def add() -> None:
            if local_step < self.time_step:
                return
            self._add(*gradient)
            self.count += 1

        self.waiting.change(add)

    def take(self, step: Any, done: Done, required: int) -> None:
        """The aggregate, once `required` gradients have come; empties it and moves the time step on.

        InvalidArgumentError (through `done`) unless `required` is positive.
        """

        def attempt() -> Any:
            if self.count < required:
                return WAITS
            outputs = self._taken()
            self.count = 0
            self.time_step += 1
            return outputs

        if required <= 0:
            done(None, invalid(f"Argument num_required must be positive, but was {required}"))
        else:
            self.waiting.start(step, done, attempt)

    def set_time_step(self, time_step: int) -> None:
        """Sets the time step; gradients from before it are stale from now on."""

        def move() -> None:
            self.time_step = time_step

        self.waiting.change(move)

    def release(self) -> None:
        """Ends all waiting, as its container is dropped."""
        self.waiting.release()

    def _add(self, *gradient: Any) -> None:
        raise NotImplementedError

    def _taken(self) -> tuple[Any, ...]:
        raise NotImplementedError


class DenseAccumulator(Accumulator):
    """Of gradients that are tensors of one shape."""

    _sum: Any = None

    def _add(self, gradient: torch.Tensor) -> None:
        shape = tuple(gradient.shape)
        expected: Any = self.dims
        if self._sum is not None:
            expected = tuple(self._sum.shape)
        if not is_compatible(shape, expected):
            raise invalid(f"Shape mismatch: expected {format_dims(expected)}, got {format_dims(shape)}")
        if self._sum is None:
            self._sum = gradient.clone(memory_format=torch.contiguous_format)
        else:
            self._sum.add_(gradient)

    def _taken(self) -> tuple[Any, ...]:
        total, self._sum = self._sum, None
        return (_divided(total, self.count) if self.is_mean else total,)


class SparseAccumulator(Accumulator):
    """Of gradients that are slices at some places of the first dimension.

    The average of a place is over the gradients that have a slice there.
    """

    _indices: Any = None  # sorted and unique
    _values: Any = None  # the sums of the slices there
    _counts: Any = None  # how many gradients had one

    def _add(self, indices: torch.Tensor, values: torch.Tensor, shape: Any) -> None:
        self._check(indices, values, shape)
        indices, values = _summed(indices, values)
        counts = torch.ones_like(indices)
        if self._indices is not None:
            counts = torch.cat([self._counts, counts])
            both = torch.cat([self._indices, indices])
            _, counts = _summed(both, counts)
            indices, values = _summed(both, torch.cat([self._values, values]))
        self._indices, self._values, self._counts = indices, values, counts

    def _check(self, indices: torch.Tensor, values: torch.Tensor, shape: Any) -> None:
        if values.ndim == 0:
            raise invalid("Values cannot be 0-dimensional.")
        if indices.ndim != 1:
            raise invalid(
                f"Input indices should be vector but received shape: {format_dims(tuple(indices.shape))}"
            )
        if len(indices) != len(values):
            raise invalid(f"Expected {len(indices)} non-empty input values, got {len(values)}")
        if self.dims is not None:
            self._check_against(self.dims, indices, values, shape)
        if self._values is not None:
            known = tuple(self._values.shape)
            if values.ndim != len(known):
                raise invalid(f"Shape mismatch: expected values rank {len(known)}, got {values.ndim}")
            _check_dims("values", known, tuple(values.shape))

    @staticmethod
    def _check_against(dims: Any, indices: torch.Tensor, values: torch.Tensor, shape: Any) -> None:
        if shape is not None:
            if len(shape) < len(dims):
                raise invalid(f"Shape mismatch: expected shape rank at least {len(dims)}, got {len(shape)}")
            _check_dims("shape", dims, shape, 0)
        if values.ndim < len(dims):
            raise invalid(f"Shape mismatch: expected values rank at least {len(dims)}, got {values.ndim}")
        _check_dims("values", dims, tuple(values.shape))
        if dims and dims[0] is not None:
            outside = ((indices < 0) | (indices >= dims[0])).nonzero()
            if len(outside):
                place = int(outside[0])
                raise invalid(
                    f"Shape mismatch: index of slice {place} exceeded limits of shape; "
                    f"index is {int(indices[place])} exceeded {dims[0]}"
                )

    def _taken(self) -> tuple[Any, ...]:
        indices, values, counts = self._indices, self._values, self._counts
        self._indices = self._values = self._counts = None
        if self.is_mean:
            values = _divided(values, counts.reshape(-1, *[1] * (values.ndim - 1)))
        known: Any = self.dims if self.dims is not None else ()
        shape = [-1, *values.shape[1:]]
        shape[: len(known)] = [m if n is None else n for n, m in zip(known, shape)]
        return indices, values, torch.tensor(shape, dtype=torch.int64)


def _check_dims(what: str, expected: Any, found: Any, first: int = 1) -> None:
    for i in range(first, len(expected)):
        if expected[i] is not None and expected[i] != found[i]:
            raise invalid(f"Shape mismatch: expected {what} dim {i} to be {expected[i]}, got {found[i]}")


def _summed(indices: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The indices sorted, each once, and the sums of their values."""
    unique, places = torch.unique(indices, sorted=True, return_inverse=True)
    total = torch.zeros((len(unique), *values.shape[1:]), dtype=values.dtype, device=values.device)
    return unique, total.index_add_(0, places, values)


def _divided(total: torch.Tensor, count: Any) -> torch.Tensor:
    if total.is_floating_point() or total.is_complex():
        return total.div_(count)
    return torch.div(total, count, rounding_mode="trunc").to(total.dtype)
