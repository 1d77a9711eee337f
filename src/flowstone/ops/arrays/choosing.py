"""Kernels that choose between two tensors by a condition, as masks of bits where that is faster.

ATen's ``where`` branches on every element: 0.5 ns where the condition is alike for long stretches, 3.7 ns
where it is not. As a mask, all ones or all zeros, a condition chooses with bitwise operations, which are
vectorised: 0.4 ns an element, 0.2 where the other side is zero, whatever the condition is (docs/design/018).
What is too large for a core's cache is chosen in pieces.
Every bit of what is chosen stays: NaN is NaN, -0.0 is -0.0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import X0, X1, X2, Call, Environment
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import broadcast

_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes an element
# Calls that cost more than branches: as a rule, where one side is zero, and where the condition is alike for
# rows, which branches predict.
_CALLS, _CALLS_KEPT, _CALLS_SPREAD = 1, 0.5, 4


def choice(node: Node, env: Environment, condition_dims: Any) -> Call:
    """The kernel of an op (condition, t, e), whose condition is taken in this shape; all broadcast."""
    t, e = node.static_shape(1), node.static_shape(2)
    dims = node.outputs[0].static_shape
    same = condition_dims == node.static_shape(0)
    condition = X0 if same else Call(torch.reshape, X0, condition_dims)
    plain = Call(torch.where, condition, X1, X2)
    dtype = node.dtype(1).torch
    if dims is None or None in (t, e) or condition_dims is None or dtype is None:
        return plain
    if env.device.type != "cpu" or dtype in (torch.bool, torch.complex128):
        return plain
    size, word = math.prod(dims), _WORDS[dtype.itemsize]
    if dtype.is_complex:
        return _of_complex(env, condition, condition_dims, (t, e, dims), word)
    is_spread = math.prod(condition_dims) < size
    for i in (1, 2):
        if env.machine.repays(size, _CALLS_KEPT) and node.static_shape(i) == dims and is_zero(node, 3 - i):
            return _kept(condition, (X1, X2)[i - 1], i, dtype, word, is_spread)
    if not env.machine.repays(size, _CALLS_SPREAD if is_spread else _CALLS) or broadcast(t, e) != dims:
        return plain
    if t == e == condition_dims == dims:
        count = env.machine.profile.core_cache // (4 * dtype.itemsize)  # of mask, sides and result
        if size > count:
            return Call(_choose_in_pieces, condition, X1, X2, word, count)
    elif not env.machine.stays_cached(4 * size):
        return plain
    call = Call(_choose, condition, X1, X2, word)
    return call.or_in_place(1, _choose_in_place, condition, X1, X2, word) if t == dims else call


def _of_complex(env: Environment, condition: Any, condition_dims: Any, shapes: Any, word: Any) -> Call:
    """The same of complex64 numbers, whose conjugates a flag may stand for."""
    t, e, dims = shapes
    if not t == e == condition_dims == dims or not env.machine.repays(math.prod(dims), _CALLS):
        return Call(torch.where, condition, X1, X2)
    plain = [Call(torch.resolve_conj, x) for x in (X1, X2)]
    count = env.machine.profile.core_cache // (4 * word.itemsize)
    if math.prod(dims) > count:
        return Call(_choose_in_pieces, condition, *plain, word, count)
    return Call(_choose, condition, *plain, word)


def is_zero(node: Node, i: int) -> bool:
    """Whether all bits of input `i` are known to be zero."""
    source = node.inputs[i].op
    if source.type == "ZerosLike":
        return True
    value = source.constant(1) if source.type == "Fill" else node.constant(i)
    return value is not None and not np.any(value) and not np.any(np.signbit(value))


def _kept(condition: Any, x: Any, wanted: int, dtype: Any, word: Any, is_spread: bool) -> Call:
    """`x` (input 1 or 2, `wanted`) where the condition chooses it, else zero."""
    number = Call(torch.Tensor.to, condition, word)
    mask = Call(torch.Tensor.neg_, number) if wanted == 1 else Call(torch.Tensor.sub_, number, 1)
    bits = Call(torch.Tensor.view, x, word)
    if not is_spread:
        return Call(torch.Tensor.view, Call(torch.Tensor.bitwise_and_, mask, bits), dtype)
    call = Call(torch.Tensor.view, Call(torch.bitwise_and, bits, mask), dtype)
    in_place = Call(torch.Tensor.bitwise_and_, bits, mask)
    return call.or_in_place(wanted, torch.Tensor.view, in_place, dtype)


def _choose(condition: Any, t: Any, e: Any, word: Any) -> Any:
    bits = e.view(word)
    mask = condition.to(word).neg_()
    return torch.bitwise_xor(t.view(word), bits).bitwise_and_(mask).bitwise_xor_(bits).view(t.dtype)


def _choose_in_pieces(condition: Any, t: Any, e: Any, word: Any, count: int) -> Any:
    """The same, `count` elements at a time, whose masks stay in a cache."""
    result = torch.empty_like(t, memory_format=torch.contiguous_format)
    pieces = (x.view(word).reshape(-1).split(count) for x in (result, t, e))
    for out, one, other, chosen in zip(*pieces, condition.reshape(-1).split(count)):
        mask = chosen.to(word).neg_()
        torch.bitwise_xor(one, other, out=out).bitwise_and_(mask).bitwise_xor_(other)
    return result


def _choose_in_place(condition: Any, t: Any, e: Any, word: Any) -> Any:
    bits = e.view(word)
    mask = condition.to(word).neg_()
    t.view(word).bitwise_xor_(bits).bitwise_and_(mask).bitwise_xor_(bits)
    return t
