"""The public functions over pooling: the largest or mean element of sliding windows of images and volumes.

Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.names.argument_orders import or_in_order
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.networks.average_pooling import avg_pool3d_op, avg_pool_op
from flowstone.ops.networks.convolution_layers import expanded, padding_attributes
from flowstone.ops.networks.pooling import max_pool3d_op, max_pool_op, max_pool_with_argmax_op
from flowstone.ops.networks.spread_windows import SpreadWindows
from flowstone.ops.networks.windows import is_channels_last

__all__ = [
    "avg_pool",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool",
    "max_pool2d",
    "max_pool3d",
    "max_pool_with_argmax",
    "pool",
]


def max_pool(
    value: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None,
    input: Any = None,
) -> Tensor:  # fmt: skip
    """The largest element of each window of images [batch, height, width, channels].

    `ksize`, `strides`: one number, two, or one a dimension; `padding`: "SAME", "VALID" or pairs of amounts.
    """
    layout = data_format or "NHWC"
    return max_pool_op(
        value if input is None else input, ksize=expanded(ksize, 2, layout), strides=expanded(strides, 2,
        layout), data_format=layout, name=name or "MaxPool", **padding_attributes(padding), )  # fmt: skip


def max_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """`max_pool` by its later name."""
    return max_pool(input, ksize, strides, padding, data_format, name or "MaxPool2d")


def avg_pool(
    value: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None,
    input: Any = None,
) -> Tensor:  # fmt: skip
    """The mean of the elements of each window that lie inside the images [batch, height, width, channels]."""
    layout = data_format or "NHWC"
    with get_default_graph().name_scope(name or "AvgPool") as scope:
        value = convert_to_tensor(value if input is None else input, name="value")
        return avg_pool_op(
            value, ksize=expanded(ksize, 2, layout), strides=expanded(strides, 2, layout), padding=padding,
            data_format=layout, name=scope,
        )  # fmt: skip


avg_pool2d = avg_pool


def max_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The largest element of each window of volumes [batch, depth, height, width, channels]."""
    return max_pool3d_op(
        input, ksize=expanded(ksize, 3, data_format), strides=expanded(strides, 3, data_format),
        padding=padding, data_format=data_format, name=name,
    )  # fmt: skip


def avg_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The mean of the elements of each window that lie inside the volumes [batch, depth, height, width,

    channels].
    """
    return avg_pool3d_op(
        input, ksize=expanded(ksize, 3, data_format), strides=expanded(strides, 3, data_format),
        padding=padding, data_format=data_format, name=name,
    )  # fmt: skip


@or_in_order(
    4,
    "data_format Targmax name output_dtype include_batch_in_index",
    lambda tail: tail[0] in ("NHWC", "NCHW"),
)
def max_pool_with_argmax(
    input: Any, ksize: Any, strides: Any, padding: Any, Targmax: Any = None, name: str | None = None,
    data_format: str = "NHWC", output_dtype: Any = None, include_batch_in_index: bool = False,
) -> Any:  # fmt: skip
    """(maxima, their flat positions [(row * width) + column] * channels + channel); only NHWC.

    By position, `data_format` may stand before `Targmax` and `name`, as in TensorFlow 1.15.
    """
    if data_format != "NHWC":
        raise ValueError(f"`data_format` values other than 'NHWC' are not supported. Received: {data_format}")
    return max_pool_with_argmax_op(
        input, ksize=expanded(ksize, 2, "NHWC"), strides=expanded(strides, 2, "NHWC"), padding=padding,
        Targmax=Targmax or output_dtype or dtypes.int64, include_batch_in_index=include_batch_in_index,
        name=name,
    )  # fmt: skip


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    padding: str,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Pooling of type "MAX" or "AVG" over one to three spatial dimensions, windows `dilation_rate` apart.

    ValueError for other types, and for dilation with strides or SAME.
    """
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(f"`pooling_type` must be 'MAX' or 'AVG'. Received: {pooling_type}")
    input = convert_to_tensor(input, name="input")
    window, n = [int(size) for size in window_shape], len(window_shape)
    rates = list(dilations or dilation_rate or [1] * n)
    strides = list(strides or [1] * n)
    if max(rates) > 1 and max(strides) > 1:
        raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
    with get_default_graph().name_scope(name or f"{pooling_type.lower()}_pool") as scope:
        last = data_format is None or is_channels_last(data_format)
        if padding == "SAME" and max(rates) > 1:
            raise ValueError("pooling with SAME padding is not implemented for dilation_rate > 1")
        windows = SpreadWindows(rates, padding, window, data_format=data_format)
        return windows(input, lambda x, _, rule: _pool(x, window, strides, pooling_type, rule, last, scope))


def _pool(
    input: Tensor,
    window: list[int],
    strides: list[int],
    pooling_type: str,
    padding: str,
    last: bool,
    name: str | None,
) -> Tensor:
    n = len(window)
    if n == 1:
        axis = 1 if last else 2
        image = F.ExpandDims(input, axis)
        return F.Squeeze(
            _pool(image, [1, *window], [1, *strides], pooling_type, padding, last, name), squeeze_dims=[axis]
        )
    layout = ("NHWC" if last else "NCHW") if n == 2 else ("NDHWC" if last else "NCDHW")
    functions: dict[str, Callable[..., Tensor]] = {
        "MAX2": max_pool,
        "AVG2": avg_pool,
        "MAX3": max_pool3d,
        "AVG3": avg_pool3d,
    }
    pool_of_rank = functions[f"{pooling_type}{n}"]
    return pool_of_rank(
        input, expanded(window, n, layout), expanded(strides, n, layout), padding, layout, name
    )
