"""A queue between what makes batches and the training, so that a batch is ready when a step begins."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.training.input.input_pipelines import fraction_full

__all__ = ["prefetch_queue"]


def prefetch_queue(
    tensors: Any,
    capacity: int = 8,
    num_threads: int = 1,
    dynamic_pad: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """A queue that threads fill with `tensors`; each `dequeue` gives what one run of them gave.

    Args:
        tensors: a list or a dict of tensors.
        capacity: the most that wait.
        num_threads: threads that enqueue.
        dynamic_pad: whether the tensors' shapes may be partly unknown.
        shared_name: under which sessions share the queue.

    Returns the queue, whose `dequeue` gives a list or dict, as `tensors` is; a list of one gives the tensor.
    """
    names = sorted(tensors) if isinstance(tensors, dict) else None
    values = [tensors[key] for key in names] if names else tensors
    with tf.name_scope(name, "prefetch_queue", values):
        values = [tf.convert_to_tensor(value) for value in values]
        queue_class = tf.PaddingFIFOQueue if dynamic_pad else tf.FIFOQueue
        queue = queue_class(
            capacity=capacity, dtypes=[value.dtype.base_dtype for value in values],
            shapes=[value.get_shape() for value in values], names=names, shared_name=shared_name,
        )  # fmt: skip
        enqueue = queue.enqueue(dict(zip(names, values)) if names else values)
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue] * num_threads))
        tf.summary.scalar(f"fraction_of_{capacity}_full", fraction_full(queue, capacity))
    return queue
