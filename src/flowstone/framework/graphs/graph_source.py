"""The nodes of a GraphDef on their way into a graph: read, checked and sorted, while no graph is touched.

`read_nodes` makes a `Source` of each: its op is looked up, its attributes read and completed with defaults.
`connect` resolves the inputs and holds them against the declarations. `sort` gives a topological order, ties
as in the message; the one legal cycle is a loop's, NextIteration into Merge.

Everything wrong with the message is a ValueError that names the node, an unknown op an `UnknownOpError`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.declarations.attributes import REQUIRED
from flowstone.framework.declarations.operation import OpDeclaration, registry
from flowstone.framework.graphs.function_library import FunctionLibrary
from flowstone.framework.graphs.graph import _VALID_OP_NAME, Operation
from flowstone.framework.graphs.graph_def import attribute_from_proto, read_shape
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims

_LIST_LIMIT = 2**20  # tensors in one list: more is a corrupt number


class UnknownOpError(errors.NotFoundError, ValueError):
    """An op that is neither declared nor a function: ValueError in TensorFlow 1, NotFoundError in 2."""

    def __init__(self, message: str) -> None:
        super().__init__(None, None, message)


class Source:
    """A node of the message on its way into the graph.

    `inputs` are (source, output index), or a Tensor that `input_map` gives; the keys of `controls` are
    sources or operations; `shapes` is what ``_output_shapes`` says.
    """

    __slots__ = (
        "attributes",
        "controls",
        "declaration",
        "group_sizes",
        "inputs",
        "message",
        "operation",
        "output_types",
        "position",
        "shapes",
    )

    def __init__(self, message: Any, position: int, declaration: OpDeclaration) -> None:
        self.message, self.position, self.declaration = message, position, declaration
        self.attributes: dict[str, Any] = {}
        self.shapes: list[Dims] = []
        self.inputs: list[Any] = []
        self.controls: dict[Any, None] = {}
        self.group_sizes: tuple[int, ...] = ()
        self.output_types: list[DType] = []
        self.operation: Operation | None = None

    @property
    def name(self) -> str:
        """The name in the message."""
        return self.message.name  # type: ignore[no-any-return]

    def is_back_edge(self, source: Any) -> bool:
        """Whether the data edge from `source` to this node closes a loop's cycle."""
        return self.declaration.role == "merge" and source.declaration.role == "next_iteration"


def split_name(name: str) -> tuple[str, int]:
    """An input's node and output index; control inputs have index -1, what is no such name is all node."""
    if name[:1] == "^":
        return name[1:], -1
    node, colon, digits = name.rpartition(":")
    if colon and digits.isascii() and digits.isdecimal() and len(digits) < 10:
        return node, int(digits)
    return name, 0


# ---- nodes


def read_nodes(
    message: Any, producer_op_list: Any, library: FunctionLibrary, producer: int
) -> dict[str, Source]:
    """A source of each node of a GraphDef, by name; an op is a declared one or a function of `library`.

    UnknownOpError for an op that is neither, UnimplementedError for one that graphs of the version `producer`
    cannot have.
    """
    produced = {op.name: op for op in producer_op_list.op} if producer_op_list is not None else {}
    sources: dict[str, Source] = {}
    for position, node in enumerate(message.node):
        if not _VALID_OP_NAME.fullmatch(node.name):
            raise ValueError(f"Node '{node.name}': Node name contains invalid characters")
        if node.name in sources:
            raise ValueError(f"Node '{node.name}' is not unique")
        declaration = registry.get(node.op) or library.declaration(node.op)
        if declaration is None:
            raise UnknownOpError(f"Op type not registered '{node.op}' for node '{node.name}'")
        if removed := declaration.why_removed(producer):
            raise errors.UnimplementedError(None, None, f"Node '{node.name}': {removed}")
        source = Source(node, position, declaration)
        try:
            _read_attributes(source, produced.get(node.op))
            source.output_types = _types(declaration.outputs, source.attributes)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise ValueError(f"Node '{node.name}' (op: '{node.op}'): {error}") from None
        sources[node.name] = source
    return sources


