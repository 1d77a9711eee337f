"""FunctionDefs: a function's graph as a message, and back.

A FunctionDef names values otherwise than a GraphDef does: an argument by its name, an output of a node as
``node:output_argument:index``. `write_function` makes the names of results, arguments and nodes distinct, in
this order of precedence, by a number at their end. `read_body` accepts what TensorFlow writes, functions
whose types depend on the call's attributes included.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flowstone.framework import errors
from flowstone.framework.graphs.function_library import FunctionBody, FunctionLibrary
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.graphs.graph_def import _write_node, messages, read_shape
from flowstone.framework.graphs.graph_source import Source, connect, read_nodes, sort, split_name
from flowstone.framework.graphs.import_graph import _create_all
from flowstone.framework.types import dtypes

if TYPE_CHECKING:
    from flowstone.framework.graphs.graph import Operation
    from flowstone.framework.tensors.tensor import Tensor


# ---- writing


def write_function(
    name: str,
    graph: Graph,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    out_names: Sequence[str] | None = None,
    controls: Sequence[Operation] = (),
) -> Any:
    """The FunctionDef of a graph in which `inputs` are placeholders; a call also runs `controls`.

    InvalidArgumentError unless `out_names`, if given, name every output.
    """
    if out_names and len(out_names) != len(outputs):
        raise errors.InvalidArgumentError(
            None,
            None,
            "output names must be either empty or equal in size to outputs. output names size = "
            f"{len(out_names)} outputs size = {len(outputs)}",
        )
    writer = _Writer(name, graph, inputs, outputs)
    message = writer.write(out_names)
    for op in controls:
        message.signature.control_output.append(writer.names[op])
        message.control_ret[writer.names[op]] = writer.names[op]
    return message


class _Writer:
    def __init__(self, name: str, graph: Graph, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        self.message = messages("function_pb2").FunctionDef()
        self.message.signature.name = name
        self.inputs, self.outputs = inputs, outputs
        arguments = {x.op for x in inputs}
        self.operations = [op for op in graph.get_operations() if op not in arguments]
        self.taken: set[str] = set()
        self.values: dict[Tensor, str] = {}
        self.names: dict[Operation, str] = {}

    def write(self, out_names: Sequence[str] | None) -> Any:
        signature = self.message.signature
        wanted = out_names or [_argument_name(x.op.name) for x in self.outputs]
        results = [self._unique(name) for name in wanted]
        for name, x in zip(results, self.outputs):
            signature.output_arg.add(name=name, type=x.dtype.base_dtype.as_datatype_enum)
        for x in self.inputs:
            self.values[x] = self.names[x.op] = self._unique(_argument_name(x.op.name))
            signature.input_arg.add(name=self.values[x], type=x.dtype.base_dtype.as_datatype_enum)
        for op in self.operations:
            self.names[op] = self._unique(op.name)
            self._name_outputs(op)
        for op in self.operations:
            self._write_node(op)
        for name, x in zip(results, self.outputs):
            self.message.ret[name] = self.values[x]
        signature.is_stateful = any(op.declaration.stateful for op in self.operations)
        self.message.attr["_disable_call_shape_inference"].b = True
        return self.message

    def _unique(self, name: str) -> str:
        found, count = name, 0
        while found in self.taken:
            found, count = f"{name}_{count}", count + 1
        self.taken.add(found)
        return found

    def _name_outputs(self, op: Operation) -> None:
        at = 0
        for argument in op.declaration.outputs:
            for i in range(len(argument.types(op.attributes))):
                self.values[op.outputs[at]] = f"{self.names[op]}:{argument.name}:{i}"
                at += 1

    def _write_node(self, op: Operation) -> None:
        node = self.message.node_def.add()
        _write_node(op, node)
        node.name = self.names[op]
        del node.input[:]
        node.input.extend([self.values[x] for x in op.inputs])
        node.input.extend(["^" + self.names[control] for control in op.control_inputs])


def _argument_name(name: str) -> str:
    """A node's name as an argument's: lower case, letters, digits and underscores, a letter first."""
    text = re.sub(r"[^a-z0-9_]", "_", name.lower())
    return text if text[:1].isalpha() else f"arg{text}"


# ---- reading


def read_body(definition: Any, library: FunctionLibrary, attributes: dict[str, Any]) -> FunctionBody:
    """The function as a graph, whose own functions are `library`; `attributes` are the call's.

    InvalidArgumentError if the definition is malformed, NotFoundError for an op that is not declared.
    """
    name = definition.signature.name
    try:
        return _read(definition, library, attributes)
    except (TypeError, ValueError) as error:
        raise errors.InvalidArgumentError(None, None, f"Function {name}: {error}") from error


FunctionLibrary.read_body = read_body


def _read(definition: Any, library: FunctionLibrary, attributes: dict[str, Any]) -> FunctionBody:
    message = messages("graph_pb2").GraphDef()
    arguments = _write_arguments(definition, attributes, message)
    for node in definition.node_def:
        copy = message.node.add()
        copy.CopyFrom(node)
        _fill_in(copy, attributes)
    sources = read_nodes(message, None, library, 0)  # the graph that brought the function had its ops
    places = {name: _output_places(source) for name, source in sources.items()}
    for source in sources.values():
        source.message.input[:] = [_graph_name(text, arguments, places) for text in source.message.input]
    connect(sources, {})
    graph = Graph()
    graph._functions = library
    with graph.as_default():
        _create_all(graph, sort(sources), {key: key for key in sources})
    inputs = [_found(arg, sources) for names in arguments.values() for arg in names]
    returned = _returned_names(definition, attributes)
    outputs = [_found(_graph_name(text, arguments, places), sources) for text in returned]
    controls = [sources[node].operation for node in definition.control_ret.values() if node in sources]
    return FunctionBody(definition.signature.name, graph, inputs, outputs, controls)  # type: ignore[arg-type]


def _types(argument: Any, attributes: dict[str, Any]) -> list[Any]:
    if argument.type_list_attr:
        return list(attributes[argument.type_list_attr])
    dtype = attributes[argument.type_attr] if argument.type_attr else dtypes.as_dtype(argument.type)
    return [dtype] * (attributes[argument.number_attr] if argument.number_attr else 1)


def _write_arguments(definition: Any, attributes: dict[str, Any], message: Any) -> dict[str, list[str]]:
    """Adds a Placeholder for each value of each argument; returns their names by the argument's."""
    names: dict[str, list[str]] = {}
    for position, argument in enumerate(definition.signature.input_arg):
        types = _types(argument, attributes)
        single = not argument.type_list_attr and not argument.number_attr
        count = range(len(types))
        names[argument.name] = [argument.name if single else f"{argument.name}/{i}" for i in count]
        told = definition.arg_attr[position].attr if position in definition.arg_attr else {}
        shapes: Any = told["_output_shapes"].list.shape if "_output_shapes" in told else ()
        for name, dtype in zip(names[argument.name], types):
            node = message.node.add(name=name, op="Placeholder")
            node.attr["dtype"].type = dtype.as_datatype_enum
            if len(shapes) == 1 and single and read_shape(shapes[0]) is not None:
                node.attr["shape"].shape.CopyFrom(shapes[0])
    return names


