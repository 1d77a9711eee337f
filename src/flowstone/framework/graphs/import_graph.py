"""Reading a GraphDef into a graph: all of it, or nothing.

`import_graph_def` works in two parts. The nodes of the message are read, checked and sorted without touching
the graph, which is the room of `graph_source.py`. Then they are created in that order, and their shapes
inferred. If anything fails in either part, the graph is as it was before.

Errors of the message are ValueErrors that name the node; an argument of a wrong kind is a TypeError.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from flowstone.framework.graphs.device_name import canonical_name
from flowstone.framework.graphs.graph import Graph, Operation
from flowstone.framework.graphs.graph_source import Source, closes_loop, connect, read_nodes, sort, split_name
from flowstone.framework.process.versions import GRAPH_DEF_VERSION
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import Dims, format_dims, merge
from flowstone.framework.types.tensor_proto import messages


def import_graph_def(
    graph_def: Any,
    input_map: dict[str, Any] | None = None,
    return_elements: Any = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> list[Any] | None:
    """Adds the nodes of a GraphDef to the default graph.

    Args:
        graph_def: the GraphDef message.
        input_map: replaces inputs: ``"node"`` or ``"node:0"`` (names in the message) to a tensor or what
            converts to one, ``"^node"`` to an operation.
        return_elements: names, in the message, of operations (``"node"``) and tensors (``"node:0"``).
        name: prefix of all names, "import" by default; made unique unless it ends in '/'. "" for none.
        op_dict: ignored.
        producer_op_list: OpList of the program that wrote the message; attributes that have its default
            values and are not declared here are dropped.

    Returns:
        The operations and tensors that `return_elements` asks for, or None.

    Raises:
        TypeError: an argument is of a wrong kind.
        ValueError: the message is malformed, or its nodes contradict each other or `input_map`, its functions
            those of the graph, or something that the other arguments name is not there.
        UnknownOpError: an op is neither declared nor a function.
        RuntimeError: the graph is finalized.
    """
    message = _as_message(graph_def)
    mapped = _check_input_map(input_map)
    wanted = _check_return_elements(return_elements)
    graph = scope.get_default_graph()
    with graph._lock:
        graph._check_not_finalized()
        with _restored_on_failure(graph), graph.name_scope("import" if name is None else name) as prefix:
            replacements = _convert_input_map(graph, mapped, prefix)
            graph._functions.add_message(message.library)
            producer = min(graph.producer, message.versions.producer)
            sources = read_nodes(message, producer_op_list, graph._functions, producer)
            connect(sources, replacements)
            order = sort(sources)
            names = _final_names(graph, sources, prefix)
            _prefix_colocation(sources, names)
            _create_all(graph, order, names)
            graph.producer = producer
            return None if wanted is None else _find_elements(wanted, sources, replacements)


def extend_graph(graph: Graph, graph_def: Any) -> None:
    """Adds the nodes of a GraphDef to `graph` under their own names; they may take outputs of nodes that are
    there already, as the requests of a client do whose graph has grown. No line of this process made them.

    Raises ValueError as `import_graph_def`, and for a name that is taken.
    """
    message = _as_message(graph_def)
    with graph._lock, graph.as_default(), graph.control_dependencies(None), _restored_on_failure(graph):
        graph._functions.add_message(message.library)
        producer = min(graph.producer, message.versions.producer)
        sources = read_nodes(message, None, graph._functions, producer)
        for name in sources:
            if name in graph._by_name:
                raise ValueError(f"Node '{name}' is in the graph already")
        connect(sources, _present(graph, sources))
        order = sort(sources)
        known = {name: name for name in (*graph._by_name, *sources)}
        _prefix_colocation(sources, known)
        _create_all(graph, order, known)
        for source in order:
            assert source.operation is not None
            source.operation._frames = ()
        graph.producer = producer


def _present(graph: Graph, sources: dict[str, Source]) -> dict[tuple[str, int], Any]:
    """What the nodes take from the graph as it is, by name and index."""
    found: dict[tuple[str, int], Any] = {}
    for source in sources.values():
        for text in source.message.input:
            node, index = split_name(text)
            operation = graph._by_name.get(node)
            if operation is not None and index < len(operation.outputs):
                found[node, index] = operation if index < 0 else operation.outputs[index]
    return found


# ---- arguments


def _as_message(graph_def: Any) -> Any:
    cls = messages("graph_pb2").GraphDef
    if isinstance(graph_def, cls):
        message = graph_def
    elif getattr(getattr(graph_def, "DESCRIPTOR", None), "name", "") == "GraphDef":
        message = cls.FromString(graph_def.SerializeToString())  # another program's copy of the same message
    else:
        raise TypeError("Argument `graph_def` must be a GraphDef proto.")
    if message.versions.min_consumer > GRAPH_DEF_VERSION:
        raise ValueError(
            f"GraphDef min consumer version {message.versions.min_consumer} above current version "
            f"{GRAPH_DEF_VERSION}"
        )
    if GRAPH_DEF_VERSION in message.versions.bad_consumers:
        raise ValueError(f"GraphDef disallows consumer version {GRAPH_DEF_VERSION}")
    return message


def _check_input_map(input_map: Any) -> dict[str, Any]:
    if input_map is None:
        return {}
    if not isinstance(input_map, dict):
        raise TypeError(f"Argument `input_map` must be a dictionary. Obtained {type(input_map).__name__}")
    if not all(isinstance(key, (str, bytes)) for key in input_map):
        raise TypeError(
            f"All keys for argument `input_map` must be strings. Obtained keys: {list(input_map.keys())}"
        )
    return {key.decode() if isinstance(key, bytes) else key: value for key, value in input_map.items()}


def _check_return_elements(return_elements: Any) -> list[str] | None:
    if return_elements is None:
        return None
    try:
        elements = list(return_elements)
    except TypeError:
        elements = [None]
    if not all(isinstance(element, (str, bytes)) for element in elements):
        raise TypeError(f"Argument `return_elements` must be a list of strings. Obtained {return_elements}.")
    return [element.decode() if isinstance(element, bytes) else element for element in elements]


def _convert_input_map(graph: Graph, input_map: dict[str, Any], prefix: str) -> dict[tuple[str, int], Any]:
    replacements = {}
    for key, value in input_map.items():
        node, index = split_name(key)
        if index < 0:
            element = graph.as_graph_element(value)
            replacements[node, index] = element.op if isinstance(element, Tensor) else element
            continue
        if not isinstance(value, Tensor):
            if not prefix:
                raise ValueError(
                    "tf.import_graph_def() requires a non-empty `name` if `input_map` contains non-Tensor "
                    "values. Try calling tf.convert_to_tensor() on them before."
                )
            with graph.name_scope("_inputs"):
                value = convert_to_tensor(value)
        if value.graph is not graph:
            raise ValueError(f"{value!r}, which `input_map` gives for '{key}', is not of the default graph.")
        replacements[node, index] = value
    return replacements


# ---- creation


def _final_names(graph: Graph, sources: dict[str, Source], prefix: str) -> dict[str, str]:
    """The names in the graph; as in TensorFlow 2, one that is taken gets ``_1``, ``_2`` …"""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for name in sources:
        full, count = prefix + name, 0
        while full in graph._by_name or full in taken or (count and full[len(prefix) :] in sources):
            count += 1
            full = f"{prefix}{name}_{count}"
        taken.add(full)
        names[name] = full
    return names


def _prefix_colocation(sources: dict[str, Source], names: dict[str, str]) -> None:
    for source in sources.values():
        classes = source.attributes.get("_class")
        if not classes:
            continue
        if not isinstance(classes, tuple) or not all(isinstance(text, str) for text in classes):
            raise ValueError(f"Node '{source.name}': the attr '_class' must be a list of UTF-8 strings")
        renamed = []
        for text in classes:
            if text.startswith("loc:@"):
                if text[5:] not in names:
                    raise ValueError(
                        f"Node '{source.name}' expects to be colocated with unknown node '{text[5:]}'"
                    )
                text = "loc:@" + names[text[5:]]
            renamed.append(text)
        source.attributes["_class"] = tuple(renamed)


def _create_all(graph: Graph, order: list[Source], names: dict[str, str]) -> None:
    scopes = graph._scopes
    outer = [op for controller in scopes.control_dependencies for op in controller.inputs]
    with scopes.having(colocation=()):  # attributes and overrides of gradients hold for what is imported, too
        for source in order:
            _create(graph, source, names[source.name], outer)
    for source in order:
        assert source.operation is not None
        for i, given in enumerate(source.inputs):
            if closes_loop(source, given):
                source.operation._update_input(i, given[0].operation.outputs[given[1]])


def _create(graph: Graph, source: Source, name: str, outer: list[Operation]) -> None:
    inputs = [_input_tensor(source, given) for given in source.inputs]
    controls: list[Any] = [one.operation if isinstance(one, Source) else one for one in source.controls]
    controls += [op for op in outer if op not in controls]
    device = canonical_name(source.message.device) if source.message.device else ""
    try:
        operation = graph.create(
            source.declaration,
            inputs,
            source.attributes,
            source.group_sizes,
            name + "/",
            control_inputs=controls,
            device=device,
        )
    except ValueError:
        raise
    except Exception as error:  # inference meets attributes that no building function would have let through
        raise ValueError(f"Node '{name}' (op: '{source.declaration.name}'): {error!r}") from error
    graph._names_in_use.setdefault(name.lower(), 1)
    if "_class" not in source.attributes and graph._scopes.devices:
        graph._apply_device_scopes(operation, graph._scopes)
    _merge_shapes(operation, source.shapes)
    source.operation = operation


def _input_tensor(source: Source, given: Any) -> Tensor:
    if isinstance(given, Tensor):
        return given
    other, index = given
    if not source.is_back_edge(other):
        tensor: Tensor = other.operation.outputs[index]
        return tensor
    # What comes back is not there yet: until then a value of its type about which nothing else is known.
    entering = next(x for x in source.inputs if not closes_loop(source, x))
    owner = entering.op if isinstance(entering, Tensor) else entering[0].operation
    return Tensor(owner, 0, other.output_types[index])


def _merge_shapes(operation: Operation, shapes: list[Dims]) -> None:
    if len(shapes) != len(operation.outputs):
        return
    for i, (output, dims) in enumerate(zip(operation.outputs, shapes)):
        try:
            output.dims = merge(output.dims, dims)
        except ValueError:
            raise ValueError(
                f"Node '{operation.name}' has an _output_shapes attribute inconsistent with the GraphDef "
                f"for output #{i}: {format_dims(dims)} instead of {format_dims(output.dims)}"
            ) from None


def _find_elements(
    wanted: list[str], sources: dict[str, Source], replacements: dict[tuple[str, int], Any]
) -> list[Any]:
    return [_find_element(text, sources, replacements) for text in wanted]


def _find_element(text: str, sources: dict[str, Source], replacements: dict[tuple[str, int], Any]) -> Any:
    node, index = split_name(text)
    if ":" in text and (node, index) in replacements:
        return replacements[node, index]
    source = sources.get(node)
    if source is None or source.operation is None or index < 0:
        kind = "tensor" if ":" in text else "node"
        raise ValueError(f"Requested return {kind} '{text}' not found in graph def")
    if ":" not in text:
        return source.operation
    if index >= len(source.output_types):
        raise ValueError(
            f"Invalid return output {index} of node '{node}', which has {len(source.output_types)} output(s)"
        )
    return source.operation.outputs[index]


@contextlib.contextmanager
def _restored_on_failure(graph: Graph) -> Iterator[None]:
    """Takes back every change to the graph if the context ends with an error."""
    count, last_id = len(graph._operations), graph._last_id
    names, functions = dict(graph._names_in_use), graph._functions.snapshot()
    try:
        yield
    except BaseException:
        added = graph._operations[count:]
        del graph._operations[count:]
        for operation in added:
            graph._by_name.pop(operation.name, None)
            for tensor in operation.inputs:
                if operation in tensor._consumers:
                    tensor._consumers.remove(operation)
        graph._last_id, graph._names_in_use = last_id, names
        graph._functions.restore(functions)
        raise
