"""`TreeEnsemble`: trees that are grown layer by layer, each to lessen the loss that those before it left.

The ensemble is the message `boosted_trees.TreeEnsemble`, which is what checkpoints keep; `Arrays` has a
tree's nodes side by side, made anew when the tree has changed. A node that was split keeps in its metadata
the leaf that it was and the gain of the split. The tree that grows is the last; a finished one is followed by
a new tree of one leaf of 0.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework import errors
from flowstone.ops.arrays.arrays import invalid

__all__ = ["NO_PRUNING", "POST_PRUNING", "PRE_PRUNING", "EnsembleState", "Split"]

Array = np.ndarray[Any, Any]
NO_PRUNING, PRE_PRUNING, POST_PRUNING = range(3)
_BIAS_SETTLED = 0.01  # by which part of itself a bias that is found may still change
_TREE_WEIGHT = 1.0  # the learning rate is in the leaves


class Split(NamedTuple):
    """The best question of a node; contributions are those of the children, before the learning rate."""

    gain: float
    feature: int
    threshold: int
    left: float
    right: float


@dataclass
class Arrays:
    """A tree's nodes: `feature` is -1 for leaves, `value` is the logit of the leaf that a node is or was."""

    feature: Array
    threshold: Array
    left: Array
    right: Array
    value: Array

    @staticmethod
    def of(tree: Any) -> Arrays:
        """The nodes of this message."""
        rows = []
        for node in tree.nodes:
            if node.WhichOneof("node") == "bucketized_split":
                split = node.bucketized_split
                leaf = node.metadata.original_leaf
                rows.append((split.feature_id, split.threshold, split.left_id, split.right_id, leaf.scalar))
            else:
                rows.append((-1, 0, 0, 0, node.leaf.scalar))
        columns = list(zip(*rows, strict=True))
        numbers = [np.asarray(column, np.int64) for column in columns[:4]]
        feature, threshold, left, right = numbers
        return Arrays(feature, threshold, left, right, np.asarray(columns[4], np.float32))

    def children(self, nodes: Array, features: Array) -> Array:
        """The nodes after these, for the examples in the columns of `features`; a leaf's is itself."""
        feature = self.feature[nodes]
        values = features[feature, np.arange(len(nodes))]
        below = np.where(values <= self.threshold[nodes], self.left[nodes], self.right[nodes])
        return np.where(feature < 0, nodes, below)

    def leaves(self, nodes: Array, features: Array) -> Array:
        """The leaves that examples come to from these nodes."""
        while (self.feature[nodes] >= 0).any():
            nodes = self.children(nodes, features)
        return nodes


