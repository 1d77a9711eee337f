"""Max pooling that keeps where the maxima were, for its gradient: of images and of volumes.

Plans only: `pooling_fusion.py` makes these of a MaxPool and the MaxPoolGrad that would otherwise
find the maxima again. `suits` says of which; places are positions in ATen's channels-first planes. The
gradient needs the shape of what was pooled, but not its values, which the step then need not hold.

ATen's places have 64 bits, twice the size of the maxima. Many of them wait for the gradient in the fewest
bits that hold a position (`places_type`). On a host they are then made, and taken, a few images at a time, so
that what has 64 bits stays in the caches: as fast as if they were never converted. Machine code keeps, in 8
bits, where in its window each maximum was (`byte_pooling.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, Call, Input
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import num_elements
from flowstone.native.networks import pool_kernels
from flowstone.native.networks.pool_kernels import Windows
from flowstone.ops.arrays.untouched import untouched
from flowstone.ops.networks.number_maxima import are_numbers, largest_with_places
from flowstone.ops.networks.pooling import FLOATS, MAX_BACKWARD, PADDINGS, WINDOW
from flowstone.ops.networks.pooling_windows import Window, attribute_window, infer_pooled, spatial_lengths

__all__: list[str] = []

_MAX_INDICES_OUT = {
    2: torch.ops.aten.max_pool2d_with_indices.out,
    3: torch.ops.aten.max_pool3d_with_indices.out,
}
_MAX_BACKWARD_OUT = {
    2: torch.ops.aten.max_pool2d_with_indices_backward.grad_input,
    3: torch.ops.aten.max_pool3d_with_indices_backward.grad_input,
}
_ATTRIBUTES = (
    f"{WINDOW}{PADDINGS} ; data_format: string in ['NHWC', 'NCHW', 'NDHWC', 'NCDHW'] = 'NHWC' ; "
    "Tplaces: type in [uint8, uint16, int32, int64] = int64 ; keeps_nan: bool = false"
)
_BITS = ((dtypes.uint16, 1 << 16), (dtypes.int32, 1 << 31), (dtypes.int64, 1 << 63))  # for how many positions


def suits(node: Any, attributes: Any = None) -> bool:
    """Whether ATen pools what this MaxPool or MaxPool3D does as it is, in shapes that are known.

    `attributes`: those of its windows, if the node has them as inputs.
    """
    dims, given = node.static_shape(0), node.attributes if attributes is None else attributes
    if dims is None or 0 in dims or node.dtype(0) not in FLOATS or given["padding"] == "EXPLICIT":
        return False
    try:
        window = Window(given, given["ksize"], given["strides"])
    except errors.OpError:  # which the kernel raises in the step
        return False
    return window.channel_size == 1 and window.arrange(spatial_lengths(window, dims))[3] is None


def places_type(node: Any) -> DType:
    """The type in which the places of this MaxPool wait."""
    if (num_elements(node.outputs[0].dims) or 0) < machine.current().profile.pooled_places:
        return dtypes.int64
    positions = math.prod(spatial_lengths(attribute_window(node), node.static_shape(0)))
    return next(dtype for dtype, most in _BITS if positions <= most)


def windows_of(node: Any, shape: Any) -> Windows:
    """The windows of images of this shape, channels last, for machine code."""
    window = attribute_window(node)
    sizes, strides, padding, _, _ = _arguments(window, shape)
    results = node.outputs[0].dims if node.declaration.name == "_MaxPoolWithPlaces" else node.static_shape(1)
    keeps_nan = node.attributes.get("keeps_nan", False)
    return Windows(tuple(shape), tuple(results), tuple(sizes), tuple(strides), tuple(padding), keeps_nan)


def _arguments(window: Any, shape: Any) -> Any:
    _, padding, ceil, _ = window.arrange(spatial_lengths(window, shape))
    return window.sizes, window.strides, padding, (1,) * window.n, ceil


pool_op = op(
    "_MaxPoolWithPlaces", "input: T -> output: T, places: Tplaces", _ATTRIBUTES, T=FLOATS, cost=work.pooling
)
pool_op.infer(lambda node: [infer_pooled(attribute_window, len(node.attributes["ksize"]))(node)] * 2)
pool_op.not_differentiable()


def _is_native(node: Any) -> bool:
    return node.attributes["Tplaces"] is dtypes.uint8


def _pool_natively(node: Any) -> Callable[..., Any]:
    windows = windows_of(node, node.static_shape(0))
    pool_kernels.prepare(windows, is_gradient=False)
    return lambda x: pool_kernels.pool(x.contiguous(), windows)


@pool_op.kernel(CPU, GPU)
def _(node: Any, env: Any) -> Any:
    if _is_native(node):
        return _pool_natively(node)
    window = attribute_window(node)
    sizes, strides, padding, ones, ceil = _arguments(window, node.static_shape(0))
    to_first, to_last, last = window.to_first, window.to_last, window.last
    arguments, keeps_nan = (sizes, strides, padding, ones, ceil), node.attributes.get("keeps_nan", False)

    wide, kept = torch.int64, node.attributes["Tplaces"].torch

    def run(x: Any) -> Any:
        if last:
            x = x.permute(to_first)
        maxima, places = largest_with_places(x, arguments, keeps_nan=keeps_nan)
        if kept is not wide:
            places = places.to(kept)
        return (maxima.permute(to_last), places.permute(to_last)) if last else (maxima, places)

    pieces = _pieces(node, env, node.outputs[1].dims)
    return run if pieces is None else _pool_by_pieces(node, window, pieces, run)


def _pieces(node: Any, env: Any, dims: tuple[int, ...]) -> list[tuple[int, int]] | None:
    """(start, number) of the images that are taken at once, a number for every thread; None for all at once.
    `dims`: those of the places.
    """
    if env.device.type != "cpu" or node.attributes["Tplaces"] is dtypes.int64:
        return None
    threads = torch.get_num_threads()
    number = threads * max(env.machine.profile.core_cache // (8 * math.prod(dims[1:]) * threads), 1)
    batch = dims[0]
    return None if number >= batch else [(i, min(number, batch - i)) for i in range(0, batch, number)]


def _pool_by_pieces(
    node: Any, window: Any, pieces: list[tuple[int, int]], whole: Callable[..., Any]
) -> Callable[..., Any]:
    """`whole`: pools all at once, and passes over NaN."""
    arguments = _arguments(window, node.static_shape(0))
    dims, kept = node.outputs[1].dims, node.attributes["Tplaces"].torch
    pool, first = _MAX_INDICES_OUT[window.n], _first(window)

    def run(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        maxima, places = x.new_empty(dims), x.new_empty(dims, dtype=kept)
        wide = x.new_empty((pieces[0][1], *dims[1:]), dtype=torch.int64)
        for start, number in pieces:
            found, highest = wide.narrow(0, 0, number), maxima.narrow(0, start, number)
            some = x.narrow(0, start, number).contiguous()  # ATen writes as volumes lie
            pool(first(some), *arguments, out=first(highest), indices=first(found))
            places.narrow(0, start, number).copy_(found)
        return (maxima, places) if are_numbers(maxima) else whole(x)

    return run


def _first(window: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """What makes a view with channels first."""
    to_first = window.to_first
    return (lambda x: x.permute(to_first)) if window.last else lambda x: x


grad_op = op(
    "_MaxPoolGradAtPlaces",
    "places: Tplaces, grad: T -> output: T",
    f"{_ATTRIBUTES} ; shape: shape",
    T=FLOATS,
    cost=4,
)
grad_op.infer(lambda node: node.attributes["shape"])
grad_op.not_differentiable()


def _spread_natively(node: Any) -> Callable[..., Any]:
    windows = windows_of(node, node.attributes["shape"])
    pool_kernels.prepare(windows, is_gradient=True)
    return lambda places, dy: pool_kernels.spread(places.contiguous(), dy.contiguous(), windows)


@grad_op.kernel(CPU, GPU)
def _(node: Any, env: Any) -> Any:
    if _is_native(node):
        return _spread_natively(node)
    window, shape, dtype = attribute_window(node), node.attributes["shape"], node.dtype(1).torch
    pieces = _pieces(node, env, node.static_shape(0))
    if pieces is not None:
        return _gradient_by_pieces(node, window, pieces)

    def first(x: Any) -> Any:
        return Call(torch.permute, x, window.to_first) if window.last else x

    if env.device.type == "cpu":
        x = untouched(shape, dtype)
        x = x.permute(window.to_first) if window.last else x
    else:
        x = first(Call(torch.empty, shape, dtype=dtype, device=env.device))
    places = first(Input(0))
    if node.attributes["Tplaces"] is not dtypes.int64:
        places = Call(torch.Tensor.to, places, torch.int64)
    call = Call(MAX_BACKWARD[window.n], first(Input(1)), x, *_arguments(window, shape), places)
    return Call(torch.permute, call, window.to_last) if window.last else call


def _gradient_by_pieces(node: Any, window: Any, pieces: list[tuple[int, int]]) -> Callable[..., Any]:
    shape, dtype = node.attributes["shape"], node.dtype(1).torch
    arguments, gradient, first = _arguments(window, shape), _MAX_BACKWARD_OUT[window.n], _first(window)
    pooled = first(untouched((pieces[0][1], *shape[1:]), dtype))

    def run(places: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        dx = dy.new_empty(shape)
        wide = dy.new_empty((pieces[0][1], *places.shape[1:]), dtype=torch.int64)
        for start, number in pieces:
            found = wide.narrow(0, 0, number).copy_(places.narrow(0, start, number))
            taken, given = dy.narrow(0, start, number).contiguous(), dx.narrow(0, start, number)
            shaped = pooled.narrow(0, 0, number)
            gradient(first(taken), shaped, *arguments, first(found), grad_input=first(given))
        return dx

    return run
