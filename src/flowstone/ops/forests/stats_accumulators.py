"""The operations of accumulators: sums of gradients and Hessians by node and feature, while batches come in.

An accumulator has a stamp, the number of the step of growing that it is for: what comes for another is
dropped. Rows are in the order of nodes, then of dimensions, then of features.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.forests.boosted_trees_ops import declare_resource_handle, declare_step_op

__all__ = ["StatsState", "Sums", "check_stamp"]

Array = np.ndarray[Any, Any]
_TABLE = 8  # how many places a table has for a row, at most


def check_stamp(resource: Any, stamp: int) -> None:
    """FailedPreconditionError if a stamp is not the resource's."""
    if resource.stamp != stamp:
        raise errors.FailedPreconditionError(
            None, None, f"{resource.name!r} has the stamp {resource.stamp}, not {stamp}"
        )


class Sums(NamedTuple):
    """Rows: nodes int32 [rows], features int64 [rows, 2] (feature, dimension), gradients and Hessians."""

    nodes: Array
    features: Array
    gradients: Array
    hessians: Array

    @staticmethod
    def empty(gradient_shape: tuple[int, ...], hessian_shape: tuple[int, ...]) -> Sums:
        """No rows."""
        shapes = (gradient_shape, hessian_shape)
        sums = [np.zeros((0, *shape), np.float32) for shape in shapes]
        return Sums(np.zeros(0, np.int32), np.zeros((0, 2), np.int64), *sums)

    def with_more(self, other: Sums) -> Sums:
        """The rows of both, of equal nodes and features added."""
        return Sums(*(np.concatenate(both) for both in zip(self, other, strict=True))).summed()

    def summed(self) -> Sums:
        """One row a node and feature, in order."""
        firsts, places = self._distinct()
        sums = []
        for terms in (self.gradients, self.hessians):
            width = math.prod(terms.shape[1:])
            total = np.zeros(len(firsts) * width, np.float32)  # flat: NumPy adds at places of vectors fast
            np.add.at(total, (places[:, None] * width + np.arange(width)).ravel(), terms.ravel())
            sums.append(total.reshape(len(firsts), *terms.shape[1:]))
        return Sums(self.nodes[firsts], self.features[firsts], *sums)

    def _distinct(self) -> tuple[Array, Array]:
        """A row of each node and feature, in order; and of every row which of them is its own."""
        keys = self.nodes.astype(np.int64), self.features[:, 1], self.features[:, 0]
        key, count = np.zeros(len(self.nodes), np.int64), 1
        for each in keys if len(key) else ():
            least = int(each.min())
            size = int(each.max()) - least + 1
            count *= size
            if count > _TABLE * len(key):
                break
            key = key * size + (each - least)
        else:  # few pairs of nodes and features: a table of them, where other rows have to be sorted
            firsts = np.full(count, -1)
            firsts[key] = np.arange(len(key))
            is_there = firsts >= 0
            return firsts[is_there], (np.cumsum(is_there) - 1)[key]
        order = np.lexsort(keys[::-1])
        is_new = np.ones(len(order), bool)
        is_new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], 0)
        places = np.empty(len(order), np.int64)
        places[order] = np.cumsum(is_new) - 1
        return order[is_new], places

    def tensors(self) -> tuple[Any, ...]:
        """The rows as an op's outputs."""
        return tuple(torch.from_numpy(np.ascontiguousarray(each)) for each in self)


def _rows(nodes: Any, features: Any, gradients: Any, hessians: Any) -> Sums:
    rows = Sums(np.asarray(nodes), np.asarray(features), np.asarray(gradients), np.asarray(hessians))
    if rows.features.ndim != 2 or rows.features.shape[1] != 2:
        raise invalid(
            f"feature_ids must be [rows, 2], feature and dimension, not {list(rows.features.shape)}"
        )
    if len({len(each) for each in rows}) != 1:
        raise invalid(f"nodes, features, gradients and Hessians have {[len(each) for each in rows]} rows")
    return rows