def _fill_in(node: Any, attributes: dict[str, Any]) -> None:
    """Puts the call's attributes where the definition refers to them (``$T``)."""
    for key in list(node.attr):
        wanted = node.attr[key].placeholder
        if wanted:
            if wanted not in attributes:
                raise ValueError(f"node {node.name} needs the attribute '{wanted}' of the call")
            value = attributes[wanted]
            if isinstance(value, tuple):
                node.attr[key].list.type.extend([dtype.as_datatype_enum for dtype in value])
            else:
                node.attr[key].type = value.as_datatype_enum


def _output_places(source: Source) -> dict[str, int]:
    """Where each output argument's values begin among all outputs of a node."""
    places, at = {}, 0
    for argument in source.declaration.outputs:
        places[argument.name] = at
        at += len(argument.types(source.attributes))
    return places


def _graph_name(text: str, arguments: dict[str, list[str]], places: dict[str, dict[str, int]]) -> str:
    """A value's name in the definition as a GraphDef has it."""
    if text[:1] == "^":
        name = text[1:]
        return "^" + arguments[name][0] if arguments.get(name) else text
    parts = text.split(":")
    if parts[0] in arguments:
        index = int(parts[-1]) if len(parts) > 1 else 0
        return arguments[parts[0]][index]
    if len(parts) == 1:
        return text
    if parts[0] not in places or parts[1] not in places[parts[0]]:
        raise ValueError(f"input {text} is not found")
    index = places[parts[0]][parts[1]] + (int(parts[2]) if len(parts) > 2 else 0)
    return f"{parts[0]}:{index}"


def _returned_names(definition: Any, attributes: dict[str, Any]) -> list[str]:
    names = []
    for argument in definition.signature.output_arg:
        if argument.name not in definition.ret:
            raise ValueError(f"Return {argument.name} missing.")
        text = definition.ret[argument.name]
        if not argument.type_list_attr and not argument.number_attr:
            names.append(text)
            continue
        base = text if text.count(":") < 2 else text.rpartition(":")[0]
        names += [f"{base}:{i}" for i in range(len(_types(argument, attributes)))]
    return names


def _found(text: str, sources: dict[str, Source]) -> Any:
    name, index = split_name(text)
    source = sources.get(name)
    if source is None or source.operation is None or index >= len(source.operation.outputs):
        raise ValueError(f"Return {text} is not found.")
    return source.operation.outputs[index]


__all__ = ["read_body", "write_function"]
