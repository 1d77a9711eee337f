"""Losses of lists of logits, and models for sequences of several lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf

__all__ = ["model_with_buckets", "sequence_loss", "sequence_loss_by_example"]


def sequence_loss_by_example(
    logits: list[Any],
    targets: list[Any],
    weights: list[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """The weighted cross-entropy of each sequence, [batch].

    Args:
        logits: a list of [batch, symbols].
        targets, weights: lists of [batch], integers and floats.
        average_across_timesteps: whether to divide by the sum of a sequence's weights.
        softmax_loss_function: function of (labels, logits) used in place of the cross-entropy.

    ValueError for lists of different lengths.
    """
    if len(targets) != len(logits) or len(weights) != len(logits):
        raise ValueError(
            f"Lengths of logits, weights, and targets must be the same {len(logits)}, {len(weights)},"
            f" {len(targets)}."
        )
    with tf.name_scope(name, "sequence_loss_by_example", logits + targets + weights):
        losses = []
        for logit, target, weight in zip(logits, targets, weights):
            if softmax_loss_function is None:
                target = tf.reshape(target, [-1])
                loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logit)
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            losses.append(loss * weight)
        total = tf.add_n(losses)
        if average_across_timesteps:
            total /= tf.add_n(weights) + 1e-12
    return total


def sequence_loss(
    logits: list[Any],
    targets: list[Any],
    weights: list[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """The sum of `sequence_loss_by_example` over the batch, a scalar; divided by its size if it is
    averaged."""
    with tf.name_scope(name, "sequence_loss", logits + targets + weights):
        cost = tf.reduce_sum(
            sequence_loss_by_example(
                logits,
                targets,
                weights,
                average_across_timesteps=average_across_timesteps,
                softmax_loss_function=softmax_loss_function,
            )
        )
        return cost / tf.cast(tf.shape(targets[0])[0], cost.dtype) if average_across_batch else cost


def model_with_buckets(
    encoder_inputs: list[Any],
    decoder_inputs: list[Any],
    targets: list[Any],
    weights: list[Any],
    buckets: list[tuple[int, int]],
    seq2seq: Callable[..., Any],
    softmax_loss_function: Callable[..., Any] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[list[Any]], list[Any]]:
    """A model for each pair (encoder steps, decoder steps) of `buckets`, with the same variables.

    Args:
        encoder_inputs, decoder_inputs, targets, weights: lists for the greatest bucket.
        buckets: pairs of lengths, in growing order.
        seq2seq: function of (encoder inputs, decoder inputs) that returns (outputs, state).
        softmax_loss_function: see `sequence_loss_by_example`.
        per_example_loss: whether losses are [batch], not scalars.

    Returns the buckets' outputs and losses. ValueError for lists shorter than the last bucket.
    """
    for what, given, needed in (
        ("encoder_inputs", encoder_inputs, buckets[-1][0]),
        ("targets", targets, buckets[-1][1]),
        ("weights", weights, buckets[-1][1]),
    ):
        if len(given) < needed:
            raise ValueError(
                f"Length of {what} ({len(given)}) must be at least that of last bucket ({needed})."
            )
    losses, outputs = [], []
    loss = sequence_loss_by_example if per_example_loss else sequence_loss
    with tf.name_scope(name, "model_with_buckets", encoder_inputs + decoder_inputs + targets + weights):
        for i, (encoder_steps, decoder_steps) in enumerate(buckets):
            with tf.variable_scope(tf.get_variable_scope(), reuse=True if i > 0 else None):
                found, _ = seq2seq(encoder_inputs[:encoder_steps], decoder_inputs[:decoder_steps])
                outputs.append(found)
                losses.append(
                    loss(
                        outputs[-1],
                        targets[:decoder_steps],
                        weights[:decoder_steps],
                        softmax_loss_function=softmax_loss_function,
                    )
                )
    return outputs, losses
