"""`tf.contrib.tensor_forest.model_ops`: trees as resources."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.tensor_forest.forest_resources import ForestSavable, forest_resource
from flowstone.framework.declarations import generated_ops as gen_model_ops
from flowstone.framework.declarations.op_functions import positional

__all__ = [
    "TreeVariableSavable",
    "feature_usage_counts",
    "gen_model_ops",
    "traverse_tree_v4",
    "tree_predictions_v4",
    "tree_size",
    "tree_variable",
    "update_model_v4",
]

feature_usage_counts = positional("FeatureUsageCounts")
traverse_tree_v4 = positional("TraverseTreeV4")
tree_predictions_v4 = positional("TreePredictionsV4")
tree_size = positional("TreeSize")
update_model_v4 = positional("UpdateModelV4")
_handle, _create = positional("DecisionTreeResourceHandleOp"), positional("CreateTreeVariable")
_serialize, _deserialize = positional("TreeSerialize"), positional("TreeDeserialize")
_is_initialized = positional("TreeIsInitializedOp")


class TreeVariableSavable(ForestSavable):
    """A tree as checkpoints keep it, the text of a message `decision_trees.Model`.

    Args:
        params: the forest's `ForestHParams`, filled.
        tree_handle, stats_handle: the tree, and its leaves' statistics, which are restored on their own.
        create_op: makes the tree.
        name: in checkpoints.
    """

    def __init__(self, params: Any, tree_handle: Any, stats_handle: Any, create_op: Any, name: str) -> None:
        serialized = params.serialized_params_proto
        super().__init__(
            tree_handle,
            [(_serialize(tree_handle), name)],
            create_op,
            name,
            lambda config: _deserialize(tree_handle, config, params=serialized),
        )


def tree_variable(params: Any, tree_config: Any, stats_handle: Any, name: str, container: str = "") -> Any:
    """The handle of a tree: resource, [].

    Args:
        params: the forest's `ForestHParams`, filled.
        tree_config: the text of a message `decision_trees.Model`; "" for a tree that is one leaf.
        stats_handle: the statistics of its leaves.
        name: of the tree, by which other sessions on the target find it.
        container: where it is kept.
    """
    with tf.name_scope(name, "TreeVariable") as scope:
        handle = _handle(container, shared_name=name, name=scope)
        create = _create(handle, tree_config, params=params.serialized_params_proto)
        ready = _is_initialized(handle)
        savable = TreeVariableSavable(params, handle, stats_handle, create, handle.name)
        return forest_resource(handle, create, ready, savable)
