"""Producers: queues of input, filled over and over by queue runners (white paper 4.6).

Each function adds to the default graph a `FIFOQueue`, a `QueueRunner` that enqueues all of its input again
and again (in the collection QUEUE_RUNNERS, see `start_queue_runners`), and a scalar summary of how full the
queue is. With `num_epochs` the input is produced so many times; then the queue is closed, and dequeuing what
it lacks is an OutOfRangeError. The count is a local variable (collection LOCAL_VARIABLES), which
``tf.local_variables_initializer()`` sets to 0.

Parameters that all producers share: `shuffle`: in a new random order each time, with `seed`; `capacity`: the
most elements in the queue; `shared_name`: sessions on a common target share the queue under this name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import GraphKeys, Operation
from flowstone.framework.graphs.graph_functions import convert_to_tensor_or_indexed_slices
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.constants import range as range_
from flowstone.ops.arrays.gathering import gather
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.shapes import shape, size
from flowstone.ops.control.conditionals import Assert
from flowstone.ops.numbers.casts import cast
from flowstone.ops.queues.queues import FIFOQueue, QueueBase
from flowstone.ops.randomness.random_choice import random_shuffle
from flowstone.ops.readers.files import matching_files
from flowstone.ops.summaries.summaries import scalar
from flowstone.ops.variables.assignments import count_up_to
from flowstone.ops.variables.variables import Variable
from flowstone.training.input.queue_runner import QueueRunner, add_queue_runner

__all__ = [
    "input_producer",
    "limit_epochs",
    "match_filenames_once",
    "range_input_producer",
    "slice_input_producer",
    "string_input_producer",
]

_NO_STRINGS = "string_input_producer requires a non-null input tensor"


def match_filenames_once(pattern: Any, name: str | None = None) -> Any:
    """A local variable that holds the names of the files that fit the pattern, or any of the patterns.

    `pattern`: a string scalar or vector. The files are looked for when the variable is initialised.
    """
    with get_default_graph().name_scope(name or "matching_filenames") as scope:
        return Variable(
            matching_files(pattern), trainable=False, validate_shape=False, name=scope,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )  # fmt: skip


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Any:
    """`tensor`, which can be computed `num_epochs` times and is an OutOfRangeError after that.

    None sets no limit and returns `tensor` itself. The count is a local variable. ValueError unless
    `num_epochs` is positive.
    """
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    graph = get_default_graph()
    with graph.name_scope(name or "limit_epochs") as scope:
        epochs = Variable(
            constant(0, dtypes.int64), name="epochs", trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )  # fmt: skip
        with graph.control_dependencies([count_up_to(epochs, int(num_epochs))]):
            return identity(tensor, name=scope)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Operation | None = None,
) -> QueueBase:
    """A queue of the rows of `input_tensor`, [rows, ...].

    `element_shape`: of a row, where the static shape does not tell; `summary_name`: of the summary (None: no
    summary); `cancel_op`: operation of the queue runner that cancels pending enqueues. Raises ValueError if
    a row's shape is not fully known or `element_shape` contradicts it.
    """
    with get_default_graph().name_scope(name or "input_producer"):
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        row_shape = rows.shape.with_rank_at_least(1)[1:].merge_with(element_shape)
        if not row_shape.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape or `element_shape` must be specified"
            )
        if shuffle:
            rows = random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(capacity, [rows.dtype.base_dtype], [row_shape], shared_name=shared_name, name=name)
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([rows])], cancel_op=cancel_op))
        if summary_name is not None:
            scalar(summary_name, fraction_full(queue, capacity))
        return queue


def fraction_full(queue: QueueBase, capacity: int, spare: int | None = None) -> Tensor:
    """How full a queue is, as a float32 scalar: of the places after the first `spare` ones."""
    elements = queue.size() if spare is None else F.Maximum(0, queue.size() - spare)
    share: Tensor = cast(elements, dtypes.float32) * (1.0 / (capacity - (spare or 0)))
    return share


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Operation | None = None,
) -> QueueBase:
    """A queue of the strings of a vector, such as file names for a reader.

    No strings are a ValueError if it is known now, else an InvalidArgumentError of the step.
    """
    if not isinstance(string_tensor, (Tensor, Variable, str, bytes)) and len(string_tensor) == 0:
        raise ValueError(_NO_STRINGS)
    graph = get_default_graph()
    with graph.name_scope(name or "input_producer") as scope:
        strings = convert_to_tensor(string_tensor, dtypes.string)
        with graph.control_dependencies([Assert(F.Greater(size(strings), 0), [_NO_STRINGS])]):
            strings = identity(strings)
        return input_producer(
            strings, element_shape=[], num_epochs=num_epochs, shuffle=shuffle, seed=seed, capacity=capacity,
            shared_name=shared_name, summary_name=f"fraction_of_{capacity}_full", name=scope,
            cancel_op=cancel_op,
        )  # fmt: skip


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> QueueBase:
    """A queue of the integers from 0 to `limit` (a scalar) without it, of its dtype."""
    with get_default_graph().name_scope(name or "input_producer") as scope:
        numbers = range_(limit)
        return input_producer(
            numbers, [], num_epochs, shuffle, seed, capacity, shared_name,
            f"fraction_of_{capacity}_full", scope,
        )  # fmt: skip


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """One row of each tensor, of the same index; the indices come from a queue.

    `tensor_list`: tensors [rows, ...] of as many rows as the first has. Returns tensors without that first
    dimension. ValueError without tensors.
    """
    if isinstance(tensor_list, Tensor) or len(tensor_list) == 0:
        raise ValueError("Expected at least one tensor in slice_input_producer().")
    with get_default_graph().name_scope(name or "input_producer"):
        tensors = [convert_to_tensor_or_indexed_slices(value) for value in tensor_list]
        indices = range_input_producer(shape(tensors[0])[0], num_epochs, shuffle, seed, capacity, shared_name)
        index = indices.dequeue()
        return [gather(tensor, index) for tensor in tensors]
