"""The operations that find the best splits of trees' nodes, for `tf.contrib.boosted_trees`.

Their splits are texts of the message SplitInfo, or of ObliviousSplitInfo for trees of which a whole layer
asks the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.forests.node_statistics import Penalties
from flowstone.ops.forests.split_candidates import (
    Best,
    Rows,
    best_of_ids,
    best_of_sparse,
    best_of_values,
    best_of_whole_layer,
)

__all__: list[str] = []

Array = np.ndarray[Any, Any]
_OBLIVIOUS = 1
_OUTPUTS = "output_partition_ids: int32, gains: float, split_infos: string"
_PENALTIES = (
    "l1_regularization: float, l2_regularization: float, tree_complexity_regularization: float,"
    " min_node_weight: float, multiclass_strategy: int32"
)


def _fill_leaf(leaf: Any, weights: Array, class_id: int) -> None:
    if class_id >= 0:
        leaf.sparse_vector.index.append(class_id)
        leaf.sparse_vector.value.append(float(weights[0]))
    elif len(weights):
        leaf.vector.value.extend(weights.tolist())


def _results(nodes: list[int], gains: list[float], splits: list[bytes]) -> Any:
    texts = np.empty(len(splits), object)
    texts[:] = splits
    return torch.tensor(nodes, dtype=torch.int32), torch.tensor(gains, dtype=torch.float32), texts


class _Call:
    """One call: the rows and penalties of its inputs, and how its questions are written."""

    def __init__(self, features: str, inputs: dict[str, Any]) -> None:
        self.inputs = {name: np.asarray(value) for name, value in inputs.items()}
        self.penalties = Penalties(
            float(self.inputs["l1_regularization"]),
            float(self.inputs["l2_regularization"]),
            float(self.inputs["tree_complexity_regularization"]),
            float(self.inputs["min_node_weight"]),
            int(self.inputs["multiclass_strategy"]),
        )
        self.penalties.check()
        self.class_id = int(self.inputs["class_id"])
        self.column = int(self.inputs["feature_column_group_id"])
        batches = np.float32(self.inputs["num_minibatches"])
        sums = (self.inputs["gradients"] / batches, self.inputs["hessians"] / batches)
        self.rows = Rows(self.inputs["partition_ids"], self.inputs[features], *sums)

    @property
    def is_oblivious(self) -> bool:
        """Whether a whole layer asks the same."""
        return int(self.inputs["weak_learner_type"]) == _OBLIVIOUS

    @property
    def prefix(self) -> str:
        """How the names of such questions begin."""
        return "oblivious_" if self.is_oblivious else ""

    def threshold(self, row: int) -> float:
        """The value of a row's bucket."""
        bucket, bounds = int(self.rows.features[row, 0]), self.inputs["bucket_boundaries"]
        if not 0 <= bucket < len(bounds):
            raise invalid(f"bucket {bucket} is none of the {len(bounds)} of bucket_boundaries")
        return float(bounds[bucket])

    def normal(self, found: Iterable[Best], ask: Callable[[Any, Best], None]) -> Any:
        """The outputs, one a node."""
        from flowstone.io.proto import split_info_pb2

        nodes, gains, splits = [], [], []
        for best in found:
            split = split_info_pb2.SplitInfo()
            ask(split.split_node, best)
            for side, weights in ((split.left_child, best.left), (split.right_child, best.right)):
                side.SetInParent()
                _fill_leaf(side, weights, self.class_id)
            nodes.append(best.node)
            gains.append(best.gain)
            splits.append(split.SerializeToString())
        return _results(nodes, gains, splits)

    def oblivious(self, found: list[Best], ask: Callable[[Any, Best], None]) -> Any:
        """The outputs, one of the whole layer."""
        from flowstone.io.proto import split_info_pb2

        if not found:
            return _results([], [], [])
        split = split_info_pb2.ObliviousSplitInfo()
        ask(split.split_node, found[0])
        for best in found:
            split.children_parent_id.append(best.node)
            for weights in (best.left, best.right):
                _fill_leaf(split.children.add(), weights, self.class_id)
        return _results([best.node for best in found], [found[0].gain], [split.SerializeToString()])


def _declare(name: str, features: str, more: str, last: str, find: Callable[[_Call], Any]) -> None:
    inputs = (
        f"num_minibatches: int64, partition_ids: int32, {features}: int64, gradients: float, hessians: float,"
        f"{more} class_id: int32, feature_column_group_id: int32,{last}"
    )
    names = [part.split(":")[0].strip() for part in inputs.split(",")]
    declaration = op(name, f"{inputs} -> {_OUTPUTS}", "")
    declaration.infer(lambda node: [(None,), (None,), (None,)])
    declaration.not_differentiable()

    @declaration.kernel(CPU)
    def _(node: Node, env: Environment) -> Callable[..., Any]:
        return lambda *values: find(_Call(features, dict(zip(names, values, strict=True))))


def _dense(call: _Call) -> Any:
    def ask(node: Any, best: Best) -> None:
        question = getattr(node, f"{call.prefix}dense_float_binary_split")
        question.feature_column, question.threshold = call.column, call.threshold(best.row)

    if call.is_oblivious:
        return call.oblivious(best_of_whole_layer(call.rows, call.penalties, None), ask)
    return call.normal(best_of_values(call.rows, call.penalties), ask)


def _sparse(call: _Call) -> Any:
    def ask(node: Any, best: Best) -> None:
        side = "left" if best.default_left else "right"
        question = getattr(node, f"sparse_float_binary_split_default_{side}").split
        question.feature_column, question.threshold = call.column, call.threshold(best.row)
        question.dimension_id = int(call.rows.features[best.row, 1])

    bias = int(call.inputs["bias_feature_id"])
    return call.normal(best_of_sparse(call.rows, call.penalties, bias), ask)


def _categorical(call: _Call) -> Any:
    def ask(node: Any, best: Best) -> None:
        question = getattr(node, f"{call.prefix}categorical_id_binary_split")
        question.feature_column = call.column
        question.feature_id = int(call.rows.features[best.row, 0])

    bias = int(call.inputs["bias_feature_id"])
    if call.is_oblivious:
        return call.oblivious(best_of_whole_layer(call.rows, call.penalties, bias), ask)
    return call.normal(best_of_ids(call.rows, call.penalties, bias), ask)


_LEARNER = "weak_learner_type: int32"
_declare(
    "BuildDenseInequalitySplits",
    "bucket_ids",
    " bucket_boundaries: float,",
    f" {_PENALTIES}, {_LEARNER}",
    _dense,
)
_declare(
    "BuildSparseInequalitySplits",
    "bucket_ids",
    " bucket_boundaries: float,",
    f" bias_feature_id: int64, {_PENALTIES}",
    _sparse,
)
_declare(
    "BuildCategoricalEqualitySplits",
    "feature_ids",
    "",
    f" bias_feature_id: int64, {_PENALTIES}, {_LEARNER}",
    _categorical,
)