def _read_attributes(source: Source, produced: Any) -> None:
    declared, attributes, given = source.declaration.attributes, source.attributes, source.message.attr
    for key, spec in declared.items():
        if key in given:
            attributes[key] = attribute_from_proto(source.declaration, key, given[key])
        elif spec.default is REQUIRED:
            raise ValueError(f"NodeDef missing attr '{key}' from {source.declaration!r}")
        else:
            attributes[key] = spec.default
    added = _defaults(produced)
    for key in given:
        if key in declared:
            continue
        if key == "_output_shapes":
            source.shapes = [read_shape(shape) for shape in given[key].list.shape]
        elif key not in added or given[key] != added[key]:
            attributes[key] = attribute_from_proto(source.declaration, key, given[key])
    _check_value_type(attributes)


def _defaults(produced: Any) -> dict[str, Any]:
    if produced is None:
        return {}
    return {attr.name: attr.default_value for attr in produced.attr if attr.HasField("default_value")}


def _check_value_type(attributes: dict[str, Any]) -> None:
    """A constant's array must have the type that its attribute says; both are in the message."""
    value: Any = attributes.get("value")
    dtype = attributes.get("dtype")
    if isinstance(dtype, DType) and hasattr(value, "strides") and value.dtype != dtype.as_numpy_dtype:
        raise ValueError(f"the attr 'value' has the type {value.dtype}, but 'dtype' is {dtype.name}")


def _types(arguments: list[Any], attributes: dict[str, Any]) -> list[DType]:
    types: list[DType] = []
    for argument in arguments:
        if argument.number_attr is not None and not 0 <= attributes[argument.number_attr] <= _LIST_LIMIT:
            raise ValueError(f"the attr '{argument.number_attr}' is {attributes[argument.number_attr]}")
        types += argument.types(attributes)
    return types


# ---- edges


def connect(sources: dict[str, Source], replacements: dict[tuple[str, int], Any]) -> None:
    used: set[tuple[str, int]] = set()
    for source in sources.values():
        for text in source.message.input:
            key = split_name(text)
            if key[1] >= 0 and source.controls:
                raise ValueError(
                    f"Node '{source.name}': Control dependencies must come after regular dependencies"
                )
            if key in replacements:
                used.add(key)
                _append(source, key, replacements[key])
            else:
                _append(source, key, _resolve(source, text, key, sources))
        _hold_later_input(source)
        _check_inputs(source)
    unused = [key for key in replacements if key not in used and not _exists(key, sources)]
    if unused:
        texts = ", ".join(f"^{node}" if index < 0 else f"{node}:{index}" for node, index in unused)
        raise ValueError(f"Attempted to map inputs that were not found in graph_def: [{texts}]")


def _append(source: Source, key: tuple[str, int], found: Any) -> None:
    if key[1] >= 0:
        source.inputs.append(found)
    else:
        source.controls[found] = None


def _resolve(source: Source, text: str, key: tuple[str, int], sources: dict[str, Source]) -> Any:
    node, index = key
    found = sources.get(node)
    if found is None:
        raise ValueError(f"Node '{source.name}': Unknown input node '{text}'")
    if index < 0:
        return found
    if index >= len(found.output_types):
        raise ValueError(
            f"Node '{source.name}': Connecting to invalid output {index} of source node {node} which has "
            f"{len(found.output_types)} outputs."
        )
    return found, index


