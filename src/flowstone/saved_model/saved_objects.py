"""The objects that a SavedModel has beside its graph: variables, tables, assets, functions, and what holds
them, numbered breadth-first from the root; then the message SavedObjectGraph.

`numbers` has by capture of a function, a tensor of the program's graph, the object that it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowstone.framework.tensors import nest
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.tensors.type_specs import TensorSpec
from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import messages
from flowstone.functions.traced_functions import function
from flowstone.ops.arrays.constants import constant
from flowstone.ops.lookup.assets import Asset
from flowstone.ops.lookup.lookup_tables import InitializableLookupTableBase
from flowstone.ops.variables.variables import Variable
from flowstone.saved_model.function_specs import traced_signature, write_function_spec
from flowstone.saved_model.loaded_functions import LoadedFunction
from flowstone.saved_model.loaded_objects import LoadedTable
from flowstone.saved_model.signatures import SignatureMap, is_concrete, is_function, named_functions
from flowstone.saved_model.structured_values import StructureCoder
from flowstone.training.checkpoints.object_graph import ObjectGraph
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["SavedObjects"]

_coder = StructureCoder()
_TABLES = (InitializableLookupTableBase, LoadedTable)


class SavedObjects:
    """What is below `root`, the root's `signatures`, and all functions; see the module.

    `checkpoint`: the ObjectGraph of what has values. `objects`, `edges`: all objects, and (name, number) of
    what each holds. `constants`: tensors whose values functions take, by the object's number.
    """

    def __init__(self, root: Any, signatures: SignatureMap) -> None:
        self.checkpoint = ObjectGraph(root)
        self.objects: list[Any] = list(self.checkpoint.objects)
        self.edges: list[list[tuple[str, int]]] = [list(edges) for edges in self.checkpoint.edges]
        self.edges[0] = [edge for edge in self.edges[0] if edge[0] != "signatures"]  # of a loaded model
        self._known = {id(each): number for number, each in enumerate(self.objects)}
        self.functions: dict[int, dict[str, Any]] = {}
        self.numbers: dict[Tensor, int] = {}
        self.concrete: dict[str, Any] = {}
        self._bound: dict[str, list[int]] = {}
        self.constants: dict[int, Tensor] = {}
        count = len(self.objects)
        self._add(0, "signatures", signatures)
        holder = self._known[id(signatures)]
        for number in range(count):
            for name, each in self._functions_of(self.objects[number]).items():
                self._add(number, name, each)
        for key, each in signatures.items():
            self._add(holder, key, each)
        self._number_captures()
        self._bind()

    def _add(self, holder: int, name: str, each: Any) -> None:
        number = self._known.get(id(each))
        if number is None:
            number = self._known[id(each)] = len(self.objects)
            self.objects.append(each)
            self.edges.append([])
        self.edges[holder].append((name, number))

    def _functions_of(self, value: Any) -> dict[str, Any]:
        return _table_functions(value) if isinstance(value, _TABLES) else named_functions(value)

    def tables(self) -> list[tuple[Any, Any, Any]]:
        """Each table, the function that initialises it, and what makes its node once more."""
        found = []
        for number, each in enumerate(self.objects):
            if isinstance(each, _TABLES):
                members = dict(self.edges[number])
                initialize = self.objects[members["_initialize"]].traces()[0]
                found.append((each, initialize, _maker(each)))
        return found

    # ---- captures

    def _number_captures(self) -> None:
        for number, each in enumerate(self.objects):
            if isinstance(each, Variable) and hasattr(each, "handle"):
                self.numbers[each.handle] = number
            elif isinstance(each, _TABLES):
                self.numbers[each.resource_handle] = number
            elif isinstance(each, Asset):
                self.numbers[each.asset_path] = number

    def _bind(self) -> None:
        """Numbers for what functions capture: those of the objects, and new ones for constants."""
        for each in list(self.objects):
            traces = each.traces() if is_function(each) else [each] if is_concrete(each) else []
            for trace in traces:
                name = trace.name.decode()
                self.concrete[name] = trace
                self._bound[name] = [self._number_of(tensor, trace) for tensor in trace.captured_inputs]

    def _number_of(self, tensor: Any, trace: Any) -> int:
        found = self.numbers.get(tensor)
        if found is None:
            if tensor.dtype.base_dtype in (dtypes.resource, dtypes.variant):
                raise AssertionError(
                    f"Tried to export a function which references untracked object {tensor}. TensorFlow "
                    "objects (e.g. tf.Variable) captured by functions must be tracked by assigning them to "
                    "an attribute of a tracked object or assigned to an attribute of the main object "
                    "directly."
                )
            if static_value(tensor) is None:
                raise ValueError(
                    f"Attempted to save a function {trace.name} which references a symbolic Tensor {tensor} "
                    "that is not a simple constant. This is not supported."
                )
            found = self.numbers[tensor] = len(self.objects)
            self.objects.append(tensor)
            self.edges.append([])
            self.constants[found] = tensor
        return found

    # ---- messages

    def checkpoint_message(self) -> Any:
        """The TrackableObjectGraph of the model's checkpoint, which has the signatures, too."""
        found = self.checkpoint.message()
        if not any(child.local_name == "signatures" for child in found.nodes[0].children):
            found.nodes[0].children.add(node_id=len(found.nodes), local_name="signatures")
            found.nodes.add()
        return found

    def message(self, constant_names: Mapping[int, str], assets: Mapping[int, int]) -> Any:
        """The SavedObjectGraph: `constant_names` has the nodes of constants, `assets` the places of assets
        among the AssetFileDefs, by number."""
        found = messages("saved_object_graph_pb2").SavedObjectGraph()
        for number, (each, edges) in enumerate(zip(self.objects, self.edges, strict=True)):
            node = found.nodes.add()
            for name, child in edges:
                node.children.add(node_id=child, local_name=name)
            if number in self.constants:
                node.constant.operation = constant_names[number]
            elif isinstance(each, Asset):
                node.asset.asset_file_def_index = assets[number]
            else:
                _write_object(each, node)
        for optimizer, of, name, slot in self.checkpoint.slots:
            found.nodes[optimizer].slot_variables.add(
                original_variable_node_id=of, slot_name=name, slot_variable_node_id=slot
            )
        for name, trace in self.concrete.items():
            self._write_trace(trace, self._bound[name], found.concrete_functions[name])
        return found

    def _write_trace(self, trace: Any, bound: list[int], message: Any) -> None:
        message.bound_inputs.extend(bound)
        message.canonicalized_input_signature.CopyFrom(_coder.encode_structure(traced_signature(trace)))
        results = _result_specs(trace.structured_outputs)
        message.output_signature.CopyFrom(_coder.encode_structure(results))


