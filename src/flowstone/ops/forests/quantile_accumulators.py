"""The operations of quantile accumulators: the buckets of a feature, found while its values stream in.

An accumulator has a stamp, the number of the step of growing that it is for: what comes for another is
dropped. Summaries and streams are texts of the messages QuantileSummaryState and QuantileStreamState.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.forests.boosted_trees_ops import declare_resource_handle, declare_step_op
from flowstone.ops.forests.stats_accumulators import check_stamp
from flowstone.ops.forests.weighted_quantiles import Stream, Summary

__all__ = ["AccumulatorState"]

Array = np.ndarray[Any, Any]


def _message_of(summary: Summary, message: Any) -> Any:
    for value, weight, least, greatest in summary.entries.tolist():
        message.entries.add(value=value, weight=weight, min_rank=least, max_rank=greatest)
    return message


def _summary_of(message: Any) -> Summary:
    rows = [(each.value, each.weight, each.min_rank, each.max_rank) for each in message.entries]
    return Summary(np.asarray(rows, np.float32).reshape(-1, 4))


_TAGS = np.array([0x0D, 0x15, 0x1D, 0x25], np.uint8)  # of an entry's four numbers, each of 32 bits
_ENTRY, _WHOLE = 0x0A, 22


def _serialized(summary: Summary) -> bytes:
    """The text of a message QuantileSummaryState, written at once: numbers of zero are left out."""
    numbers = np.ascontiguousarray(summary.entries, "<f4")
    is_there = numbers.view("<u4") != 0
    rows = np.empty((len(numbers), _WHOLE), np.uint8)
    rows[:, 0], rows[:, 1] = _ENTRY, 5 * is_there.sum(1)
    parts = rows[:, 2:].reshape(-1, 4, 5)
    parts[:, :, 0], parts[:, :, 1:] = _TAGS, numbers.view(np.uint8).reshape(-1, 4, 4)
    rows[:, 2:] = parts.reshape(-1, 20)
    kept = np.concatenate([np.ones((len(rows), 2), bool), np.repeat(is_there, 5, axis=1)], axis=1)
    text: bytes = rows[kept].tobytes()
    return text


def _summary_of_text(text: bytes) -> Summary:
    """What `_serialized` wrote, or any other text of the message."""
    from flowstone.io.proto import quantiles_pb2

    starts, at = [], 0
    while at + 1 < len(text) and text[at] == _ENTRY:
        starts.append(at)
        at += 2 + text[at + 1]
    places, data = np.array(starts, np.int64), np.frombuffer(text, np.uint8)
    if at == len(text) and len(places):
        sizes = np.diff(places, append=at)
        whole = sizes == _WHOLE
        parts = data[places[whole][:, None] + np.arange(2, _WHOLE)].reshape(-1, 4, 5)
        if (parts[:, :, 0] == _TAGS).all():
            entries = np.empty((len(places), 4), np.float32)
            entries[whole] = np.ascontiguousarray(parts[:, :, 1:]).view("<f4")[:, :, 0]
            for place in np.flatnonzero(~whole).tolist():
                part = text[places[place] : places[place] + sizes[place]]
                entries[place] = _summary_of(quantiles_pb2.QuantileSummaryState.FromString(part)).entries
            return Summary(entries)
    return _summary_of(quantiles_pb2.QuantileSummaryState.FromString(text))


class AccumulatorState:
    """A stream of one feature's values, and the buckets found when it was flushed last."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.RLock()
        self.stamp = -1
        self.ready = False
        self.buckets = np.zeros(0, np.float32)
        self._stream: Stream | None = None
        self._make: Callable[[], Stream] = lambda: Stream(0.01, 2)
        self._find: Callable[[Summary], Array] = lambda summary: summary.boundaries(2)

    @property
    def is_initialized(self) -> bool:
        """Whether it has been created."""
        return self._stream is not None

    @property
    def stream(self) -> Stream:
        """The stream; FailedPreconditionError before it is created."""
        if self._stream is None:
            raise errors.FailedPreconditionError(
                None, None, f"accumulator {self.name!r} is not there yet: run its initializer first"
            )
        return self._stream

    def create(self, stamp: int, make: Callable[[], Stream], find: Callable[[Summary], Array]) -> None:
        """Begins with what `make` makes, unless it has begun; `find` finds buckets."""
        with self.lock:
            if self._stream is None:
                self._make, self._find, self.stamp, self._stream = make, find, stamp, make()

    def add(self, stamp: int, summary: Summary) -> None:
        """Takes in what a summary has seen, if it is for the stamp."""
        with self.lock:
            stream = self.stream
            if stamp == self.stamp:
                stream.push_summary(summary)

    def flush(self, stamp: int, next_stamp: int) -> None:
        """Finds the buckets of what has streamed in, and empties the stream."""
        with self.lock:
            self.buckets = self._find(self._emptied(stamp, next_stamp))
            self.ready = True

    def flush_summary(self, stamp: int, next_stamp: int) -> bytes:
        """The summary of what has streamed in; empties the stream."""
        with self.lock:
            return _serialized(self._emptied(stamp, next_stamp))

    def _emptied(self, stamp: int, next_stamp: int) -> Summary:
        found = self.stream.finished()
        check_stamp(self, stamp)
        self._stream, self.stamp = self._make(), next_stamp
        return found

    def serialize(self) -> bytes:
        """The stream: the summaries of its levels, and one of what is not summarised yet, nothing."""
        from flowstone.io.proto import quantiles_pb2

        message = quantiles_pb2.QuantileStreamState()
        for summary in (*self.stream.summaries, Summary()):
            _message_of(summary, message.summaries.add())
        text: bytes = message.SerializeToString()
        return text

    def restore(self, stamp: int, text: bytes, ready: bool, buckets: Array) -> None:
        """Takes what was saved."""
        from flowstone.io.proto import quantiles_pb2

        message = quantiles_pb2.QuantileStreamState.FromString(text)
        with self.lock:
            self._stream = self._make()
            self._stream.summaries = [_summary_of(each) for each in message.summaries[:-1]]
            for each in message.summaries[-1:]:
                self._stream.push_summary(_summary_of(each))
            self.stamp, self.ready, self.buckets = stamp, ready, np.array(buckets, np.float32)


