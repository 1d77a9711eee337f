"""What one run of a node costs by its shapes: floating-point operations and bytes of memory traffic.

A table by op type holds what is not "one operation an element": products, convolutions, pooling,
transcendental functions, updates. Unknown dimensions count as `ASSUMED_SIZE`, which is rough; measured costs
(`cost_model.py`) replace it. Ops that only hand on what is there (constants, variables, feeds, Identity, the
primitives of control flow) are *free*; views of their input cost a call.

>>> from flowstone.framework.graph import Graph
>>> from flowstone.ops.arrays.constants import constant
>>> from flowstone.ops.algebra.matrices import matmul
>>> with Graph().as_default():
...     product = matmul(constant(1.0, shape=[2, 3]), constant(1.0, shape=[3, 4]))
>>> work(product.op)
Work(operations=48.0, size=104)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from flowstone.framework.node import Node, Output
from flowstone.framework.operation import OpDeclaration

ASSUMED_SIZE = 32  # of an unknown dimension
_ASSUMED_ELEMENTS = 1024  # of an unknown rank
_HANDLE_SIZE = 8  # bytes: strings, resources and variants count as pointers


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FREE = _words(
    "Const VariableV2 Variable VarHandleOp _Arg Placeholder PlaceholderV2 PlaceholderWithDefault NoOp "
    "ControlTrigger Identity RefIdentity StopGradient PreventGradient Snapshot ReadVariableOp Shape ShapeN "
    "Size Rank Switch RefSwitch Merge RefMerge Enter RefEnter Exit RefExit NextIteration RefNextIteration "
    "LoopCond _PackedWeights _PackedResourceWeights _PackedConstant"
)
STATE = _words("VariableV2 Variable VarHandleOp Const")
"""Ops whose value stays in memory between steps."""


class Work(NamedTuple):
    """`operations` (floating point) and `size` (bytes read and written) of one run."""

    operations: float
    size: int


def element_count(dims: tuple[int | None, ...] | None) -> int:
    """Elements of a static shape, unknown dimensions assumed."""
    if dims is None:
        return _ASSUMED_ELEMENTS
    count = 1
    for n in dims:
        count *= ASSUMED_SIZE if n is None else n
    return count


def tensor_size(output: Output) -> int:
    """Bytes of an output's value."""
    return element_count(output.dims) * (output.dtype.size or _HANDLE_SIZE)


def state_size(node: Node) -> int:
    """Bytes that a node of `STATE` holds between steps."""
    if node.type == "VarHandleOp":
        return element_count(node.attributes.get("shape")) * (node.attributes["dtype"].size or _HANDLE_SIZE)
    return sum(tensor_size(output) for output in node.outputs)


def is_view(declaration: OpDeclaration) -> bool:
    """Whether an op's output usually shares its input's memory."""
    return bool(declaration.aliases) and declaration.is_pure and not declaration.broadcasts


def is_by_element(node: Node) -> bool:
    """Whether an op's kernel does a little for every element of what it takes and gives, and no more."""
    declaration = node.declaration
    return declaration.broadcasts or is_view(declaration) or declaration.name in _BY_ELEMENT


def touched_rows(node: Node) -> Output | None:
    """Of an op that takes or changes only some rows of its tables, what has as many elements as these rows
    have of one table: the rows themselves. None for all other ops.
    """
    kind = node.declaration.name
    rows: Output | None = None
    if kind in _GATHERS:
        rows = node.outputs[0]
    elif kind in _SCATTERS:
        rows = node.inputs[2]
    elif kind.startswith(("SparseApply", "ResourceSparseApply")):
        rows = node.inputs[[argument.name for argument in node.declaration.inputs].index("grad")]
    return rows


def work(node: Node) -> Work:
    """The work of one run of `node`."""
    kind = node.declaration.name
    if kind in FREE:
        return Work(0.0, 0)
    written = sum([tensor_size(x) for x in node.outputs])
    rows = touched_rows(node)
    if rows is not None:
        size = 2 * tensor_size(rows) * max(len(node.declaration.mutates), 1)
        return Work(size / 4, size)
    operations = node.declaration.cost_function or _OPERATIONS.get(kind)
    if operations is None and is_view(node.declaration):
        return Work(0.0, _HANDLE_SIZE)
    size = written + sum([tensor_size(x) for x in node.inputs])
    return Work(_by_element(node) if operations is None else operations(node), size)


# ---- operations by op type


def _count(output: Output) -> int:
    return element_count(output.dims)


def _by_element(node: Node, each: float = 1.0) -> float:
    """`each` for every element of the first output or the first input, whichever has more."""
    most = max([_count(x) for x in (*node.outputs[:1], *node.inputs[:1])], default=0)
    return each * most


def _elements(each: float) -> Callable[[Node], float]:
    return lambda node: _by_element(node, each)


def _product(node: Node) -> float:
    """2 m n k: the elements of a, b and their product are mk, kn, mn (each times the batch)."""
    out = node.outputs[0]
    batch = element_count(out.dims[:-2]) if out.dims is not None and len(out.dims) > 2 else 1
    counts = _count(node.inputs[0]) * _count(node.inputs[1]) * _count(out)
    return 2.0 * math.sqrt(counts / max(batch, 1))


def _added_product(node: Node) -> float:
    """2 m n k for the product of a and b, which share the dimension k, their first one if both have it."""
    a, b = (x.dims or (None, None) for x in node.inputs[1:])
    shared = a[0] if a[0] == b[0] else a[-1]
    return 2.0 * _count(node.inputs[1]) * _count(node.inputs[2]) / (shared or ASSUMED_SIZE)


def _product_update(node: Node) -> float:
    """2 m n k for the product of a and b that changes a variable; a handle's variable counts as assumed."""
    return 2.0 * math.sqrt(math.prod(_count(node.inputs[i]) for i in (0, 2, 3)))


