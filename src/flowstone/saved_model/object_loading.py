"""`tf.saved_model.load_v2`: the objects of a SavedModel in the default graph.

Variables are restored by their initialisers, tables filled by theirs, so `global_variables_initializer` and
`tables_initializer` make a session ready. Functions get names of their own in the graph's library, so that a
model can be loaded twice. A SavedModel without objects (`imported_models`) has its signatures as functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.graphs.graph_def import read_shape
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.framework.types.tensor_proto import make_ndarray, messages
from flowstone.io.file_system import as_path
from flowstone.ops.arrays.constants import constant
from flowstone.ops.lookup.assets import Asset
from flowstone.ops.variables.resource_variable import ResourceVariable
from flowstone.saved_model import constants
from flowstone.saved_model.function_specs import parameters_of
from flowstone.saved_model.imported_models import load_signatures
from flowstone.saved_model.loaded_functions import LoadedFunction, LoadedTrace
from flowstone.saved_model.loaded_objects import LoadedTable, user_object
from flowstone.saved_model.loader import read_saved_model
from flowstone.saved_model.signatures import SignatureMap
from flowstone.saved_model.structured_values import StructureCoder
from flowstone.training.checkpoints.checkpoint_reading import NewCheckpointReader
from flowstone.training.checkpoints.object_graph import GRAPH_KEY, VALUE

__all__ = ["load", "load_v2"]

_coder = StructureCoder()
_loads = itertools.count(1)


def load_v2(export_dir: Any, tags: Any = None, options: Any = None) -> Any:
    """The object of a SavedModel that `tf.saved_model.save` wrote, in the default graph.

    Its variables, tables, assets and functions are attributes as they were; `signatures` has its signatures
    by their keys, functions of tensors by name that return dicts. A SavedModel of TensorFlow 1 gives an
    object with `signatures`, `variables`, `prune` and `graph`.

    Args:
        export_dir: the folder.
        tags: text or a list of texts, of the graph; None: the only one.
        options: None.

    Raises OSError for a folder without a model, ValueError if the model has other tags, RuntimeError if a
    model of several graphs does not have these.
    """
    folder = as_path(export_dir)
    model = read_saved_model(folder)
    wanted = None if tags is None else {tags} if isinstance(tags, str) else set(tags)
    if len(model.meta_graphs) == 1 and model.meta_graphs[0].object_graph_def.nodes:
        meta = model.meta_graphs[0]
        own = list(meta.meta_info_def.tags)
        if wanted is not None and wanted != set(own):
            raise ValueError(
                f"The SavedModel at {folder} has one MetaGraph with tags {own}, but got an incompatible "
                f"argument tags={tags} to tf.saved_model.load. You may omit it, pass 'None', or pass "
                "matching tags."
            )
        root = _Loading(meta, folder).root
    else:
        root, meta = load_signatures(model, folder, wanted)
    root.tensorflow_version = meta.meta_info_def.tensorflow_version
    root.tensorflow_git_version = meta.meta_info_def.tensorflow_git_version
    return root


load = load_v2


class _Loading:
    """The objects of a MetaGraphDef; `root` is the first."""

    def __init__(self, meta: Any, folder: str) -> None:
        self._meta, self._folder, self._proto = meta, folder, meta.object_graph_def
        self._graph: Graph = get_default_graph()
        self._values = _Values(self._proto, f"{folder}/{constants.VARIABLES_DIRECTORY}/variables")
        self._nodes = {node.name: node for node in meta.graph_def.node}
        self._definitions = _add_library(self._graph, meta.graph_def.library)
        self._traces: dict[str, LoadedTrace] = {}
        self._bare = {
            node.bare_concrete_function.concrete_function_name: list(
                node.bare_concrete_function.argument_keywords
            )
            for node in self._proto.nodes
            if node.WhichOneof("kind") == "bare_concrete_function"
        }
        with self._graph.control_dependencies(None):
            for name, message in self._proto.concrete_functions.items():
                self._traces[name] = self._trace(name, message)
            self._objects = [self._made(number) for number in range(len(self._proto.nodes))]
            self._connect()
            for name, message in self._proto.concrete_functions.items():
                bound = [_tensor_of(self._objects[i]) for i in message.bound_inputs]
                self._traces[name].captured_inputs = bound
            self._initialize_tables()
        self.root = self._objects[0]

    def _trace(self, name: str, message: Any) -> LoadedTrace:
        given = _coder.decode_proto(message.canonicalized_input_signature)
        results = _coder.decode_proto(message.output_signature)
        return LoadedTrace(self._definitions[name], given, results, self._bare.get(name))

    # ---- objects

    def _made(self, number: int) -> Any:
        node = self._proto.nodes[number]
        kind = node.WhichOneof("kind") or "user_object"
        makers: dict[str, Callable[[Any, int], Any]] = {
            "user_object": lambda message, number: _holder(message.identifier, node),
            "variable": self._variable,
            "asset": self._asset,
            "constant": self._constant,
            "function": self._function,
            "bare_concrete_function": lambda message, number: self._traces[message.concrete_function_name],
            "resource": self._table,
        }
        if kind not in makers:
            raise NotImplementedError(f"An object of a SavedModel of the kind {kind} is not understood")
        return makers[kind](getattr(node, kind), number)

    def _variable(self, message: Any, number: int) -> Any:
        key, dtype = self._values.key(number), dtypes.as_dtype(message.dtype)
        dims = read_shape(message.shape)

        def value() -> Any:
            if key is None:
                raise ValueError(f"The checkpoint of {self._folder} has no value of variable {message.name}")
            restored = F.RestoreV2(self._values.prefix, [key], [""], dtypes=[dtype])[0]
            restored.set_shape(TensorShape.from_dims(dims))
            return restored

        variable: Any = ResourceVariable(
            value, trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES], dtype=dtype,
            name=message.name or None, shape=TensorShape.from_dims(dims), validate_shape=False,
        )  # fmt: skip
        variable._trainable = message.trainable
        return variable

    def _asset(self, message: Any, number: int) -> Asset:
        name = self._meta.asset_file_def[message.asset_file_def_index].filename
        return Asset(f"{self._folder}/{constants.ASSETS_DIRECTORY}/{name}")

    def _constant(self, message: Any, number: int) -> Any:
        value = self._nodes[message.operation].attr["value"].tensor
        return constant(make_ndarray(value), dtypes.as_dtype(value.dtype))

    def _function(self, message: Any, number: int) -> LoadedFunction:
        spec = message.function_spec
        arguments = _coder.decode_proto(spec.fullargspec)
        signature = _coder.decode_proto(spec.input_signature) if spec.HasField("input_signature") else None
        traces = [self._traces[name] for name in message.concrete_functions]
        return LoadedFunction(traces, parameters_of(arguments, spec.is_method), signature, spec)

    def _table(self, message: Any, number: int) -> LoadedTable:
        members = {child.local_name: child.node_id for child in self._proto.nodes[number].children}
        creator = self._proto.nodes[members["_create_resource"]].function.concrete_functions[0]
        return LoadedTable(_table_node(self._definitions, creator))

    def _connect(self) -> None:
        for owner, node in zip(self._objects, self._proto.nodes):
            if isinstance(owner, (LoadedFunction, LoadedTrace, Asset)):
                continue
            for child in node.children:
                _set(owner, child.local_name, self._objects[child.node_id])

    def _initialize_tables(self) -> None:
        for each in self._objects:
            if isinstance(each, LoadedTable):
                each.set_initializer(vars(each)["_initialize"]())


def _set(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, list):
        if name.isdigit():
            owner.extend([None] * (int(name) + 1 - len(owner)))
            owner[int(name)] = value
    elif isinstance(owner, dict):
        owner[name] = value
    else:
        setattr(owner, name, value)
        if name == "__call__":  # which Python asks the class for
            type(owner).__call__ = lambda self, *args, **kwargs: value(*args, **kwargs)


def _holder(identifier: str, node: Any) -> Any:
    if identifier == "signature_map":
        return SignatureMap()
    if identifier in ("trackable_list_wrapper", "trackable_tuple_wrapper"):
        return []
    return {} if identifier == "trackable_dict_wrapper" else user_object()


def _tensor_of(value: Any) -> Any:
    """What a function takes that was made with this object."""
    if isinstance(value, Asset):
        return value.asset_path
    if isinstance(value, LoadedTable):
        return value.resource_handle
    return value.handle if isinstance(value, ResourceVariable) else value


class _Values:
    """The variables' keys in the model's checkpoint, which has objects of its own numbers."""

    def __init__(self, proto: Any, prefix: str) -> None:
        self.prefix = prefix
        self._message = messages("trackable_object_graph_pb2").TrackableObjectGraph()
        if any(node.WhichOneof("kind") == "variable" for node in proto.nodes):
            self._message.ParseFromString(NewCheckpointReader(prefix).get_tensor(GRAPH_KEY))
        self._matched: dict[int, int] = {0: 0} if self._message.nodes else {}
        waiting, waiting_slots = list(self._matched), []
        while waiting:
            own = waiting.pop(0)
            node, saved = proto.nodes[own], self._message.nodes[self._matched[own]]
            children = {child.local_name: child.node_id for child in saved.children}
            slots = {(s.original_variable_node_id, s.slot_name): s for s in saved.slot_variables}
            pairs = [(child.node_id, children.get(child.local_name)) for child in node.children]
            waiting += self._match(pairs)
            waiting_slots += [(each, slots) for each in node.slot_variables]
        for each, slots in waiting_slots:
            found = slots.get((self._matched.get(each.original_variable_node_id), each.slot_name))
            self._match([(each.slot_variable_node_id, found and found.slot_variable_node_id)])

    def _match(self, pairs: list[tuple[int, int | None]]) -> list[int]:
        new = [(own, saved) for own, saved in pairs if saved is not None and own not in self._matched]
        self._matched.update({own: saved for own, saved in new if saved is not None})
        return [own for own, _ in new]

    def key(self, number: int) -> str | None:
        """The key of the variable with this number; None if the checkpoint does not have it."""
        node = self._matched.get(number)
        if node is None:
            return None
        found = [x.checkpoint_key for x in self._message.nodes[node].attributes if x.name == VALUE]
        return found[0] if found else None


# ---- functions


def _add_library(graph: Graph, library: Any) -> dict[str, Any]:
    """Adds functions under new names; returns the definitions by the old ones."""
    mark = f"_loaded_{next(_loads)}"
    names = {each.signature.name: each.signature.name + mark for each in library.function}
    found = {}
    for each in library.function:
        definition = type(each)()
        definition.CopyFrom(each)
        definition.signature.name = names[each.signature.name]
        for node in definition.node_def:
            node.op = names.get(node.op, node.op)
            for value in node.attr.values():
                for named in [value.func] if value.func.name else value.list.func:
                    named.name = names.get(named.name, named.name)
        found[each.signature.name] = definition
        graph._functions.add(definition)
    for gradient in library.gradient:
        graph._functions.set_gradient(names[gradient.function_name], names[gradient.gradient_func])
    return found


def _table_node(definitions: dict[str, Any], name: str) -> Any:
    """The node of a table in the function that makes it, or in one that this calls."""
    for node in definitions[name].node_def:
        if "key_dtype" in node.attr:
            return node
    for node in definitions[name].node_def:
        called = node.attr["f"].func.name
        for own, definition in definitions.items():
            if called and definition.signature.name == called:
                return _table_node(definitions, own)
    raise NotImplementedError(f"A resource of a SavedModel that is no hash table ({name}) is not understood")
