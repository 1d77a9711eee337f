"""Random values of a state in a resource variable: the Philox counter in two int64 numbers, then the key.

Every value takes 256 blocks, whatever it uses of them. The values are TensorFlow's own for the same state.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.containers import Variable
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import merge
from flowstone.ops.randomness import philox
from flowstone.ops.randomness.philox import State
from flowstone.ops.randomness.stateless import full, sizes_of
from flowstone.ops.variables.stateful import handle_dims

__all__: list[str] = []

_PHILOX = 1, 3  # the latter is any algorithm
_THREEFRY = 2
_RESERVED = 256  # blocks of a value
_DOUBLE = 1 << 64


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def advance(variable: Variable, algorithm: torch.Tensor, values: int) -> State:
    """The state in a variable, which is left behind so many values."""
    number = None if algorithm.ndim else int(algorithm)
    if number == _THREEFRY:
        raise errors.UnimplementedError(None, None, "ThreeFry, algorithm 2, is not implemented, as on CPUs")
    if number not in _PHILOX:
        raise _invalid(f"Unsupported algorithm id: {algorithm.tolist()}")
    with variable.lock:
        held = variable.tensor
        if held.dtype is not torch.int64:
            raise _invalid(f"dtype of RNG state variable must be int64, not {held.dtype}")
        if held.ndim != 1:
            raise _invalid(f"RNG state must have one and only one dimension, not {held.ndim}")
        if len(held) < 3:
            raise _invalid(f"For the Philox algorithm, the size of state must be at least 3; got {len(held)}")
        low, high, key = (number % _DOUBLE for number in held[:3].tolist())
        state = State(key, low | high << 64)
        # A number of values is an unsigned one: one that is negative is nearly 2 ** 64.
        after = state.skipped(values * _RESERVED % _DOUBLE).counter
        held[:2] = _words([after % _DOUBLE, after >> 64])
        return state


def _words(numbers: list[int]) -> torch.Tensor:
    """Unsigned numbers of 64 bits as int64."""
    return torch.tensor([x - _DOUBLE if x >= _DOUBLE >> 1 else x for x in numbers], dtype=torch.int64)


skip_op = op(
    "RngSkip",
    "resource: resource, algorithm: int64, delta: int64 ->",
    stateful=True,
    mutates=[0],
    host=["algorithm", "delta"],
)
skip_op.not_differentiable()


@skip_op.infer
def _(node: Node) -> Shapes:
    merge(node.dims(1), ())
    merge(node.dims(2), ())
    return []


@skip_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def skip(variable: Variable, algorithm: torch.Tensor, delta: torch.Tensor) -> None:
        advance(variable, algorithm, int(delta))

    return skip


read_and_skip_op = op(
    "RngReadAndSkip",
    "resource: resource, alg: int32, delta: uint64 -> value: int64",
    stateful=True,
    mutates=[0],
    host=["alg", "delta", "value"],
)
read_and_skip_op.not_differentiable()


@read_and_skip_op.infer
def _(node: Node) -> Shapes:
    merge(node.dims(1), ())
    merge(node.dims(2), ())
    dims = handle_dims(node)
    return dims if dims is not None and len(dims) == 1 else (None,)


@read_and_skip_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def read_and_skip(variable: Variable, alg: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
        state = advance(variable, alg, int(delta.view(torch.int64)))
        words = _words([state.counter % _DOUBLE, state.counter >> 64, state.key])
        return torch.cat([words, variable.tensor[3:].cpu()])

    return read_and_skip


# ---- values

Draw = Callable[[State, int, torch.dtype, torch.device], torch.Tensor]


def _infer_values(node: Node) -> Shapes:
    merge(node.dims(1), ())
    return node.constant_dims(2)


def _declare(name: str, types: tuple[DType, ...], default: str, what: str, draw: Draw) -> OpDeclaration:
    """The op whose values are `draw(state, count, type, device)`."""
    declaration = op(
        name,
        "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
        f"dtype: type = {default} ; shape_dtype: type = int64",
        stateful=True,
        mutates=[0],
        host=["algorithm", "shape"],
        cost=40,
    )
    declaration.not_differentiable().infer(_infer_values)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        dtype, device = node.attributes["dtype"], env.device
        if dtype not in types:
            raise _invalid(f"{name} draws {what} only, not {dtype.name}")

        def values(variable: Variable, algorithm: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
            sizes = sizes_of(shape)
            count = math.prod(sizes)
            state = advance(variable, algorithm, count)
            return draw(state, count, dtype.torch, device).reshape(sizes)

        return values

    return declaration


_REAL = "floating-point numbers"
_INTEGERS = (dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)
_FLOATS = dtypes.FLOATS_WITH_BFLOAT16
_declare("StatefulUniform", _FLOATS, "float", _REAL, philox.uniform)
_declare("StatefulStandardNormalV2", _FLOATS, "float", _REAL, philox.normal)
_declare("StatefulTruncatedNormal", _FLOATS, "float", _REAL, philox.truncated_normal)
_declare("StatefulUniformFullInt", _INTEGERS, "uint64", "integers", full)

uniform_int_op = op(
    "StatefulUniformInt",
    "resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype, maxval: dtype -> output: dtype",
    "dtype: type = int64 ; shape_dtype: type = int64",
    stateful=True,
    mutates=[0],
    host=["algorithm", "shape", "minval", "maxval"],
    cost=40,
)
uniform_int_op.not_differentiable()


@uniform_int_op.infer
def _(node: Node) -> Shapes:
    merge(node.dims(3), ())
    merge(node.dims(4), ())
    return _infer_values(node)


@uniform_int_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype, device = node.attributes["dtype"], env.device
    if dtype not in _INTEGERS:
        raise _invalid(f"StatefulUniformInt draws integers only, not {dtype.name}")

    def values(
        variable: Variable,
        algorithm: torch.Tensor,
        shape: torch.Tensor,
        minval: torch.Tensor,
        maxval: torch.Tensor,
    ) -> torch.Tensor:
        sizes, low, high = sizes_of(shape), int(minval), int(maxval)
        if low >= high:
            raise _invalid(f"Need minval < maxval, got {low} >= {high}")
        count = math.prod(sizes)
        state = advance(variable, algorithm, count)
        return philox.integers_between(state, count, low, high, dtype.torch, device).reshape(sizes)

    return values


# ---- numbers that no state gives

non_deterministic_op = op(
    "NonDeterministicInts",
    "shape: shape_dtype -> output: dtype",
    "dtype: type = int64 ; shape_dtype: type = int64",
    stateful=True,
    host=["shape"],
    cost=40,
)
non_deterministic_op.not_differentiable()


@non_deterministic_op.infer
def _(node: Node) -> Shapes:
    return node.constant_dims(0)


@non_deterministic_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype, device = node.attributes["dtype"], env.device
    if dtype not in _INTEGERS:
        raise _invalid(f"NonDeterministicInts draws integers only, not {dtype.name}")

    def draw(shape: torch.Tensor) -> torch.Tensor:
        sizes = sizes_of(shape)
        data = bytearray(os.urandom(math.prod(sizes) * dtype.torch.itemsize))
        values = torch.frombuffer(data, dtype=dtype.torch) if data else torch.empty(0, dtype=dtype.torch)
        return values.reshape(sizes).to(device)

    return draw
