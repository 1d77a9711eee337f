"""What an op's run costs by its shapes: the formulas that declarations give as their `cost`.

A cost is a function of a node that counts the floating-point operations of one run, two for a multiplication
with its addition. Unknown dimensions count as `ASSUMED_SIZE`, unknown ranks as `ASSUMED_ELEMENTS` elements.

>>> element_count((2, None)), element_count(None)
(64, 1024)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from flowstone.framework.types.shape import Dims

if TYPE_CHECKING:
    from flowstone.framework.tensors.node import Node, Output

ASSUMED_SIZE = 32  # of an unknown dimension
ASSUMED_ELEMENTS = 1024  # of an unknown rank

Cost = Callable[["Node"], float]
Find = Callable[["Node"], "Output"]


def element_count(dims: Dims) -> int:
    """Elements of a static shape, unknown dimensions assumed."""
    if dims is None:
        return ASSUMED_ELEMENTS
    count = 1
    for n in dims:
        count *= ASSUMED_SIZE if n is None else n
    return count


def count(output: Output) -> int:
    """Elements of an output's value."""
    return element_count(output.dims)


# ---- what a formula asks for


def input_at(i: int) -> Find:
    """Finds input `i` of a node."""
    return lambda node: node.inputs[i]


def first_output(node: Node) -> Output:
    """The first output of a node."""
    return node.outputs[0]


# ---- costs


def by_element(node: Node, each: float = 1.0) -> float:
    """`each` for every element of the first output or the first input, whichever has more."""
    most = max([count(x) for x in (*node.outputs[:1], *node.inputs[:1])], default=0)
    return each * most


def per_element(each: float) -> Cost:
    """The cost of `each` operations an element; see `by_element`."""
    return lambda node: by_element(node, each)


def per_element_of(find: Find, each: float) -> Cost:
    """The cost of `each` operations for every element of what `find` finds."""
    return lambda node: each * count(find(node))


def product(node: Node) -> float:
    """2 m n k: the elements of a, b and their product are mk, kn, mn (each times the batch)."""
    out = node.outputs[0]
    batch = element_count(out.dims[:-2]) if out.dims is not None and len(out.dims) > 2 else 1
    counts = count(node.inputs[0]) * count(node.inputs[1]) * count(out)
    return 2.0 * math.sqrt(counts / max(batch, 1))


def added_product(node: Node) -> float:
    """2 m n k for the product of inputs 1 and 2, which share the dimension k, their first one if both have
    it."""
    a, b = (x.dims or (None, None) for x in node.inputs[1:])
    shared = a[0] if a[0] == b[0] else a[-1]
    return 2.0 * count(node.inputs[1]) * count(node.inputs[2]) / (shared or ASSUMED_SIZE)


def product_update(node: Node) -> float:
    """2 m n k for the product of inputs 2 and 3 that changes the variable of input 0; a handle's variable
    counts as assumed."""
    return 2.0 * math.sqrt(math.prod(count(node.inputs[i]) for i in (0, 2, 3)))


def convolution(result: Find, kernel: Find) -> Cost:
    """Two operations for every element of the forward result and each of a filter's elements that meet it,
    whatever the order of the filter's dimensions."""

    def cost(node: Node) -> float:
        dims = result(node).dims
        layout = node.attributes.get("data_format", "NHWC")
        channels = dims[1 if layout.startswith("NC") else -1] if dims else None
        return 2.0 * count(result(node)) * count(kernel(node)) / (channels or ASSUMED_SIZE)

    return cost


def depthwise_convolution(result: Find, kernel: Find) -> Cost:
    """The same for a filter [height, width, in, multiplier] of which each channel meets its own."""

    def cost(node: Node) -> float:
        dims = kernel(node).dims
        return 2.0 * count(result(node)) * element_count(dims[:2] if dims else None)

    return cost


def pooling(node: Node) -> float:
    """One operation for every element of a window, as often as it is moved."""
    window = node.attributes.get("ksize") or (1,)
    return float(math.prod(window)) * min(count(node.outputs[0]), count(node.inputs[0]))


def recurrent_layer(node: Node) -> float:
    """The products of all steps of a layer of LSTM cells."""
    return _recurrent(node, node.inputs[-2], 2)


def recurrent_layer_gradient(node: Node) -> float:
    """The products of all steps of such a layer's gradient: each of the layer's, twice."""
    return _recurrent(node, node.outputs[-2], 4)


def _recurrent(node: Node, weights: Output, each: int) -> float:
    rows = element_count((node.outputs[0].dims or (1,))[:-1]) * node.attributes.get("N", 1)
    return float(each * rows * count(weights))
