"""Checkpoints of objects, read by the names that their variables had when they were written.

`tf.train.Checkpoint` names a variable by the attributes that lead to it. Its message also has the variable's
name in the graph, by which a `Saver` finds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowstone.framework import errors
from flowstone.framework.types.tensor_proto import messages
from flowstone.training.checkpoints.checkpoint_reading import NewCheckpointReader
from flowstone.training.checkpoints.object_graph import GRAPH_KEY
from flowstone.training.checkpoints.saveables import SaveableObject, saveables_of

__all__ = ["keys_by_name", "renamed_saveables"]


def keys_by_name(prefix: Any) -> dict[str, str] | None:
    """The keys of a checkpoint's values by the variables' names; None if it is not one of objects."""
    reader = NewCheckpointReader(prefix)
    if not reader.has_tensor(GRAPH_KEY):
        return None
    message = messages("trackable_object_graph_pb2").TrackableObjectGraph()
    message.ParseFromString(reader.get_tensor(GRAPH_KEY))
    attributes = [attribute for node in message.nodes for attribute in node.attributes]
    return {each.full_name: each.checkpoint_key for each in attributes}


def renamed_saveables(var_list: Any, keys: Mapping[str, str]) -> list[SaveableObject]:
    """The SaveableObjects of `var_list` with a checkpoint's keys in place of their names.

    NotFoundError, which lists what differs, if `keys` lacks one of the names.
    """
    saveables = saveables_of(var_list)
    specs = [spec for saveable in saveables for spec in saveable.specs]
    names = {spec.name for spec in specs}
    missing, others = sorted(names - set(keys)), sorted(set(keys) - names)
    if missing:
        raise errors.NotFoundError(
            None,
            None,
            f"Existing variables not in the checkpoint: {', '.join(missing)}\n\nVariables that it has and "
            f"the graph has not: {', '.join(others)}\n\n({len(names) - len(missing)} names did match)\n\n"
            "The checkpoint was written by objects (tf.train.Checkpoint, or save_weights of a Keras model), "
            "and a Saver looks variables up by the names that they had then. Give Saver(var_list=...) only "
            "the variables that were there, in a dict by their former names if these have changed.",
        )
    for spec in specs:
        spec.name = keys[spec.name]
    return saveables
