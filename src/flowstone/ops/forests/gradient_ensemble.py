"""`GradientEnsembleState`: the ensemble of `tf.contrib.boosted_trees`, and how a layer of it is grown.

The ensemble is the message DecisionTreeEnsembleConfig, which is what checkpoints keep. The tree that grows is
the last, until it is finalized. Its weight is the learning rate; where trees grow layer by layer, the leaves
of a layer have what their parent said too.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework import errors
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.forests.gradient_trees import GradientExamples, TreeArrays
from flowstone.ops.forests.stats_accumulators import check_stamp
from flowstone.ops.forests.tree_dropout import dropped_trees, weights_after
from flowstone.ops.forests.tree_growth import NodeSplit, prune, split_layer, split_nodes

__all__ = ["GradientEnsembleState", "Growing", "Outputs"]

Array = np.ndarray[Any, Any]
_PRE_PRUNE, _POST_PRUNE = 1, 2
_WHOLE_TREE = 1


class Growing(NamedTuple):
    """How a layer is grown: the message LearnerConfig and what may change from layer to layer."""

    config: Any
    learning_rate: float
    max_depth: int
    dropout_seed: int
    center_bias: bool
    oblivious: bool


class Outputs(NamedTuple):
    """What an ensemble says: predictions float32 [examples, outputs], the numbers and weights of the trees
    left out [2, trees], and the leaves int32 [examples, trees].
    """

    predictions: Array
    dropped: Array
    leaves: Array


class GradientEnsembleState:
    """An ensemble, once it has been created; `lock` is held while it is read or changed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.RLock()
        self.stamp = -1
        self._message: Any = None
        self._arrays: dict[int, TreeArrays] = {}

    @property
    def is_initialized(self) -> bool:
        """Whether it has been created."""
        return self._message is not None

    @property
    def message(self) -> Any:
        """The ensemble; FailedPreconditionError before it is created."""
        if self._message is None:
            raise errors.FailedPreconditionError(
                None, None, f"tree ensemble {self.name!r} is not there yet: run its initializer first"
            )
        return self._message

    def read(self, stamp: int, text: bytes) -> None:
        """Takes the ensemble of this text; InvalidArgumentError for none."""
        from google.protobuf.message import DecodeError

        from flowstone.io.proto import tree_config_pb2

        try:
            message = tree_config_pb2.DecisionTreeEnsembleConfig.FromString(text)
        except DecodeError:
            raise invalid("Unable to parse tree ensemble config.") from None
        with self.lock:
            self.stamp, self._message, self._arrays = stamp, message, {}

    # ---- what it says

    def _tree(self, number: int) -> TreeArrays:
        if number not in self._arrays:
            self._arrays[number] = TreeArrays(self.message.trees[number])
        return self._arrays[number]

    @property
    def _is_growing(self) -> bool:
        metadata = self.message.tree_metadata
        return bool(metadata) and not metadata[-1].is_finalized

    def _averaged(self, config: Any) -> Array:
        """The weights, of which those of the last trees fall: predictions are then means over ensembles."""
        weights = np.asarray(self.message.tree_weights, np.float32)
        kind = config.averaging_config.WhichOneof("config")
        if not kind or not len(weights):
            return weights
        asked = getattr(config.averaging_config, kind)
        share = math.ceil(asked * len(weights)) if kind == "average_last_percent_trees" else int(asked)
        count = max(1, min(share, len(weights)))
        weights[-count:] *= (count - np.arange(count)) / np.float32(count)
        return weights

    def predict(
        self, config: Any, examples: GradientExamples, outputs: int, seed: int, dropout: bool, averaging:
        bool, bias: bool,
    ) -> Outputs:  # fmt: skip
        """What the trees say together, of dropout without those that the seed leaves out."""
        message = self.message
        trees = len(message.trees)
        weights = self._averaged(config) if averaging else np.asarray(message.tree_weights, np.float32)
        dropped: list[int] = []
        if dropout and config.learning_rate_tuner.WhichOneof("tuner") == "dropout":
            dropped = dropped_trees(config.learning_rate_tuner.dropout, seed, bias, trees)
        unfinished = {trees - 1} if config.growing_mode == _WHOLE_TREE and self._is_growing else set()
        found = np.zeros((len(examples), outputs), np.float32)
        leaves = np.zeros((len(examples), trees), np.int32)
        for number in range(trees):
            if number in unfinished:
                continue
            tree = self._tree(number)
            leaves[:, number] = tree.leaves_of(examples)
            if number not in dropped:
                found += weights[number] * tree.values(outputs)[leaves[:, number]]
        left_out = np.asarray([dropped, [weights[number] for number in dropped]], np.float32)
        return Outputs(found, left_out.reshape(2, len(dropped)), leaves)

    def partitions(self, examples: GradientExamples) -> Array:
        """int32 [examples]: the leaves of the tree that grows; 0 if the next one is not begun."""
        if not self._is_growing:
            return np.zeros(len(examples), np.int32)
        return self._tree(len(self.message.trees) - 1).leaves_of(examples)

    def stats(self) -> tuple[int, ...]:
        """Numbers of finalized trees, of layers, of the tree and the layer that grow, and of both that were
        attempted.
        """
        message = self.message
        trees, layers = len(message.trees), [each.num_layers_grown for each in message.tree_metadata]
        growing = message.growing_metadata
        return (
            trees - self._is_growing,
            sum(layers),
            trees,
            layers[-1] if layers else 0,
            growing.num_trees_attempted,
            growing.num_layers_attempted,
        )

    # ---- how it grows

    def _attempt(self) -> None:
        growing = self.message.growing_metadata
        if not self._is_growing:
            growing.num_trees_attempted += 1
        growing.num_layers_attempted += 1

    def _new_tree(self, weight: float) -> tuple[Any, Any]:
        message = self.message
        tree, metadata = message.trees.add(), message.tree_metadata.add()
        tree.nodes.add().leaf.SetInParent()
        message.tree_weights.append(weight)
        return tree, metadata

    def center(self, stamp: int, next_stamp: int, delta: Array, epsilon: float) -> bool:
        """Adds to the bias, the first tree; whether it still changes by more than a part `epsilon`."""
        check_stamp(self, stamp)
        message = self.message
        self.stamp = next_stamp
        if not message.trees:
            self._attempt()
            tree, metadata = self._new_tree(1.0)
            tree.nodes[0].leaf.vector.value.extend([0.0] * len(delta))
            metadata.num_layers_grown = 1
        values = message.trees[0].nodes[0].leaf.vector.value
        if len(values) != len(delta):
            raise invalid(f"the bias has {len(values)} numbers, and delta_updates {len(delta)}")
        moves = False
        for at, change in enumerate(delta):
            values[at] = float(np.float32(values[at]) + change)
            moves |= bool(change) and bool(
                np.abs(change) > np.float32(epsilon) * np.abs(np.float32(values[at]))
            )
        self._arrays.pop(0, None)
        if not moves:
            message.tree_metadata[0].is_finalized = True
        return moves

    def grow(self, stamp: int, next_stamp: int, splits: Iterable[NodeSplit], how: Growing) -> None:
        """A layer more: the best of the splits of each node of the tree that grows, or of a new one."""
        check_stamp(self, stamp)
        message, config = self.message, how.config
        self.stamp = next_stamp
        self._attempt()
        if config.pruning_mode == _PRE_PRUNE:
            splits = [split for split in splits if split.gain >= 0]
        best = _best(splits)
        if how.oblivious and config.pruning_mode == _POST_PRUNE:
            raise invalid("trees of one question a layer are not pruned: use pruning_mode PRE_PRUNE")
        if not best:
            return
        if self._is_growing:
            tree, metadata = message.trees[-1], message.tree_metadata[-1]
        else:
            tree, metadata = self._new_tree(how.learning_rate)
            metadata.num_tree_weight_updates = 1
        number = len(message.trees) - 1
        merge, keep = config.growing_mode != _WHOLE_TREE, config.pruning_mode == _POST_PRUNE
        if how.oblivious:
            split_layer(tree, best[0], merge)
        else:
            split_nodes(tree, best, merge, keep)
        if not how.oblivious and config.constraints.max_number_of_unique_feature_columns > 0:
            growing = message.growing_metadata
            used = sorted({*growing.used_handler_ids, *(split.handler for split in best)})
            growing.used_handler_ids[:] = used
        self._arrays.pop(number, None)
        metadata.num_layers_grown += 1
        if metadata.num_layers_grown >= how.max_depth:
            self._finalize(number, metadata, how)

    def _finalize(self, number: int, metadata: Any, how: Growing) -> None:
        message, config = self.message, how.config
        metadata.is_finalized = True
        if config.pruning_mode == _POST_PRUNE:
            prune(message.trees[number])
            if message.trees[number].nodes[0].WhichOneof("node") == "leaf":
                del message.trees[number], message.tree_weights[number], message.tree_metadata[number]
                return
        if config.learning_rate_tuner.WhichOneof("tuner") != "dropout":
            return
        dropout = config.learning_rate_tuner.dropout
        dropped = dropped_trees(dropout, how.dropout_seed, how.center_bias, number)
        if dropped:
            message.tree_weights[:] = weights_after(message.tree_weights, dropped)
            for each in (*dropped, number):
                message.tree_metadata[each].num_tree_weight_updates += 1


def _best(splits: Iterable[NodeSplit]) -> list[NodeSplit]:
    """The best split of each node; of equal gains that of the handler that comes last."""
    found: dict[int, NodeSplit] = {}
    for split in splits:
        known = found.get(split.node)
        if known is None or split.gain >= known.gain:
            found[split.node] = split
    return [found[node] for node in sorted(found)]
