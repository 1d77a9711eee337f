"""Ragged tensors in variants, as datasets and functional loops of later TensorFlows hold them.

RaggedTensorToVariant makes one variant of a ragged tensor, or, batched, one of each of its rows;
RaggedTensorFromVariant joins them again. A variant's value is a `RaggedVariant`, which nobody changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.dtypes import DType
from flowstone.ops.arrays.arrays import boxed, invalid
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.ragged.ragged_rows import check_nested_splits, splits_of
from flowstone.ops.sparse.elements import copied, joined
from flowstone.ops.sparse.index_rows import check_rank

_TYPES = "Tvalues: type ; Tsplits: type in [int32, int64] = int64"


class RaggedVariant:
    """The splits, the outermost first, and the innermost values of a ragged tensor; a dense one has none."""

    __slots__ = ("dtype", "splits", "values")
    shape = ()  # it is itself a scalar

    def __init__(self, dtype: DType, splits: list[torch.Tensor], values: Any) -> None:
        self.dtype, self.splits, self.values = dtype, splits, values

    def __repr__(self) -> str:
        return f"<RaggedVariant of {len(self.splits)} ragged dimensions, {self.dtype.name}>"

    def rows(self) -> int:
        """How many rows it has."""
        return len(self.splits[0]) - 1 if self.splits else int(self.values.shape[0])

    def row(self, i: int) -> RaggedVariant:
        """One row, with a ragged dimension less."""
        if not self.splits:
            return RaggedVariant(self.dtype, [], copied(self.values[i]))
        begin, end = int(self.splits[0][i]), int(self.splits[0][i + 1])
        splits = []
        for each in self.splits[1:]:
            part = each[begin : end + 1]
            begin, end = int(part[0]), int(part[-1])
            splits.append(part - begin)
        return RaggedVariant(self.dtype, splits, copied(self.values[begin:end]))


to_variant_op = op(
    "RaggedTensorToVariant",
    "rt_nested_splits: RAGGED_RANK*Tsplits, rt_dense_values: Tvalues -> encoded_ragged: variant",
    f"RAGGED_RANK: int >= 0 ; {_TYPES} ; batched_input: bool",
    capturable=False,
)


@to_variant_op.infer
def _(node: Node) -> Shapes:
    ragged = node.attributes["RAGGED_RANK"]
    for i in range(ragged):
        check_rank(node.dims(i), 1)
    values = node.dims(ragged)
    if values == () and (ragged or node.attributes["batched_input"]):
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if not node.attributes["batched_input"]:
        return ()
    first = node.dims(0)
    if first is None or first[0] is None:
        return (None,)
    if ragged and not first[0]:
        raise ValueError("Ragged splits must have at least one element")
    return (first[0] - 1,) if ragged else (first[0],)


@to_variant_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    ragged, batched = node.attributes["RAGGED_RANK"], node.attributes["batched_input"]
    dtype = node.dtype(ragged)

    def pack(*inputs: Any) -> Any:
        splits, values = list(inputs[:ragged]), boxed_text(inputs[ragged])
        if splits:
            check_nested_splits(splits, values)
        whole = RaggedVariant(dtype, [each.clone() for each in splits], values)
        if not batched:
            return RaggedVariant(dtype, whole.splits, copied(values))
        if not values.ndim:
            raise invalid("A scalar has no rows")
        result = np.empty(whole.rows(), object)
        for i in range(len(result)):
            result[i] = whole.row(i)
        return result

    return pack


def boxed_text(values: Any) -> Any:
    """The values as a tensor or an array, also a bare string."""
    return values if isinstance(values, torch.Tensor) else boxed(values)


@to_variant_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    ragged = op.attributes["RAGGED_RANK"]
    splits, values = list(op.inputs[:ragged]), op.inputs[ragged]
    kind = op.attributes["Tsplits"]
    if not op.attributes["batched_input"]:
        found = F.RaggedTensorFromVariant.several(
            dy, input_ragged_rank=ragged, output_ragged_rank=ragged, Tvalues=values.dtype, Tsplits=kind
        )
        return [None] * ragged + [found[-1]]
    sizes = shape(values)
    if splits:
        ends = splits[0]
        for each in splits[1:]:
            ends = F.GatherV2(each, ends, 0)
    else:
        count = F.Cast(F.AddV2(F.Reshape(F.Slice(sizes, [0], [1]), []), 1), DstT=kind)
        ends = F.Range(convert_to_tensor(0, kind), count, convert_to_tensor(1, kind))
    return [None] * ragged + [F.RaggedTensorToVariantGradient(dy, ends, sizes, Tvalues=values.dtype)]


from_variant_op = op(
    "RaggedTensorFromVariant",
    "encoded_ragged: variant -> output_nested_splits: output_ragged_rank*Tsplits, "
    "output_dense_values: Tvalues",
    f"input_ragged_rank: int >= -1 ; output_ragged_rank: int >= 0 ; {_TYPES}",
    capturable=False,
)


@from_variant_op.infer
def _(node: Node) -> Shapes:
    given, found = node.attributes["input_ragged_rank"], node.attributes["output_ragged_rank"]
    dims = node.dims(0)
    if dims is not None and given >= 0 and len(dims) != found - given:
        raise ValueError(f"Shape must be rank {found - given} but is rank {len(dims)}")
    return [*[(None,)] * found, None]


@from_variant_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    given, found = node.attributes["input_ragged_rank"], node.attributes["output_ragged_rank"]
    dtype, kind = node.attributes["Tvalues"], node.attributes["Tsplits"].torch

    def unpack(encoded: Any) -> Any:
        encoded = boxed(encoded)
        inner = found - encoded.ndim if given < 0 else given
        if inner < 0 or found != inner + encoded.ndim:
            raise invalid(
                f"output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(): "
                f"{found}, {inner} + {encoded.ndim}"
            )
        parts = [_checked(each, inner, dtype, kind) for each in encoded.reshape(-1)]
        if not encoded.ndim:
            return (*(each.clone() for each in parts[0].splits), copied(parts[0].values))
        ends, count = [], 1
        for axis, size in enumerate(encoded.shape):
            if axis:
                ends.append(torch.arange(count + 1, dtype=kind, device=env.device) * size)
            count *= size
        ends.append(splits_of(torch.tensor([each.rows() for each in parts], dtype=torch.int64), kind))
        for level in range(inner):
            lengths = [each.splits[level][1:] - each.splits[level][:-1] for each in parts]
            ends.append(splits_of(torch.cat(lengths) if lengths else torch.zeros(0, dtype=kind), kind))
        return (*(each.to(env.device) for each in ends), _joined(parts, dtype, env))

    return unpack


def _checked(value: Any, ragged: int, dtype: DType, kind: torch.dtype | None) -> RaggedVariant:
    """`value`, if it is such a ragged tensor; else InvalidArgumentError."""
    if type(value) is not RaggedVariant:
        raise invalid(f"Input variant element is no ragged tensor, but {type(value).__name__}")
    if len(value.splits) != ragged:
        raise invalid(f"Encoded input RaggedTensorVariant has ragged_rank={len(value.splits)}, not {ragged}")
    if value.dtype is not dtype:
        raise invalid(f"Expected values of type {dtype.name}, but the variant has {value.dtype.name}")
    if value.splits and value.splits[0].dtype is not kind:
        raise invalid(f"Expected row splits of type {kind}, but the variant has {value.splits[0].dtype}")
    if not value.splits and not value.values.ndim:
        raise invalid("A scalar has no rows")
    return value


def _joined(parts: list[RaggedVariant], dtype: DType, env: Environment) -> Any:
    if not parts:
        is_text = dtype.torch is None
        return np.empty(0, object) if is_text else torch.zeros(0, dtype=dtype.torch, device=env.device)
    inner = {tuple(each.values.shape[1:]) for each in parts}
    if len(inner) > 1:
        raise invalid(f"The variants' values have different inner shapes: {sorted(inner)}")
    return joined([each.values for each in parts])


@from_variant_op.gradient
def _(op: Operation, *flows: Tensor) -> Gradients:
    encoded, splits = op.inputs[0], list(op.outputs[:-1])
    ndims = encoded.shape.ndims
    if ndims is None or ndims > 1:
        raise ValueError("The gradient of RaggedTensorFromVariant needs a scalar or a vector of variants")
    flow, kind = convert_to_tensor(flows[-1]), op.attributes["Tsplits"]
    return F.RaggedTensorToVariant(splits, flow, batched_input=ndims == 1, Tsplits=kind)


variant_gradient_op = op(
    "RaggedTensorToVariantGradient",
    "encoded_ragged_grad: variant, row_splits: Tsplits, dense_values_shape: int32 -> "
    "dense_values_grad: Tvalues",
    _TYPES,
    host=["dense_values_shape"],
    capturable=False,
).no_gradient()
variant_gradient_op.infer(lambda node: node.constant_dims(2))


@variant_gradient_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.attributes["Tvalues"]

    def join(encoded: Any, splits: torch.Tensor, sizes: torch.Tensor) -> Any:
        parts = list(boxed(encoded).reshape(-1))
        for each in parts:
            if type(each) is not RaggedVariant or each.dtype is not dtype:
                raise invalid(f"Expected a ragged tensor of {dtype.name}, but got {each!r}")
        if not parts:
            return torch.zeros(sizes.tolist(), dtype=dtype.torch, device=env.device)
        flat = joined([each.values.reshape(-1) for each in parts])
        if flat.numel() != int(sizes.prod()):
            raise invalid(f"The variants have {flat.numel()} values, not those of shape {sizes.tolist()}")
        return flat.reshape(sizes.tolist())

    return join
