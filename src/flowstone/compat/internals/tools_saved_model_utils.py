"""`tensorflow.python.tools.saved_model_utils`: the messages of a SavedModel."""

from __future__ import annotations

from typing import Any

from flowstone.saved_model.loader import read_saved_model

__all__ = ["get_meta_graph_def", "get_saved_model_tag_sets", "read_saved_model"]


def get_saved_model_tag_sets(saved_model_dir: str) -> list[list[str]]:
    """The tags of each graph of a SavedModel."""
    return [list(meta.meta_info_def.tags) for meta in read_saved_model(saved_model_dir).meta_graphs]


def get_meta_graph_def(saved_model_dir: str, tag_set: str) -> Any:
    """The MetaGraphDef with exactly these tags, separated by commas. RuntimeError if there is none."""
    for meta in read_saved_model(saved_model_dir).meta_graphs:
        if set(meta.meta_info_def.tags) == set(tag_set.split(",")):
            return meta
    raise RuntimeError(f"MetaGraphDef associated with tag-set {tag_set} could not be found in SavedModel")
