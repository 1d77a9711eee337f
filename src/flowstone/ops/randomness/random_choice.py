"""Random choices: classes by their log probabilities, shuffled slices, crops at a random offset.

Seeds are those of `random`. Public names here belong to ``tf``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.control.conditionals import Assert
from flowstone.ops.numbers.reductions import reduce_all
from flowstone.ops.randomness import philox
from flowstone.ops.randomness.class_weights import chosen_classes, cost_of_choices
from flowstone.ops.randomness.op_seeds import (
    SEEDS,
    generator_of,
    seed_attributes,
    sequence_of,
)
from flowstone.ops.randomness.random import random_uniform

__all__ = ["multinomial", "random_crop", "random_shuffle"]

REAL = (*dtypes.REAL, dtypes.bfloat16)

multinomial_op = op(
    "Multinomial",
    "logits: T, num_samples: int32[] -> output: output_dtype",
    f"{SEEDS} ; output_dtype: type in [int32, int64] = int64",
    T=REAL,
    stateful=True,
    host=["num_samples"],
    by_element=True,
    cost=cost_of_choices,
)
multinomial_op.not_differentiable()


@multinomial_op.infer
def _(node: Node) -> Shapes:
    logits, count = node.dims(0), node.constant(1)
    if logits is not None and len(logits) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(logits)}")
    if count is not None and count < 0:
        raise ValueError(f"num_samples should be nonnegative, got {int(count)}")
    return (None if logits is None else logits[0], None if count is None else int(count))


@multinomial_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype, uniform = node.attributes["output_dtype"].torch, _uniform_doubles(node, env)

    def draw(logits: torch.Tensor, count: int) -> torch.Tensor:
        count = int(count)
        if logits.dim() != 2 or count < 0 or (count and not logits.shape[1]):
            raise errors.InvalidArgumentError(
                None, None, f"logits should be a matrix with columns, got shape {list(logits.shape)}; "
                f"num_samples should be nonnegative, got {count}"
            )  # fmt: skip
        numbers = uniform(len(logits), count)
        return (chosen_classes(logits, numbers) if logits.shape[1] else numbers).to(dtype)

    return draw


def _uniform_doubles(node: Node, env: Environment) -> Callable[[int, int], torch.Tensor]:
    """What gives the numbers [rows, columns] of [0, 1) that a run chooses by."""
    sequence = sequence_of(node, env)
    if sequence is None:
        generator = generator_of(node, env)
        return lambda *shape: torch.rand(shape, generator=generator, dtype=torch.float64, device=env.device)

    def numbers(rows: int, columns: int) -> torch.Tensor:
        state = sequence.take(2 * rows * (columns + -columns % 4))
        return philox.uniform(state, rows * columns, torch.float64, env.device).view(rows, columns)

    return numbers


random_shuffle_op = op("RandomShuffle", "value: T -> output: T", SEEDS, T=None, stateful=True)
random_shuffle_op.infer(lambda node: node.dims(0))
random_shuffle_op.not_differentiable()


@random_shuffle_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    sequence = sequence_of(node, env)
    generator = generator_of(node, env) if sequence is None else None

    def shuffle(value: torch.Tensor) -> torch.Tensor:
        if not value.ndim:
            return value.clone() if isinstance(value, torch.Tensor) else value.copy()
        if sequence is None:
            order = torch.randperm(value.shape[0], generator=generator, device=env.device)
        else:
            count = value.shape[0]
            order = philox.permutation(sequence.take_blocks((count + 2) // 4), count)  # count - 1 words
        return value[order] if isinstance(value, torch.Tensor) else value[order.numpy()]

    return shuffle


def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """`value` with the slices along its first dimension in random order; any type."""
    return random_shuffle_op(value, name=name, **seed_attributes(seed))


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A part of `value` of this size (one number a dimension) at a uniformly chosen offset.

    InvalidArgumentError in the step if a dimension is smaller than that.
    """
    with get_default_graph().name_scope(name or "random_crop") as scope:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtypes.int32, name="size")
        shape = shape_of(value)
        check = Assert(
            reduce_all(F.GreaterEqual(shape, size)),
            ["Need value.shape >= size, got ", shape, size],
            summarize=1000,
        )
        with get_default_graph().control_dependencies([check]):
            shape = F.Identity(shape, name="control_dependency")
        limit = F.AddV2(F.Sub(shape, size, name="sub"), 1, name="add")
        offset = random_uniform(shape_of(shape), maxval=dtypes.int32.max, dtype=dtypes.int32, seed=seed)
        return F.Slice(value, F.FloorMod(offset, limit, name="mod"), size, name=scope)


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """As `multinomial`, with `dtype` (int64 if None) the type of the result."""
    with get_default_graph().name_scope(name or "categorical"):
        logits = convert_to_tensor(logits, name="logits")
        return multinomial_op(logits, num_samples, output_dtype=dtype, **seed_attributes(seed))


def multinomial(
    logits: Any, num_samples: Any, seed: int | None = None, name: str | None = None, output_dtype: Any = None
) -> Tensor:
    """Column numbers drawn from each row of unnormalised log probabilities [batch, classes]:

    [batch, num_samples].
    """
    with get_default_graph().name_scope(name or "multinomial"):
        logits = convert_to_tensor(logits, name="logits")
        return multinomial_op(logits, num_samples, output_dtype=output_dtype, **seed_attributes(seed))