class EnsembleState:
    """An ensemble, once it has been created; `lock` is held while it is read or changed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.RLock()
        self.stamp = -1
        self._message: Any = None
        self._arrays: dict[int, Arrays] = {}

    @property
    def is_initialized(self) -> bool:
        """Whether it has been created."""
        return self._message is not None

    def read(self, stamp: int, serialized: bytes) -> None:
        """Makes the ensemble of this message; InvalidArgumentError if it is none."""
        from google.protobuf.message import DecodeError

        from flowstone.io.proto import boosted_trees_pb2

        try:
            message = boosted_trees_pb2.TreeEnsemble.FromString(serialized)
        except DecodeError:
            raise invalid("Unable to parse tree ensemble proto.") from None
        with self.lock:
            self.stamp, self._message, self._arrays = stamp, message, {}

    @property
    def message(self) -> Any:
        """The message; FailedPreconditionError before the ensemble is created."""
        if self._message is None:
            raise errors.FailedPreconditionError(
                None, None, f"Resource {self.name!r} is no tree ensemble yet: run its initializer first"
            )
        return self._message

    def arrays(self, tree: int) -> Arrays:
        """The nodes of a tree."""
        if tree not in self._arrays:
            self._arrays[tree] = Arrays.of(self.message.trees[tree])
        return self._arrays[tree]

    # ---- asking

    def states(self) -> tuple[int, int, int, list[int]]:
        """How many trees, finished trees, layers tried, and which nodes the last layer has: first, one after
        last.
        """
        message = self.message
        trees, growing = len(message.trees), message.growing_metadata
        open_trees = int(trees > 0 and not message.tree_metadata[trees - 1].is_finalized)
        nodes = [growing.last_layer_node_start, max(1, growing.last_layer_node_end)]
        return trees, trees - open_trees, growing.num_layers_attempted, nodes

    def logits(self, features: Array) -> Array:
        """float32 [examples]: the sum over all trees."""
        total = np.zeros(features.shape[1], np.float32)
        for number, weight in enumerate(self.message.tree_weights):
            tree = self.arrays(number)
            total += np.float32(weight) * tree.value[tree.leaves(np.zeros(len(total), np.int64), features)]
        return total

    def further(self, trees: Array, nodes: Array, features: Array) -> tuple[Array, Array, Array]:
        """What examples' logits change by from where they were cached; the trees and leaves they are at now.

        A node of -1 is an example that was not cached.
        """
        count = len(self.message.trees)
        change = np.zeros(len(trees), np.float32)
        if not count:
            return change, np.zeros_like(trees), np.zeros_like(nodes)
        at = np.maximum(nodes, 0).astype(np.int64)
        for number in range(int(trees.min(initial=count)), count):
            tree, weight = self.arrays(number), np.float32(self.message.tree_weights[number])
            inside = np.flatnonzero(trees <= number)
            cached = inside[(trees[inside] == number) & (nodes[inside] >= 0)]
            fresh = np.setdiff1d(inside, np.flatnonzero(trees == number))
            at[fresh] = 0
            if len(cached):
                at[cached], moved = self._after_pruning(number, at[cached])
                change[cached] += weight * (moved - tree.value[at[cached]])
            at[inside] = tree.leaves(at[inside], features[:, inside])
            change[inside] += weight * tree.value[at[inside]]
        return change, np.full_like(trees, count - 1), at.astype(nodes.dtype)

    def _after_pruning(self, tree: int, nodes: Array) -> tuple[Array, Array]:
        """Where these nodes went when the tree was pruned, and what their logits changed by."""
        moved = self.message.tree_metadata[tree].post_pruned_nodes_meta
        if not moved:
            return nodes, np.zeros(len(nodes), np.float32)
        places = np.asarray([each.new_node_id for each in moved], np.int64)
        changes = np.asarray([each.logit_change[0] for each in moved], np.float32)
        return places[nodes], changes[nodes]

    def paths(self, features: Array) -> list[tuple[list[int], list[float]]]:
        """Of each example the features that its way asks for; its logit at first and after each of them."""
        return [self._path(features[:, example : example + 1]) for example in range(features.shape[1])]

    def _path(self, features: Array) -> tuple[list[int], list[float]]:
        weights = [np.float32(weight) for weight in self.message.tree_weights]
        asked: list[int] = []
        logits = [float(weights[0] * self.arrays(0).value[0])]
        past = np.float32(0)
        for number, weight in enumerate(weights):
            tree, node = self.arrays(number), np.zeros(1, np.int64)
            while tree.feature[node[0]] >= 0:
                asked.append(int(tree.feature[node[0]]))
                node = tree.children(node, features)
                logits.append(float(past + weight * tree.value[node[0]]))
            if number == 0 or node[0] > 0:
                past += weight * tree.value[node[0]]
        return asked, logits

    # ---- growing

    def _add_tree(self, value: float = 0.0) -> int:
        message = self.message
        message.trees.add().nodes.add().leaf.scalar = value
        message.tree_weights.append(_TREE_WEIGHT)
        message.tree_metadata.add()
        return len(message.trees) - 1

    def center(self, logit: float) -> bool:
        """Adds to the bias, the first tree's root; whether it has not settled yet."""
        message = self.message
        self.stamp += 1
        if not message.trees:
            self._add_tree(logit)
        else:
            message.trees[0].nodes[0].leaf.scalar += logit
            self._arrays.pop(0, None)
        bias = float(message.trees[0].nodes[0].leaf.scalar)
        return bool(abs(logit / bias) >= _BIAS_SETTLED) if bias else False

    def grow(self, splits: dict[int, Split], rate: float, max_depth: int, pruning: int) -> None:
        """A layer more: splits nodes of the last tree, which at `max_depth` is finished."""
        message = self.message
        self.stamp += 1
        growing = message.growing_metadata
        growing.num_layers_attempted += 1
        trees = len(message.trees)
        begun = trees == 1 or (trees > 1 and message.tree_metadata[trees - 2].is_finalized)
        if not trees or (begun and len(message.trees[-1].nodes) == 1):
            growing.num_trees_attempted += 1
        number = trees - 1 if trees else self._add_tree()
        tree, metadata = message.trees[number], message.tree_metadata[number]
        start = len(tree.nodes)
        for node in sorted(splits):
            if pruning != PRE_PRUNING or splits[node].gain >= 0:
                _split(tree, node, splits[node], rate)
        self._arrays.pop(number, None)
        end = len(tree.nodes)
        if end == start:
            return
        metadata.num_layers_grown += 1
        if metadata.num_layers_grown >= max_depth:
            start, end = 0, 1
            metadata.is_finalized = True
            if pruning == POST_PRUNING:
                _prune(tree, metadata)
            self._add_tree()
        growing.last_layer_node_start, growing.last_layer_node_end = start, end


