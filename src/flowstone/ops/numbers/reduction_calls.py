"""What calls reduce over axes: the constructor of reductions, and the ATen calls of each.

Axes are a constant in nearly every graph; then a kernel is one ATen call with the axes as plain integers.
No axes means nothing to reduce: the value itself. An axis may be negative and may not occur twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.machine import machine
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims
from flowstone.ops.numbers.unsigned_integers import SIGNED, modular, ordered

# Of the type, the axes and keep_dims; None: all axes, without keep_dims.
Make: TypeAlias = "Callable[[DType, list[int] | None, bool], Call]"
Empty: TypeAlias = "Callable[[DType], Call]"

_ATTRIBUTES = "keep_dims: bool = false ; Tidx: type in [int32, int64] = int32"


# ---- shapes and axes


def positive_axes(axes: Any, rank: int) -> list[int]:
    """The axes counted from the front. ValueError for one that does not exist."""
    result = []
    for axis in np.asarray(axes).reshape(-1).tolist():
        if not -rank <= axis < rank:
            raise ValueError(f"Invalid reduction dimension {axis} for input with {rank} dimensions.")
        result.append(axis % rank)
    return result


def _reduced_shape(node: Node) -> Dims:
    dims, axes, keep = node.dims(0), node.constant(1), node.attributes["keep_dims"]
    index_dims = node.dims(1)
    if index_dims is not None and len(index_dims) > 1:
        raise ValueError(f"Reduction indices must be a scalar or vector, but have rank {len(index_dims)}")
    if dims is None:
        return None
    if axes is None:
        return (None,) * len(dims) if keep else None
    reduced = set(positive_axes(axes, len(dims)))
    if keep:
        return tuple([1 if i in reduced else size for i, size in enumerate(dims)])
    return tuple([size for i, size in enumerate(dims) if i not in reduced])


def _refuse_repeated(axes: list[int]) -> None:
    if len(set(axes)) < len(axes):
        twice = next(axis for axis in axes if axes.count(axis) > 1)
        message = f"Invalid reduction arguments: Axes contains duplicate dimension: {twice}"
        raise errors.InvalidArgumentError(None, None, message)


def axes_of(axes: np.ndarray | torch.Tensor, rank: int) -> list[int]:
    """The axes that were given, counted from the front. InvalidArgumentError where one is repeated."""
    found = positive_axes(axes.tolist() if isinstance(axes, torch.Tensor) else axes, rank)
    _refuse_repeated(found)
    return found


def reduction(
    name: str,
    types: tuple[DType, ...] | None,
    make: Make,
    empty: Empty,
    check_size: bool = False,
) -> OpDeclaration:
    """Declares a reduction of the element types `types` (None: of bool).

    `make(dtype, axes, keep)` gives the `Call` over a list of axes, or over all of them (None, only without
    keep); `empty(dtype)` the `Call` for no axes; `check_size`: ATen refuses to reduce nothing, so
    `_extreme_of_none` answers.
    """
    kind, allowed = ("bool", {}) if types is None else ("T", {"T": types})
    signature = f"input: {kind}, reduction_indices: Tidx -> output: {kind}"
    declaration = op(
        name,
        signature,
        _ATTRIBUTES,
        host=["reduction_indices"],
        by_element=True,
        reduces=True,
        later_names={"axis": "reduction_indices"},
        **allowed,
    )
    declaration.infer(_reduced_shape)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        dtype, keep = node.dtype(0), node.attributes["keep_dims"]
        axes, dims = node.constant(1), node.dims(0)
        if axes is None or dims is None or (check_size and (None in dims or 0 in dims)):
            return _kernel_for_unknown(name, dtype, keep, make, empty, check_size)
        return call_over(dtype, axes_of(axes, len(dims)), len(dims), keep, make, empty)

    return declaration


def call_over(dtype: DType, axes: list[int], rank: int, keep: bool, make: Make, empty: Empty) -> Call:
    """What `make` gives over these axes of a value of this rank, or `empty` where there are none."""
    if not axes:
        return empty(dtype)
    return make(dtype, None if len(axes) == rank and not keep else axes, keep)


def _kernel_for_unknown(
    name: str, dtype: DType, keep: bool, make: Make, empty: Empty, check_size: bool
) -> Callable[..., torch.Tensor]:
    calls: dict[tuple[tuple[int, ...], int], Call] = {}

    def reduce(x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        axes = tuple(axes_of(indices, x.ndim))
        if check_size and x.numel() == 0 and any(x.shape[axis] == 0 for axis in axes):
            return _extreme_of_none(name, x, axes, keep)
        key = (axes, x.ndim)
        call = calls.get(key)
        if call is None:
            call = calls[key] = call_over(dtype, list(axes), x.ndim, keep, make, empty)
        result: torch.Tensor = call(x)
        return result

    return reduce


def _extreme_of_none(name: str, x: torch.Tensor, axes: tuple[int, ...], keep: bool) -> torch.Tensor:
    """The Max or Min of no elements: the other end of the type."""
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes]
    kind = dtypes.from_torch(x.dtype)
    if kind.is_floating:
        value = float("-inf") if name == "Max" else float("inf")
    else:
        value = kind.min if name == "Max" else kind.max
    return torch.full(shape, value, dtype=x.dtype, device=x.device)


def copy_call(dtype: DType) -> Call:
    """The value itself, copied."""
    return Call(torch.clone, X0)


# ---- sums and products


def _adapted(dtype: DType, function: Callable[..., torch.Tensor]) -> Call:
    """A call of `function(x)`, which needs no wider type, on any type."""
    return Call(modular(dtype, function), X0)


def sum_call(dtype: DType, axes: list[int] | None, keep: bool) -> Call:
    """The sum; of integers in their own type, with wrap-around."""
    kind = SIGNED.get(dtype) or dtype.torch
    if dtype in SIGNED:
        return _adapted(dtype, lambda x: torch.sum(x, axes, keep, dtype=kind))
    if dtype.is_integer:
        return Call(torch.sum, X0, axes, keep, dtype=kind) if axes else Call(torch.sum, X0, dtype=kind)
    if axes is None:
        return Call(torch.sum, X0)
    return Call(torch.sum, X0, axes, keep)


def mean_call(dtype: DType, axes: list[int] | None, keep: bool) -> Call:
    """The mean, of integers rounded towards zero."""
    if not dtype.is_integer and not dtype.is_complex:
        return Call(torch.mean, X0) if axes is None else Call(torch.mean, X0, axes, keep)
    total = sum_call(dtype, axes, keep)

    def mean(x: torch.Tensor) -> torch.Tensor:
        count = x.numel() if axes is None else math.prod([x.shape[axis] for axis in axes])
        sums: torch.Tensor = total(x)
        if dtype.is_complex:
            return sums.div_(max(count, 1))
        divisor = torch.tensor(count).to(sums.dtype).item()  # counted, as summed up, in the type itself
        wide = sums.to(torch.int64) if dtype is not dtypes.uint64 else sums.to(torch.float64)
        return torch.div(wide, divisor or 1, rounding_mode="trunc").to(sums.dtype)

    return Call(mean, X0)


def product_call(dtype: DType, axes: list[int] | None, keep: bool) -> Call:
    """The product; of integers in their own type, with wrap-around."""
    kind = SIGNED.get(dtype) or dtype.torch
    if axes is None and dtype not in SIGNED:
        return Call(torch.prod, X0, dtype=kind) if dtype.is_integer else Call(torch.prod, X0)
    if axes is not None and len(axes) == 1 and dtype not in SIGNED:
        axis = axes[0]
        if dtype in (dtypes.float32, dtypes.float64):
            return Call(lambda x: _product_along(x, axis, keep), X0)
        return Call(torch.prod, X0, axis, keep, dtype=kind)

    def product(x: torch.Tensor) -> torch.Tensor:
        if axes is None:
            return torch.prod(x, dtype=kind)
        for axis in sorted(axes, reverse=True):
            x = torch.prod(x, axis, keep, dtype=kind)
        return x

    return _adapted(dtype, product)


_MULTIPLIED = 64  # numbers that are multiplied one after the other in parts of long rows
_LONG, _LARGE = 512, 1 << 16  # elements of rows, and of all, from which more calls do not show


def _product_along(x: torch.Tensor, axis: int, keep: bool) -> torch.Tensor:
    """The products along an axis; of long rows by parts, for products of many numbers between 0 and 1 are
    denormal before they are 0, with which processors are slow: so only those of the parts are."""
    count = x.shape[axis]
    is_last = axis == x.dim() - 1
    if not is_last or count < _LONG or x.numel() < _LARGE or x.device.type != "cpu" or not x.is_contiguous():
        return torch.prod(x, axis, keep)
    whole = count // _MULTIPLIED * _MULTIPLIED
    product: torch.Tensor = x[..., :whole].unflatten(-1, (-1, _MULTIPLIED)).prod(-1).prod(-1, keep)
    return product if whole == count else product.mul_(torch.prod(x[..., whole:], -1, keep))


_LARGE_NORM = 1 << 22  # bytes from which an array of squares costs more than a second pass
_ATENS_INTEGERS = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.int32, dtypes.int64)
_SUMMED = 1024  # squares that ATen's norm adds up one after the other, without a loss that shows


def _norms_of_rows(rows: torch.Tensor) -> torch.Tensor:
    """The norm of each row of a matrix, of the norms of parts of it, which need no array of squares."""
    count = rows.shape[1]
    if count <= _SUMMED:
        norms: torch.Tensor = torch.linalg.vector_norm(rows, 2, 1)
        return norms
    whole = count // _SUMMED * _SUMMED
    parts = [torch.linalg.vector_norm(rows[:, :whole].unflatten(1, (-1, _SUMMED)), 2, 2)]
    if whole < count:
        parts.append(torch.linalg.vector_norm(rows[:, whole:], 2, 1, True))
    return _norms_of_rows(torch.cat(parts, 1))


def _large_norm(x: torch.Tensor, axes: list[int] | None, keep: bool) -> torch.Tensor | None:
    """The norm of a large array over its last axes; None for any other."""
    first = 0 if axes is None else x.dim() - len(axes)
    is_large = x.nbytes >= _LARGE_NORM and x.device.type == "cpu" and x.is_contiguous()
    if not is_large or x.itemsize < 4 or (axes is not None and min(axes, default=-1) < first):
        return None
    dims = [*x.shape[:first], *[1] * (x.dim() - first if keep else 0)]
    return _norms_of_rows(x.reshape(math.prod(x.shape[:first]), -1)).view(dims)


def norm_call(dtype: DType, axes: list[int] | None, keep: bool) -> Call:
    """The square root of the sum of squares."""

    def norm(x: torch.Tensor) -> torch.Tensor:
        if dtype.is_integer:
            numbers = x if dtype in _ATENS_INTEGERS else x.to(torch.int64)  # both wrap around to the same
            squares = torch.sum(torch.mul(numbers, numbers), axes, keep, dtype=numbers.dtype).to(dtype.torch)
            return torch.sqrt(squares.to(torch.float64)).to(dtype.torch)
        if dtype.is_complex:
            squares = torch.sum(torch.square(torch.abs(x)), axes, keep)
            return torch.sqrt(squares).to(dtype.torch)
        found = _large_norm(x, axes, keep)
        return torch.sqrt(torch.sum(torch.mul(x, x), axes, keep)) if found is None else found

    return Call(norm, X0)


def magnitude_call(dtype: DType) -> Call:
    """The norm over no axes: the absolute value."""
    return (
        Call(torch.Tensor.to, Call(torch.abs, X0), dtype.torch)
        if dtype not in SIGNED
        else Call(torch.clone, X0)
    )


# ---- extremes and truth


def extreme_calls(function: Callable[..., torch.Tensor]) -> Make:
    """Of ATen's `amax` or `amin`."""

    def make(dtype: DType, axes: list[int] | None, keep: bool) -> Call:
        if dtype in SIGNED:
            return Call(
                ordered(dtype, lambda x: function(x) if axes is None else function(x, axes, keep)), X0
            )
        return Call(function, X0) if axes is None else Call(function, X0, axes, keep)

    return make


