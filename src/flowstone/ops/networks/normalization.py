"""Normalisation over a batch, fused and composed, and the moments that it needs.

The reserve spaces 1 and 2 of FusedBatchNorm hold the batch's mean and its variance without Bessel's
correction (the third output has it), on every device. Moments of no elements are NaN, their gradients 0.
Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.images import Images
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel, KernelFactory
from flowstone.framework.declarations.operation import (
    F,
    GradientFunction,
    Gradients,
    OpDeclaration,
    ShapeFunction,
    Shapes,
    op,
)
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node, static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import merge
from flowstone.ops.networks.normalization_gradients import second_gradient
from flowstone.ops.networks.windows import channels_first, channels_last, is_channels_last, require_rank
from flowstone.ops.numbers.reductions import reduce_mean, reduce_sum

__all__ = [
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "fused_batch_norm",
    "moments",
    "normalize_moments",
    "sufficient_statistics",
    "weighted_moments",
]

_backward = torch.ops.aten.native_batch_norm_backward.default
_SETTINGS = "epsilon: float = 0.0001 ; "
_FACTOR = "exponential_avg_factor: float = 1 ; "
_LAYOUTS = {
    "": "data_format: string in ['NHWC', 'NCHW'] = 'NHWC' ; is_training: bool = true",
    "V3": "data_format: string in ['NHWC', 'NCHW', 'NDHWC', 'NCDHW'] = 'NHWC' ; is_training: bool = true",
}
_X_TYPES = {
    "": " ; T: type in [float]",
    "V2": " ; T: type in [half, bfloat16, float] ; U: type in [float]",
    "V3": " ; T: type in [half, bfloat16, float] ; U: type in [bfloat16, float]",
}

# ---- fused batch normalisation


def _channel_dims(
    node: Node, first: int, *others: int
) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """(dims of the image, dims (channels,)) merged from the image input and vector inputs."""
    layout = node.attributes["data_format"]
    dims = require_rank(node.dims(first), len(layout))
    axis = len(layout) - 1 if is_channels_last(layout) else 1
    channels: tuple[int | None, ...] = (dims[axis],)
    for i in others:
        channels = merge(channels, require_rank(node.dims(i), 1)) or channels
    return (*dims[:axis], *channels, *dims[axis + 1 :]), channels


def _infer_batch_norm(outputs: int) -> ShapeFunction:
    def infer(node: Node) -> Shapes:
        fixed = (1, 2) if node.attributes["is_training"] else (1, 2, 3, 4)
        dims, channels = _channel_dims(node, 0, *fixed)
        return [dims, channels, channels, channels, channels, *[None] * (outputs - 5)]

    return infer


def _views(node: Node) -> tuple[tuple[int, ...] | None, ...]:
    """(to a channels-first view, back) for the image of a node."""
    rank = len(node.attributes["data_format"])
    if not is_channels_last(node.attributes["data_format"]):
        return None, None
    return channels_first(rank), channels_last(rank)


def _blend(old: torch.Tensor, new: torch.Tensor, factor: float) -> torch.Tensor:
    """The moved statistics, in memory of their own."""
    return new.clone() if factor == 1 or not old.numel() else torch.lerp(old, new, factor)


def _batch_norm_kernel(has_third: bool) -> KernelFactory:
    def factory(node: Node, env: Environment) -> Kernel:
        attributes = node.attributes
        to_first, to_last = _views(node)
        epsilon, training = attributes["epsilon"], attributes["is_training"]
        factor = attributes.get("exponential_avg_factor", 1.0)
        rank, widens = len(attributes["data_format"]), node.dtype(0) is not dtypes.float32
        third = (torch.zeros((), device=env.device),) if has_third else ()

        def run(
            x: torch.Tensor,
            scale: torch.Tensor,
            offset: torch.Tensor,
            mean: torch.Tensor,
            variance: torch.Tensor,
        ) -> tuple[torch.Tensor, ...]:
            if (
                x.dim() != rank
                or scale.shape != offset.shape
                or scale.shape != (x.shape[1 if to_first is None else -1],)
            ):
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"scale {list(scale.shape)} and offset {list(offset.shape)} must have as many elements "
                    f"as the input {list(x.shape)} has channels",
                )
            if not x.numel():
                return (x.clone(), *[torch.full_like(scale, math.nan) for _ in range(4)], *third)
            y = x if to_first is None else x.permute(to_first)
            y = y.float() if widens else y
            statistics: tuple[torch.Tensor, ...]
            if training:
                found, spread = torch.batch_norm_update_stats(y, None, None, 0.0)
                count = y.numel() // max(y.shape[1], 1)
                corrected = spread * (count / max(count - 1, 1))
                statistics = (_blend(mean, found, factor), _blend(variance, corrected, factor), found, spread)
            else:
                found, spread = mean, variance
                statistics = torch.stack((mean, variance, mean, variance)).unbind()
            y = torch.batch_norm(y, scale, offset, found, spread, False, 0.0, epsilon, False)
            y = y.to(x.dtype) if widens else y
            return (y if to_last is None else y.permute(to_last), *statistics, *third)

        return run

    return factory


def _batch_norm_grad_kernel(node: Node, env: Environment) -> Kernel:
    attributes = node.attributes
    to_first, to_last = _views(node)
    epsilon, training = attributes["epsilon"], attributes["is_training"]
    widens = node.dtype(0) is not dtypes.float32
    spare = torch.zeros(0, device=env.device)
    mask = [True, True, True]

    def run(
        dy: torch.Tensor,
        x: torch.Tensor,
        scale: torch.Tensor,
        mean: torch.Tensor,
        variance: torch.Tensor,
        *_: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        dtype = x.dtype
        if not x.numel():
            return x.clone(), torch.zeros_like(scale), torch.zeros_like(scale), spare, spare
        if widens:
            dy, x = dy.float(), x.float()
        if to_first is not None:
            dy, x = dy.permute(to_first), x.permute(to_first)
        if training:
            inverse = torch.rsqrt(variance + epsilon)
            dx, d_scale, d_offset = _backward(dy, x, scale, None, None, mean, inverse, True, epsilon, mask)
        else:
            dx, d_scale, d_offset = _backward(dy, x, scale, mean, variance, None, None, False, epsilon, mask)
        dx = dx.to(dtype) if widens else dx
        return dx if to_last is None else dx.permute(to_last), d_scale, d_offset, spare, spare

    return run


def _batch_norm_family(version: str) -> tuple[OpDeclaration, OpDeclaration]:
    unit = "T" if version == "" else "U"
    layouts = _LAYOUTS.get(version, _LAYOUTS[""])
    third = [f", reserve_space_3: {unit}"] if version == "V3" else [""]
    forward = op(
        "FusedBatchNorm" + version,
        f"x: T, scale: {unit}, offset: {unit}, mean: {unit}, variance: {unit} -> y: T, batch_mean: {unit}, "
        f"batch_variance: {unit}, reserve_space_1: {unit}, reserve_space_2: {unit}{third[0]}",
        _SETTINGS + _FACTOR + layouts + _X_TYPES[version],
        cost=8,
        images=Images(),
        starts_team=True,
    )
    reserves = (3, 4) if version != "V3" else (4, 5)
    grad = op(
        "FusedBatchNormGrad" + version,
        f"y_backprop: T, x: T, scale: {'T' if version == '' else 'float'}, reserve_space_1: {unit}, "
        f"reserve_space_2: {unit}{third[0]} -> x_backprop: T, scale_backprop: {unit}, "
        f"offset_backprop: {unit}, "
        f"reserve_space_{reserves[0]}: {unit}, reserve_space_{reserves[1]}: {unit}",
        _SETTINGS + layouts + _X_TYPES[version].replace("U: type in [bfloat16, float]", "U: type in [float]"),
        cost=12,
        images=Images((0, 1)),
        starts_team=True,
    )
    forward.infer(_infer_batch_norm(6 if version == "V3" else 5))
    forward.kernel(CPU, GPU)(_batch_norm_kernel(version == "V3"))
    forward.gradient(_batch_norm_gradient(grad))
    grad.infer(_infer_batch_norm_grad)
    grad.kernel(CPU, GPU)(_batch_norm_grad_kernel)
    grad.gradient(second_gradient)
    return forward, grad


def _infer_batch_norm_grad(node: Node) -> Shapes:
    layout = node.attributes["data_format"]
    axis = len(layout) - 1 if is_channels_last(layout) else 1
    x, dims = (require_rank(node.dims(i), len(layout)) for i in (1, 0))
    channels = merge(_channel_dims(node, 0, 2, 3, 4)[1], x[axis : axis + 1]) or (None,)
    dims = (*dims[:axis], *channels, *dims[axis + 1 :])
    # TensorFlow 1.15 says that inference has the channels here, later ones that it has nothing, and either
    # refuses a saved graph that says the other.
    spare = (0,) if node.attributes["is_training"] else (None,)
    return [dims, channels, channels, spare, spare]


def _may_be_empty(x: Tensor) -> bool:
    return x.dims is None or x.dims in ((0,), (None,))


def _batch_norm_gradient(grad: OpDeclaration) -> GradientFunction:
    def gradient(op: Operation, dy: Tensor, *_: Tensor) -> Gradients:
        x, scale, _offset, mean, variance = op.inputs
        attributes = {key: op.attributes[key] for key in ("epsilon", "data_format", "is_training")}
        layout = attributes["data_format"]
        reserves = list(op.outputs[3:])
        swaps = not attributes["is_training"] and not is_channels_last(layout)
        if not attributes["is_training"]:
            reserves[:2] = mean, variance
        if swaps:  # TensorFlow's kernels differentiate inference with channels last only
            rank = len(layout)
            x = F.Transpose(x, list(channels_last(rank)), name="transpose")
            dy = F.Transpose(dy, list(channels_last(rank)), name="transpose")
            attributes["data_format"] = "NHWC" if rank == 4 else "NDHWC"
        found = grad(dy, x, scale, *reserves, **attributes)
        if attributes["is_training"] and _may_be_empty(mean):  # as they are in TensorFlow 1.15's programs
            return found
        dx = found[0]
        if swaps:
            dx = F.Transpose(dx, list(channels_first(len(layout))), name="transpose")
        return dx, found[1], found[2], None, None

    return gradient


fused_batch_norm_op, fused_batch_norm_grad = _batch_norm_family("")
fused_batch_norm_v2, fused_batch_norm_grad_v2 = _batch_norm_family("V2")
fused_batch_norm_v3, fused_batch_norm_grad_v3 = _batch_norm_family("V3")

# ---- public functions


def fused_batch_norm(
    x: Any, scale: Any, offset: Any, mean: Any = None, variance: Any = None, epsilon: float = 0.001,
    data_format: str = "NHWC", is_training: bool = True, name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(y, batch mean, batch variance) of a batch of images, normalised by channel, scaled and offset.

    In training the moments are the batch's (their variance corrected), else those given. ValueError without
    them.
    """
    x = convert_to_tensor(x, name="input")
    scale = convert_to_tensor(scale, name="scale")
    offset = convert_to_tensor(offset, name="offset")
    if not is_training and (mean is None or variance is None):
        raise ValueError("When `is_training` is False, arguments `mean` and `variance` must be provided.")
    mean, variance = (
        m if isinstance(m, Tensor) else convert_to_tensor([] if m is None else m, dtypes.float32)
        for m in (mean, variance)
    )
    found = fused_batch_norm_v3(
        x, scale, offset, mean, variance, epsilon=max(epsilon, 1.001e-5), data_format=data_format,
        is_training=is_training, exponential_avg_factor=exponential_avg_factor, name=name,
    )  # fmt: skip
    return found[0], found[1], found[2]


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: float,
    name: str | None = None,
) -> Tensor:
    """scale * (x - mean) / sqrt(variance + variance_epsilon) + offset;

    all broadcast; offset and scale may be None.
    """
    with get_default_graph().name_scope(name or "batchnorm"):
        x = convert_to_tensor(x)
        inverse = F.Rsqrt(F.AddV2(variance, variance_epsilon, name="add"))
        if scale is not None:
            inverse = F.Mul(inverse, scale, name="mul")
        scaled = F.Mul(x, _as_type(inverse, x), name="mul")
        if offset is None:
            shift = F.Mul(F.Neg(mean), inverse, name="mul")
        else:
            shift = F.Sub(offset, F.Mul(mean, inverse, name="mul"), name="sub")
        return F.AddV2(scaled, _as_type(shift, x), name="add")