def _result_specs(value: Any, *path: str) -> Any:
    """What a trace returned, each tensor as a spec whose name is its place in it."""
    if isinstance(value, Tensor):
        return TensorSpec(value.shape, value.dtype, "/".join(path) or None)
    if not nest.is_nested(value):
        return value
    parts = nest.children(value)
    keys = sorted(value) if isinstance(value, Mapping) else getattr(value, "_fields", range(len(parts)))
    return nest.with_children(value, [_result_specs(x, *path, str(key)) for key, x in zip(keys, parts)])


def _write_object(value: Any, node: Any) -> None:
    if isinstance(value, Variable):
        message = node.variable
        message.dtype = value.dtype.base_dtype.as_datatype_enum
        message.shape.CopyFrom(value.shape.as_proto())
        message.trainable, message.name = value.trainable, value.op.name
    elif isinstance(value, _TABLES):
        node.resource.SetInParent()
    elif is_function(value):
        node.function.concrete_functions.extend(trace.name.decode() for trace in value.traces())
        spec = node.function.function_spec
        if isinstance(value, LoadedFunction):
            spec.CopyFrom(value.spec)
        else:
            write_function_spec(value.python_function, value.input_signature, spec)
    elif is_concrete(value):
        bare, names = node.bare_concrete_function, list(value.argument_specs)
        bare.concrete_function_name = value.name.decode()
        bare.argument_keywords.extend(names)
        bare.allowed_positional_arguments = 1 if len(names) == 1 else 0
    else:
        node.user_object.identifier = _identifier(value)
        node.user_object.version.producer = node.user_object.version.min_consumer = 1


def _identifier(value: Any) -> str:
    if isinstance(value, SignatureMap):
        return "signature_map"
    if isinstance(value, Mapping):
        return "trackable_dict_wrapper"
    if isinstance(value, (list, tuple)):
        return "trackable_list_wrapper"
    return "optimizer" if isinstance(value, Optimizer) else "_generic_user_object"


def _maker(table: Any) -> Any:
    return table._make if isinstance(table, LoadedTable) else table._create_resource


def _table_functions(table: Any) -> dict[str, Any]:
    """The functions that make a table, give it its contents, and take it away."""

    def _initializer() -> Any:
        table._initialize_again()
        return constant(1)

    def _destroyer() -> Any:
        return constant(1)

    found = {"_create_resource": _maker(table), "_initialize": _initializer, "_destroy_resource": _destroyer}
    return {name: function(each, input_signature=[], autograph=False) for name, each in found.items()}
