"""oneDNN's kernels for hosts, as far as this build of torch has them: the one place that names them.

torch has these operators only where it was built with oneDNN, and some only with MKL. Who chooses a kernel
for a plan asks the `Machine` (`machine.py`), which asks `is_available`; where that is False, all of these are
None, and ATen's own kernels do the work. Linear and convolution kernels take float32; `bias` may be None,
`activation` is "none", "relu", "tanh" or "sigmoid" (oneDNN's relu makes 0 of NaN).

    product(x, weights, bias, activation, (), "")     x times the transpose of weights, [out, in]
    convolve(x, filters, bias, padding, strides, dilations, groups, activation, (), "")
    convolve_onto(result, x, filters, bias, padding, strides, dilations, groups, "add", 1.0, None, (), None)
    transpose_convolve(x, filters, bias, padding, output_padding, strides, dilations, groups, …)
    reordered_weights(weights, rows)                  for `product` of x of so many rows
    reordered_filter(filters, padding, strides, dilations, groups, dims of the images)
    lstm_layer, lstm_layer_gradient                   all steps of a layer of cells
"""

from __future__ import annotations

from typing import Any

import torch


def _operator(namespace: str, name: str, overload: str = "default") -> Any:
    try:
        return getattr(getattr(getattr(torch.ops, namespace), name), overload)
    except AttributeError:  # this build has none
        return None


def _all_or_none(*found: Any) -> tuple[Any, ...]:
    built: Any = torch.backends.mkldnn
    return found if built.is_available() and None not in found else (None,) * len(found)


(
    product,
    convolve,
    convolve_onto,
    transpose_convolve,
    reordered_weights,
    reordered_filter,
    lstm_layer,
    lstm_layer_gradient,
) = _all_or_none(
    _operator("mkldnn", "_linear_pointwise"),
    _operator("mkldnn", "_convolution_pointwise"),
    _operator("mkldnn", "_convolution_pointwise_", "binary"),
    _operator("mkldnn", "_convolution_transpose_pointwise"),
    _operator("mkldnn", "_reorder_linear_weight"),
    _operator("mkldnn", "_reorder_convolution_weight"),
    _operator("aten", "mkldnn_rnn_layer"),
    _operator("aten", "mkldnn_rnn_layer_backward"),
)


def is_available() -> bool:
    """Whether this build of torch has all of these kernels."""
    return product is not None


def tanh(x: torch.Tensor) -> torch.Tensor:
    """The hyperbolic tangent by oneDNN, which is reached by way of its own kind of tensor: both ends are
    copies.
    """
    return torch.tanh(x.to_mkldnn()).to_dense()