def _split(tree: Any, number: int, split: Split, rate: float) -> None:
    node = tree.nodes[number]
    value = np.float32(node.leaf.scalar)
    left = len(tree.nodes)
    for contribution in (split.left, split.right):
        tree.nodes.add().leaf.scalar = float(value + np.float32(rate) * np.float32(contribution))
    if value:  # TensorFlow writes no other
        node.metadata.original_leaf.CopyFrom(node.leaf)
    node.metadata.gain = split.gain
    question = node.bucketized_split
    question.feature_id, question.threshold = split.feature, split.threshold
    question.left_id, question.right_id = left, left + 1


# ---- pruning


def _prune(tree: Any, metadata: Any) -> None:
    """Takes back splits of negative gain whose children are leaves, from the bottom; says where nodes go."""
    parents: dict[int, int] = {}
    for number in reversed(range(len(tree.nodes))):  # children have greater numbers than their parents
        node = tree.nodes[number]
        if node.WhichOneof("node") != "bucketized_split" or node.metadata.gain >= 0:
            continue
        children = node.bucketized_split.left_id, node.bucketized_split.right_id
        if all(tree.nodes[child].WhichOneof("node") == "leaf" for child in children):
            parents.update(dict.fromkeys(children, number))
            node.leaf.CopyFrom(node.metadata.original_leaf)
            node.ClearField("metadata")
    if not parents:
        return
    kept = [number for number in range(len(tree.nodes)) if number not in parents]
    places = {number: place for place, number in enumerate(kept)}
    values = [node.leaf.scalar for node in tree.nodes]
    for number, value in enumerate(values):
        survivor = number
        while survivor in parents:
            survivor = parents[survivor]
        moved = metadata.post_pruned_nodes_meta.add(new_node_id=places[survivor])
        moved.logit_change.append(0.0 if survivor == number else values[survivor] - value)
    nodes = [type(tree.nodes[number])() for number in kept]
    for copy, number in zip(nodes, kept, strict=True):
        copy.CopyFrom(tree.nodes[number])
        if copy.WhichOneof("node") == "bucketized_split":
            question = copy.bucketized_split
            question.left_id, question.right_id = places[question.left_id], places[question.right_id]
    del tree.nodes[:]
    tree.nodes.extend(nodes)
