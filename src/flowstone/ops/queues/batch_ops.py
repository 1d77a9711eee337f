"""Work of several concurrent steps in one batch: `Batch`, `Unbatch`, `UnbatchGrad` and `BatchFunction`.

Of the steps whose calls `Batch` joins, the last gets the batch, the others get no rows. `Unbatch` takes what
that step computed of it apart again, and `UnbatchGrad` puts gradients of the parts together for it.
`BatchFunction` does all in one: it calls a function on the batch, and each step gets its rows of the results.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, AsyncCall, Environment
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.control.waiting import WAITS, WaitingList
from flowstone.ops.queues.batches import BatchedCall, Batcher, start_timer
from flowstone.ops.queues.queue_ops import find_resource

__all__: list[str] = []

_SHARING = "container: string = '' ; shared_name: string = ''"
_Ranges = list[tuple[int, int, int]]  # the id, the first row and the one behind the last


def _batcher(node: Node, env: Environment, run: Any) -> Batcher:
    attributes = node.attributes

    def make(name: str) -> Batcher:
        return Batcher(
            attributes["max_batch_size"],
            attributes["batch_timeout_micros"] / 1e6,
            attributes["allowed_batch_sizes"],
            attributes["max_enqueued_batches"],
            lambda calls: run(made[0], calls),
        )

    made: list[Batcher] = []
    made.append(find_resource(node, env, node.type, make))
    return made[0]


# ---- Batch

batch_op = op(
    "Batch",
    "in_tensors: *T -> batched_tensors: *T, batch_index: int64, id: int64",
    "num_batch_threads: int ; max_batch_size: int ; max_enqueued_batches: int = 10 ; "
    "batch_timeout_micros: int ; allowed_batch_sizes: list(int) = [] ; grad_timeout_micros: int ; "
    f"{_SHARING} ; batching_queue: string = '' ; T: list(type) >= 1",
    asynchronous=True,
    keeps=[0],
)
batch_op.no_gradient()


@batch_op.infer
def _(node: Node) -> Shapes:
    dims = [node.dims(i) for i in range(len(node.inputs))]
    return [*[None if d is None else (None, *d[1:]) for d in dims], (None, 3), ()]


def _hand_over(batcher: Batcher, calls: list[BatchedCall]) -> None:
    """Gives the last call the batch, the others none of it."""
    joined, _ = batcher.join(calls)
    ranges, start = [], 0
    for call in calls:
        ranges.append((call.id, start, start + call.rows))
        start += call.rows
    *others, last = calls
    nothing = torch.empty((0, 3), dtype=torch.int64)
    for call in others:
        call.finish((*[x[:0] for x in joined], nothing, torch.tensor(call.id)), None)
    last.finish((*joined, torch.tensor(ranges), torch.tensor(last.id)), None)


@batch_op.kernel(CPU)  # as in TensorFlow: calls meet in host memory
def _(node: Node, env: Environment) -> AsyncCall:
    batcher = _batcher(node, env, _hand_over)
    return AsyncCall(lambda step, done, *inputs: batcher.add(step, done, inputs))


# ---- Unbatch and UnbatchGrad


class PartsById:
    """Values by the ids of calls, and the steps that wait for them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[int, Any] = {}
        self.late: set[int] = set()  # ids for which nobody waits any more
        self.waiting = WaitingList("Unbatch")

    def release(self) -> None:
        """Ends all waiting steps: the session ends."""
        self.waiting.release()

    def put(self, values: dict[int, Any]) -> None:
        """Gives these values to who waits for them, now or later."""
        self.waiting.change(lambda: self.values.update(values))

    def drop(self, numbers: Iterable[int]) -> None:
        """Forgets the values of these ids: their steps have failed."""
        self.waiting.change(lambda: [self.values.pop(number, None) for number in numbers])

    def give_up(self, number: int) -> None:
        """Has the step that waits for the value of this id fail."""
        self.waiting.change(lambda: self.late.add(number))

    def take(self, step: Any, done: Any, number: int, timeout: float) -> None:
        """Gives `done` the value of this id; DeadlineExceededError after `timeout` seconds."""
        timer = start_timer(timeout, self.give_up, number)

        def attempt() -> Any:
            if number in self.late:
                self.late.discard(number)
                raise errors.DeadlineExceededError(
                    None, None, "Batched data did not arrive within timeout window."
                )
            if number not in self.values:
                return WAITS
            timer.cancel()
            return (self.values.pop(number),)

        self.waiting.start(step, done, attempt, number)


def _ranges(index: torch.Tensor, rows: int) -> _Ranges:
    """The rows of each call, as `batch_index` says. InvalidArgumentError if a range is not within `rows`."""
    if index.ndim != 2 or index.shape[1] != 3:
        raise invalid(f"batch_index must have shape [n, 3], not {list(index.shape)}")
    found: Any = [tuple(row) for row in index.tolist()]
    if any(not 0 <= start <= stop <= rows for _, start, stop in found):
        raise invalid(f"batch_index has ranges outside of {rows} rows: {found}")
    return found  # type: ignore[no-any-return]


