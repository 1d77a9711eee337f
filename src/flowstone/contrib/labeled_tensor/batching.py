"""Batches of LabeledTensors from queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.labeled_tensor.axes import Axis
from flowstone.contrib.labeled_tensor.core import LabeledTensor, convert_to_labeled_tensor

__all__ = ["batch", "shuffle_batch"]


def _batched(
    make: Callable[..., Any],
    labeled_tensors: Sequence[Any],
    batch_size: int,
    enqueue_many: bool,
    allow_smaller_final_batch: bool,
    scope: str,
    **options: Any,
) -> list[LabeledTensor]:
    tensors = [convert_to_labeled_tensor(each) for each in labeled_tensors]
    for each in tensors:
        if enqueue_many and next(iter(each.axes), None) != "batch":
            raise ValueError(
                "When enqueue_many is True, input tensors must have an axis called 'batch' as their first"
                f" dimension, but axes were {each.axes!r}"
            )
    batches = make(
        [each.tensor for each in tensors],
        batch_size=batch_size,
        enqueue_many=enqueue_many,
        allow_smaller_final_batch=allow_smaller_final_batch,
        name=scope,
        **options,
    )
    batches = batches if isinstance(batches, list) else [batches]
    first = Axis("batch", None if allow_smaller_final_batch else batch_size)
    axes = [list(each.axes.values())[1 if enqueue_many else 0 :] for each in tensors]
    return [LabeledTensor(found, [first, *rest]) for found, rest in zip(batches, axes, strict=True)]


def batch(
    labeled_tensors: Sequence[Any],
    batch_size: int,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    allow_smaller_final_batch: bool = False,
    name: str | None = None,
) -> list[LabeledTensor]:
    """Batches of the tensors' successive values, with a first axis named batch: `tf.train.batch`.

    With `enqueue_many` the tensors have that axis already, as their first one: ValueError if not.
    """
    with tf.name_scope(name, "lt_batch", labeled_tensors) as scope:
        many, smaller = enqueue_many, allow_smaller_final_batch
        options = {"num_threads": num_threads, "capacity": capacity}
        return _batched(tf.train.batch, labeled_tensors, batch_size, many, smaller, scope, **options)


def shuffle_batch(
    labeled_tensors: Sequence[Any],
    batch_size: int,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    min_after_dequeue: int = 0,
    seed: int | None = None,
    allow_smaller_final_batch: bool = False,
    name: str | None = None,
) -> list[LabeledTensor]:
    """As `batch`, in random order, drawn from `min_after_dequeue` or more: `tf.train.shuffle_batch`."""
    with tf.name_scope(name, "lt_shuffle_batch", labeled_tensors) as scope:
        many, smaller = enqueue_many, allow_smaller_final_batch
        options: dict[str, int | None] = {"num_threads": num_threads, "capacity": capacity}
        options |= {"min_after_dequeue": min_after_dequeue, "seed": seed}
        return _batched(tf.train.shuffle_batch, labeled_tensors, batch_size, many, smaller, scope, **options)
