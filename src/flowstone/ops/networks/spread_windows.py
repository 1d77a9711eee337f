"""Windows whose elements are apart, by moving space to the batch: an operation over neighbours does the rest.

Plans make one dilated convolution of the three operations (`rewriting/simplification/dilated_windows`).
Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.arrays.space_moves import required_space_to_batch_paddings

__all__ = ["with_space_to_batch"]


class SpreadWindows:
    """Windows whose elements are `dilation_rate` apart, for an operation over windows of neighbours.

    What does not depend on the input becomes constants of the graph here, the rest when the object is called.

    Args:
        dilation_rate: n positive integers.
        padding: "SAME" or "VALID".
        filter_shape: sizes of windows, of which the first n count, needed for "SAME".
        spatial_dims: the n dimensions of the windows, increasing and positive; from 1, or from 2 where
            `data_format` begins with "NC".

    Raises:
        ValueError: arguments do not fit.
    """

    def __init__(
        self,
        dilation_rate: Any,
        padding: str,
        filter_shape: Any = None,
        spatial_dims: Any = None,
        data_format: str | None = None,
    ) -> None:
        self._rate = convert_to_tensor(dilation_rate, dtypes.int32, name="dilation_rate")
        self._rates = np.asarray(static_value(self._rate))
        if self._rates.ndim != 1:
            raise ValueError("rate must be rank 1")
        if (self._rates < 1).any():
            raise ValueError("dilation_rate must be positive")
        self._n, self._padding = len(self._rates), padding
        first = 2 if (data_format or "").startswith("NC") else 1
        dims = list(range(first, first + self._n)) if spatial_dims is None else sorted(spatial_dims)
        if (
            len(dims) != self._n
            or dims != list(spatial_dims or dims)
            or dims[0] < 1
            or len({*dims}) < len(dims)
        ):
            raise ValueError("spatial_dims must be a montonically increasing sequence of positive integers")
        self._dims = dims
        self._is_spread = bool((self._rates > 1).any())
        self._base = self._base_paddings(filter_shape) if self._is_spread else None

    def __call__(self, input: Tensor, op: Callable[[Tensor, int, str], Tensor]) -> Tensor:
        """`op`, a function of (input, n, padding) over windows of neighbours, on windows that are spread.

        Its padding is "VALID" then.
        """
        if not self._is_spread:
            return op(input, self._n, self._padding)
        sizes = self._spatial_sizes(input)
        margins = required_space_to_batch_paddings(sizes, self._rate, self._base)
        paddings, crops = (_placed(each, self._dims, [0, 0]) for each in margins)
        blocks = _placed(self._rates, self._dims, 1)
        result = op(F.SpaceToBatchND(input, blocks, paddings), self._n, "VALID")
        moved: Tensor = F.BatchToSpaceND(result, blocks, crops)
        if self._dims[0] == 2 and result.dims is not None:  # the channels, which no block divides
            moved.set_shape([None, result.dims[1], *[None] * (len(result.dims) - 2)])
        return moved

    def _base_paddings(self, filter_shape: Any) -> Any:
        if self._padding not in ("SAME", "VALID"):
            raise ValueError(f"Invalid padding method {self._padding!r}")
        if self._padding == "VALID":
            return np.zeros((self._n, 2), np.int32)
        if filter_shape is None:
            raise ValueError("filter_shape must be specified for SAME padding")
        sizes = static_value(convert_to_tensor(filter_shape, name="filter_shape"))
        total = (np.asarray(sizes)[: self._n] - 1) * self._rates
        return constant(np.stack([total // 2, total - total // 2], 1), dtypes.int32, name="stack")

    def _spatial_sizes(self, input: Tensor) -> Any:
        """The lengths of the windows' dimensions: numbers if all are known, else the step's."""
        known = None if input.dims is None else [input.dims[axis] for axis in self._dims]
        if known is not None and None not in known:
            return np.array(known, np.int32)
        sizes = shape_of(input)
        return stack([sizes[axis] for axis in self._dims])


def with_space_to_batch(
    input: Any,
    dilation_rate: Any,
    padding: str,
    op: Callable[[Tensor, int, str], Tensor],
    filter_shape: Any = None,
    spatial_dims: Any = None,
    data_format: str | None = None,
) -> Tensor:
    """`op`, which works on windows of neighbours, on windows whose elements are `dilation_rate` apart.

    `op`: a function of (input, n, padding), whose padding is "VALID" where a rate is not 1; the other
    arguments are those of `SpreadWindows`.
    """
    input = convert_to_tensor(input, name="input")
    return SpreadWindows(dilation_rate, padding, filter_shape, spatial_dims, data_format)(input, op)


def _placed(rows: Any, dims: list[int], filler: Any) -> Any:
    """The rows of these dimensions, and the filler for the others from the first to the last: an array if the
    rows are known."""
    known = static_value(rows) if isinstance(rows, Tensor) else rows
    rows = rows if known is None else known
    parts: list[Any] = []
    begin = 0
    for end in range(1, len(dims) + 1):
        if end < len(dims) and dims[end] == dims[end - 1] + 1:
            continue
        gap = dims[begin] - 1 - (dims[begin - 1] if begin else 0)
        if gap:
            parts.append(np.array([filler] * gap, np.int32))
        parts.append(rows[begin:end])
        begin = end
    return concat(parts, 0) if known is None else np.concatenate(parts)
