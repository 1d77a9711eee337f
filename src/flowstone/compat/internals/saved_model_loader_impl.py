"""`tensorflow.python.saved_model.loader_impl`: what a SavedModel says of its graphs."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.saved_model import loader

__all__ = [
    "SavedModelLoader",
    "_parse_saved_model",
    "contains_saved_model",
    "get_asset_tensors",
    "get_init_op",
    "get_train_op",
    "parse_saved_model",
]

_TRAIN_OP_KEY = "saved_model_train_op"  # the collection of TensorFlow 1.13 and later
_TRAIN_SIGNATURE = "__saved_model_train_op"

SavedModelLoader = loader.SavedModelLoader
parse_saved_model = _parse_saved_model = loader.read_saved_model
contains_saved_model = loader.maybe_saved_model_directory


def get_asset_tensors(
    export_dir: Any, meta_graph_def_to_load: Any, import_scope: str | None = None
) -> dict[str, bytes]:
    """The paths of a graph's assets, by the names of the tensors that hold them."""
    paths = loader.asset_paths(meta_graph_def_to_load, export_dir, import_scope)
    return {name: path.encode() for name, path in paths.items()}


def get_init_op(meta_graph_def: Any, import_scope: str | None = None) -> Any:
    """The operation of the default graph that makes the loaded graph ready; None if there is none.

    Raises RuntimeError where there are several.
    """
    return loader.main_op(meta_graph_def, tf.get_default_graph(), import_scope)


def get_train_op(meta_graph_def: Any, import_scope: str | None = None) -> Any:
    """The operation or tensor of the default graph that trains the loaded graph; None if there is none."""
    for name, signature in meta_graph_def.signature_def.items():
        if name == _TRAIN_SIGNATURE:
            element = signature.outputs[_TRAIN_SIGNATURE].name
            return tf.get_default_graph().as_graph_element(_scoped(element, import_scope))
    if _TRAIN_OP_KEY not in meta_graph_def.collection_def:
        return None
    names = meta_graph_def.collection_def[_TRAIN_OP_KEY].node_list.value
    return tf.get_default_graph().as_graph_element(_scoped(names[0], import_scope))


def _scoped(name: str, scope: str | None) -> str:
    return f"{scope}/{name}" if scope else name
