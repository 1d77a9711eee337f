"""Random values of a state in a resource variable: the Philox counter in two int64 numbers, then the key.

Every value takes 256 blocks, whatever it uses of them. The values are TensorFlow's own for the same state.
"""

from __future__ import annotations

import math

import torch

from flowstone.framework import dtypes, errors
from flowstone.framework.containers import Variable
from flowstone.framework.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.node import Node
from flowstone.framework.operation import Shapes, op
from flowstone.framework.shape import merge
from flowstone.ops.randomness import philox
from flowstone.ops.randomness.philox import State
from flowstone.ops.randomness.stateless import sizes_of

__all__: list[str] = []

_PHILOX = 1
_RESERVED = 256  # blocks of a value
_DOUBLE = 1 << 64


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def _advance(variable: Variable, algorithm: torch.Tensor, values: int) -> State:
    """The state in a variable, which is left behind so many values."""
    if algorithm.ndim or int(algorithm) != _PHILOX:
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
        counter = [
            number - _DOUBLE if number >= _DOUBLE >> 1 else number for number in divmod(after, _DOUBLE)
        ]
        held[:2] = torch.tensor(counter[::-1], dtype=torch.int64)
        return state


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
        _advance(variable, algorithm, int(delta))

    return skip


uniform_op = op(
    "StatefulUniform",
    "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
    "dtype: type = float ; shape_dtype: type = int64",
    stateful=True,
    mutates=[0],
    host=["algorithm", "shape"],
    cost=40,
)
uniform_op.not_differentiable()


@uniform_op.infer
def _(node: Node) -> Shapes:
    merge(node.dims(1), ())
    return node.constant_dims(2)


@uniform_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype, device = node.attributes["dtype"], env.device
    if dtype not in dtypes.FLOATS_WITH_BFLOAT16:
        raise _invalid(f"StatefulUniform draws floating-point numbers only, not {dtype.name}")

    def draw(variable: Variable, algorithm: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
        sizes = sizes_of(shape)
        count = math.prod(sizes)
        state = _advance(variable, algorithm, count)
        return philox.uniform(state, count, dtype.torch, device).reshape(sizes)

    return draw