# ---- ops on accumulators

_HANDLE = "quantile_accumulator_handle: resource"
_HANDLES = "quantile_accumulator_handles: num_resource_handles*resource, stamp_token: int64"
_COUNT = "num_resource_handles: int >= 1"


def _epsilon(node: Node) -> float:
    """The error of ranks as an attribute of 32 bits has it: how large blocks are depends on its last bits."""
    return float(np.float32(node.attributes["epsilon"]))


def _create(node: Node) -> Callable[..., None]:
    attributes = node.attributes
    epsilon, most = _epsilon(node), attributes["max_elements"]
    count, is_even = attributes["num_quantiles"], attributes["generate_quantiles"]

    def find(summary: Summary) -> Array:
        return summary.quantiles(count) if is_even else summary.boundaries(count)

    return lambda state, stamp: state.create(int(stamp), lambda: Stream(epsilon, most), find)


def _add(node: Node) -> Callable[..., None]:
    count = node.attributes["num_resource_handles"]

    def call(*inputs: Any) -> None:
        for state, text in zip(inputs[:count], inputs[count + 1 :], strict=True):
            state.add(int(inputs[count]), _summary_of_text(bytes(text.item())))

    return call


def _get_buckets(node: Node) -> Callable[..., Any]:
    def call(*inputs: Any) -> Any:
        states, stamp = inputs[:-1], int(inputs[-1])
        found = [
            (state.ready, state.buckets) if state.is_initialized and state.stamp == stamp else (False, _NONE)
            for state in states
        ]
        ready = [torch.tensor(is_ready) for is_ready, _ in found]
        return *ready, *(torch.from_numpy(buckets.copy()) for _, buckets in found)

    return call


_NONE = np.zeros(0, np.float32)


