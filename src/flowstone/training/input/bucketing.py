"""Batches of examples that belong together, such as sentences of like length.

Each bucket is a queue of its own. An example goes into the one that it names; whenever a bucket has a batch
full, the batch goes on into a *top* queue, from which the training takes batches of any bucket. At the end of
the input the buckets are closed, and the top queue once they have given what they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from flowstone.framework import errors
from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph_functions import convert_to_tensor_or_sparse_tensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.control.conditionals import cond
from flowstone.ops.control.control_flow import group, no_op
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.reductions import reduce_sum
from flowstone.ops.queues.queues import FIFOQueue, PaddingFIFOQueue, QueueBase
from flowstone.ops.summaries.summaries import scalar
from flowstone.training.input.batching import (
    Example,
    as_lists,
    checked_keep_input,
    common_shapes,
    common_types,
)
from flowstone.training.input.input_pipelines import fraction_full
from flowstone.training.input.queue_runner import QueueRunner, add_queue_runner
from flowstone.training.input.sparse_batching import restore_sparse_tensors, store_sparse_tensors, where_kept

__all__ = ["bucket", "bucket_by_sequence_length"]

_ENDS = (errors.OutOfRangeError, errors.CancelledError)


def bucket(
    tensors: Example,
    which_bucket: Any,
    batch_size: int | Sequence[int],
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Batches of examples of one bucket each.

    Args:
        tensors: a list, or a dict by name, of tensors and sparse tensors.
        which_bucket: the example's bucket, an int32 scalar below `num_buckets`.
        batch_size: of all buckets, or a list with one of each.
        num_threads: threads that enqueue examples.
        capacity: the most batches in the top queue, and the most examples in a bucket, unless
            `bucket_capacities` says how many are in each.
        shapes: of an example's tensors, where unknown.
        dynamic_pad: examples of a batch may differ in sizes that are statically unknown, and are filled up
            with zeros.
        allow_smaller_final_batch: at the end of the input each bucket gives what it has.
        keep_input: a bool scalar: whether to take the example.

    Returns (the batch's bucket, an int32 scalar; the batch: a list or dict of tensors [batch_size, ...], or
    the tensor of a list of one).
    Raises ValueError for lists of another length than `num_buckets` and unknown shapes.
    """
    sizes = _one_each(batch_size, num_buckets, "batch_size")
    capacities = _one_each(bucket_capacities or capacity, num_buckets, "bucket_capacities")
    with get_default_graph().name_scope(name or "bucket"):
        row = [convert_to_tensor_or_sparse_tensor(value) for value in as_lists([tensors])[0]]
        keep = checked_keep_input(keep_input, enqueue_many=False)
        stored, sparse = store_sparse_tensors([row], keep, enqueue_many=False)
        chosen = convert_to_tensor(which_bucket, dtypes.int32, name="which_bucket")
        types, example_shapes = common_types(stored), common_shapes(stored, shapes, False)
        kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        buckets: list[QueueBase] = [
            kind(
                size,
                types,
                example_shapes,
                shared_name=shared_name and f"{shared_name}_{i}",
                name=f"bucket_queue_{i}",
            )
            for i, size in enumerate(capacities)
        ]
        _fill(buckets, stored[0], chosen, keep, num_threads)
        top = FIFOQueue(capacity, [dtypes.int32, *types], shared_name=shared_name, name="top_queue")
        _pass_on(buckets, sizes, top, allow_smaller_final_batch)
        scalar(f"{_last_part(top)}/fraction_of_{capacity}_full", fraction_full(top, capacity))
        number, *batch = top.dequeue(name="dequeue_top")
        rows = None if allow_smaller_final_batch or len(set(sizes)) > 1 else sizes[0]
        number.set_shape([])
        for tensor, queue_shape in zip(batch, buckets[0].shapes):
            tensor.set_shape(TensorShape([rows]).concatenate(queue_shape))
        batch = restore_sparse_tensors(batch, sparse)
    if isinstance(tensors, dict):
        return number, dict(zip(sorted(tensors), batch))
    return number, batch[0] if len(batch) == 1 else batch


