"""Pairs of words that stand near each other, for the skip-gram model (T. Mikolov et al., Efficient
Estimation of Word Representations in Vector Space, 2013).

For each word of a part of a text, a window's size is drawn uniformly from `min_skips` to `max_skips`; the
word is paired with each other word of the part that is at most so far away. Seeded sizes are TensorFlow's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank
from flowstone.ops.randomness.op_seeds import SEEDS, own_sequence
from flowstone.ops.randomness.random_words import RandomWords

__all__ = ["skip_gram_candidates_op"]

Array = np.ndarray[Any, Any]

_WORDS_OF_A_BLOCK = 4

skip_gram_candidates_op = op(
    "SkipGramGenerateCandidates",
    "input_tensor: T, min_skips: int32, max_skips: int32, start: int32, limit: int32, "
    "emit_self_as_target: bool -> tokens: T, labels: T",
    SEEDS,
    T=None,
    stateful=True,
)
skip_gram_candidates_op.no_gradient()


@skip_gram_candidates_op.infer
def _(node: Node) -> Shapes:
    require_rank(node.dims(0), 1)
    for number in range(1, len(node.inputs)):
        require_rank(node.dims(number), 0)
    return [(None,), (None,)]


def _pairs(sizes: Array, with_self: bool) -> tuple[Array, Array]:
    """The places of words and of those at most `sizes` away, in the order of both."""
    places = np.arange(len(sizes), dtype=np.int64)
    first = np.maximum(places - sizes, 0)
    counts = np.minimum(places + sizes, len(sizes) - 1) - first + 1
    words = np.repeat(places, counts)
    before = np.cumsum(counts) - counts
    others = np.arange(len(words)) - np.repeat(before - first, counts)
    if with_self:
        return words, others
    kept = words != others
    return words[kept], others[kept]


@skip_gram_candidates_op.kernel(CPU)  # text is in host memory
def _(node: Node, env: Environment) -> Kernel:
    sequence, is_text = own_sequence(node, env), node.dtype(0) is dtypes.string

    def run(
        values: Any,
        min_skips: torch.Tensor,
        max_skips: torch.Tensor,
        start: torch.Tensor,
        limit: torch.Tensor,
        emit_self: torch.Tensor,
    ) -> tuple[Any, Any]:
        least, most, begin, count = (int(x) for x in (min_skips, max_skips, start, limit))
        _check(values.shape, least, most, begin)
        part = values[begin:] if count < 0 else values[begin : begin + count]
        size = len(part)
        state = sequence.take_blocks(size // _WORDS_OF_A_BLOCK + 1)
        words = RandomWords(state, size // _WORDS_OF_A_BLOCK + 1)
        sizes = np.fromiter((least + words.below(most - least + 1) for _ in range(size)), np.int64, size)
        tokens, labels = _pairs(sizes, bool(emit_self))
        if is_text:
            return part[tokens], part[labels]
        return part[torch.from_numpy(tokens)], part[torch.from_numpy(labels)]

    return run


def _check(shape: Any, least: int, most: int, begin: int) -> None:
    if len(shape) != 1:
        raise invalid(f"input_tensor must be a vector, got shape {list(shape)}.")
    if least < 0 or most < 0:
        raise invalid("Both min_skips and max_skips must be >= 0.")
    if least > most:
        raise invalid("min_skips must be <= max_skips.")
    if begin < 0:
        raise invalid(f"start must be >= 0, got {begin}.")


skip_gram_candidates_op.check_complete()
