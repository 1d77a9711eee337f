"""The operations that find buckets for boosted trees: quantiles of features, and each number's bucket."""

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
from flowstone.ops.forests.weighted_quantiles import Stream, Summary

__all__ = ["QuantileState"]

Array = np.ndarray[Any, Any]


class QuantileState:
    """Streams of numbers, one a feature, and the boundaries that were found when they were flushed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.RLock()
        self._streams: list[Stream] | None = None
        self._boundaries: list[Array] = []
        self._made_of: tuple[float, int, int] = (0.0, 0, 0)

    @property
    def is_initialized(self) -> bool:
        """Whether it has been created."""
        return self._streams is not None

    def create(self, epsilon: float, count: int, most: int) -> None:
        """Begins with `count` empty streams, whose ranks may be wrong by a part `epsilon`."""
        with self.lock:
            self._made_of = epsilon, count, most
            self._boundaries = [np.zeros(0, np.float32)] * count
            self._empty()

    def _empty(self) -> None:
        epsilon, count, most = self._made_of
        self._streams = [Stream(epsilon, most) for _ in range(count)]

    @property
    def streams(self) -> list[Stream]:
        """The streams; FailedPreconditionError before they are created."""
        if self._streams is None:
            raise errors.FailedPreconditionError(
                None, None, f"Resource {self.name!r} has no quantile streams yet: run its initializer first"
            )
        return self._streams

    @property
    def boundaries(self) -> list[Array]:
        """What was found or restored last."""
        return self._boundaries if self.streams is not None else []

    def restore(self, boundaries: Sequence[Array]) -> None:
        """Takes boundaries that were saved."""
        with self.lock:
            self._boundaries = [np.array(each, np.float32) for each in boundaries]

    def flush(self, buckets: int, quantiles: bool) -> None:
        """Finds the boundaries of all streams, and empties these."""
        with self.lock:
            found = [stream.finished() for stream in self.streams]
            self._boundaries = [
                np.unique(each.quantiles(buckets - 1)) if quantiles else each.boundaries(buckets)
                for each in found
            ]
            self._empty()

    def flush_summaries(self) -> list[Array]:
        """The entries of all streams' summaries, which are emptied."""
        with self.lock:
            found = [stream.finished().entries for stream in self.streams]
            self._empty()
            return found


def _create(node: Node) -> Callable[..., None]:
    most = node.attributes["max_elements"]
    return lambda state, epsilon, count: state.create(float(epsilon), int(count), most)


_HANDLE = "quantile_stream_resource_handle: resource"
declare_resource_handle(
    "BoostedTreesQuantileStreamResourceHandleOp", "boosted_trees_quantiles", QuantileState
)
declare_step_op(
    "BoostedTreesCreateQuantileStreamResource",
    f"{_HANDLE}, epsilon: float, num_streams: int64 ->",
    "max_elements: int = 1099511627776",
    None,
    _create,
)
declare_step_op(
    "IsBoostedTreesQuantileStreamResourceInitialized",
    f"{_HANDLE} -> is_initialized: bool",
    "",
    (),
    lambda node: lambda state: torch.tensor(state.is_initialized),
)


def _add(node: Node) -> Callable[..., None]:
    def call(state: QuantileState, *summaries: Any) -> None:
        with state.lock:
            for stream, entries in zip(state.streams, summaries, strict=True):
                stream.push_summary(Summary(np.asarray(entries).copy()))

    return call


declare_step_op(
    "BoostedTreesQuantileStreamResourceAddSummaries",
    f"{_HANDLE}, summaries: num_features*float ->",
    "num_features: int >= 0",
    None,
    _add,
)
declare_step_op(
    "BoostedTreesQuantileStreamResourceDeserialize",
    f"{_HANDLE}, bucket_boundaries: num_streams*float ->",
    "num_streams: int >= 1",
    None,
    lambda node: lambda state, *boundaries: state.restore([np.asarray(each) for each in boundaries]),
)


def _flush(node: Node) -> Callable[..., None]:
    quantiles = node.attributes["generate_quantiles"]
    return lambda state, buckets: state.flush(int(buckets), quantiles)


declare_step_op(
    "BoostedTreesQuantileStreamResourceFlush",
    f"{_HANDLE}, num_buckets: int64 ->",
    "generate_quantiles: bool = false",
    None,
    _flush,
)


def _arrays(found: Sequence[Array]) -> Any:
    return tuple(torch.from_numpy(each.copy()) for each in found)


declare_step_op(
    "BoostedTreesQuantileStreamResourceGetBucketBoundaries",
    f"{_HANDLE} -> bucket_boundaries: num_features*float",
    "num_features: int >= 0",
    lambda node: [(None,)] * node.attributes["num_features"],
    lambda node: lambda state: _arrays(state.boundaries),
)
declare_step_op(
    "BoostedTreesFlushQuantileSummaries",
    f"{_HANDLE} -> summaries: num_features*float",
    "num_features: int >= 0",
    lambda node: [(None, 4)] * node.attributes["num_features"],
    lambda node: lambda state: _arrays(state.flush_summaries()),
)

# ---- pure functions

summaries_op = op(
    "BoostedTreesMakeQuantileSummaries",
    "float_values: num_features*float, example_weights: float, epsilon: float"
    " -> summaries: num_features*float",
    "num_features: int >= 0",
)
summaries_op.infer(lambda node: [(None, 4)] * node.attributes["num_features"])
summaries_op.not_differentiable()


@summaries_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    def call(*parts: Any) -> Any:
        *features, weights, epsilon = (np.asarray(part) for part in parts)
        found = []
        for values in features:
            if len(weights) not in (1, len(values)):
                raise invalid(f"{len(values)} values have {len(weights)} weights")
            stream = Stream(float(epsilon), len(values) + 1)
            stream.push(values, np.broadcast_to(weights, values.shape))
            found.append(stream.finished().entries)
        return _arrays(found)

    return call


bucketize_op = op(
    "BoostedTreesBucketize",
    "float_values: num_features*float, bucket_boundaries: num_features*float -> buckets: num_features*int32",
    "num_features: int >= 0",
)
bucketize_op.infer(lambda node: [node.dims(at) for at in range(node.attributes["num_features"])])
bucketize_op.not_differentiable()


@bucketize_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    count = node.attributes["num_features"]

    def call(*parts: Any) -> Any:
        arrays = [np.asarray(part) for part in parts]
        found = []
        for values, boundaries in zip(arrays[:count], arrays[count:], strict=True):
            at = np.searchsorted(boundaries, values)
            found.append(np.minimum(at, max(len(boundaries) - 1, 0)).astype(np.int32))
        return _arrays(found)

    return call
