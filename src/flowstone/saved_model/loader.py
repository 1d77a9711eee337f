"""`load` and `SavedModelLoader`: a graph of a SavedModel in a session, ready to run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowstone.framework import errors
from flowstone.framework.process import logging
from flowstone.framework.types.tensor_proto import messages
from flowstone.io import any_messages
from flowstone.io.file_system import as_path, file_exists, read_bytes
from flowstone.io.proto.saved_model_pb2 import SavedModel
from flowstone.saved_model import constants
from flowstone.training.checkpoints.saver_import import import_meta_graph_with_return_elements

__all__ = [
    "SavedModelLoader",
    "asset_paths",
    "chosen_graph",
    "load",
    "main_op",
    "maybe_saved_model_directory",
    "read_saved_model",
]

_INIT_SIGNATURE = "__saved_model_init_op"  # where newer TensorFlow names the operation to run


def _joined(*parts: str) -> str:
    return "/".join([parts[0].rstrip("/"), *parts[1:]])


def maybe_saved_model_directory(export_dir: Any) -> bool:
    """Whether the folder has a SavedModel's file, binary or text."""
    folder = as_path(export_dir)
    names = (constants.SAVED_MODEL_FILENAME_PBTXT, constants.SAVED_MODEL_FILENAME_PB)
    return any(file_exists(_joined(folder, name)) for name in names)


def read_saved_model(export_dir: Any) -> Any:
    """The SavedModel message of a folder. OSError, with the path, if there is none or it cannot be parsed."""
    folder = as_path(export_dir)
    path = _joined(folder, constants.SAVED_MODEL_FILENAME_PB)
    if file_exists(path):
        try:
            return SavedModel.FromString(read_bytes(path))
        except Exception as error:  # protobuf's DecodeError, whose module depends on its implementation
            raise OSError(f"Cannot parse file {path}: {error}.") from None
    path = _joined(folder, constants.SAVED_MODEL_FILENAME_PBTXT)
    if file_exists(path):
        try:
            return any_messages.parse_text(read_bytes(path), SavedModel())
        except errors.InvalidArgumentError as error:
            raise OSError(f"Cannot parse file {path}: {error.message}.") from None
    names = f"{constants.SAVED_MODEL_FILENAME_PBTXT}|{constants.SAVED_MODEL_FILENAME_PB}"
    raise OSError(f"SavedModel file does not exist at: {folder}/{{{names}}}")


def load(
    sess: Any, tags: Iterable[str], export_dir: Any, import_scope: str | None = None, **saver_kwargs: Any
) -> Any:
    """Adds a graph of a SavedModel to a session's graph, restores its variables, runs its main operation.

    Args:
        sess: the session.
        tags: all tags of the graph.
        export_dir: the model's folder.
        import_scope: the name scope that the graph is put below.
        **saver_kwargs: of `tf.train.import_meta_graph`.

    Returns the MetaGraphDef, as it is in the file. Raises OSError for a folder without a readable model, and
    RuntimeError for tags that no graph has.
    """
    return SavedModelLoader(export_dir).load(sess, tags, import_scope, **saver_kwargs)


