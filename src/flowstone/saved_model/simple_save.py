"""`simple_save`: a session's graph as a SavedModel in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.saved_model import signature_constants, tag_constants
from flowstone.saved_model.builder import SavedModelBuilder
from flowstone.saved_model.signature_def_utils import predict_signature_def

__all__ = ["simple_save"]


def simple_save(
    session: Any,
    export_dir: Any,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Any = None,
) -> None:
    """Saves the default graph, with the session's values, for serving: its one signature predicts `outputs`
    from `inputs`, tensors by their keys. AssertionError if `export_dir` is there and not empty."""
    builder = SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session,
        [tag_constants.SERVING],
        {signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: predict_signature_def(inputs, outputs)},
        assets_collection=get_default_graph().get_collection(GraphKeys.ASSET_FILEPATHS),
        main_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()
