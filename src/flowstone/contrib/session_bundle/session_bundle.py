"""Loads session bundles."""

from __future__ import annotations

from os import path
from typing import Any

import flowstone as tf
from flowstone.contrib.session_bundle import constants, manifest_pb2
from flowstone.io.any_messages import unpack

__all__ = ["load_session_bundle_from_path", "maybe_session_bundle_dir"]


def maybe_session_bundle_dir(export_dir: Any) -> bool:
    """Whether there is a session bundle in the folder."""
    return bool(tf.gfile.Exists(path.join(tf.compat.as_str(export_dir), constants.META_GRAPH_DEF_FILENAME)))


def load_session_bundle_from_path(
    export_dir: Any, target: str = "", config: Any = None, meta_graph_def: Any = None
) -> tuple[Any, Any]:
    """A session with the graph and the variables of a bundle, and its MetaGraphDef.

    Args:
        export_dir: the folder.
        target, config: of the session.
        meta_graph_def: in place of the bundle's.

    The operation that the bundle has for that has run, with the paths of the assets where they are now.
    Raises RuntimeError for a folder without a bundle or variables.
    """
    folder = tf.compat.as_str(export_dir)
    meta = _read(folder) if meta_graph_def is None else meta_graph_def
    collections = meta.collection_def
    if constants.GRAPH_KEY in collections:
        (graph_any,) = collections[constants.GRAPH_KEY].any_list.value
        meta.graph_def.CopyFrom(unpack(graph_any, tf.GraphDef))
    graph = tf.Graph()
    with graph.as_default():
        session = tf.Session(target, graph=graph, config=config)
        saver = tf.train.import_meta_graph(meta)
        prefix = path.join(folder, constants.VARIABLES_FILENAME)
        if not tf.train.checkpoint_exists(prefix):
            raise RuntimeError(f"Cannot find checkpoint {prefix} of the session bundle in {folder}")
        saver.restore(session, prefix)
        assets = {}
        for each in (
            collections[constants.ASSETS_KEY].any_list.value if constants.ASSETS_KEY in collections else ()
        ):
            asset = unpack(each, manifest_pb2.AssetFile)
            assets[asset.tensor_binding.tensor_name] = path.join(
                folder, constants.ASSETS_DIRECTORY, asset.filename
            )
        if constants.INIT_OP_KEY in collections:
            (name,) = collections[constants.INIT_OP_KEY].node_list.value
            session.run(graph.get_operation_by_name(name), assets)
    return session, meta


def _read(folder: str) -> Any:
    """The MetaGraphDef of the bundle."""
    name = path.join(folder, constants.META_GRAPH_DEF_FILENAME)
    if not tf.gfile.Exists(name):
        raise RuntimeError(f"Expected meta graph file missing {name}")
    meta = tf.MetaGraphDef()
    with tf.gfile.GFile(name, "rb") as file:
        meta.ParseFromString(file.read())
    return meta
