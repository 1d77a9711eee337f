"""`tf.contrib.boosted_trees.python.ops.model_ops`: ensembles of trees as resources."""

from __future__ import annotations

import functools
from typing import Any

import flowstone as tf
from flowstone.contrib.boosted_trees.resources import TrackedResource
from flowstone.contrib.tensor_forest.forest_resources import ForestSavable
from flowstone.framework.declarations import generated_ops as gen_model_ops
from flowstone.framework.declarations.op_functions import positional

__all__ = [
    "TreeEnsembleVariable",
    "TreeEnsembleVariableSavable",
    "gen_model_ops",
    "tree_ensemble_deserialize",
    "tree_ensemble_serialize",
    "tree_ensemble_stamp_token",
    "tree_ensemble_stats",
    "tree_ensemble_used_handlers",
    "tree_ensemble_variable",
]

tree_ensemble_deserialize = positional("TreeEnsembleDeserialize")
tree_ensemble_serialize = positional("TreeEnsembleSerialize")
tree_ensemble_stamp_token = positional("TreeEnsembleStampToken")
tree_ensemble_stats = positional("TreeEnsembleStats")
tree_ensemble_used_handlers = positional("TreeEnsembleUsedHandlers")
_handle, _create = (
    positional("DecisionTreeEnsembleResourceHandleOp"),
    positional("CreateTreeEnsembleVariable"),
)
_is_initialized = positional("TreeEnsembleIsInitializedOp")


class TreeEnsembleVariableSavable(ForestSavable):
    """An ensemble as checkpoints keep it: its stamp, and the text of a message DecisionTreeEnsembleConfig."""

    def __init__(self, tree_ensemble_handle: Any, create_op: Any, name: str) -> None:
        saved = zip(tree_ensemble_serialize(tree_ensemble_handle), (f"{name}_stamp", f"{name}_config"))
        deserialize = functools.partial(tree_ensemble_deserialize, tree_ensemble_handle)
        super().__init__(tree_ensemble_handle, saved, create_op, name, deserialize)


class TreeEnsembleVariable(TrackedResource):
    """An ensemble; the arguments are those of `tree_ensemble_variable`."""

    def __init__(self, stamp_token: Any, tree_ensemble_config: Any, name: str, container: str | None = None):
        with tf.name_scope(name, "TreeEnsembleVariable") as scope:
            handle = _handle(container or "", shared_name=scope, name=scope)
            create = _create(handle, stamp_token, tree_ensemble_config)
            ready = _is_initialized(handle)
            saveable = TreeEnsembleVariableSavable(handle, create, handle.name)
        super().__init__(handle, create, ready, saveable)


def tree_ensemble_variable(
    stamp_token: Any, tree_ensemble_config: Any, name: str, container: str | None = None
) -> Any:
    """The handle of an ensemble: resource, [].

    Args:
        stamp_token: the stamp that it has at first, int64, [].
        tree_ensemble_config: the text of a message DecisionTreeEnsembleConfig; "" for no trees.
        name: of the ensemble; `container`: where it is kept.
    """
    return TreeEnsembleVariable(stamp_token, tree_ensemble_config, name, container).resource_handle
