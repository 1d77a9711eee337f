"""`tf.saved_model.save`: an object with its variables, functions and files, as a SavedModel.

The model's graph is a new one: a VarHandleOp a variable, a node a table, the constants that functions take,
a call for each signature, what saves and restores, and an operation that fills the tables; the functions are
its library. Beside it stand the objects (`saved_objects`). Variables' values are those of the default
session, read once.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from flowstone.client.session import Session
from flowstone.framework.declarations.building import add_operation
from flowstone.framework.declarations.operation import F
from flowstone.framework.functions.function_graph import FunctionGraph
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph, get_default_session
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import messages
from flowstone.io.checkpoint_files.bundle_writer import BundleWriter
from flowstone.io.file_system import as_path, atomic_write_string_to_file, copy, recursive_create_dir
from flowstone.io.proto.saved_model_pb2 import SavedModel
from flowstone.ops.arrays.constants import constant
from flowstone.ops.control import functional_forms
from flowstone.ops.control.control_flow import group
from flowstone.ops.lookup.assets import Asset
from flowstone.ops.variables.variables import Variable
from flowstone.saved_model import constants
from flowstone.saved_model.saved_objects import SavedObjects
from flowstone.saved_model.signature_constants import PREDICT_METHOD_NAME
from flowstone.saved_model.signature_def_utils import build_signature_def
from flowstone.saved_model.signatures import signatures_of
from flowstone.saved_model.tag_constants import SERVING
from flowstone.saved_model.utils import build_tensor_info
from flowstone.training.checkpoints.meta_graph import create_meta_graph_def
from flowstone.training.checkpoints.object_graph import GRAPH_KEY, is_trackable

__all__ = ["save"]

_INIT = "__saved_model_init_op"
_calls: Any = functional_forms.partitioned_call, functional_forms.stateful_partitioned_call


def save(obj: Any, export_dir: Any, signatures: Any = None, options: Any = None) -> None:
    """Writes an object as a SavedModel, which `tf.saved_model.load_v2` makes it from again and which serves.

    Saved are the variables, tables, `tf.saved_model.Asset`s, lists, dicts and objects in the attributes, and
    the `tf.function`s, each with the traces that it has by now (with an `input_signature` there is one).
    Values are those of the default session; a folder that is there is written into.

    Models of `tf.keras` are written as their `save` does.

    Args:
        obj: a `tf.Module`, `tf.train.Checkpoint`, layer or another object that checkpoints take as a root.
        export_dir: the folder.
        signatures: a `tf.function` with an `input_signature` or a concrete function, or a dict of them by
            their keys. None: the object's only function that has an `input_signature` and flat results.
        options: None.

    Raises AssertionError within a `tf.function` and for a function that uses a resource which is in no
    attribute, ValueError for an object or signature of another kind and for a function that uses a tensor
    which is no constant, FailedPreconditionError for a variable without a value.
    """
    if isinstance(get_default_graph(), FunctionGraph):
        raise AssertionError(
            "tf.saved_model.save is not supported inside a traced @tf.function. Move the call to the outer "
            "context."
        )
    if isinstance(obj, (list, tuple, dict)) or not is_trackable(obj):
        raise ValueError(f"Expected a Trackable object for export, got {obj}.")
    if signatures is None and hasattr(obj, "_save_as_saved_model"):
        obj._save_as_saved_model(as_path(export_dir))
        return
    named = signatures_of(obj, signatures)
    objects = SavedObjects(obj, named)
    folder = as_path(export_dir)
    recursive_create_dir(f"{folder}/{constants.VARIABLES_DIRECTORY}")
    _write_values(objects, f"{folder}/{constants.VARIABLES_DIRECTORY}/{constants.VARIABLES_FILENAME}")
    export = _Export(objects, named)
    recursive_create_dir(f"{folder}/{constants.ASSETS_DIRECTORY}")
    for source, name in export.files.items():
        copy(source, f"{folder}/{constants.ASSETS_DIRECTORY}/{name}", overwrite=True)
    model = SavedModel(saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION)
    model.meta_graphs.append(export.meta_graph())
    path = f"{folder}/{constants.SAVED_MODEL_FILENAME_PB}"
    atomic_write_string_to_file(path, model.SerializeToString(deterministic=True))


def _write_values(objects: SavedObjects, prefix: str) -> None:
    """Writes the checkpoint of the objects."""
    checkpoint, session = objects.checkpoint, get_default_session() or Session()
    names = list(checkpoint.variables)
    tensors = {name: each.saved_tensor() for name, each in checkpoint.tensors.items()}
    fetches = [*checkpoint.variables.values(), *tensors.values()]
    values = session.run(fetches) if fetches else []  # a graph without operations does not run
    with BundleWriter(prefix) as writer:
        for name, value in zip([*names, *tensors], values):
            writer.add(name, value)
        for name, state in checkpoint.states.items():
            text = state.serialize()
            writer.add(name, _text(text.encode() if isinstance(text, str) else text))
        writer.add(GRAPH_KEY, _text(objects.checkpoint_message().SerializeToString()))


def _text(value: bytes) -> Any:
    found = np.empty([], object)
    found[()] = value
    return found


class _Export:
    """The model's graph of these objects; `files` are the assets to copy, by their paths."""

    def __init__(self, objects: SavedObjects, signatures: Any) -> None:
        self._objects, self._signatures = objects, signatures
        self.graph, self._source = Graph(), get_default_graph()
        self.files: dict[str, str] = {}
        self._copies: dict[int, Tensor] = {}  # by number
        self._assigned: list[Any] = []  # what stores the paths of assets
        self._initial_paths: dict[int, Tensor] = {}  # by number, read when they are stored
        self._assets: dict[int, int] = {}
        self._asset_tensors: list[tuple[Any, str]] = []
        self._add_library()
        with self.graph.as_default():
            for number, each in enumerate(objects.objects):
                if number in objects.constants:
                    value = static_value(objects.constants[number])
                    self._copies[number] = constant(value, objects.constants[number].dtype)
                elif isinstance(each, Asset):
                    self._copies[number] = self._asset(number, each)
                elif isinstance(each, Variable):
                    self._copies[number] = _handle(each.op.name, each.dtype.base_dtype, each.shape)
            for table, _, make in objects.tables():
                self._copies[objects.numbers[table.resource_handle]] = make()
            self._init = self._initializer()
            self._defs = {key: self._signature(key, each) for key, each in signatures.items()}
            self._saver = self._saving()

    def _add_library(self) -> None:
        library, source = self.graph._functions, self._source._functions
        waiting = list(self._objects.concrete)
        while waiting:
            name = waiting.pop()
            if name in library or name not in source:
                continue
            library.add(source[name])
            waiting += _called(source[name])
            if name in source.gradients:
                library.set_gradient(name, source.gradients[name])
                waiting.append(source.gradients[name])

    # ---- nodes

    def _asset(self, number: int, asset: Asset) -> Tensor:
        """The path of a copy: what is fed when the initialising operation runs, kept in a variable."""
        value = static_value(asset.asset_path)
        if value is None:
            raise ValueError(f"The path of an asset must be a constant, got {asset.asset_path}")
        path = value.item() if hasattr(value, "item") else value
        path = path.decode() if isinstance(path, bytes) else str(path)
        given = F.Placeholder(dtype=dtypes.string, shape=[], name="asset_path_initializer")
        handle = _handle(self.graph.unique_name("asset_path", mark_as_used=False), dtypes.string, [])
        assigned = F.AssignVariableOp.operation(handle, given)
        self._assigned.append(assigned)
        self._assets[number] = len(self._asset_tensors)
        self._asset_tensors.append((given, self._file_name(path)))
        with self.graph.control_dependencies([assigned]):
            self._initial_paths[number] = F.ReadVariableOp(handle, dtype=dtypes.string)
        read: Tensor = F.ReadVariableOp(handle, dtype=dtypes.string)
        return read

    def _file_name(self, path: str) -> str:
        if path not in self.files:
            name, taken = os.path.basename(path), set(self.files.values())
            stem, extension = os.path.splitext(name)
            count = 0
            while name in taken:
                count += 1
                name = f"{stem}_{count}{extension}"
            self.files[path] = name
        return self.files[path]

    def _call(self, trace: Any, values: list[Tensor], paths: dict[int, Tensor], name: str) -> Any:
        numbers = [self._objects.numbers[x] for x in trace.captured_inputs]
        captured = [paths.get(number, self._copies[number]) for number in numbers]
        signature = trace.function_def.signature
        types = [dtypes.as_dtype(argument.type) for argument in signature.output_arg]
        call = _calls[signature.is_stateful]
        keywords = {"Tout": types, "f": signature.name}
        return add_operation(call, ([*values, *captured],), keywords, name or call.name)

    def _initializer(self) -> Any:
        paths = self._initial_paths
        filled = [self._call(trace, [], paths, "") for _, trace, _ in self._objects.tables()]
        return group(*self._assigned, *filled, name="NoOp")

    def _signature(self, key: str, trace: Any) -> Any:
        given = {
            name: F.Placeholder(dtype=spec.dtype, shape=spec.shape, name=f"{key}_{name}")
            for name, spec in trace.argument_specs.items()
        }
        operation = self._call(trace, list(given.values()), {}, "")
        results = {}
        for name, result, x in zip(sorted(trace.structured_outputs), operation.outputs, trace.outputs):
            result.set_shape(x.shape)
            results[name] = build_tensor_info(result)
        inputs = {name: build_tensor_info(x) for name, x in given.items()}
        return build_signature_def(inputs, results, PREDICT_METHOD_NAME)

    def _saving(self) -> Any:
        """What saves and restores, for loaders that know no objects."""
        checkpoint = self._objects.checkpoint
        path = F.Placeholder(dtype=dtypes.string, shape=[], name="saver_filename")
        numbers = {id(each): number for number, each in enumerate(self._objects.objects)}
        names = list(checkpoint.variables)
        handles = [self._copies[numbers[id(each)]] for each in checkpoint.variables.values()]
        types = [each.dtype.base_dtype for each in checkpoint.variables.values()]
        values = [F.ReadVariableOp(handle, dtype=kind) for handle, kind in zip(handles, types)]
        message = constant(self._objects.checkpoint_message().SerializeToString())
        keys = [*names, GRAPH_KEY]
        saved = F.SaveV2.operation(path, keys, [""] * len(keys), [*values, message])
        with self.graph.control_dependencies([saved]):
            done = F.Identity(path, name="saved")
        assigned = []
        if names:
            restored = F.RestoreV2.several(path, names, [""] * len(names), dtypes=types)
            assigned = [F.AssignVariableOp.operation(h, value) for h, value in zip(handles, restored)]
        restore = group(*assigned, name="restore")
        saver = messages("saver_pb2").SaverDef(
            filename_tensor_name=path.name, save_tensor_name=done.name, restore_op_name=restore.name
        )
        saver.version = saver.V2
        return saver

    # ---- the message

    def meta_graph(self) -> Any:
        """The MetaGraphDef."""
        info = messages("meta_graph_pb2").MetaGraphDef.MetaInfoDef(tags=[SERVING])
        meta = create_meta_graph_def(info, saver_def=self._saver, graph=self.graph, collection_list=[])
        for key, definition in self._defs.items():
            meta.signature_def[key].CopyFrom(definition)
        outputs = meta.signature_def[_INIT].outputs[_INIT]
        outputs.name, outputs.tensor_shape.unknown_rank = self._init.name, True
        meta.collection_def[constants.MAIN_OP_KEY].node_list.value.append(self._init.name)
        for tensor, name in self._asset_tensors:
            asset = meta.asset_file_def.add(filename=name)
            asset.tensor_info.name = tensor.name
        names = {number: self._copies[number].op.name for number in self._objects.constants}
        meta.object_graph_def.CopyFrom(self._objects.message(names, self._assets))
        return meta


def _handle(name: str, dtype: Any, shape: Any) -> Tensor:
    unique = get_default_graph().unique_name(name, mark_as_used=False)
    handle: Tensor = F.VarHandleOp(dtype=dtype, shape=shape, shared_name=unique, name=unique)
    return handle


def _called(definition: Any) -> list[str]:
    """The functions that a function names."""
    found = []
    for node in definition.node_def:
        found.append(node.op)
        for value in node.attr.values():
            found += [value.func.name] if value.func.name else [each.name for each in value.list.func]
    return found