class SavedModelLoader:
    """Loads graphs of a SavedModel, in one call or in steps.

    Args:
        export_dir: the model's folder. OSError if it has no readable model.
    """

    def __init__(self, export_dir: Any) -> None:
        self._folder = as_path(export_dir)
        self._model = read_saved_model(self._folder)

    @property
    def export_dir(self) -> str:
        """The model's folder."""
        return self._folder

    @property
    def variables_path(self) -> str:
        """What the names of the variables' checkpoint begin with."""
        return _joined(self._folder, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME)

    @property
    def saved_model(self) -> Any:
        """The SavedModel message."""
        return self._model

    def get_meta_graph_def_from_tags(self, tags: Iterable[str]) -> Any:
        """The MetaGraphDef that has these tags, all of them and no others; RuntimeError if there is none."""
        return chosen_graph(self._model, set(tags))

    def load_graph(
        self, graph: Any, tags: Iterable[str], import_scope: str | None = None, **saver_kwargs: Any
    ) -> tuple[Any, list[Any] | None]:
        """Adds the model's graph to `graph`; returns the Saver of its variables (None if it has none), and
        the elements that `return_elements` names.
        """
        meta = self.get_meta_graph_def_from_tags(tags)
        imported = type(meta)()
        imported.CopyFrom(meta)
        with graph.as_default():
            return import_meta_graph_with_return_elements(imported, import_scope=import_scope, **saver_kwargs)

    def restore_variables(self, sess: Any, saver: Any, import_scope: str | None = None) -> None:
        """Restores the variables in a session by the Saver that `load_graph` gave, if there are any.

        ValueError if the model has lost them.
        """
        if saver is not None:
            with sess.graph.as_default():
                saver.restore(sess, self.variables_path)
        else:
            logging.info("The specified SavedModel has no variables; no checkpoints were restored.")

    def run_init_ops(self, sess: Any, tags: Iterable[str], import_scope: str | None = None) -> None:
        """Runs the operation that makes the graph ready, if there is one, with the paths of the assets."""
        meta = self.get_meta_graph_def_from_tags(tags)
        operation = main_op(meta, sess.graph, import_scope)
        if operation is not None:
            sess.run(operation, asset_paths(meta, self._folder, import_scope))

    def load(
        self, sess: Any, tags: Iterable[str], import_scope: str | None = None, **saver_kwargs: Any
    ) -> Any:
        """All three in turn; returns the MetaGraphDef, as it is in the file."""
        tags = set(tags)
        saver, _ = self.load_graph(sess.graph, tags, import_scope, **saver_kwargs)
        self.restore_variables(sess, saver, import_scope)
        self.run_init_ops(sess, tags, import_scope)
        return self.get_meta_graph_def_from_tags(tags)


def chosen_graph(model: Any, tags: set[str]) -> Any:
    """The MetaGraphDef that has these tags, all of them and no others; RuntimeError if there is none."""
    for meta in model.meta_graphs:
        if set(meta.meta_info_def.tags) == tags:
            return meta
    available = [set(meta.meta_info_def.tags) for meta in model.meta_graphs]
    raise RuntimeError(
        f"MetaGraphDef associated with tags {', '.join(sorted(map(repr, tags)))} could not be found in "
        "SavedModel. To inspect available tag-sets in the SavedModel, please use the SavedModel CLI: "
        f"`saved_model_cli`\navailable_tags: {available}"
    )


def _scoped(name: str, scope: str | None) -> str:
    return f"{scope}/{name}" if scope else name


def main_op(meta: Any, graph: Any, scope: str | None) -> Any:
    """The operation that makes the graph ready, or None. RuntimeError where there are several."""
    if _INIT_SIGNATURE in meta.signature_def:
        name = meta.signature_def[_INIT_SIGNATURE].outputs[_INIT_SIGNATURE].name
        return graph.as_graph_element(_scoped(name, scope))
    for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        if key in meta.collection_def:
            names = meta.collection_def[key].node_list.value
            if len(names) != 1:
                raise RuntimeError(f"Expected exactly one op in collection {key}, found {len(names)}.")
            return graph.as_graph_element(_scoped(names[0], scope))
    return None


def asset_paths(meta: Any, folder: Any, scope: str | None) -> dict[str, str]:
    """The paths of the assets by the names of their tensors."""
    kind = messages("meta_graph_pb2").AssetFileDef
    found = list(meta.asset_file_def)
    if not found and constants.ASSETS_KEY in meta.collection_def:
        found = [
            any_messages.unpack(each, kind)
            for each in meta.collection_def[constants.ASSETS_KEY].any_list.value
        ]
    return {
        _scoped(asset.tensor_info.name, scope): _joined(
            as_path(folder), constants.ASSETS_DIRECTORY, asset.filename
        )
        for asset in found
    }
