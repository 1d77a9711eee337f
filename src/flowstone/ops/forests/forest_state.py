"""What the resources of a forest hold: a tree, and the statistics of its leaves that may still be split."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.forests.decision_tree import DecisionTree
from flowstone.ops.forests.forest_examples import Examples
from flowstone.ops.forests.leaf_statistics import (
    LeafStatistics,
    Rules,
    read_statistics,
    serialize_statistics,
)

__all__ = ["ForestParams", "StatisticsState", "TreeState", "at_depth"]

Array = np.ndarray[Any, Any]


def at_depth(param: Any, depth: int) -> float:
    """The value of the message DepthDependentParam for nodes of this depth; 0 if it says nothing."""
    kind = param.WhichOneof("ParamType")
    if kind == "constant_value":
        return float(param.constant_value)
    if kind == "linear":
        line = param.linear
        return float(min(line.max_val, max(line.min_val, line.slope * depth + line.y_intercept)))
    if kind == "exponential":
        power = param.exponential
        return float(power.bias + power.multiplier * power.base ** (power.depth_multiplier * depth))
    if kind == "threshold":
        step = param.threshold
        return float(step.on_value if depth >= step.threshold else step.off_value)
    return 0.0


class ForestParams:
    """The message TensorForestParams, parsed; `of` keeps those of a text."""

    def __init__(self, serialized: bytes) -> None:
        from flowstone.io.proto import tensor_forest_params_pb2

        self.message = tensor_forest_params_pb2.TensorForestParams.FromString(serialized)
        message = self.message
        self.outputs = int(message.num_outputs)
        self.is_regression = bool(message.is_regression)
        self.sparse_leaves = message.leaf_type == tensor_forest_params_pb2.MODEL_SPARSE_CLASSIFICATION
        self.sparse_statistics = message.stats_type == tensor_forest_params_pb2.STATS_SPARSE_GINI
        if message.finish_type.type or message.pruning_type.type or message.initialize_average_splits:
            raise invalid(
                "flowstone's forests split a leaf once it has its number of examples, and keep all"
                " candidates: use split_finish_name='basic', split_pruning_name='none' and no"
                " initialize_average_splits"
            )

    @staticmethod
    @lru_cache(maxsize=64)
    def of(serialized: bytes) -> ForestParams:
        """What this text says; InvalidArgumentError for other kinds of finishing and pruning."""
        return ForestParams(serialized)

    def rules(self, depth: int) -> Rules:
        """How leaves of this depth behave."""
        message = self.message
        return Rules(
            self.outputs,
            self.is_regression,
            int(message.inequality_test_type),
            int(at_depth(message.num_splits_to_consider, depth)),
            at_depth(message.split_after_samples, depth),
            self.sparse_statistics,
        )

    def targets(self, labels: Array, count: int) -> Array:
        """float32 [examples, outputs]: 1 at an example's class, or its numbers.

        InvalidArgumentError for labels of another number of examples, or that are no classes of the forest.
        """
        if len(labels) != count:
            raise invalid(f"{count} examples have {len(labels)} labels")
        if self.is_regression:
            numbers = labels.reshape(count, -1)
            if numbers.shape[1] != self.outputs:
                raise invalid(f"labels have {numbers.shape[1]} numbers an example, the forest {self.outputs}")
            return np.asarray(numbers, np.float32)
        classes = labels.reshape(-1).astype(np.int64)
        if len(classes) != count:
            raise invalid(f"{count} examples have {len(classes)} labels")
        wrong = classes[(classes < 0) | (classes >= self.outputs)]
        if len(wrong):
            raise invalid(f"label {wrong[0]} is none of the forest's {self.outputs} classes")
        return np.asarray(np.eye(self.outputs, dtype=np.float32)[classes])


class TreeState:
    """A tree, once it has been created; `lock` is held while it is read or changed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.RLock()
        self._tree: DecisionTree | None = None

    @property
    def is_initialized(self) -> bool:
        """Whether it has been created."""
        return self._tree is not None

    def create(self, config: bytes, params: ForestParams) -> None:
        """Makes the tree of this message, or a new one if it is empty."""
        tree = DecisionTree(params.outputs, params.sparse_leaves)
        if config:
            tree.read_message(config)
        with self.lock:
            self._tree = tree

    @property
    def tree(self) -> DecisionTree:
        """The tree; NotFoundError before it is created."""
        if self._tree is None:
            raise errors.NotFoundError(
                None, None, f"Could not find the tree {self.name!r}: run its initializer first"
            )
        return self._tree


class StatisticsState:
    """The leaves of one tree that may be split, by node."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.RLock()
        self._leaves: dict[int, LeafStatistics] | None = None

    @property
    def is_initialized(self) -> bool:
        """Whether it has been created."""
        return self._leaves is not None

    def create(self, config: bytes, params: ForestParams) -> None:
        """Begins with the leaves of this message, or with the root if it is empty."""
        leaves = read_statistics(config, params.rules) if config else {}
        with self.lock:
            self._leaves = leaves or {0: LeafStatistics(params.rules(0), 0)}

    @property
    def leaves(self) -> dict[int, LeafStatistics]:
        """The statistics; NotFoundError before they are created."""
        if self._leaves is None:
            raise errors.NotFoundError(
                None, None, f"Could not find the statistics {self.name!r}: run their initializer first"
            )
        return self._leaves

    def process(
        self,
        examples: Examples,
        targets: Array,
        weights: Array,
        leaf_ids: Array,
        draws: np.random.RandomState,
    ) -> list[int]:
        """Takes a batch in; the leaves that are ready to be split, the one that became so last first."""
        ready = []
        with self.lock:
            for leaf in dict.fromkeys(leaf_ids.tolist()):
                statistics = self.leaves.get(leaf)
                if statistics is None:
                    raise invalid(f"node {leaf} is no leaf that may be split")
                rows = np.flatnonzero(leaf_ids == leaf)
                before = statistics.add(examples, rows, targets[rows], weights[rows], draws)
                if before is not None:
                    ready.append((int(rows[before]), leaf))
        return [leaf for _, leaf in sorted(ready, reverse=True)]

    def grow(self, state: TreeState, finished: Sequence[int], params: ForestParams) -> None:
        """Splits these leaves of the tree, until it has the most nodes that it may have."""
        with self.lock, state.lock:
            tree, leaves = state.tree, self.leaves
            for node in finished:
                if tree.size >= params.message.max_nodes:
                    break
                split = leaves[node].best_split() if node in leaves else None
                if split is None:
                    if node in leaves:
                        leaves[node].clear()
                    continue
                depth = leaves.pop(node).depth + 1
                for child in tree.split(node, split.test, split.left, split.right):
                    leaves[child] = LeafStatistics(params.rules(depth), depth)

    def serialize(self, params: ForestParams) -> bytes:
        """The message FertileStats; of leaves without examples if the parameters do not save statistics."""
        with self.lock:
            return serialize_statistics(self.leaves, list(self.leaves))
