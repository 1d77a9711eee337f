"""Losses of classifiers with very many classes, by a sample of the wrong ones.

Both compare the logits of an example's true classes with those of `num_sampled` candidates that the batch
shares (`flowstone.ops.randomness.candidate_sampling`), each less the logarithm of how often the sampler is
expected to give the class: noise-contrastive estimation (Gutmann and Hyvärinen 2010) by logistic regression,
the sampled softmax (Jean et al. 2014) by cross entropy. Only the rows of the classes looked at are read, so
the gradients with respect to weights and biases are IndexedSlices. Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import ones, ones_like, zeros_like
from flowstone.ops.arrays.identities import stop_gradient
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.shapes import expand_dims, reshape, shape
from flowstone.ops.arrays.slicing import slice as sliced
from flowstone.ops.networks.cross_entropies import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
)
from flowstone.ops.networks.embedding import embedding_lookup
from flowstone.ops.randomness.candidate_sampling import compute_accidental_hits, log_uniform_candidate_sampler
from flowstone.ops.sparse.sparse_to_dense import sparse_to_dense

__all__ = ["nce_loss", "sampled_softmax_loss"]


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "nce_loss",
) -> Tensor:
    """The noise-contrastive loss of each example, [batch].

    `weights` [num_classes, dim], or a list of its partitions by `partition_strategy` ("mod" or "div");
    `biases` [num_classes]; `inputs` [batch, dim]; `labels`: integers [batch, num_true]. `sampled_values` is
    what a candidate sampler returns, by default that of `num_sampled` different classes by Zipf's law, which
    wants classes numbered by falling frequency. With `remove_accidental_hits`, a candidate that is one of the
    example's true classes does not count as wrong.
    """
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        name,
        None,
    )
    losses = sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name="sampled_losses")
    return _row_sums(losses)


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """The cross entropy of the true classes against a sample, [batch]; arguments as of `nce_loss`.

    It is for training: an evaluation takes the full softmax. `seed` is the sampler's.
    """
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        name,
        seed,
    )
    targets = stop_gradient(targets, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels=targets, logits=logits)


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_hits: bool,
    strategy: str,
    name: str | None,
    seed: int | None,
) -> tuple[Tensor, Tensor]:
    """(logits, targets), both [batch, num_true + num_sampled]; each row of targets sums to one."""
    with get_default_graph().name_scope(name or "compute_sampled_logits"):
        inputs = convert_to_tensor(inputs, name="inputs")
        labels = convert_to_tensor(labels, name="labels")
        if labels.dtype.base_dtype is not dtypes.int64:
            labels = F.Cast(labels, DstT=dtypes.int64)
        flat = reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                labels, num_true, num_sampled, True, num_classes, seed=seed
            )
        candidates, true_counts, sampled_counts = (stop_gradient(value) for value in sampled_values)
        if candidates.dtype.base_dtype is not dtypes.int64:
            candidates = F.Cast(candidates, DstT=dtypes.int64)
        true_logits, sampled_logits = _logits(
            weights, biases, inputs, flat, concat([flat, candidates], 0), num_true, strategy
        )
        if remove_hits:
            sampled_logits += _hit_weights(labels, candidates, num_true, num_sampled, sampled_logits.dtype)
        true_logits -= F.Log(true_counts)
        sampled_logits -= F.Log(sampled_counts)
        logits = concat([true_logits, sampled_logits], 1)
        targets = concat([ones_like(true_logits) / num_true, zeros_like(sampled_logits)], 1)
        return logits, targets


def _logits(
    weights: Any, biases: Any, inputs: Tensor, labels: Tensor, ids: Tensor, num_true: int, strategy: str
) -> tuple[Tensor, Tensor]:
    """(true logits [batch, num_true], sampled logits [batch, num_sampled]); `ids`: the classes of both."""
    rows = _looked_up(weights, ids, strategy, inputs.dtype)
    true_rows = sliced(rows, [0, 0], stack([shape(labels)[0], -1]))
    sampled_rows = sliced(rows, stack([shape(labels)[0], 0]), [-1, -1])
    sampled_logits = F.MatMul(inputs, sampled_rows, transpose_b=True)
    offsets = _looked_up(biases, ids, strategy, inputs.dtype)
    true_offsets = sliced(offsets, [0], shape(labels))
    sampled_offsets = sliced(offsets, shape(labels), [-1])
    width = shape(true_rows)[1:2]
    rows_shape = concat([[-1, num_true], width], 0)
    products = F.Mul(expand_dims(inputs, 1), reshape(true_rows, rows_shape), name="Mul")
    true_logits = reshape(_row_sums(reshape(products, concat([[-1], width], 0))), [-1, num_true])
    return true_logits + reshape(true_offsets, [-1, num_true]), sampled_logits + sampled_offsets


def _looked_up(table: Any, ids: Tensor, strategy: str, dtype: dtypes.DType) -> Tensor:
    found = embedding_lookup(table, ids, partition_strategy=strategy)
    return found if found.dtype.base_dtype is dtype.base_dtype else F.Cast(found, DstT=dtype)


def _hit_weights(
    labels: Tensor, candidates: Tensor, num_true: int, num_sampled: int, dtype: dtypes.DType
) -> Tensor:
    """[batch, num_sampled]: the least number where a candidate is a true class of the example, else zero."""
    rows, places, hits = compute_accidental_hits(labels, candidates, num_true)
    indices = concat(
        [reshape(rows, [-1, 1]), reshape(F.Cast(places, DstT=dtypes.int32), [-1, 1])], 1, "sparse_indices"
    )
    hits = hits if dtype is hits.dtype else F.Cast(hits, DstT=dtype)
    size = concat([shape(labels)[:1], expand_dims(num_sampled, 0)], 0)
    return sparse_to_dense(indices, size, hits, default_value=0.0, validate_indices=False)


def _row_sums(x: Tensor) -> Tensor:
    """The sum of each row of a matrix, as a product with ones: [rows]."""
    columns = shape(x)[1]
    return reshape(F.MatMul(x, ones(stack([columns, 1]), x.dtype)), [-1])
