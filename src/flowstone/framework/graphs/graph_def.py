"""Graphs, nodes and declarations as TensorFlow's messages, and attributes both ways.

A node's attributes have canonical Python forms (see `attributes.py`); messages are made only when somebody
asks, so that building a graph never touches protocol buffers. What the declaration does not know of
(``_class`` and other names with an underscore, attributes of later versions) is kept as a Python value where
it is a number, text, type or a list of them, and as its AttrValue otherwise.

A GraphDef's nodes stand in creation order; data inputs come first (``:0`` left out), control inputs as
``^name`` after them. Attributes that TensorFlow 1.15 does not know are left out where they have their
default values (`later_attributes.py`). Reading a GraphDef is the room of `import_graph.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flowstone.framework.declarations.attributes import REQUIRED, AttributeSpec, as_text
from flowstone.framework.graphs.later_attributes import LATER_ATTRIBUTES
from flowstone.framework.tensors.node import PlanData
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.tensor_proto import array_proto, constant_of, constant_proto, messages
from flowstone.framework.types.values import to_numpy

if TYPE_CHECKING:
    from flowstone.framework.declarations.arguments import Argument
    from flowstone.framework.declarations.operation import OpDeclaration
    from flowstone.framework.graphs.graph import Graph, Operation

_FIELD = {
    "type": "type",
    "int": "i",
    "float": "f",
    "bool": "b",
    "string": "s",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}
_KIND = {field: kind for kind, field in _FIELD.items()}
_PLAIN_FIELDS = frozenset(("s", "i", "f", "b", "type"))


# ---- graphs and nodes


def graph_def(graph: Graph, from_version: int | None = None, add_shapes: bool = False) -> Any:
    """The graph as a GraphDef; only operations added after `from_version` if it is given.

    With `add_shapes` every node with outputs tells their static shapes in ``_output_shapes``.
    """
    message = messages("graph_pb2").GraphDef()
    message.versions.CopyFrom(graph.graph_def_versions)
    with graph._lock:
        operations = [op for op in graph._operations if from_version is None or op.order > from_version]
        for operation in operations:
            node = message.node.add()
            _write_node(operation, node)
            if add_shapes and operation.outputs:
                shapes = node.attr["_output_shapes"].list.shape
                for output in operation.outputs:
                    write_shape(output.dims, shapes.add())
        if from_version is None or operations:
            graph._functions.write(message.library)
    return message


def graph_def_since(graph: Graph, version: int) -> tuple[Any, int]:
    """What was added to the graph after this version, as a GraphDef, and the version that this makes: other
    threads may add operations meanwhile."""
    with graph._lock:
        return graph_def(graph, version), graph.version


def node_def(operation: Operation) -> Any:
    """The operation as a NodeDef."""
    message = messages("node_def_pb2").NodeDef()
    _write_node(operation, message)
    return message


def _write_node(operation: Operation, message: Any) -> None:
    message.name, message.op = operation.name, operation.declaration.name
    if operation.device:
        message.device = operation.device
    names = []
    for tensor in operation.inputs:
        source, index = tensor.op.name, tensor.value_index
        names.append(f"{source}:{index}" if index else source)
    names += sorted("^" + control.name for control in operation.control_inputs)
    message.input.extend(names)
    later = LATER_ATTRIBUTES.get(message.op, ())
    for name, value in operation.attributes.items():
        if not isinstance(value, PlanData) and not (name in later and _is_default(operation, name)):
            _write_attribute(operation, name, message.attr[name])


def _is_default(operation: Operation, name: str) -> bool:
    spec = operation.declaration.attributes.get(name)
    return spec is not None and bool(operation.attributes[name] == spec.default)


# ---- attributes to messages


def _write_attribute(operation: Operation, name: str, message: Any) -> None:
    value = operation.attributes[name]
    spec = operation.declaration.attributes.get(name)
    if spec is None:
        _write_undeclared(value, message)
    else:
        _write_value(spec, value, message, operation.attributes.get("dtype"))


def _write_value(spec: AttributeSpec, value: Any, message: Any, dtype: Any = None) -> None:
    if spec.is_list:
        message.list.SetInParent()
        _write_list(spec.kind, value, message.list)
    else:
        _write_scalar(spec.kind, value, message, dtype)


def _write_scalar(kind: str, value: Any, message: Any, dtype: Any = None) -> None:
    if kind == "shape":
        message.shape.SetInParent()
        write_shape(value, message.shape)
    elif kind == "tensor":
        message.tensor.CopyFrom(_tensor(value, dtype))
    elif kind == "func":
        message.func.name = value
    else:
        setattr(message, _FIELD[kind], _wire(kind, value))


def _write_list(kind: str, values: Any, message: Any) -> None:
    field = getattr(message, _FIELD[kind])
    if kind == "shape":
        for dims in values:
            write_shape(dims, field.add())
    elif kind == "tensor":
        field.extend([_tensor(value, None) for value in values])
    elif kind == "func":
        for name in values:
            field.add(name=name)
    else:
        field.extend([_wire(kind, value) for value in values])


def _wire(kind: str, value: Any) -> Any:
    if kind == "type":
        return value.as_datatype_enum
    if kind == "string":
        return value.encode() if isinstance(value, str) else value
    return value


def write_shape(dims: tuple[int | None, ...] | None, message: Any) -> None:
    if dims is None:
        message.unknown_rank = True
    else:
        for size in dims:
            message.dim.add(size=-1 if size is None else size)


def _tensor(value: Any, dtype: Any) -> Any:
    if not isinstance(value, np.ndarray):  # a torch tensor that folding made
        dtype = dtype or dtypes.from_torch(value.dtype)
        return array_proto(to_numpy(value, dtype), dtype)
    return constant_proto(value, dtype if isinstance(dtype, DType) else dtypes.as_dtype(value.dtype))


def _write_undeclared(value: Any, message: Any) -> None:
    if isinstance(value, tuple):
        message.list.SetInParent()
        if value:
            _write_list(_kind_of(value[0]), value, message.list)
    elif _is_message(value):
        message.CopyFrom(value)
    else:
        _write_scalar(_kind_of(value), value, message)


def _kind_of(value: Any) -> str:
    if isinstance(value, (str, bytes)):
        return "string"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    return "float" if isinstance(value, float) else "type"


def _is_message(value: Any) -> bool:
    return getattr(getattr(value, "DESCRIPTOR", None), "name", "") == "AttrValue"


def attribute_value(operation: Operation, name: str) -> Any:
    """An attribute of an operation as an AttrValue."""
    message = messages("attr_value_pb2").AttrValue()
    _write_attribute(operation, name, message)
    return message


def attribute_for_user(op: Operation, name: str) -> Any:
    """What ``op.get_attr`` gives: text as bytes, types as DType, shapes and tensors as messages."""
    message = attribute_value(op, name)
    field = message.WhichOneof("value")
    if field == "list":
        used = message.list.ListFields()
        return [_for_user(used[0][0].name, item) for item in used[0][1]] if used else []
    return None if field is None else _for_user(field, getattr(message, field))


def _for_user(field: str, value: Any) -> Any:
    return dtypes.as_dtype(value) if field == "type" else value


# ---- attributes from messages


def attribute_from_proto(declaration: OpDeclaration, name: str, value: Any) -> Any:
    """The canonical form of an attribute given as an AttrValue or as a Python value.

    Raises TypeError or ValueError if the declaration does not allow it or the message is malformed.
    """
    spec = declaration.attributes.get(name)
    if not _is_message(value):
        return _undeclared_python(name, value) if spec is None else spec.canonical(value, declaration.name)
    if spec is None:
        return _undeclared(value)
    found = value.WhichOneof("value")
    expected = "list" if spec.is_list else _FIELD[spec.kind]
    if found != expected:
        shown = "no value" if found is None else f"a value with type '{_KIND.get(found, found)}'"
        raise ValueError(f"AttrValue had {shown} when '{spec!r}' was expected")
    if not spec.is_list:
        return spec.canonical(_read(spec.kind, getattr(value, found)), declaration.name)
    for field, _ in value.list.ListFields():
        if field.name != _FIELD[spec.kind]:
            raise ValueError(f"AttrValue had a list of '{field.name}' when '{spec!r}' was expected")
    items = getattr(value.list, _FIELD[spec.kind])
    return spec.canonical(tuple([_read(spec.kind, item) for item in items]), declaration.name)


def _read(kind: str, item: Any) -> Any:
    if kind == "string":
        return as_text(item)
    if kind == "type":
        return _read_type(item)
    if kind == "shape":
        return read_shape(item)
    if kind == "tensor":
        return _read_tensor(item)
    return item.name if kind == "func" else item


def _read_type(number: int) -> DType:
    try:
        dtype = dtypes.DType(number)
    except TypeError:
        raise ValueError(f"AttrValue has the invalid DataType {number}") from None
    if dtype.is_ref:
        raise ValueError(f"AttrValue must not have reference type value of {dtype.name}")
    return dtype


def read_shape(message: Any) -> tuple[int | None, ...] | None:
    """The static shape that a TensorShapeProto says. ValueError if it is malformed."""
    sizes = [dim.size for dim in message.dim]
    if any(size < -1 for size in sizes) or (message.unknown_rank and sizes):
        raise ValueError(f"AttrValue has a malformed shape: {sizes}")
    return None if message.unknown_rank else tuple([None if size == -1 else size for size in sizes])


def _read_tensor(message: Any) -> Any:
    try:
        return constant_of(message)
    except (TypeError, ValueError) as error:
        raise ValueError(f"AttrValue has a malformed tensor: {error}") from None


def _undeclared(message: Any) -> Any:
    field = message.WhichOneof("value")
    if field in _PLAIN_FIELDS:
        return _plain(field, getattr(message, field))
    if field == "list":
        used = message.list.ListFields()
        if not used:
            return ()
        if len(used) == 1 and used[0][0].name in _PLAIN_FIELDS:
            return tuple([_plain(used[0][0].name, item) for item in used[0][1]])
    return type(message).FromString(message.SerializeToString())


def _plain(field: str, value: Any) -> Any:
    if field == "s":
        return as_text(value)
    return _read_type(value) if field == "type" else value


def _undeclared_python(name: str, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple([_undeclared_python(name, item) for item in value])
    if isinstance(value, (str, bytes)):
        return as_text(value)
    if isinstance(value, (bool, int, float, DType)):
        return value
    raise TypeError(f"Attribute '{name}' cannot be {value!r}: give an AttrValue.")


# ---- declarations


def op_def(declaration: OpDeclaration) -> Any:
    """The declaration as an OpDef."""
    module = messages("op_def_pb2")
    message = module.OpDef(
        name=declaration.name, is_stateful=declaration.stateful, is_commutative=declaration.commutative
    )
    for argument in declaration.inputs:
        _write_argument(argument, message.input_arg.add())
    for argument in declaration.outputs:
        _write_argument(argument, message.output_arg.add())
    for spec in declaration.attributes.values():
        _write_spec(spec, message.attr.add())
    return message


def _write_argument(argument: Argument, message: Any) -> None:
    message.name, message.is_ref = argument.name, argument.is_ref
    if argument.dtype is not None:
        message.type = argument.dtype.as_datatype_enum
    message.type_attr = argument.type_attr or ""
    message.number_attr = argument.number_attr or ""
    message.type_list_attr = argument.type_list_attr or ""


def _write_spec(spec: AttributeSpec, message: Any) -> None:
    message.name, message.type = spec.name, f"list({spec.kind})" if spec.is_list else spec.kind
    if spec.minimum is not None:
        message.has_minimum, message.minimum = True, spec.minimum
    if spec.default is not REQUIRED:
        _write_value(spec, spec.default, message.default_value)
    if spec.allowed is not None:
        allowed = sorted(spec.allowed, key=int if spec.kind == "type" else None)
        _write_list(spec.kind, allowed, message.allowed_values.list)


__all__ = [
    "attribute_for_user",
    "attribute_from_proto",
    "attribute_value",
    "graph_def",
    "graph_def_since",
    "messages",
    "node_def",
    "op_def",
    "read_shape",
]