def _hold_later_input(source: Source) -> None:
    """Makes an attribute of a constant input that later versions gave the op, if it is declared as one: as
    a list of tensors with the input's name.
    """
    declaration, last = source.declaration, len(source.inputs) - 1
    held = [name for name, spec in declaration.attributes.items() if spec.is_list and spec.kind == "tensor"]
    if len(held) != 1 or last != len(declaration.inputs):
        return
    given = source.inputs.pop()
    while not isinstance(given, Tensor) and given[0].declaration.role == "identity":
        given = given[0].inputs[0]
    is_constant = not isinstance(given, Tensor) and given[0].declaration.role == "constant"
    value = given[0].attributes["value"] if is_constant else getattr(given, "_static_value", None)
    if not isinstance(value, np.ndarray):
        raise ValueError(f"Node '{source.name}': input {last} ({held[0]}) must be a constant")
    source.attributes[held[0]] = (value,)


def _exists(key: tuple[str, int], sources: dict[str, Source]) -> bool:
    found = sources.get(key[0])
    return found is not None and key[1] < len(found.output_types)


def _check_inputs(source: Source) -> None:
    declaration, attributes = source.declaration, source.attributes
    try:
        expected = _types(declaration.inputs, attributes)
    except ValueError as error:
        raise ValueError(f"Node '{source.name}' (op: '{declaration.name}'): {error}") from None
    if len(expected) != len(source.inputs):
        names = ", ".join(dtype.name for dtype in expected[:20])
        raise ValueError(
            f"NodeDef expected inputs '{names}' do not match {len(source.inputs)} inputs specified; "
            f"{declaration!r}; NodeDef: {source.name}"
        )
    for i, (dtype, given) in enumerate(zip(expected, source.inputs)):
        actual = given.dtype if isinstance(given, Tensor) else given[0].output_types[given[1]]
        if not dtype.is_compatible_with(actual):
            origin = given.name if isinstance(given, Tensor) else f"{given[0].name}:{given[1]}"
            raise ValueError(
                f"Input {i} of node {source.name} was passed {actual.name} from {origin} incompatible with "
                f"expected {dtype.name}."
            )
    source.group_sizes = tuple([len(_types([argument], attributes)) for argument in declaration.inputs])


# ---- order


def _needed(source: Source) -> Iterator[Source]:
    for given in source.inputs:
        if not isinstance(given, Tensor) and not source.is_back_edge(given[0]):
            yield given[0]
    for control in source.controls:
        if isinstance(control, Source):
            yield control


def sort(sources: dict[str, Source]) -> list[Source]:
    """The sources such that each follows what it needs; else as in the message."""
    waiting: dict[str, int] = {}
    users: dict[str, list[Source]] = {name: [] for name in sources}
    for source in sources.values():
        needed = list(_needed(source))
        waiting[source.name] = len(needed)
        for other in needed:
            users[other.name].append(source)
    ready = [(source.position, source) for source in sources.values() if not waiting[source.name]]
    order = []
    while ready:
        source = heapq.heappop(ready)[1]
        order.append(source)
        for user in users[source.name]:
            waiting[user.name] -= 1
            if not waiting[user.name]:
                heapq.heappush(ready, (user.position, user))
    if len(order) < len(sources):
        raise ValueError(_describe_cycle([source for source in sources.values() if waiting[source.name]]))
    for source in order:
        if source.declaration.role == "merge" and all(closes_loop(source, given) for given in source.inputs):
            raise ValueError(f"Node '{source.name}': every input of this Merge closes a loop; none enters it")
    return order


def closes_loop(source: Source, given: Any) -> bool:
    return not isinstance(given, Tensor) and source.is_back_edge(given[0])


def _describe_cycle(left: list[Source]) -> str:
    blocked = {source.name for source in left}
    path: dict[str, None] = {}
    source = left[0]
    while source.name not in path:
        path[source.name] = None
        source = next(other for other in _needed(source) if other.name in blocked)
    names = list(path)
    cycle = names[names.index(source.name) :]
    shown = " <- ".join(cycle[:10]) + (" <- ..." if len(cycle) > 10 else "")
    return f"{len(cycle)} nodes in a cycle: {shown}"
