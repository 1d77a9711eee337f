"""Floating-point operations of a node, counted as TensorFlow's profiler counts them.

The count of an op's declaration (`framework/declarations/work.py`) is what placement needs: every op has one,
and unknown sizes are assumed. A profile is compared with numbers that TensorFlow and papers give: the ops
that TensorFlow counts, by its rules, and nothing assumed. AddV2 and the later BatchMatMuls count as their
older forms do. Images may have their channels first, which TensorFlow refuses for most ops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

Shape = tuple[int, ...]
Count = Callable[["Sizes"], int]


class IncompleteShape(Exception):
    """A count needs a shape that is not known."""


class Sizes:
    """The shapes of one node's inputs and outputs. `known`: shapes by tensor name where they are not static.

    Asking for one that is not known raises `IncompleteShape`.
    """

    def __init__(self, op: Any, known: Mapping[str, Shape]) -> None:
        self.op, self._known = op, known

    def input(self, index: int = 0) -> Shape:
        """The shape of an input."""
        return self._shape(self.op.inputs[index])

    def output(self) -> Shape:
        """The shape of the first output."""
        return self._shape(self.op.outputs[0])

    def _shape(self, tensor: Any) -> Shape:
        dims = complete_shape(tensor, self._known)
        if dims is None:
            raise IncompleteShape(tensor.name)
        return dims


def complete_shape(tensor: Any, known: Mapping[str, Shape]) -> Shape | None:
    """The static shape of a tensor if it is complete, else the one in `known`, else None."""
    dims = tensor.dims
    if dims is None or None in dims:
        return known.get(tensor.name)
    return tuple(dims)


def float_operations(op: Any, known: Mapping[str, Shape]) -> int | None:
    """The operations of one run of `op`; None if its kind is not counted. May raise `IncompleteShape`."""
    count = COUNTED.get(op.type)
    return None if count is None else count(Sizes(op, known))


def _per_output(each: int) -> Count:
    return lambda sizes: each * math.prod(sizes.output())


def _per_input(each: int) -> Count:
    return lambda sizes: each * math.prod(sizes.input())


def _additions(sizes: Sizes) -> int:
    return math.prod(sizes.output()) * (len(sizes.op.inputs) - 1)


def _reduction(sizes: Sizes) -> int:
    return math.prod(sizes.input()) - math.prod(sizes.output())


def _product(sizes: Sizes) -> int:
    attributes = sizes.op.attributes
    adjoint = attributes.get("transpose_a") or attributes.get("adj_x")
    return 2 * math.prod(sizes.output()) * sizes.input()[-2 if adjoint else -1]


def _convolution(sizes: Sizes) -> int:
    return 2 * math.prod(sizes.output()) * math.prod(sizes.input(1)[:-1])


def _convolution_gradient(sizes: Sizes, image: Shape, filters: Shape) -> int:
    """Windows at all places of the image that the strides leave, whatever the padding."""
    attributes = sizes.op.attributes
    depth = image[1 if attributes["data_format"] == "NCHW" else -1]
    skipped: int = math.prod(attributes["strides"])
    return 2 * math.prod(image) * math.prod(filters) // (depth * skipped)


def _filter_gradient(sizes: Sizes) -> int:
    return _convolution_gradient(sizes, sizes.input(), sizes.output())


def _image_gradient(sizes: Sizes) -> int:
    return _convolution_gradient(sizes, sizes.output(), sizes.input(1))


def _depthwise(sizes: Sizes) -> int:
    return 2 * math.prod(sizes.output()) * math.prod(sizes.input(1)[:2])


def _window(sizes: Sizes) -> int:
    return math.prod(sizes.op.attributes["ksize"])


def _pooling(sizes: Sizes) -> int:
    return _window(sizes) * math.prod(sizes.output())


def _average_gradient(sizes: Sizes) -> int:
    return 2 * _window(sizes) * math.prod(sizes.input(1))


def _maximum_gradient(sizes: Sizes) -> int:
    return (_window(sizes) + 1) * math.prod(sizes.input(1))


COUNTED: dict[str, Count] = {
    **dict.fromkeys(
        [
            "Add",
            "AddV2",
            "Sub",
            "Mul",
            "RealDiv",
            "Maximum",
            "Minimum",
            "Pow",
            "Greater",
            "GreaterEqual",
            "Less",
            "LessEqual",
            "Equal",
            "NotEqual",
            "Neg",
            "Reciprocal",
            "Log",
            "Square",
            "AssignAdd",
            "AssignSub",
        ],
        _per_output(1),
    ),
    **dict.fromkeys(["SquaredDifference", "Rsqrt"], _per_output(2)),
    **dict.fromkeys(["ArgMax", "ArgMin", "BiasAddGrad", "Sum"], _reduction),
    **dict.fromkeys(["MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"], _product),
    **dict.fromkeys(["Conv2D", "Conv3D"], _convolution),
    **dict.fromkeys(["DepthwiseConv2dNative", "Dilation2D"], _depthwise),
    **dict.fromkeys(["AvgPool", "MaxPool"], _pooling),
    **dict.fromkeys(["BiasAdd", "Mean"], _per_input(1)),
    "AddN": _additions,
    "AvgPoolGrad": _average_gradient,
    "Conv2DBackpropFilter": _filter_gradient,
    "Conv2DBackpropInput": _image_gradient,
    "L2Loss": lambda sizes: 3 * math.prod(sizes.input()) - 1,
    "MaxPoolGrad": _maximum_gradient,
    "RsqrtGrad": _per_output(4),
    "Softmax": _per_output(5),
}
