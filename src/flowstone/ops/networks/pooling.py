"""Pooling of images and volumes over sliding windows, and the operations of its gradients.

Max-pooling ops that need to know where a maximum was find it again from their input, the first of equals. A
window never sees padding: it counts neither as a maximum nor in an average. Maxima pass over
NaN (`number_maxima`). As in `convolution`, kernels see channels-last tensors as channels-first views. The
public functions are in `pooling_layers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.images import Images
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
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
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.arrays.arrays import in_signed, invalid
from flowstone.ops.networks.number_maxima import are_numbers, largest, largest_with_places, without_nan
from flowstone.ops.networks.pooling_windows import (
    Window,
    attribute_window,
    infer_pooled,
    input_window,
    pooled_by_code,
    pooling_kernel,
    spatial_lengths,
)
from flowstone.ops.networks.sliding_maxima import sliding_maxima
from flowstone.ops.networks.windows import (
    pad_spatial,
    require_rank,
)

REAL = (*dtypes.REAL, dtypes.bfloat16)
_POOLED = tuple(dtype for dtype in REAL if dtype not in (dtypes.uint32, dtypes.uint64))
FLOATS = (*dtypes.FLOATS, dtypes.bfloat16)
MAX_BACKWARD = {
    2: torch.ops.aten.max_pool2d_with_indices_backward.default,
    3: torch.ops.aten.max_pool3d_with_indices_backward.default,
}
PADDINGS = "padding: string in ['SAME', 'VALID']"
_EXPLICIT = "padding: string in ['SAME', 'VALID', 'EXPLICIT'] ; explicit_paddings: list(int) = []"
WINDOW = "ksize: list(int) >= 4 ; strides: list(int) >= 4 ; "
WINDOW_3D = "ksize: list(int) >= 5 ; strides: list(int) >= 5 ; "
LAYOUT = " ; data_format: string in ['NHWC', 'NCHW'] = 'NHWC'"
_LAYOUT_VECTOR = " ; data_format: string in ['NHWC', 'NCHW', 'NCHW_VECT_C'] = 'NHWC'"
LAYOUT_3D = " ; data_format: string in ['NDHWC', 'NCDHW'] = 'NDHWC'"


# ---- maxima


def _lowest(dtype: torch.dtype) -> float:
    return -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def _wide(dtype: DType, device_type: str) -> torch.dtype | None:
    """The type that ATen pools maxima of this one in, exactly; None for its own."""
    if dtype.is_floating:
        return None
    return torch.int64 if device_type == "cpu" else torch.float64


def _max_kernel(window: Window, node: Node) -> Callable[..., Any]:
    if window.channel_size != 1:
        size = window.channel_size
        if window.last:
            return lambda x: x.unflatten(-1, (-1, size)).amax(-1)
        return lambda x: x.unflatten(1, (-1, size)).amax(2)
    sizes, strides, keeps_nan = window.sizes, window.strides, node.attributes.get("keeps_nan", False)
    converts = not node.dtype(0).is_floating
    first, restored, arrange, ones = window.first, window.restored, window.arrange, (1,) * window.n
    static = node.static_shape(0)
    fixed = (
        arrange(spatial_lengths(window, static))
        if static is not None and len(static) == window.rank
        else None
    )

    def run(x: torch.Tensor) -> torch.Tensor:
        dtype = x.dtype
        y = first(x)
        counts, padding, ceil, explicit = fixed or arrange(y.shape[2:])
        if 0 in counts or 0 in y.shape:
            return restored(y.new_empty((*y.shape[:2], *counts)))
        if converts:
            y = y.to(_wide(node.dtype(0), y.device.type))
        if explicit is not None:
            y = pad_spatial(y, explicit[0], explicit[1], _lowest(y.dtype))
        y = restored(largest(y, (sizes, strides, padding, ones, ceil), keeps_nan))
        return y.to(dtype) if converts else y

    return run


def _host_max_kernel(window: Window, node: Node) -> Callable[..., Any]:
    sliding = sliding_maxima(window, node)
    by_aten, keeps_nan = _max_kernel(window, node), node.attributes.get("keeps_nan", False)
    from_infinity, is_exact = keeps_nan or window.n == 3, sliding is None and not keeps_nan

    def run(x: torch.Tensor) -> torch.Tensor:
        if sliding is not None:
            found: torch.Tensor | None = sliding(x)
        else:
            found = pooled_by_code(window, "largest", x, from_infinity)
        return found if found is not None and (is_exact or are_numbers(found)) else by_aten(x)

    return run


def _maxima(window: Window, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(maxima, their positions in the unpadded plane, before-padding aware) of a channels-first tensor."""
    _, padding, ceil, explicit = window.arrange(x.shape[2:])
    if not x.dtype.is_floating_point:
        x = x.to(_wide(dtypes.int64, x.device.type))
    lengths = x.shape[2:]
    border = None
    if explicit is not None:
        x = pad_spatial(x, explicit[0], explicit[1], _lowest(x.dtype))
        border = pad_spatial(x.new_zeros((1, 1, *lengths)), explicit[0], explicit[1], _lowest(x.dtype))
    arguments = window.sizes, window.strides, padding, (1,) * window.n, ceil
    values, indices = largest_with_places(x, arguments, border)
    if explicit is not None:
        indices = _without_padding(indices, x.shape[2:], explicit[0], lengths)
    return values, indices


