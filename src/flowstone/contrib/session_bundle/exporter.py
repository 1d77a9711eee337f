"""Exports of a graph and its variables as session bundles, a folder for each global step.

A bundle ``EXPORTS/00000007`` has ``export.meta``, a MetaGraphDef whose collections hold the graph to serve
and its signatures, the variables as a checkpoint ``export``, and files of the program's in ``assets``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import path
from typing import Any

import flowstone as tf
from flowstone.contrib.session_bundle import constants, gc, manifest_pb2
from flowstone.io.any_messages import pack

__all__ = [
    "Exporter",
    "classification_signature",
    "constants",
    "gc",
    "generic_signature",
    "gfile_copy_callback",
    "manifest_pb2",
    "regression_signature",
]


def gfile_copy_callback(files_to_copy: Mapping[str, str], export_dir_path: Any) -> None:
    """Copies files to the folder of assets: a dict from paths to the names they get."""
    folder = path.join(tf.compat.as_str(export_dir_path), constants.ASSETS_DIRECTORY)
    if not tf.gfile.Exists(folder):
        tf.gfile.MakeDirs(folder)
    for source, name in files_to_copy.items():
        tf.gfile.Copy(source, path.join(folder, name))


def _bound(tensor: Any) -> Any:
    return manifest_pb2.TensorBinding(tensor_name=tensor.name)


def regression_signature(input_tensor: Any, output_tensor: Any) -> Any:
    """A Signature of numbers [batch] for serialized examples [batch]."""
    signature = manifest_pb2.Signature()
    signature.regression_signature.input.CopyFrom(_bound(input_tensor))
    signature.regression_signature.output.CopyFrom(_bound(output_tensor))
    return signature


def classification_signature(input_tensor: Any, classes_tensor: Any = None, scores_tensor: Any = None) -> Any:
    """A Signature of classes and their scores, [batch, classes], for serialized examples [batch]; ValueError
    without either."""
    if classes_tensor is None and scores_tensor is None:
        raise ValueError("classes_tensor and scores_tensor are both None.")
    signature = manifest_pb2.Signature()
    found = signature.classification_signature
    found.input.CopyFrom(_bound(input_tensor))
    if classes_tensor is not None:
        found.classes.CopyFrom(_bound(classes_tensor))
    if scores_tensor is not None:
        found.scores.CopyFrom(_bound(scores_tensor))
    return signature


def generic_signature(name_tensor_map: Mapping[str, Any]) -> Any:
    """A Signature of tensors by name."""
    signature = manifest_pb2.Signature()
    for name, tensor in name_tensor_map.items():
        signature.generic_signature.map[name].CopyFrom(_bound(tensor))
    return signature


class Exporter:
    """Exports of one graph; `saver`: what saves its variables."""

    def __init__(self, saver: Any) -> None:
        # a Saver is asked as its message: that of the export begins with no checkpoints
        self._saver = tf.train.Saver(saver_def=saver.as_saver_def())
        self._has_init = False
        self._assets_to_copy: dict[str, str] = {}

    def init(
        self,
        graph_def: Any = None,
        init_op: Any = None,
        clear_devices: bool = False,
        default_graph_signature: Any = None,
        named_graph_signatures: Mapping[str, Any] | None = None,
        assets_collection: Iterable[Any] | None = None,
        assets_callback: Callable[[Mapping[str, str], Any], None] | None = gfile_copy_callback,
    ) -> None:
        """Says what is exported; collections of the default graph hold it.

        Args:
            graph_def: the graph to serve, by default the default graph.
            init_op: an operation that runs before the model serves.
            clear_devices: whether nodes are exported without their devices.
            default_graph_signature: a Signature; named_graph_signatures: a dict of them.
            assets_collection: scalars of strings, constants: the paths of files.
            assets_callback: copies the files, or None.

        Raises RuntimeError when it is called twice, ValueError for a path that is not constant.
        """
        if self._has_init:
            raise RuntimeError("init should be called only once")
        if graph_def is not None or clear_devices:
            copied = tf.GraphDef()
            copied.CopyFrom(
                tf.get_default_graph().as_graph_def(add_shapes=True) if graph_def is None else graph_def
            )
            if clear_devices:
                for node in copied.node:
                    node.device = ""
            _refill(constants.GRAPH_KEY, [pack(copied)])
        if init_op is not None:
            if not isinstance(init_op, tf.Operation):
                raise TypeError(f"init_op needs to be an Operation: {init_op}")
            _refill(constants.INIT_OP_KEY, [init_op])
        signatures = manifest_pb2.Signatures()
        if default_graph_signature is not None:
            signatures.default_signature.CopyFrom(default_graph_signature)
        for name, signature in (named_graph_signatures or {}).items():
            signatures.named_signatures[name].CopyFrom(signature)
        _refill(constants.SIGNATURES_KEY, [pack(signatures)])
        self._assets_callback = assets_callback
        if assets_collection:
            _refill(constants.ASSETS_KEY, [self._asset(tensor) for tensor in assets_collection])
        self._has_init = True

    def _asset(self, tensor: Any) -> Any:
        """The message of a file; notes that it is to be copied."""
        value = tf.contrib.util.constant_value(tensor)
        if value is None:
            raise ValueError(f"the path of an asset must be a constant: {tensor}")
        source = tf.compat.as_str(value.item())
        name = path.basename(source)
        self._assets_to_copy[source] = name
        return pack(manifest_pb2.AssetFile(filename=name, tensor_binding=_bound(tensor)))

    def export(
        self,
        export_dir_base: Any,
        global_step_tensor: Any,
        sess: Any = None,
        exports_to_keep: Callable[[Any], Any] | None = None,
    ) -> bytes:
        """Writes a bundle to ``EXPORT_DIR_BASE/STEP``.

        Args:
            global_step_tensor: the number of the export, a variable or a tensor.
            sess: the session whose variables are exported, by default the default session.
            exports_to_keep: from a list of `gc.Path`s to those that are kept; all if None.

        Returns the folder's path. Raises RuntimeError before `init`, and if there is such an export.
        """
        if not self._has_init:
            raise RuntimeError("init must be called first")
        base = tf.compat.as_str(export_dir_base)
        step = int(tf.train.global_step(sess or tf.get_default_session(), global_step_tensor))
        final = path.join(base, constants.VERSION_FORMAT_SPECIFIER % step)
        if tf.gfile.Exists(final):
            message = (
                f"Overwriting exports can cause corruption and are not allowed. Duplicate export dir: {final}"
            )
            raise RuntimeError(message)
        partial = f"{final}-tmp"
        tf.gfile.MakeDirs(partial)
        prefix = path.join(partial, constants.EXPORT_BASE_NAME)
        self._saver.save(
            sess or tf.get_default_session(),
            prefix,
            meta_graph_suffix=constants.EXPORT_SUFFIX_NAME,
        )
        if self._assets_callback and self._assets_to_copy:
            self._assets_callback(self._assets_to_copy, partial)
        tf.gfile.Rename(partial, final)
        if exports_to_keep:
            for each in gc.negation(exports_to_keep)(gc.get_paths(base, parser=_numbered)):
                tf.gfile.DeleteRecursively(each.path)
        return tf.compat.as_bytes(final)


def _numbered(each: Any) -> Any:
    """The path with its number, or None if it is no export's."""
    name = path.basename(tf.compat.as_str(each.path))
    return each._replace(export_version=int(name)) if len(name) == 8 and name.isdigit() else None


def _refill(collection: str, values: Iterable[Any]) -> None:
    """Gives a collection of the default graph these values only."""
    tf.get_default_graph().clear_collection(collection)
    for value in values:
        tf.add_to_collection(collection, value)
