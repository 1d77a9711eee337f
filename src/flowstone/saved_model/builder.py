"""`SavedModelBuilder`: graphs, variables and assets of a model in one folder.

saved_model.pb    (or .pbtxt) the graphs with their tags and signatures
variables/        a checkpoint
assets/           files that the graphs name, such as vocabularies
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from flowstone.framework.graphs.graph import Operation
from flowstone.framework.process import logging
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import messages
from flowstone.io import any_messages
from flowstone.io.file_system import (
    as_path,
    atomic_write_string_to_file,
    copy,
    file_exists,
    is_directory,
    list_directory,
    recursive_create_dir,
)
from flowstone.io.proto.saved_model_pb2 import SavedModel
from flowstone.saved_model import constants
from flowstone.training.checkpoints.saver import Saver

__all__ = ["SavedModelBuilder"]


class SavedModelBuilder:
    """Builds a SavedModel: the first graph with the variables, further graphs, then `save`.

    `export_dir`: the folder, which is made; AssertionError if it is there and not empty.
    """

    def __init__(self, export_dir: Any) -> None:
        self._export_dir = as_path(export_dir)
        self._saved_model = SavedModel(saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION)
        self._has_saved_variables = False
        if file_exists(self._export_dir):
            if not is_directory(self._export_dir) or list_directory(self._export_dir):
                raise AssertionError(
                    "Export directory already exists, and isn't empty. Please choose a different export "
                    "directory, or delete all the contents of the specified directory: "
                    f"{self._export_dir}"
                )
        else:
            recursive_create_dir(self._export_dir)

    def add_meta_graph_and_variables(
        self,
        sess: Any,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Iterable[Any] | None = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph and saves its variables and assets.

        Args:
            sess: the session with the variables' values.
            tags: by which the graph is chosen when it is loaded.
            signature_def_map: SignatureDefs by their keys.
            assets_collection: scalar string tensors that hold the paths of files.
            legacy_init_op, main_op: an operation that is run when the graph is loaded; of two, `main_op`.
            clear_devices: nodes name no devices.
            strip_default_attrs: attributes with their default values are left out.
            saver: the Saver of the variables; a new one of all if None.

        Raises AssertionError the second time and for incomplete signatures, ValueError for a graph that has a
        main operation already, KeyError for a signature's key that is reserved, TypeError for an operation or
        asset of another kind.
        """
        if self._has_saved_variables:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. Please invoke "
                "`add_meta_graph()` instead."
            )
        _check_signatures(signature_def_map)
        self._add_main_op(legacy_init_op, main_op)
        self._save_assets(assets_collection, write=True)
        saver = saver or _new_saver()
        folder = _joined(self._export_dir, constants.VARIABLES_DIRECTORY)
        recursive_create_dir(folder)
        path = _joined(folder, constants.VARIABLES_FILENAME)
        saver.save(sess, path, write_meta_graph=False, write_state=False)
        self._add(saver, tags, signature_def_map, clear_devices, strip_default_attrs)
        self._has_saved_variables = True

    def add_meta_graph(
        self,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Iterable[Any] | None = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph, whose variables and assets are among those of the first; see
        `add_meta_graph_and_variables`, before which AssertionError is raised."""
        if not self._has_saved_variables:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. Please invoke "
                "`add_meta_graph_and_variables()` first."
            )
        _check_signatures(signature_def_map)
        self._add_main_op(legacy_init_op, main_op)
        self._save_assets(assets_collection, write=False)
        self._add(saver or _new_saver(), tags, signature_def_map, clear_devices, strip_default_attrs)

    def save(self, as_text: bool = False) -> bytes:
        """Writes the graphs, as text or in the binary form; returns the file's path."""
        name = constants.SAVED_MODEL_FILENAME_PBTXT if as_text else constants.SAVED_MODEL_FILENAME_PB
        path = _joined(self._export_dir, name)
        content: Any = self._saved_model.SerializeToString(deterministic=True)
        if as_text:
            content = any_messages.format_text(self._saved_model)
        atomic_write_string_to_file(path, content)
        logging.info(f"SavedModel written to: {path}")
        return path.encode()

    def _add(
        self,
        saver: Saver,
        tags: Iterable[str],
        signatures: Mapping[str, Any] | None,
        clear: bool,
        strip: bool,
    ) -> None:
        meta = saver.export_meta_graph(clear_devices=clear, strip_default_attrs=strip)
        meta.meta_info_def.tags.extend(tags)
        for key, signature in (signatures or {}).items():
            meta.signature_def[key].CopyFrom(signature)
        self._saved_model.meta_graphs.append(meta)

    def _add_main_op(self, legacy_init_op: Any, main_op: Any) -> None:
        graph = get_default_graph()
        given = main_op if main_op is not None else legacy_init_op
        if given is None:
            return
        if not isinstance(given, Operation):
            raise TypeError(f"main_op needs to be an Operation: {given}")
        for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
            if graph.get_collection(key):
                raise ValueError(f"Graph already contains one or more main ops under the collection {key}.")
        graph.add_to_collection(constants.MAIN_OP_KEY, given)

    # ---- assets

    def _save_assets(self, assets: Iterable[Any] | None, write: bool) -> None:
        """Names each asset's file in the graph's collection, and copies it."""
        graph = get_default_graph()
        names: dict[str, str] = {}
        folder = _joined(self._export_dir, constants.ASSETS_DIRECTORY)
        for tensor in assets or ():
            path = _asset_path(tensor)
            if path not in names:
                names[path] = _free_name(os.path.basename(path), names.values())
            message = messages("meta_graph_pb2").AssetFileDef(filename=names[path])
            message.tensor_info.name = tensor.name
            graph.add_to_collection(constants.ASSETS_KEY, any_messages.pack(message))
        if names and write:
            recursive_create_dir(folder)
            for path, name in names.items():
                copy(path, _joined(folder, name), overwrite=True)


_RESERVED = {
    "__saved_model_init_op": "initialization",
    "__saved_model_train_op": "the train op",
}  # keys under which newer TensorFlow names operations to run


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def _new_saver() -> Saver:
    return Saver(sharded=True, allow_empty=True)


def _asset_path(tensor: Any) -> str:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"Asset path must be a Tensor, not {tensor!r}.")
    if tensor.dtype.base_dtype != dtypes.string:
        raise TypeError("Asset path tensor must be of dtype string.")
    value = static_value(tensor)
    if value is None or value.ndim:
        raise TypeError(f"Asset path tensor {tensor.name} must be a constant scalar.")
    path = value.item()
    path = path.decode() if isinstance(path, bytes) else str(path)
    if not path:
        raise ValueError(f"Invalid asset filepath tensor {tensor.name}: it is empty.")
    return path


def _free_name(name: str, taken: Iterable[str]) -> str:
    used, number, free = set(taken), 0, name
    while free in used:
        number += 1
        free = f"{name}_{number}"
    return free


def _check_signatures(signatures: Mapping[str, Any] | None) -> None:
    for key, signature in (signatures or {}).items():
        if key in _RESERVED:
            raise KeyError(
                f'SignatureDef map key "{key}" is reserved for {_RESERVED[key]}. Use a different key.'
            )
        for info in (*signature.inputs.values(), *signature.outputs.values()):
            if info.WhichOneof("encoding") is None:
                raise AssertionError(
                    "All TensorInfo protos used in the SignatureDefs must have one of the 'encoding' fields "
                    f"(e.g., name or coo_sparse) set: {info}"
                )
            if not info.dtype:
                raise AssertionError(
                    f"All TensorInfo protos used in the SignatureDefs must have the dtype field set: {info}"
                )