class StatsState:
    """The sums of one accumulator; `updates` counts what was added since it was last emptied."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.RLock()
        self.stamp = -1
        self.updates = 0
        self._shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
        self._sums: Sums | None = None

    @property
    def is_initialized(self) -> bool:
        """Whether it has been created."""
        return self._sums is not None

    def create(self, stamp: int, gradient_shape: tuple[int, ...], hessian_shape: tuple[int, ...]) -> None:
        """Begins without rows, unless it has begun."""
        with self.lock:
            if self._sums is None:
                self._shapes = gradient_shape, hessian_shape
                self.stamp, self._sums = stamp, Sums.empty(*self._shapes)

    @property
    def sums(self) -> Sums:
        """The rows; FailedPreconditionError before they are created."""
        if self._sums is None:
            raise errors.FailedPreconditionError(
                None, None, f"accumulator {self.name!r} is not there yet: run its initializer first"
            )
        return self._sums

    def _check(self, rows: Sums) -> None:
        for kind, terms, shape in zip(("Gradient", "Hessian"), rows[2:], self._shapes, strict=True):
            if terms.shape[1:] != shape:
                raise invalid(
                    f"{kind} dimensions must match: {list(shape)}, {list(terms.shape[1:])} of {self.name!r}"
                )

    def add(self, stamp: int, rows: Sums) -> None:
        """Adds rows, if they are for the stamp."""
        with self.lock:
            sums = self.sums
            if stamp != self.stamp:
                return
            self._check(rows)
            self._sums = sums.with_more(rows)
            self.updates += 1

    def flush(self, stamp: int, next_stamp: int) -> tuple[int, Sums]:
        """How many updates there were, and the rows, which go."""
        with self.lock:
            found = self.updates, self.sums
            check_stamp(self, stamp)
            self.updates, self._sums, self.stamp = 0, Sums.empty(*self._shapes), next_stamp
            return found

    def restore(self, stamp: int, updates: int, rows: Sums) -> None:
        """Takes what was saved."""
        with self.lock:
            self._check(rows)
            self.stamp, self.updates, self._sums = stamp, updates, rows.summed()


# ---- the ops, for one output and for several

_ROWS = "partition_ids: int32, feature_ids: int64, gradients: float, hessians: float"
_OUTPUT_ROWS = (
    "output_partition_ids: int32, output_feature_ids: int64, output_gradients: float, output_hessians: float"
)
_HANDLE = "stats_accumulator_handle: resource"


def _add(node: Node) -> Callable[..., None]:
    count = node.attributes["num_resource_handles"]

    def call(*inputs: Any) -> None:
        states, stamp, parts = inputs[:count], int(inputs[count]), inputs[count + 1 :]
        for at, state in enumerate(states):
            state.add(stamp, _rows(*parts[at::count]))

    return call


def _flush(node: Node) -> Callable[..., Any]:
    def call(state: StatsState, stamp: Any, next_stamp: Any) -> tuple[Any, ...]:
        updates, rows = state.flush(int(stamp), int(next_stamp))
        return torch.tensor(updates), *rows.tensors()

    return call


def _serialize(node: Node) -> Callable[..., Any]:
    def call(state: StatsState) -> tuple[Any, ...]:
        with state.lock:
            return torch.tensor(state.stamp), torch.tensor(state.updates), *state.sums.tensors()

    return call


def _deserialize(node: Node) -> Callable[..., None]:
    def call(state: StatsState, stamp: Any, updates: Any, nodes: Any, features: Any, *sums: Any) -> None:
        ids = np.asarray(features)
        if ids.ndim == 1:  # TensorFlow 1.4 saved features without dimensions
            ids = np.stack([ids, np.zeros_like(ids)], axis=1)
        state.restore(int(stamp), int(updates), _rows(nodes, ids, *sums))

    return call


def _shape(given: Any) -> tuple[int, ...]:
    return tuple(np.asarray(given).tolist())


def _create(node: Node) -> Callable[..., None]:
    return lambda state, stamp, *shapes: state.create(
        int(stamp), *(tuple(map(_shape, shapes)) if shapes else ((), ()))
    )


def _declare(kind: str, create_inputs: str, row_dims: list[Any]) -> None:
    prefix = f"StatsAccumulator{kind}"
    declare_resource_handle(f"{prefix}ResourceHandleOp", f"stats_accumulator_{kind.lower()}", StatsState)
    declare_step_op(
        f"CreateStatsAccumulator{kind}", f"{_HANDLE}, stamp_token: int64{create_inputs} ->", "", None, _create
    )
    declare_step_op(
        f"{prefix}IsInitialized",
        f"{_HANDLE} -> is_initialized: bool",
        "",
        (),
        lambda node: lambda state: torch.tensor(state.is_initialized),
    )
    many = ", ".join(f"{part.replace(': ', ': num_resource_handles*')}" for part in _ROWS.split(", "))
    declare_step_op(
        f"{prefix}Add",
        f"stats_accumulator_handles: num_resource_handles*resource, stamp_token: int64, {many} ->",
        "num_resource_handles: int >= 1",
        None,
        _add,
    )
    declare_step_op(
        f"{prefix}Flush",
        f"{_HANDLE}, stamp_token: int64, next_stamp_token: int64 -> num_updates: int64, {_OUTPUT_ROWS}",
        "",
        [(), *row_dims],
        _flush,
    )
    declare_step_op(
        f"{prefix}Serialize",
        f"{_HANDLE} -> stamp_token: int64, num_updates: int64, {_OUTPUT_ROWS}",
        "",
        [(), (), *row_dims],
        _serialize,
    )
    declare_step_op(
        f"{prefix}Deserialize",
        f"{_HANDLE}, stamp_token: int64, num_updates: int64, {_ROWS} ->",
        "",
        None,
        _deserialize,
    )
    summary = op(f"{prefix}MakeSummary", f"{_ROWS} -> {_OUTPUT_ROWS}", "")
    summary.infer(lambda node: row_dims)
    summary.not_differentiable()

    @summary.kernel(CPU)
    def _(node: Node, env: Environment) -> Callable[..., Any]:
        return lambda *rows: _rows(*rows).summed().tensors()


_declare("Scalar", "", [(None,), (None, 2), (None,), (None,)])
_declare(
    "Tensor",
    ", per_slot_gradient_shape: int64, per_slot_hessian_shape: int64",
    [(None,), (None, 2), None, None],
)