_BLOCK = 128  # bytes: ATen's code for vectors takes whole blocks of what follows an axis, no parts of one
_SHORTER = 8  # so many times as long an axis is, at least, as the steps that are folded
_CALLS = 6  # of a folded axis; two threads gain less


def folded_steps(shape: tuple[int, ...], axis: int, size: int) -> int:
    """How many steps of an axis are best seen as one for an extreme along it, of elements of so many bytes:
    as many as fill blocks, where much would be in none; else 1."""
    inner, block = math.prod(shape[axis + 1 :]), _BLOCK // size
    fold = block // math.gcd(inner, block)
    apart = math.prod(shape[: axis + 1]) * (inner % block)
    is_little = apart < _CALLS * machine.current().profile.call_elements
    return 1 if is_little or inner == 1 or shape[axis] < _SHORTER * fold else fold


def folded_extremes(
    function: Callable[..., torch.Tensor], x: torch.Tensor, axis: int, keep: bool, fold: int
) -> torch.Tensor:
    """ATen's `amax` or `amin` along an axis, of `fold` steps as one and then of these. Of
    [64, 38, 48] that takes 30 µs, and 66 at once."""
    if not x.is_contiguous():
        return function(x, axis, keep)
    count = x.shape[axis]
    rows, whole = x.view(-1, count, math.prod(x.shape[axis + 1 :])), count // fold * fold
    found = function(rows[:, :whole].unflatten(1, (-1, fold)).flatten(2), 1)
    found = found.view(-1, fold, rows.shape[2])
    if whole < count:
        found = torch.cat([found, rows[:, whole:]], 1)
    return function(found, 1).view([*x.shape[:axis], *[1] * keep, *x.shape[axis + 1 :]])