def _number(id: torch.Tensor) -> int:
    if id.ndim:
        raise invalid(f"id must be a scalar, not of shape {list(id.shape)}")
    return int(id)


unbatch_op = op(
    "Unbatch",
    "batched_tensor: T, batch_index: int64, id: int64 -> unbatched_tensor: T",
    f"timeout_micros: int ; {_SHARING}",
    T=None,
    asynchronous=True,
    keeps=[0],
)
unbatch_op.no_gradient()


def _any_rows(node: Node) -> Shapes:
    dims = node.dims(0)
    return None if dims is None else (None, *dims[1:])


unbatch_op.infer(_any_rows)


@unbatch_op.kernel(CPU)  # with Batch
def _(node: Node, env: Environment) -> AsyncCall:
    parts = find_resource(node, env, "Unbatch", PartsById)
    timeout = node.attributes["timeout_micros"] / 1e6

    def unbatch(step: Any, done: Any, batched: Any, index: torch.Tensor, id: torch.Tensor) -> None:
        number = _number(id)
        if not batched.ndim:
            raise invalid("batched_tensor must have at least one dimension")
        ranges = _ranges(index, batched.shape[0])
        if ranges:
            parts.put({who: batched[start:stop] for who, start, stop in ranges})
            start_timer(timeout, parts.drop, [who for who, _, _ in ranges])
        parts.take(step, done, number, timeout)

    return AsyncCall(unbatch)


unbatch_grad_op = op(
    "UnbatchGrad",
    "original_input: T, batch_index: int64, grad: T, id: int64 -> batched_grad: T",
    _SHARING,
    T=None,
    asynchronous=True,
    keeps=[0, 2],
)
unbatch_grad_op.infer(_any_rows)
unbatch_grad_op.no_gradient()


@unbatch_grad_op.kernel(CPU)  # with Batch
def _(node: Node, env: Environment) -> AsyncCall:
    parts = find_resource(node, env, "UnbatchGrad", PartsById)

    def collect(step: Any, done: Any, original: Any, index: Any, grad: Any, id: torch.Tensor) -> None:
        number = _number(id)
        if not original.ndim:
            raise invalid("original_input must have at least one dimension")
        ranges = _ranges(index, original.shape[0])
        parts.put({number: grad})
        if not ranges:
            done((original[:0],), None)
            return

        def attempt() -> Any:
            if any(who not in parts.values for who, _, _ in ranges):
                return WAITS
            whole = torch.zeros_like(original)
            for who, start, stop in ranges:
                whole[start:stop] = parts.values.pop(who)
            return (whole,)

        parts.waiting.start(step, done, attempt, ("batch", number))

    return AsyncCall(collect)


# ---- BatchFunction

_POLICIES = (
    "'low_priority_padding_with_max_batch_size', 'low_priority_padding_with_next_allowed_batch_size', "
    "'priority_isolation', 'priority_merge'"
)
batch_function_op = op(
    "BatchFunction",
    "in_tensors: *Tin, captured_tensors: *Tcaptured -> out_tensors: *Tout",
    "f: func ; num_batch_threads: int ; max_batch_size: int ; batch_timeout_micros: int ; "
    f"max_enqueued_batches: int = 10 ; allowed_batch_sizes: list(int) = [] ; {_SHARING} ; "
    "batching_queue: string = '' ; low_priority_max_batch_size: int = 0 ; "
    "low_priority_batch_timeout_micros: int = 0 ; low_priority_allowed_batch_sizes: list(int) = [] ; "
    "low_priority_max_enqueued_batches: int = 0 ; "
    f"mixed_priority_policy: string in [{_POLICIES}] = 'low_priority_padding_with_max_batch_size' ; "
    "batch_padding_policy: string in ['PAD_UP', 'BATCH_DOWN', 'MINIMIZE_TPU_COST_PER_REQUEST'] = 'PAD_UP' ; "
    "Tin: list(type) >= 1 ; Tcaptured: list(type) >= 0 ; Tout: list(type) >= 1 ; "
    "enable_large_batch_splitting: bool = false",
    asynchronous=True,
    keeps=[0, 1],
)
batch_function_op.infer(lambda node: [None] * len(node.outputs))
batch_function_op.no_gradient()


@batch_function_op.kernel(CPU)  # functions of the library run there
def _(node: Node, env: Environment) -> AsyncCall:
    function, count = env.function(node, node.attributes["f"]), len(node.attributes["Tin"])

    def run(batcher: Batcher, calls: list[BatchedCall]) -> None:
        joined, size = batcher.join(calls)
        last = calls[-1]
        results = function(last.step, *joined, *last.others)
        for result in results:
            if not result.ndim or result.shape[0] != size:
                raise invalid(f"A batched function gave {list(np.shape(result))} for a batch of {size} rows")
        start = 0
        for call in calls:
            rows = slice(start, start + call.rows)
            call.finish(tuple([result[rows] for result in results]), None)
            start += call.rows

    batcher = _batcher(node, env, run)
    return AsyncCall(lambda step, done, *inputs: batcher.add(step, done, inputs[:count], inputs[count:]))
