"""SavedModels of an Estimator: its graph for serving, restored from a checkpoint, with its signatures."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.estimators.constants import COLLECTION_DEF_KEY_FOR_INPUT_FEATURE_KEYS
from flowstone.contrib.learn.utils.saved_model_export_utils import (
    build_all_signature_defs,
    get_input_alternatives,
    get_output_alternatives,
    get_temp_export_dir,
    get_timestamped_export_dir,
)
from flowstone.estimator.saved_model_export import _copy_assets
from flowstone.training.sessions.scaffold import default_local_init_op

__all__ = ["GraphRewriteSpec", "export_model"]


class GraphRewriteSpec(namedtuple("GraphRewriteSpec", ["tags", "transforms"])):
    """The tags of an exported graph, and the names of transforms, of which flowstone has none."""

    __slots__ = ()


def export_model(
    model: Callable[[Any], Any],
    serving_input_fn: Callable[[], Any],
    folder: Any,
    checkpoint_path: str,
    session_config: Any,
    default_key: Any,
    assets_extra: Mapping[str, Any] | None,
    as_text: bool,
    rewrites: Iterable[GraphRewriteSpec],
    strip_default_attrs: bool,
) -> bytes:
    """Exports a model into a new folder, which appears when it is whole; returns its path.

    `model`: a function from features to the ModelFnOps; the rest as for `Estimator.export_savedmodel`.
    """
    specs = list(rewrites)
    for spec in specs:
        if spec.transforms:
            raise tf.errors.UnimplementedError(
                None,
                None,
                f"graph transforms {list(spec.transforms)} are not there: flowstone rewrites a graph when "
                f"it is run",
            )
    export_dir = get_timestamped_export_dir(folder)
    temporary = get_temp_export_dir(export_dir).decode()
    builder = tf.saved_model.builder.SavedModelBuilder(temporary)
    with tf.Graph().as_default() as graph:
        tf.train.create_global_step(graph)
        inputs, features = get_input_alternatives(serving_input_fn())
        ops = model(features)
        for name in features if isinstance(features, Mapping) else ():
            tf.add_to_collection(COLLECTION_DEF_KEY_FOR_INPUT_FEATURE_KEYS, name)
        outputs, default = get_output_alternatives(ops, default_key)
        signatures = build_all_signature_defs(inputs, outputs, default)
        with tf.Session(config=session_config) as session:
            scaffold = ops.scaffold or tf.train.Scaffold()
            saver = scaffold.saver or tf.train.Saver(sharded=True)
            saver.restore(session, checkpoint_path)
            local_init_op = scaffold.local_init_op
            builder.add_meta_graph_and_variables(
                session,
                list(specs[0].tags),
                signature_def_map=signatures,
                assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
                main_op=default_local_init_op() if local_init_op is None else local_init_op,
                saver=saver,
                strip_default_attrs=strip_default_attrs,
            )
            for spec in specs[1:]:
                builder.add_meta_graph(
                    list(spec.tags), signature_def_map=signatures, strip_default_attrs=strip_default_attrs
                )
    builder.save(as_text)
    _copy_assets(assets_extra, temporary)
    tf.gfile.Rename(temporary, export_dir)
    return export_dir
