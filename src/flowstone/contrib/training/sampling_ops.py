"""Batches of examples chosen at random: each with a probability, or so that classes come at given rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf

__all__ = ["rejection_sample", "stratified_sample"]

# By how much the sum of probabilities may differ from 1.
_TOLERANCE = 0.01


def rejection_sample(
    tensors: Sequence[Any],
    accept_prob_fn: Callable[[list[Any]], Any],
    batch_size: int,
    queue_threads: int = 1,
    enqueue_many: bool = False,
    prebatch_capacity: int = 16,
    prebatch_threads: int = 1,
    runtime_checks: bool = False,
    name: str | None = None,
) -> list[Any]:
    """Batches of the examples that are accepted, each with its own probability.

    Args:
        tensors: a list of tensors, [...] each, or with `enqueue_many` [examples, ...].
        accept_prob_fn: gives the probability, a scalar, from the tensors of one example.
        batch_size: how many examples a batch has.
        queue_threads: threads that fill the batches.
        prebatch_capacity, prebatch_threads: of the queue that takes examples apart, with `enqueue_many`.
        runtime_checks: whether a probability that is not between 0 and 1 is an error.

    Returns a list of tensors [batch_size, ...]. Raises ValueError for a tensor of unknown rank.
    """
    with tf.name_scope(name, "rejection_sample", list(tensors)):
        examples = _checked(tensors)
        if enqueue_many:
            examples = _one_by_one(examples, prebatch_capacity, prebatch_threads)
        probability = tf.convert_to_tensor(accept_prob_fn(examples), tf.float32)
        if runtime_checks:
            checks = [tf.assert_less_equal(probability, 1.0), tf.assert_less_equal(0.0, probability)]
            with tf.control_dependencies(checks):
                probability = tf.identity(probability)
        keep = tf.random_uniform([]) < probability
        return _as_list(tf.train.maybe_batch(examples, keep, batch_size, num_threads=queue_threads))


def stratified_sample(
    tensors: Sequence[Any],
    labels: Any,
    target_probs: Any,
    batch_size: int,
    init_probs: Any = None,
    enqueue_many: bool = False,
    queue_capacity: int = 16,
    threads_per_queue: int = 1,
    name: str | None = None,
) -> tuple[list[Any], Any]:
    """Batches in which each class comes with its probability, however often it is in the input.

    Args:
        tensors: a list of tensors, [...] each, or with `enqueue_many` [examples, ...].
        labels: the class, an integer scalar, or with `enqueue_many` [examples].
        target_probs: the probabilities of the classes in batches, float [classes].
        init_probs: the probabilities of the classes in the input; estimated from the labels so far if None.
        batch_size, queue_capacity, threads_per_queue: of the batches and the queues.

    Returns (tensors [batch_size, ...], labels [batch_size]). Raises ValueError for shapes that do not fit,
    InvalidArgumentError for what are no probabilities or a class that the input lacks.
    """
    with tf.name_scope(name, "stratified_sample", [*tensors, labels]):
        examples, labels = _checked(tensors), tf.convert_to_tensor(labels)
        target = tf.convert_to_tensor(target_probs, tf.float32)
        if not enqueue_many:
            labels.get_shape().assert_has_rank(0)
            examples, labels = [tf.expand_dims(each, 0) for each in examples], tf.expand_dims(labels, 0)
        init = _initial_probabilities(examples, labels, target, init_probs)
        ratios = [_checked_probabilities(each) for each in (init, target)]
        accept = _warned(_calculate_acceptance_probabilities(*ratios), init)
        *example, label = _one_by_one([*examples, labels], queue_capacity, threads_per_queue)
        keep = tf.random_uniform([]) < tf.gather(accept, label)
        *batch, batch_labels = tf.train.maybe_batch(
            [*example, label], keep, batch_size, num_threads=threads_per_queue
        )
    return batch, batch_labels


def _initial_probabilities(examples: list[Any], labels: Any, target: Any, init_probs: Any) -> Any:
    """The probabilities of the classes in the input, those that are given or estimated."""
    for each in examples:
        each.get_shape()[:1].assert_is_compatible_with(labels.get_shape()[:1])
    target.get_shape().assert_has_rank(1)
    classes = int(target.get_shape()[0])
    if init_probs is None:
        return _estimate_data_distribution(labels, classes)
    init = tf.convert_to_tensor(init_probs, tf.float32)
    if init.get_shape().as_list() != [classes]:
        raise ValueError("Probability parameters must have the same length.")
    return init


def _checked(tensors: Sequence[Any]) -> list[Any]:
    converted = [tf.convert_to_tensor(each) for each in tensors]
    for each in converted:
        if each.get_shape().ndims is None:
            raise ValueError(f"Cannot infer Tensor's rank: {each}")
    return converted


def _as_list(batch: Any) -> list[Any]:
    return batch if isinstance(batch, list) else [batch]


def _one_by_one(tensors: list[Any], capacity: int, num_threads: int) -> list[Any]:
    """The tensors of one example at a time, of tensors [examples, ...]."""
    batch = tf.train.batch(tensors, 1, num_threads, capacity, enqueue_many=True)
    return [tf.squeeze(each, [0]) for each in _as_list(batch)]


def _checked_probabilities(probabilities: Any) -> Any:
    total = tf.reduce_sum(probabilities)
    checks = [
        tf.assert_non_negative(probabilities),
        tf.assert_less(total, 1.0 + _TOLERANCE),
        tf.assert_less(1.0 - _TOLERANCE, total),
    ]
    with tf.control_dependencies(checks):
        return tf.identity(probabilities)


def _estimate_data_distribution(labels: Any, num_classes: int, smoothing_constant: int = 10) -> Any:
    """How often each class has come so far, as probabilities; each begins with a few."""
    count = tf.Variable(tf.zeros([num_classes], tf.int64), trainable=False, name="class_count")
    one_hot = tf.one_hot(labels, num_classes, tf.constant(1, tf.int64), tf.constant(0, tf.int64))
    smoothed = tf.assign_add(count, tf.reduce_sum(one_hot, 0)) + smoothing_constant
    return tf.cast(smoothed / tf.reduce_sum(smoothed), tf.float32)


def _calculate_acceptance_probabilities(init_probs: Any, target_probs: Any) -> Any:
    """With which probability an example of each class is taken: the largest is 1."""
    possible = tf.reduce_all(tf.logical_or(tf.not_equal(init_probs, 0), tf.equal(target_probs, 0)))
    message = "There exists a class with initial probability of zero and nonzero target probability."
    with tf.control_dependencies([tf.Assert(possible, [message, init_probs, target_probs])]):
        init_probs = tf.identity(init_probs)
    ratios = target_probs / init_probs
    ratios = tf.where(tf.is_nan(ratios), tf.zeros_like(ratios), ratios)
    return ratios / tf.reduce_max(ratios)


def _warned(accept: Any, init: Any) -> Any:
    """The probabilities, printed now and then if most examples are rejected."""
    rejected = tf.reduce_sum((1.0 - accept) * init)
    message = "Proportion of examples rejected by sampler is high: "
    return tf.cond(
        rejected < 0.5, lambda: accept, lambda: tf.Print(accept, [accept], message=message, first_n=10)
    )
