"""What a checkpoint of objects says of them: its message, a drawing, and the objects below one."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.framework.types.tensor_proto import messages
from flowstone.training.checkpoints.object_graph import GRAPH_KEY, VALUE, ObjectGraph

__all__ = ["CheckpointableObjectGraph", "dot_graph_from_checkpoint", "list_objects", "object_metadata"]

CheckpointableObjectGraph = messages("trackable_object_graph_pb2").TrackableObjectGraph


def list_objects(root_trackable: Any) -> list[Any]:
    """The object and those below it that a checkpoint would have, slots among them."""
    return ObjectGraph(root_trackable).objects


def object_metadata(save_path: str) -> Any:
    """The message, a CheckpointableObjectGraph, that a checkpoint has of its objects.

    Raises ValueError for a checkpoint of names, NotFoundError where there is none.
    """
    reader = tf.train.NewCheckpointReader(save_path)
    if not reader.has_tensor(GRAPH_KEY):
        raise ValueError(
            f'The specified checkpoint "{save_path}" does not appear to be object-based (it is missing the '
            f'key "{GRAPH_KEY}"). Likely it was created with a name-based saver and does not contain an '
            "object dependency graph."
        )
    message = CheckpointableObjectGraph()
    message.ParseFromString(reader.get_tensor(GRAPH_KEY))
    return message


def dot_graph_from_checkpoint(save_path: str) -> str:
    """The objects of a checkpoint as a graph in the language DOT: variables blue, slots orange, optimisers
    red. Raises what `object_metadata` does."""
    reader, nodes = tf.train.NewCheckpointReader(save_path), object_metadata(save_path).nodes
    slots = {slot.slot_variable_node_id for node in nodes for slot in node.slot_variables}
    lines = ["digraph {"]
    for number, node in enumerate(nodes):
        lines.append(f"N_{number} {_look(node, number in slots, reader)}")
        for child in node.children:
            lines.append(f'N_{number} -> N_{child.node_id} [label="{_escaped(child.local_name)}"]')
        for slot in node.slot_variables:
            of, made = slot.original_variable_node_id, slot.slot_variable_node_id
            lines.append(f'N_{number} -> N_{made} [label="{_escaped(slot.slot_name)}" style=dotted]')
            lines.append(f"N_{of} -> N_{made} [style=dotted]")
    return "\n".join([*lines, "}\n"])


def _look(node: Any, is_slot: bool, reader: Any) -> str:
    """How an object is drawn."""
    if len(node.attributes) != 1 or node.attributes[0].name != VALUE:
        more = ' color=red,tooltip="Optimizer"' if node.slot_variables else ""
        return f'[shape=point label="" width=.25{more}]'
    attribute = node.attributes[0]
    key, color, kind = attribute.checkpoint_key, "blue", "Variable"
    if is_slot:
        color, kind = "orange", "Slot variable"
    shape = list(reader.get_variable_to_shape_map()[key])
    tip = (
        f"{kind} {_escaped(attribute.full_name)} shape={shape} {reader.get_variable_to_dtype_map()[key].name}"
    )
    return f'[shape=point label="" color={color} width=.25 tooltip="{tip}"]'


def _escaped(name: str) -> str:
    return name.replace('"', '\\"')