def _text(value: bytes) -> Array:
    found = np.empty((), object)
    found[()] = value
    return found


def _serialize(node: Node) -> Callable[..., Any]:
    def call(state: AccumulatorState) -> Any:
        with state.lock:
            text = _text(state.serialize())
            ready = torch.tensor(state.ready)
            return torch.tensor(state.stamp), text, ready, torch.from_numpy(state.buckets.copy())

    return call


declare_resource_handle("QuantileStreamResourceHandleOp", "quantile_accumulator", AccumulatorState)
declare_step_op(
    "CreateQuantileAccumulator",
    f"{_HANDLE}, stamp_token: int64 ->",
    "container: string = '' ; shared_name: string = '' ; max_elements: int = 1099511627776 ; epsilon: float"
    " ; num_quantiles: int ; generate_quantiles: bool = false",
    None,
    _create,
)
declare_step_op(
    "QuantileAccumulatorIsInitialized",
    f"{_HANDLE} -> is_initialized: bool",
    "",
    (),
    lambda node: lambda state: torch.tensor(state.is_initialized),
)
declare_step_op(
    "QuantileAccumulatorAddSummaries",
    f"{_HANDLES}, summaries: num_resource_handles*string ->",
    _COUNT,
    None,
    _add,
)
declare_step_op(
    "QuantileAccumulatorGetBuckets",
    f"{_HANDLES} -> are_buckets_ready: num_resource_handles*bool, buckets: num_resource_handles*float",
    _COUNT,
    lambda node: (
        [()] * node.attributes["num_resource_handles"] + [(None,)] * node.attributes["num_resource_handles"]
    ),
    _get_buckets,
)
declare_step_op(
    "QuantileAccumulatorFlush",
    f"{_HANDLE}, stamp_token: int64, next_stamp_token: int64 ->",
    "",
    None,
    lambda node: lambda state, stamp, following: state.flush(int(stamp), int(following)),
)
declare_step_op(
    "QuantileAccumulatorFlushSummary",
    f"{_HANDLE}, stamp_token: int64, next_stamp_token: int64 -> output: string",
    "",
    (),
    lambda node: lambda state, stamp, following: _text(state.flush_summary(int(stamp), int(following))),
)
declare_step_op(
    "QuantileAccumulatorSerialize",
    f"{_HANDLE} -> stamp_token: int64, stream_state: string, are_buckets_ready: bool, buckets: float",
    "",
    [(), (), (), (None,)],
    _serialize,
)
declare_step_op(
    "QuantileAccumulatorDeserialize",
    f"{_HANDLE}, stamp_token: int64, stream_state: string, are_buckets_ready: bool, buckets: float ->",
    "",
    None,
    lambda node: (
        lambda state, stamp, text, ready, buckets: state.restore(
            int(stamp), bytes(text.item()), bool(ready), np.asarray(buckets)
        )
    ),
)

# ---- pure functions

_COLUMNS = (
    "dense_float_features: num_dense_features*float, sparse_float_feature_indices: num_sparse_features*int64,"
    " sparse_float_feature_values: num_sparse_features*float,"
    " sparse_float_feature_shapes: num_sparse_features*int64, example_weights: float"
)
_COUNTS = "num_dense_features: int >= 0 ; num_sparse_features: int >= 0"


def _columns(node: Node, inputs: Sequence[Any]) -> list[tuple[Array, Array]]:
    """The values of each column and the weights of their examples, dense columns first."""
    dense, sparse = node.attributes["num_dense_features"], node.attributes["num_sparse_features"]
    arrays = [np.asarray(each) for each in inputs]
    weights = arrays[-1].reshape(-1)
    found = []
    for values in arrays[:dense]:
        if values.size != len(weights):
            raise invalid(f"{values.size} values of a dense column have {len(weights)} weights")
        found.append((values.reshape(-1), weights))
    for at in range(dense, dense + sparse):
        found.append((arrays[at + sparse], weights[arrays[at][:, 0]]))
    return found