def truth_calls(function: Callable[..., torch.Tensor]) -> Make:
    """Of ATen's `all` or `any`."""
    least = function is torch.all

    def make(dtype: DType, axes: list[int] | None, keep: bool) -> Call:
        plain = Call(function, X0) if axes is None else Call(function, X0, axes, keep)

        def reduce(x: torch.Tensor) -> torch.Tensor:
            if x.numel() < _FEW or x.device.type != "cpu":
                return plain(x)  # type: ignore[no-any-return]
            return _extreme_truth(x, axes, keep, least)

        return Call(reduce, X0)

    return make


_FEW = 2**12  # elements: ATen reduces fewer as fast
_ONES = {1: 0x01, 2: 0x0101, 4: 0x01010101}  # words of so many bytes, all of them true


def _extreme_truth(x: torch.Tensor, axes: list[int] | None, keep: bool, least: bool) -> torch.Tensor:
    """`all` (the least) or `any` as extremes of numbers, which ATen has vectorised; along the last axes of
    words, where they are whole: all are true if the least word has only ones, any if the largest is not 0."""
    axes = list(range(x.dim())) if axes is None else axes
    kept = [axis for axis in range(x.dim()) if axis not in axes]
    words = x.view(torch.uint8)
    if x.is_contiguous() and kept == list(range(len(kept))):
        shape = [x.shape[axis] for axis in kept]
        words = words.view(*shape, -1)
        kind = {0: torch.int32, 2: torch.int16}.get(words.shape[-1] % 4)
        if kind is not None and words.storage_offset() % 4 == 0:
            words = words.view(kind)
        found = words.amin(-1) if least else words.amax(-1)
        truth = found == _ONES[words.dtype.itemsize] if least else found != 0
        return (
            truth.view([1 if axis in axes else size for axis, size in enumerate(x.shape)]) if keep else truth
        )
    return (words.amin(axes, keep) if least else words.amax(axes, keep)).view(torch.bool)
