"""`tf.contrib.tensor_forest.stats_ops`: the statistics of a tree's leaves, as resources."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.tensor_forest.forest_resources import ForestSavable, forest_resource
from flowstone.framework.declarations import generated_ops as gen_stats_ops
from flowstone.framework.declarations.op_functions import positional

__all__ = [
    "FertileStatsVariableSavable",
    "fertile_stats_variable",
    "finalize_tree",
    "gen_stats_ops",
    "grow_tree_v4",
    "process_input_v4",
]

finalize_tree = positional("FinalizeTree")
grow_tree_v4 = positional("GrowTreeV4")
process_input_v4 = positional("ProcessInputV4")
_handle, _create = positional("FertileStatsResourceHandleOp"), positional("CreateFertileStatsVariable")
_serialize, _deserialize = positional("FertileStatsSerialize"), positional("FertileStatsDeserialize")
_is_initialized = positional("FertileStatsIsInitializedOp")


class FertileStatsVariableSavable(ForestSavable):
    """Statistics as checkpoints keep them, the text of a message `FertileStats`.

    Args:
        params: the forest's `ForestHParams`, filled.
        stats_handle: the statistics.
        create_op: makes them.
        name: in checkpoints.
    """

    def __init__(self, params: Any, stats_handle: Any, create_op: Any, name: str) -> None:
        serialized = params.serialized_params_proto
        super().__init__(
            stats_handle,
            [(_serialize(stats_handle, params=serialized), name)],
            create_op,
            name,
            lambda config: _deserialize(stats_handle, config, params=serialized),
        )


def fertile_stats_variable(params: Any, stats_config: Any, name: str, container: str = "") -> Any:
    """The handle of a tree's statistics: resource, [].

    Args:
        params: the forest's `ForestHParams`, filled.
        stats_config: the text of a message `FertileStats`; "" for those of one leaf.
        name: of the statistics, by which other sessions on the target find them.
        container: where they are kept.
    """
    with tf.name_scope(name, "FertileStatsVariable") as scope:
        handle = _handle(container, shared_name=name, name=scope)
        create = _create(handle, stats_config, params=params.serialized_params_proto)
        ready = _is_initialized(handle)
        savable = FertileStatsVariableSavable(params, handle, create, handle.name)
        return forest_resource(handle, create, ready, savable)