def _convolution(
    result: Callable[[Node], Output], kernel: Callable[[Node], Output]
) -> Callable[[Node], float]:
    """Two operations for every element of the forward result and each of a filter's elements that meet it,
    whatever the order of the filter's dimensions."""

    def operations(node: Node) -> float:
        dims = result(node).dims
        channels = dims[1 if node.attributes["data_format"].startswith("NC") else -1] if dims else None
        return 2.0 * _count(result(node)) * _count(kernel(node)) / (channels or ASSUMED_SIZE)

    return operations


def _depthwise(result: Callable[[Node], Output], kernel: Callable[[Node], Output]) -> Callable[[Node], float]:
    def operations(node: Node) -> float:
        dims = kernel(node).dims
        return 2.0 * _count(result(node)) * element_count(dims[:2] if dims else None)

    return operations


def _recurrent_layer(node: Node) -> float:
    """Of all steps: the products, and in a gradient each of them twice."""
    is_gradient = node.type.endswith("Gradient")
    weights = node.outputs[-2] if is_gradient else node.inputs[-2]
    rows = element_count((node.outputs[0].dims or (1,))[:-1]) * node.attributes.get("N", 1)
    return float((2 + 2 * is_gradient) * rows * _count(weights))


def _pooling(node: Node) -> float:
    window = node.attributes.get("ksize") or (1,)
    return float(math.prod(window)) * min(_count(node.outputs[0]), _count(node.inputs[0]))


def _forward(build: Callable[..., Callable[[Node], float]]) -> Callable[[Node], float]:
    return build(lambda node: node.outputs[0], lambda node: node.inputs[1])


def _by_input(build: Callable[..., Callable[[Node], float]]) -> Callable[[Node], float]:
    return build(lambda node: node.inputs[2], lambda node: node.inputs[1])


def _by_filter(build: Callable[..., Callable[[Node], float]]) -> Callable[[Node], float]:
    return build(lambda node: node.inputs[2], lambda node: node.outputs[0])


_TABLE: tuple[tuple[str, Callable[[Node], float]], ...] = (
    ("MatMul BatchMatMul BatchMatMulV2 _FusedMatMul _PackedMatMul", _product),
    ("_ProductSumAdd", _added_product),
    ("_LSTMLayer _LSTMLayerGradient _LSTMSequence _LSTMSequenceGradient", _recurrent_layer),
    ("_ApplyProduct _ResourceApplyProduct", _product_update),
    ("_ApplySum _ResourceApplySum", lambda node: 2.0 * _count(node.inputs[2])),
    ("Conv2D Conv3D _BiasedConv2D", _forward(_convolution)),
    ("Conv2DBackpropInput Conv3DBackpropInputV2", _by_input(_convolution)),
    ("Conv2DBackpropFilter Conv3DBackpropFilterV2", _by_filter(_convolution)),
    ("DepthwiseConv2dNative", _forward(_depthwise)),
    ("DepthwiseConv2dNativeBackpropInput", _by_input(_depthwise)),
    ("DepthwiseConv2dNativeBackpropFilter", _by_filter(_depthwise)),
    ("MaxPool MaxPoolV2 AvgPool MaxPool3D AvgPool3D MaxPoolWithArgmax _MaxPoolWithPlaces", _pooling),
    ("_MaxPoolGradAtPlaces MaxPoolGrad MaxPoolGradV2 AvgPoolGrad MaxPool3DGrad AvgPool3DGrad", _elements(4)),
    (
        "Exp Expm1 Log Log1p Tanh Sigmoid Pow Sqrt Rsqrt Sin Cos Erf Erfc Elu Selu Softplus Lgamma",
        _elements(8),
    ),
    ("Softmax LogSoftmax RandomUniform RandomStandardNormal TruncatedNormal", _elements(10)),
    (
        "SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits "
        "_SoftmaxCrossEntropyTotal _SparseSoftmaxCrossEntropyTotal",
        _elements(15),
    ),
    ("FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3", _elements(8)),
    ("FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3", _elements(12)),
    ("LRN LRNGrad", _elements(20)),
    ("ApplyMomentum ResourceApplyMomentum ResourceApplyKerasMomentum", _elements(4)),
    ("ApplyAdam ResourceApplyAdam ApplyRMSProp ResourceApplyRMSProp", _elements(12)),
)
_OPERATIONS = {kind: operations for kinds, operations in _TABLE for kind in kinds.split()}
_GATHERS = _words("Gather GatherV2 GatherNd ResourceGather ResourceGatherNd")
_SCATTERS = frozenset(
    f"{prefix}Scatter{element}{kind}"
    for prefix in ("", "Resource")
    for element in ("", "Nd")
    for kind in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")
)
_BY_ELEMENT = _words(
    "Abs Neg Sign Square Sqrt Rsqrt Exp Expm1 Log Log1p Sin Cos Tanh Sigmoid Reciprocal Inv Cast Relu "
    "Relu6 Elu Selu LeakyRelu Softplus Softsign TanhGrad SigmoidGrad SqrtGrad RsqrtGrad ReciprocalGrad "
    "InvGrad ReluGrad Relu6Grad EluGrad SeluGrad LeakyReluGrad SoftplusGrad SoftsignGrad AddN BiasAdd "
    "BiasAddGrad Select SelectV2 Sum Mean Max Min Softmax LogSoftmax SoftmaxCrossEntropyWithLogits "
    "SparseSoftmaxCrossEntropyWithLogits _SoftmaxCrossEntropyTotal ZerosLike OnesLike Fill BroadcastTo "
    "Tile Pack Unpack Concat ConcatV2 Split SplitV Slice StridedSlice Pad"
)