def _one_each(value: int | Sequence[int], count: int, name: str) -> list[int]:
    if not isinstance(value, (list, tuple)):
        return [int(value)] * count  # type: ignore[arg-type]
    if len(value) != count:
        raise ValueError(f"If {name} is a list it must have num_buckets ({count}) elements, not {len(value)}")
    return list(value)


def _last_part(queue: QueueBase) -> str:
    return queue.name.rpartition("/")[2]


def _fill(
    buckets: list[QueueBase], example: list[Tensor], chosen: Tensor, keep: Tensor, num_threads: int
) -> None:
    """Has threads put examples into their buckets; at the end of the input these are closed together."""

    def enqueue() -> Any:
        enqueues = [
            cond(F.Equal(chosen, i), partial(q.enqueue, example), no_op) for i, q in enumerate(buckets)
        ]
        return group(*enqueues, name="group_enqueues")

    operation = where_kept(keep, enqueue, no_op)
    for queue in buckets:
        scalar(f"{_last_part(queue)}/size", cast(queue.size(), dtypes.float32))
    add_queue_runner(
        QueueRunner(
            buckets[0],
            [operation] * num_threads,
            close_op=group(*[queue.close() for queue in buckets]),
            cancel_op=group(*[queue.close(cancel_pending_enqueues=True) for queue in buckets]),
            queue_closed_exception_types=_ENDS,
        )
    )


def _pass_on(buckets: list[QueueBase], sizes: list[int], top: QueueBase, smaller_final: bool) -> None:
    """Has a thread a bucket move its batches into the top queue, which the last one to end closes."""
    operations = []
    for i, (queue, size) in enumerate(zip(buckets, sizes)):
        batch = queue.dequeue_up_to(size) if smaller_final else queue.dequeue_many(size)
        parts = batch if isinstance(batch, list) else [batch]
        operations.append(top.enqueue([i, *parts]))
    add_queue_runner(QueueRunner(top, operations, queue_closed_exception_types=_ENDS))


def bucket_by_sequence_length(
    input_length: Any,
    tensors: Example,
    batch_size: int | Sequence[int],
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """`bucket` by length: bucket i has the lengths from ``bucket_boundaries[i - 1]`` to, without it,
    ``bucket_boundaries[i]``; the first and the last are open.

    `input_length`: of the example, an int32 scalar. The other parameters are those of `bucket`. Returns (the
    lengths, int32 [batch_size]; the batch). Raises TypeError unless the boundaries are a list of ints,
    ValueError if there are none, or they do not increase.
    """
    _check_boundaries(bucket_boundaries)
    with get_default_graph().name_scope(name or "bucket_by_sequence_length"):
        length = convert_to_tensor(input_length, dtypes.int32, name="input_length")
        reached = cast(F.GreaterEqual(length, list(bucket_boundaries)), dtypes.int32)
        keys = sorted(tensors) if isinstance(tensors, dict) else None
        values = [tensors[key] for key in keys] if keys else list(tensors)  # type: ignore[call-overload]
        if shapes is not None:
            shapes = [[], *shapes]
        _, (lengths, *batch) = bucket(
            [length, *values], reduce_sum(reached), batch_size, len(bucket_boundaries) + 1, num_threads,
            capacity, bucket_capacities, shapes, dynamic_pad, allow_smaller_final_batch, keep_input,
            shared_name,
        )  # fmt: skip
    return lengths, dict(zip(keys, batch)) if keys else batch


def _check_boundaries(boundaries: Any) -> None:
    if not isinstance(boundaries, (list, tuple)):
        raise TypeError(f"bucket_boundaries must be a list or tuple, but received: {boundaries}")
    if not boundaries:
        raise ValueError("bucket_boundaries must not be empty")
    if not all(isinstance(boundary, int) for boundary in boundaries):
        raise TypeError(f"bucket boundaries must be integers, but saw: {boundaries}")
    if any(low >= high for low, high in pairwise(boundaries)):
        raise ValueError(f"Buckets must contain sequential increasing lengths, but saw: {boundaries}")
