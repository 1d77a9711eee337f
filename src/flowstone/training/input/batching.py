"""Batches of examples, put together by queues (white paper 4.6).

Each function adds to the default graph a queue of examples, a `QueueRunner` that enqueues `tensors` (in the
collection QUEUE_RUNNERS), a scalar summary of how full the queue is, and the dequeue of a batch, which it
returns. Functions with *join* enqueue several lists of tensors, a thread each; those with *shuffle* draw from
a `RandomShuffleQueue`; those with *maybe* enqueue only where `keep_input` is true.

What they share:

- `tensors`: a list, or a dict by name, of tensors and sparse tensors, [...] each, or with `enqueue_many`
  [examples, ...]. The batch has the same form, and a first dimension of `batch_size`; a list of one tensor
  gives the tensor alone.
- `num_threads`: threads that enqueue; with more than one the order of examples is not fixed.
- `capacity`: the most examples in the queue; `shapes`: of an example's tensors, where unknown.
- `dynamic_pad`: examples of a batch may differ in sizes that are statically unknown, and are filled up with
  zeros.
- `allow_smaller_final_batch`: the last batch may have fewer examples, so the first dimension is unknown.
- `keep_input`: a bool scalar, or with `enqueue_many` a vector, one an example.

Raises ValueError for tensors of unknown shapes, different sets of tensors to join, or a `keep_input` of
another rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph_functions import convert_to_tensor_or_sparse_tensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.ops.control.control_flow import no_op
from flowstone.ops.numbers.casts import cast
from flowstone.ops.queues.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from flowstone.ops.summaries.summaries import scalar
from flowstone.training.input.input_pipelines import fraction_full
from flowstone.training.input.queue_runner import QueueRunner, add_queue_runner
from flowstone.training.input.sparse_batching import restore_sparse_tensors, store_sparse_tensors, where_kept

__all__ = [
    "batch",
    "batch_join",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "shuffle_batch",
    "shuffle_batch_join",
]

Example = Sequence[Any] | dict[str, Any]


def batch(
    tensors: Example,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of examples in the order in which they come. The parameters are the module's."""
    return maybe_batch(
        tensors, True, batch_size, num_threads, capacity, enqueue_many, shapes, dynamic_pad,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


def maybe_batch(
    tensors: Example,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch` of the examples whose `keep_input` is true."""
    return _batched(
        [tensors], keep_input, batch_size, enqueue_many, shapes,
        _in_order(capacity, dynamic_pad, shared_name), allow_smaller_final_batch, name or "batch",
        num_threads,
    )  # fmt: skip


def batch_join(
    tensors_list: Sequence[Example],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of the examples of several lists of tensors, as they come. The parameters are the module's."""
    return maybe_batch_join(
        tensors_list, True, batch_size, capacity, enqueue_many, shapes, dynamic_pad,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


def maybe_batch_join(
    tensors_list: Sequence[Example],
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch_join` of the examples whose `keep_input` is true."""
    return _batched(
        tensors_list, keep_input, batch_size, enqueue_many, shapes,
        _in_order(capacity, dynamic_pad, shared_name), allow_smaller_final_batch, name or "batch_join",
    )  # fmt: skip


def shuffle_batch(
    tensors: Example,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of examples in random order.

    While input comes, `min_after_dequeue` examples stay in the queue to be mixed with; ValueError unless
    they are fewer than `capacity`.
    """
    return maybe_shuffle_batch(
        tensors, batch_size, capacity, min_after_dequeue, True, num_threads, seed, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


def maybe_shuffle_batch(
    tensors: Example,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`shuffle_batch` of the examples whose `keep_input` is true."""
    return _batched(
        [tensors], keep_input, batch_size, enqueue_many, shapes,
        _shuffled(capacity, min_after_dequeue, seed, shared_name), allow_smaller_final_batch,
        name or "shuffle_batch", num_threads,
    )  # fmt: skip


def shuffle_batch_join(
    tensors_list: Sequence[Example],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `shuffle_batch`, of the examples of several lists of tensors."""
    return maybe_shuffle_batch_join(
        tensors_list, batch_size, capacity, min_after_dequeue, True, seed, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


def maybe_shuffle_batch_join(
    tensors_list: Sequence[Example],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`shuffle_batch_join` of the examples whose `keep_input` is true."""
    return _batched(
        tensors_list, keep_input, batch_size, enqueue_many, shapes,
        _shuffled(capacity, min_after_dequeue, seed, shared_name), allow_smaller_final_batch,
        name or "shuffle_batch_join",
    )  # fmt: skip


# ---- queues


class _QueueKind:
    """How to make the queue of a batch, and what to tell of it.

    `make(types, shapes)` makes it; `capacity` in elements; `spare`: those that dequeuing leaves (None: it
    takes all); `summary_name`.
    """

    def __init__(
        self, make: Callable[[Any, Any], QueueBase], capacity: int, spare: int | None, summary_name: str
    ) -> None:
        self.make, self.capacity, self.spare, self.summary_name = make, capacity, spare, summary_name


def _in_order(capacity: int, dynamic_pad: bool, shared_name: str | None) -> _QueueKind:
    kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue

    def make(types: Any, shapes: Any) -> QueueBase:
        return kind(capacity, types, shapes, shared_name=shared_name)

    return _QueueKind(make, capacity, None, f"fraction_of_{capacity}_full")


def _shuffled(capacity: int, min_after_dequeue: int, seed: int | None, shared_name: str | None) -> _QueueKind:
    places = capacity - min_after_dequeue
    if places <= 0:
        raise ValueError(f"capacity {capacity} must be bigger than min_after_dequeue {min_after_dequeue}.")

    def make(types: Any, shapes: Any) -> QueueBase:
        return RandomShuffleQueue(
            capacity, min_after_dequeue, types, shapes, seed=seed, shared_name=shared_name
        )

    return _QueueKind(
        make, capacity, min_after_dequeue, f"fraction_over_{min_after_dequeue}_of_{places}_full"
    )


def _batched(
    examples: Sequence[Example],
    keep_input: Any,
    batch_size: Any,
    enqueue_many: bool,
    shapes: Any,
    kind: _QueueKind,
    smaller_final: bool,
    name: str,
    num_threads: int = 1,
) -> Any:
    """The common part: a queue that all of `examples` go into, and a batch out of it."""
    with get_default_graph().name_scope(name) as scope:
        lists = [[convert_to_tensor_or_sparse_tensor(value) for value in row] for row in as_lists(examples)]
        keep = checked_keep_input(keep_input, enqueue_many)
        stored, sparse = store_sparse_tensors(lists, keep, enqueue_many)
        queue = kind.make(common_types(stored), common_shapes(stored, shapes, enqueue_many))
        operations = [_enqueue(queue, row, enqueue_many, keep) for row in stored]
        add_queue_runner(QueueRunner(queue, operations * num_threads))
        scalar(kind.summary_name, fraction_full(queue, kind.capacity, kind.spare))
        dequeue = queue.dequeue_up_to if smaller_final else queue.dequeue_many
        dequeued = dequeue(batch_size, name=scope)
        tensors = restore_sparse_tensors(dequeued if isinstance(dequeued, list) else [dequeued], sparse)
    return in_form_of(examples[0], tensors)


def as_lists(examples: Sequence[Example]) -> list[list[Any]]:
    """The values of each example, dicts in the order of their sorted keys."""
    if not examples:
        raise ValueError("Expected at least one set of tensors")
    first = examples[0]
    if isinstance(first, dict):
        if any(not isinstance(row, dict) or row.keys() != first.keys() for row in examples):
            raise ValueError("All dictionaries in tensors_list must have the same keys")
        lists = [[row[key] for key in sorted(first)] for row in examples]  # type: ignore[call-overload]
    else:
        lists = [list(row) for row in examples]
    if not lists[0]:
        raise ValueError("Expected at least one tensor in batch().")
    return lists


def in_form_of(example: Example, tensors: list[Any]) -> Any:
    """The tensors of a batch as a dict if the example is one, a list, or the only one alone."""
    if isinstance(example, dict):
        return dict(zip(sorted(example), tensors))
    return tensors[0] if len(tensors) == 1 else tensors


def checked_keep_input(keep_input: Any, enqueue_many: bool) -> Tensor:
    """`keep_input` as a tensor. ValueError unless it is a scalar or, with `enqueue_many`, a vector."""
    keep = convert_to_tensor(keep_input)
    rank = keep.shape.ndims
    if rank is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if not enqueue_many and rank == 1:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if rank > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    return keep


def common_types(lists: list[list[Tensor]]) -> list[dtypes.DType]:
    """The types of an example's tensors. TypeError if they differ between the lists."""
    types = [tensor.dtype.base_dtype for tensor in lists[0]]
    for row in lists[1:]:
        for dtype, tensor in zip(types, row):
            if tensor.dtype.base_dtype is not dtype:
                raise TypeError(
                    "Expected types to be consistent: "
                    f"{', '.join(t.name for t in types)} vs. "
                    f"{', '.join(t.dtype.base_dtype.name for t in row)}."
                )
    return types


def common_shapes(lists: list[list[Tensor]], shapes: Any, enqueue_many: bool) -> Any:
    """The shapes of an example's tensors: those of the first list, which the others' must fit."""
    if shapes is not None:
        return shapes
    return [_common_shape(tensors, enqueue_many) for tensors in zip(*lists)]


def _common_shape(tensors: Sequence[Tensor], enqueue_many: bool) -> TensorShape:
    for tensor in tensors:
        if tensor.shape.ndims is None:
            raise ValueError(f"Cannot infer Tensor's rank: {tensor}")
    found = [as_shape(tensor.shape) for tensor in tensors]
    if enqueue_many:
        found = [shape.with_rank_at_least(1)[1:] for shape in found]
    for shape in found[1:]:
        found[0].merge_with(shape)
    return found[0]


def _enqueue(queue: QueueBase, tensors: list[Tensor], enqueue_many: bool, keep: Tensor) -> Any:
    """The operation (or tensor) that enqueues the examples to be kept."""
    function = queue.enqueue_many if enqueue_many else queue.enqueue
    if keep.shape.ndims == 1:
        parts = cast(keep, dtypes.int32)
        return function([F.DynamicPartition(tensor, parts, num_partitions=2)[1] for tensor in tensors])
    return where_kept(keep, lambda: function(tensors), no_op)
