"""Pooling of sequences, and of what the rank of the input says. Public names here belong to ``tf.nn``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.networks.pooling_layers import avg_pool, avg_pool3d, max_pool, max_pool2d, max_pool3d

__all__ = ["avg_pool1d", "avg_pool_v2", "max_pool1d", "max_pool_v2"]


def _pool1d(
    pool: Callable[..., Tensor], input: Any, ksize: Any, strides: Any, padding: Any, data_format: str,
    scope_name: str,
) -> Tensor:  # fmt: skip
    """Images of one row are pooled in place of sequences."""
    first = data_format == "NCW"
    axis, layout = (2, "NCHW") if first else (1, "NHWC")
    sizes = [_of_images(values, first) for values in (ksize, strides)]
    with get_default_graph().name_scope(scope_name):
        image = F.ExpandDims(convert_to_tensor(input, name="input"), axis)
        return F.Squeeze(pool(image, *sizes, padding, layout), squeeze_dims=[axis])


def _of_images(values: Any, channels_first: bool) -> list[int]:
    """One number, one in a list, or three, as four."""
    sizes = [values] if isinstance(values, int) else [int(each) for each in values]
    if len(sizes) == 1:
        sizes = [1, 1, *sizes] if channels_first else [1, *sizes, 1]
    if len(sizes) != 3:
        raise ValueError(f"ksize and strides must have 1 or 3 values. Received: {list(values)}")
    return [*sizes[:2], 1, sizes[2]] if channels_first else [sizes[0], 1, *sizes[1:]]


def avg_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """The mean of each window of sequences [batch, length, channels], or (NCW) [batch, channels, length].

    `ksize`, `strides`: one number, one in a list, or one a dimension; `padding`: "SAME" or "VALID".
    """
    return _pool1d(avg_pool, input, ksize, strides, padding, data_format, name or "AvgPool1D")


def max_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """The largest element of each window of sequences; the arguments are those of `avg_pool1d`."""
    return _pool1d(max_pool, input, ksize, strides, padding, data_format, name or "MaxPool1d")


def _by_rank(functions: tuple[Callable[..., Tensor], ...], layouts: tuple[str, ...], input: Any) -> Any:
    x = convert_to_tensor(input, name="input")
    rank = x.shape.ndims
    if rank is None:
        raise ValueError("Cannot take the length of shape with unknown rank.")
    if rank not in (3, 4, 5):
        raise ValueError(
            f"`input.shape.rank` must be 3, 4 or 5. Received: input.shape={x.shape} of rank {rank}."
        )
    return functions[rank - 3], layouts[rank - 3], x


_LAYOUTS = ("NWC", "NHWC", "NDHWC")


def avg_pool_v2(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The mean of each window of sequences, images or volumes, as the rank (3, 4 or 5) of `input` says.

    `data_format`: None has channels last. ValueError for other ranks.
    """
    pool, layout, x = _by_rank((avg_pool1d, avg_pool, avg_pool3d), _LAYOUTS, input)
    return pool(x, ksize, strides, padding, data_format or layout, name)  # type: ignore[no-any-return]


def max_pool_v2(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The largest element of each window; the arguments are those of `avg_pool_v2`."""
    pool, layout, x = _by_rank((max_pool1d, max_pool2d, max_pool3d), _LAYOUTS, input)
    return pool(x, ksize, strides, padding, data_format or layout, name)  # type: ignore[no-any-return]