def _as_type(y: Tensor, x: Tensor) -> Tensor:
    return y if y.dtype.base_dtype is x.dtype.base_dtype else F.Cast(y, DstT=x.dtype.base_dtype)


def batch_norm_with_global_normalization(
    t: Any = None, m: Any = None, v: Any = None, beta: Any = None, gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: bool | None = None, name: str | None = None, input: Any = None,
    mean: Any = None, variance: Any = None,
) -> Tensor:  # fmt: skip
    """`batch_normalization` of images `t` by moments `m`, `v` with offset `beta` and, if so told,

    scale `gamma`.
    """
    t, m, v = (old if old is not None else new for old, new in ((t, input), (m, mean), (v, variance)))
    return batch_normalization(
        t, m, v, beta, gamma if scale_after_normalization else None, variance_epsilon, name
    )


def moments(
    x: Any, axes: Any, shift: Any = None, name: str | None = None, keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(mean, variance) of x over `axes`, without Bessel's correction; float16 is computed as float32.

    `axes` None stands for all. `shift` is not used.
    """
    keep = bool(keepdims if keep_dims is None else keep_dims)
    with get_default_graph().name_scope(name or "moments"):
        x = convert_to_tensor(x)
        narrow = x.dtype.base_dtype in (dtypes.float16, dtypes.bfloat16)
        y = F.Cast(x, DstT=dtypes.float32) if narrow else x
        mean = reduce_mean(y, axes, keepdims=True, name="mean")
        squares = F.SquaredDifference(y, F.StopGradient(mean))
        variance = reduce_mean(squares, axes, keepdims=True, name="variance")
        if not keep:
            dims = _axis_list(axes)
            mean, variance = F.Squeeze(mean, squeeze_dims=dims), F.Squeeze(variance, squeeze_dims=dims)
        return (_as_type(mean, x), _as_type(variance, x)) if narrow else (mean, variance)


def _axis_list(axes: Any) -> list[int]:
    if axes is None:
        return []  # to squeeze all, as all are 1
    if isinstance(axes, int):
        return [axes]
    if isinstance(axes, Tensor):
        value = static_value(axes)
        if value is None:
            raise ValueError("moments needs axes that are known when the graph is built")
        return [int(axis) for axis in value.reshape(-1)]
    return [int(axis) for axis in axes]


def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, name: str | None = None, keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(mean, variance) of x over `axes` (None: all), elements counted with `frequency_weights`, which
    broadcast to x.
    """
    keep = bool(keepdims if keep_dims is None else keep_dims)
    with get_default_graph().name_scope(name or "weighted_moments"):
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(frequency_weights, name="frequency_weights")
        narrow = x.dtype.base_dtype in (dtypes.float16, dtypes.bfloat16)
        y = F.Cast(x, DstT=dtypes.float32) if narrow else x
        weights = _as_type(weights, y)
        total = reduce_sum(F.Mul(weights, y, name="mul"), axes, keepdims=True, name="weighted_input_sum")
        spread = F.AddV2(weights, F.ZerosLike(y, name="zeros_like"), name="add")
        number = reduce_sum(spread, axes, keepdims=True, name="sum_of_weights")
        mean = F.DivNoNan(total, number, name="div_no_nan")
        distances = F.Mul(weights, F.SquaredDifference(y, mean), name="mul")
        spread = reduce_sum(distances, axes, keepdims=True, name="weighted_distsq")
        variance = F.DivNoNan(spread, number, name="div_no_nan")
        if not keep:
            dims = _axis_list(axes)
            mean, variance = F.Squeeze(mean, squeeze_dims=dims), F.Squeeze(variance, squeeze_dims=dims)
        return (_as_type(mean, x), _as_type(variance, x)) if narrow else (mean, variance)


def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keep_dims: bool | None = None, name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Any]:  # fmt: skip
    """(count, sum of x - shift, sum of (x - shift) ** 2, shift) over `axes`;

    sums add up over parts of the data. TypeError for no axes.
    """
    if axes is None:
        raise TypeError("sufficient_statistics needs axes")
    keep = bool(keepdims if keep_dims is None else keep_dims)
    with get_default_graph().name_scope(name or "sufficient_statistics"):
        x = convert_to_tensor(x, name="x")
        axes = list(dict.fromkeys(_axis_list(axes)))
        dims, dtype = x.dims, x.dtype.base_dtype
        if dims is not None and all(dims[axis] is not None for axis in axes):
            count = 1
            for axis in axes:
                count *= dims[axis]
            counts = convert_to_tensor(np.asarray(count).astype(dtype.as_numpy_dtype), name="Const")
        else:
            rank = F.Rank(x) if dims is None else np.int32(len(dims))
            positive = F.FloorMod(np.array(axes, np.int32), rank)
            counts = F.Prod(F.GatherV2(F.Cast(F.Shape(x), DstT=dtype), positive, 0), [0], name="count")
        if shift is None:
            difference, squares = x, F.Square(x)
        else:
            shift = convert_to_tensor(shift, dtype, name="shift")
            difference, squares = F.Sub(x, shift), F.SquaredDifference(x, shift)
        mean_ss = F.Sum(difference, axes, keep_dims=keep, name="mean_ss")
        return counts, mean_ss, F.Sum(squares, axes, keep_dims=keep, name="var_ss"), shift


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """(mean, variance) from what `sufficient_statistics` gives."""
    with get_default_graph().name_scope(name or "normalize"):
        divisor = F.Reciprocal(counts, name="divisor")
        if shift is None:
            mean = shifted = F.Mul(mean_ss, divisor, name="mean")
        else:
            shifted = F.Mul(mean_ss, divisor, name="shifted_mean")
            mean = F.AddV2(shifted, shift, name="mean")
        return mean, F.Sub(F.Mul(variance_ss, divisor), F.Square(shifted), name="variance")