def _stream_of(values: Array, weights: Array, epsilon: float, most: int) -> Summary:
    stream = Stream(epsilon, most)
    stream.push(values, weights)
    return stream.finished()


summaries_op = op(
    "MakeQuantileSummaries",
    f"{_COLUMNS} -> dense_summaries: num_dense_features*string, sparse_summaries: num_sparse_features*string",
    f"{_COUNTS} ; epsilon: float",
)
summaries_op.infer(
    lambda node: [()] * (node.attributes["num_dense_features"] + node.attributes["num_sparse_features"])
)
summaries_op.not_differentiable()


@summaries_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    epsilon = _epsilon(node)

    def call(*inputs: Any) -> Any:
        found = []
        for values, weights in _columns(node, inputs):
            most = np.asarray(inputs[-1]).size + 1
            found.append(_text(_serialized(_stream_of(values, weights, epsilon, most))))
        return tuple(found)

    return call


buckets_op = op(
    "QuantileBuckets",
    f"{_COLUMNS} -> dense_buckets: num_dense_features*float, sparse_buckets: num_sparse_features*float",
    f"{_COUNTS} ; dense_config: list(string) ; sparse_config: list(string)",
)
buckets_op.infer(
    lambda node: [(None,)] * (node.attributes["num_dense_features"] + node.attributes["num_sparse_features"])
)
buckets_op.not_differentiable()


@buckets_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    from flowstone.io.proto import quantiles_pb2

    texts = [*node.attributes["dense_config"], *node.attributes["sparse_config"]]
    texts = [text.encode("latin-1") if isinstance(text, str) else text for text in texts]
    configs = [quantiles_pb2.QuantileConfig.FromString(text) for text in texts]

    def call(*inputs: Any) -> Any:
        found = []
        for (values, weights), config in zip(_columns(node, inputs), configs, strict=True):
            most = np.asarray(inputs[-1]).size + 1
            summary = _stream_of(values, weights, config.eps, most)
            found.append(torch.from_numpy(summary.boundaries(config.num_quantiles)))
        return tuple(found)

    return call


quantiles_op = op(
    "Quantiles",
    "dense_values: num_dense_features*float, sparse_values: num_sparse_features*float,"
    " dense_buckets: num_dense_features*float, sparse_buckets: num_sparse_features*float,"
    " sparse_indices: num_sparse_features*int64"
    " -> dense_quantiles: num_dense_features*int32, sparse_quantiles: num_sparse_features*int32",
    _COUNTS,
)
quantiles_op.infer(
    lambda node: (
        [(None, 2)] * (node.attributes["num_dense_features"] + node.attributes["num_sparse_features"])
    )
)
quantiles_op.not_differentiable()


@quantiles_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    dense, sparse = node.attributes["num_dense_features"], node.attributes["num_sparse_features"]
    columns = dense + sparse

    def call(*inputs: Any) -> Any:
        arrays = [np.asarray(each) for each in inputs]
        found = []
        for at, (values, buckets) in enumerate(
            zip(arrays[:columns], arrays[columns : 2 * columns], strict=True)
        ):
            places = np.minimum(np.searchsorted(buckets, values.reshape(-1)), max(len(buckets) - 1, 0))
            dimensions = np.zeros_like(places) if at < dense else arrays[2 * columns + at - dense][:, 1]
            found.append(torch.from_numpy(np.stack([places, dimensions], 1).astype(np.int32)))
        return tuple(found)

    return call


bucketize_op = op(
    "BucketizeWithInputBoundaries",
    "input: T, boundaries: float -> output: int32",
    "T: type in [int32, int64, float32, float64]",
)
bucketize_op.infer(lambda node: node.dims(0))
bucketize_op.not_differentiable()


@bucketize_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    def call(values: Any, boundaries: Any) -> Any:
        bounds = np.asarray(boundaries)
        if (bounds[1:] < bounds[:-1]).any():
            raise invalid("Expected sorted boundaries")
        places = np.searchsorted(bounds, np.asarray(values), side="right")
        return torch.from_numpy(np.asarray(places).astype(np.int32))

    return call