def _without_padding(
    indices: torch.Tensor, padded: tuple[int, ...], before: tuple[int, ...], lengths: tuple[int, ...]
) -> torch.Tensor:
    """Positions in a padded plane as positions in the plane itself."""
    result: Any = 0
    scale, rest = 1, indices
    for axis in reversed(range(len(lengths))):
        inside = (rest % padded[axis]).sub_(before[axis]).clamp_(0, lengths[axis] - 1)
        result = result + inside * scale
        rest, scale = rest // padded[axis], scale * lengths[axis]
    return result  # type: ignore[no-any-return]


def _scatter(dy: torch.Tensor, indices: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Adds the elements of channels-first `dy` at positions of planes of the channels-first `shape`."""
    flat = dy.new_zeros((*shape[:2], math.prod(shape[2:])))
    return flat.scatter_add_(2, indices.flatten(2), dy.flatten(2)).view(shape)


def _max_grad_kernel(window: Window, node: Node) -> Callable[..., Any]:
    """dx from (x, y, dy)."""
    first, restored = window.first, window.restored

    def run(x: torch.Tensor, y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        _check_like(dy, y, "grad")
        x, dy = first(x), first(dy)
        if 0 in dy.shape:
            return restored(x.new_zeros(x.shape))
        values, indices = _maxima(window, x)
        if window.n == 3 and x.dtype.is_floating_point:  # what a volume has nothing above infinity in
            dy = dy.masked_fill(values == -math.inf, 0)
        return restored(_scatter(dy, indices, x.shape))

    return run


def _max_grad_grad_kernel(window: Window, node: Node) -> Callable[..., Any]:
    """From (x, y, ddx): the elements of ddx where x has its maxima."""
    first, restored = window.first, window.restored

    def run(x: torch.Tensor, y: torch.Tensor, ddx: torch.Tensor) -> torch.Tensor:
        _check_like(ddx, x, "grad")
        x, ddx = first(x), first(ddx)
        is_floating = x.dtype.is_floating_point
        values, indices = _maxima(window, without_nan(x) if is_floating else x)
        _check_like(y, restored(indices), "orig_output")
        found = torch.gather(ddx.flatten(2), 2, indices.flatten(2)).view(indices.shape)
        if is_floating and window.n == 2:  # an image's lowest number may be none of its numbers
            found = found.masked_fill(values == torch.finfo(x.dtype).min, 0)
        return restored(found)

    return run


def _check_like(x: torch.Tensor, other: torch.Tensor, what: str) -> None:
    if x.shape != other.shape:
        raise invalid(f"Expected {what} shape to be {list(other.shape)}, but got {list(x.shape)}")


# ---- declarations of max pooling


def _first_shape(node: Node) -> Dims:
    return node.dims(0)


def _max_family(
    suffix: str,
    rank: int,
    window: str,
    layout: str,
    types: tuple[DType, ...],
    first_input: bool | None = None,
) -> tuple[OpDeclaration, OpDeclaration, OpDeclaration]:
    """MaxPool, MaxPoolGrad and MaxPoolGradGrad with windows as attributes, or as the last two inputs."""
    name = "MaxPool3D" if rank == 5 else "MaxPool"
    sizes = ", ksize: int32, strides: int32" if first_input else ""
    host = ["ksize", "strides"] if first_input else []
    padding = _EXPLICIT if rank == 4 and not first_input else PADDINGS
    type_default = " ; T: type in [{}] = float"
    names, all_names = (", ".join(dtype.name for dtype in some) for some in (types, REAL))
    if rank == 5:
        typed = type_default.format(names)
        typing = (f" ; T: type in [{names}]", f"{typed} ; TInput{typed[4:]}", f" ; T: type in [{all_names}]")
        grad_signature = "orig_input: TInput, orig_output: TInput, grad: T"
    else:
        with_quantized = f"{names}, qint8"  # larger codes stand for larger numbers
        first, second = (type_default.format(x) for x in (with_quantized, all_names))
        typing = first, second, f" ; T: type in [{all_names}]"
        grad_signature = "orig_input: T, orig_output: T, grad: T"
    find = [input_window(i) if first_input else attribute_window for i in (1, 3, 3)]
    forward = op(
        name + suffix, f"input: T{sizes} -> output: T",
        window + (padding if not first_input else PADDINGS) + (_LAYOUT_VECTOR if rank == 4 else layout)
        + typing[0],
        host=host, cost=work.pooling, images=None if first_input else Images(), starts_team=True,
    )  # fmt: skip
    grad = op(
        f"{name}Grad{suffix}", f"{grad_signature}{sizes} -> output: T",
        window + padding + layout + typing[1],
        host=host, cost=4, images=None if first_input else Images((0, 1, 2)), starts_team=True,
    )  # fmt: skip
    grad_grad = op(
        f"{name}GradGrad{suffix}", f"orig_input: T, orig_output: T, grad: T{sizes} -> output: T",
        window + PADDINGS + layout + typing[2], host=host,
    )  # fmt: skip
    forward.infer(infer_pooled(find[0], rank))
    grad.infer(lambda node: require_rank(node.dims(0), rank))
    grad_grad.infer(_infer_grad_grad(find[1], rank))
    forward.kernel(CPU)(pooling_kernel(find[0], _host_max_kernel))
    forward.kernel(GPU)(pooling_kernel(find[0], _max_kernel))
    grad.kernel(CPU, GPU)(pooling_kernel(find[1], _max_grad_kernel))
    grad_grad.kernel(CPU, GPU)(pooling_kernel(find[2], _max_grad_grad_kernel))
    return forward, grad, grad_grad


def _infer_grad_grad(find: Callable[..., Any], rank: int) -> ShapeFunction:
    pooled = infer_pooled(find, rank)

    def infer(node: Node) -> Shapes:
        dims = pooled(node)
        merge(dims, node.dims(1))
        merge(node.dims(0), node.dims(2))
        return dims

    return infer


def shared_attributes(op: Operation) -> dict[str, Any]:
    keys = ("ksize", "strides", "padding", "explicit_paddings", "data_format")
    return {key: op.attributes[key] for key in keys if key in op.attributes}


def _without_explicit(attributes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if key != "explicit_paddings"}


def _join_max_family(forward: OpDeclaration, grad: OpDeclaration, grad_grad: OpDeclaration) -> None:
    @forward.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        sizes = op.inputs[1:]
        return (grad(op.inputs[0], op.outputs[0], dy, *sizes, **shared_attributes(op)), *[None] * len(sizes))

    @grad.gradient
    def _(op: Operation, ddx: Tensor) -> Gradients:
        x, y, _, *sizes = op.inputs
        again = grad_grad(x, y, ddx, *sizes, **_without_explicit(shared_attributes(op)))
        return (
            F.ZerosLike(x, name="zeros_like"),
            F.ZerosLike(y, name="zeros_like"),
            again,
            *[None] * len(sizes),
        )


max_pool_op, max_pool_grad, max_pool_grad_grad = _max_family("", 4, WINDOW, LAYOUT, _POOLED)
max_pool_v2_op, max_pool_grad_v2, max_pool_grad_grad_v2 = _max_family(
    "V2", 4, "", LAYOUT, _POOLED, first_input=True
)
max_pool3d_op, max_pool3d_grad, max_pool3d_grad_grad = _max_family(
    "", 5, WINDOW_3D, LAYOUT_3D, (dtypes.float16, dtypes.bfloat16, dtypes.float32)
)
for _family in (
    (max_pool_op, max_pool_grad, max_pool_grad_grad),
    (max_pool_v2_op, max_pool_grad_v2, max_pool_grad_grad_v2),
    (max_pool3d_op, max_pool3d_grad, max_pool3d_grad_grad),
):
    _join_max_family(*_family)
max_pool_grad_grad_v2.no_gradient()


def _grad_grad_gradient(grad: OpDeclaration) -> GradientFunction:
    def gradient(op: Operation, dy: Tensor) -> Gradients:
        x, y, _ = op.inputs
        back = grad(x, y, dy, **shared_attributes(op))
        return F.ZerosLike(x, name="zeros_like"), F.ZerosLike(y, name="zeros_like"), back

    return gradient


max_pool_grad_grad.gradient(_grad_grad_gradient(max_pool_grad))
max_pool3d_grad_grad.gradient(_grad_grad_gradient(max_pool3d_grad))


# ---- arg-max

_ARGMAX = (
    WINDOW + "Targmax: type in [int32, int64]{} ; " + PADDINGS + " ; include_batch_in_index: bool = false"
)
max_pool_with_argmax_op = op(
    "MaxPoolWithArgmax",
    "input: T -> output: T, argmax: Targmax",
    _ARGMAX.format(" = int64"),
    T=REAL,
    cost=work.pooling,
    starts_team=True,
)
max_pool_with_argmax_op.infer(lambda node: [infer_pooled(attribute_window, 4)(node)] * 2)


@max_pool_with_argmax_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    window = attribute_window(node)
    target, with_batch = node.attributes["Targmax"].torch, node.attributes["include_batch_in_index"]

    def run(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        counts = window.arrange(x.shape[1:3])[0]
        if 0 in counts:
            empty = x.new_empty((x.shape[0], *counts, x.shape[3]))
            return empty, empty.to(target)
        planes = window.first(x)
        values, indices = _maxima(window, planes)
        if x.dtype.is_floating_point:  # also NaN that a window starts with
            values = torch.gather(planes.flatten(2), 2, indices.flatten(2)).view(indices.shape)
        indices = indices.permute(window.to_last) * x.shape[3]
        indices += torch.arange(x.shape[3], device=x.device)
        if with_batch:
            size = x.shape[1] * x.shape[2] * x.shape[3]
            indices += (torch.arange(x.shape[0], device=x.device) * size).view(-1, 1, 1, 1)
        return window.restored(values).to(x.dtype), indices.to(target)

    return run


@max_pool_with_argmax_op.gradient
def _(op: Operation, dy: Tensor, _: Tensor) -> Gradients:
    attributes = shared_attributes(op) | {"include_batch_in_index": op.attributes["include_batch_in_index"]}
    return (F.MaxPoolGradWithArgmax(op.inputs[0], dy, op.outputs[1], **attributes),)


max_pool_grad_with_argmax = op(
    "MaxPoolGradWithArgmax", "input: T, grad: T, argmax: Targmax -> output: T", _ARGMAX.format(""), T=REAL
)
max_pool_grad_with_argmax.infer(lambda node: require_rank(node.dims(0), 4))
max_pool_grad_with_argmax.no_gradient()
max_pool_grad_grad_with_argmax = op(
    "MaxPoolGradGradWithArgmax", "input: T, grad: T, argmax: Targmax -> output: T", _ARGMAX.format(""), T=REAL
)
max_pool_grad_grad_with_argmax.infer(
    lambda node: merge(infer_pooled(attribute_window, 4)(node), node.dims(2))
)
max_pool_grad_grad_with_argmax.no_gradient()


@max_pool_grad_with_argmax.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    with_batch = node.attributes["include_batch_in_index"]

    def run(x: torch.Tensor, dy: torch.Tensor, argmax: torch.Tensor) -> torch.Tensor:
        _check_like(dy, argmax, "grad")
        if with_batch:
            flat = x.new_zeros(x.numel()).index_add_(0, argmax.reshape(-1).to(torch.int64), dy.reshape(-1))
        else:
            batch = x.shape[0]
            flat = x.new_zeros((batch, x[0].numel()))
            flat.scatter_add_(1, argmax.to(torch.int64).reshape(batch, -1), dy.reshape(batch, -1))
        return flat.view(x.shape)

    return in_signed(node.dtype(0), run, 0, 1)


@max_pool_grad_grad_with_argmax.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    with_batch = node.attributes["include_batch_in_index"]

    def run(x: torch.Tensor, ddx: torch.Tensor, argmax: torch.Tensor) -> torch.Tensor:
        batch = x.shape[0]
        _check_like(ddx, x, "grad")
        if with_batch:
            return ddx.reshape(-1)[argmax.to(torch.int64)]
        found = torch.gather(ddx.reshape(batch, -1), 1, argmax.to(torch.int64).reshape(batch, -1))
        return found.view(argmax.shape)

    return run
