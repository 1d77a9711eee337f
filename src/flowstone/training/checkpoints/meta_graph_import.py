"""MetaGraphDef: a graph with its collections and its Saver, read and added to a graph."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from flowstone.framework.graphs.collection_protos import proto_functions_of
from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.graphs.import_graph import import_graph_def
from flowstone.framework.process import logging
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types.tensor_proto import messages
from flowstone.io.file_system import as_path, file_exists, read_bytes
from flowstone.training.checkpoints.meta_graph import export_scoped_meta_graph, variables_in

__all__ = [
    "copy_scoped_meta_graph",
    "import_scoped_meta_graph",
    "import_scoped_meta_graph_with_return_elements",
    "read_meta_graph_file",
]


def read_meta_graph_file(filename: Any) -> Any:
    """The MetaGraphDef of a file, binary or text. IOError if there is no such file, or it holds none."""
    from google.protobuf import message, text_format

    path = as_path(filename)
    if not file_exists(path):
        raise OSError(f"File {path} does not exist.")
    content = read_bytes(path)
    meta = messages("meta_graph_pb2").MetaGraphDef()
    try:
        meta.ParseFromString(content)
        return meta
    except message.DecodeError:
        pass
    try:
        text_format.Merge(content.decode(), meta)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise OSError(f"Cannot parse file {path}: {error}.") from None
    return meta


def import_scoped_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: Mapping[str, Any] | None = None,
    unbound_inputs_col_name: str | None = "unbound_inputs",
    restore_collections_predicate: Any = None,
) -> dict[str, Any]:
    """Adds a graph with its collections to the default graph; returns its variables by name.

    Args:
        meta_graph_or_file: a MetaGraphDef, or the path of one.
        clear_devices: its nodes name no devices.
        graph: the graph that it is added to; the default graph if None.
        import_scope: the name scope that everything is put below; the current one if None.
        input_map: tensors in place of inputs; all that are unbound must be here (ValueError).
        restore_collections_predicate: whether a collection is restored, by its name.
    """
    return import_scoped_meta_graph_with_return_elements(
        meta_graph_or_file,
        clear_devices,
        graph,
        import_scope,
        input_map,
        unbound_inputs_col_name,
        restore_collections_predicate,
    )[0]


def import_scoped_meta_graph_with_return_elements(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: Mapping[str, Any] | None = None,
    unbound_inputs_col_name: str | None = "unbound_inputs",
    restore_collections_predicate: Any = None,
    return_elements: Sequence[str] | None = None,
) -> tuple[dict[str, Any], list[Any] | None]:
    """As `import_scoped_meta_graph`; returns also the operations and tensors of the names `return_elements`,
    or None.
    """
    meta = meta_graph_or_file
    if not isinstance(meta, messages("meta_graph_pb2").MetaGraphDef):
        meta = read_meta_graph_file(meta_graph_or_file)
    graph = graph or get_default_graph()
    mapped = dict(input_map or {})
    _check_bound(meta, mapped, unbound_inputs_col_name)
    scope = import_scope.rstrip("/") if import_scope else ""
    with graph.as_default():
        graph_def = meta.graph_def
        if clear_devices:
            graph_def = type(graph_def)()
            graph_def.CopyFrom(meta.graph_def)
            for node in graph_def.node:
                node.device = ""
        producer = (
            meta.meta_info_def.stripped_op_list if meta.meta_info_def.HasField("stripped_op_list") else None
        )
        full = _full_scope(graph, scope)
        name = scope or (full and f"{full}/")  # with no scope of its own, it comes into the current one
        elements = import_graph_def(graph_def, mapped, return_elements, name=name, producer_op_list=producer)
        for key in sorted(meta.collection_def):
            if key == unbound_inputs_col_name:
                continue
            if restore_collections_predicate is None or restore_collections_predicate(key):
                _restore_collection(graph, key, meta.collection_def[key], full)
        return variables_in(graph, full), elements


def copy_scoped_meta_graph(
    from_scope: str, to_scope: str, from_graph: Graph | None = None, to_graph: Graph | None = None
) -> dict[str, Any]:
    """Copies what is in a name scope, with its part of the collections, to another; returns the new
    variables by name.

    The graphs are the default graph if None. Raises ValueError for one scope of one graph twice, and where
    something in the scope takes a value from outside.
    """
    from_graph, to_graph = from_graph or get_default_graph(), to_graph or get_default_graph()
    if from_graph is to_graph and from_scope == to_scope:
        raise ValueError(
            "'from_scope' and 'to_scope' need to be different when performing copy in the same graph."
        )
    meta, _ = export_scoped_meta_graph(export_scope=from_scope, graph=from_graph)
    return import_scoped_meta_graph(meta, graph=to_graph, import_scope=to_scope)


def _full_scope(graph: Graph, scope: str) -> str:
    """The scope that everything comes into, inside the current one, with a number where the name is taken."""
    return graph.unique_name(scope, mark_as_used=False) if scope else graph._scopes.name


def _check_bound(meta: Any, mapped: Mapping[str, Any], collection: str | None) -> None:
    if collection not in meta.collection_def:
        return
    unbound = [name.decode() for name in meta.collection_def[collection].bytes_list.value]
    missing = [name for name in unbound if name not in mapped and name.removesuffix(":0") not in mapped]
    if missing:
        raise ValueError(
            f"Graph contains unbound inputs: {', '.join(missing)}. Must provide these inputs through "
            "input_map."
        )


def _restore_collection(graph: Graph, key: str, collection: Any, scope: str) -> None:
    kind = collection.WhichOneof("kind")
    if kind is None:
        logging.error(f"Cannot identify data type for collection {key}. Skipping.")
        return
    functions = proto_functions_of(key)
    if functions is not None and functions.from_proto is not None and kind == "bytes_list":
        found = graph.get_collection_ref(key)
        known = (
            {getattr(item, "name", None) for item in found} if key == GraphKeys.GLOBAL_VARIABLES else set()
        )
        for data in collection.bytes_list.value:
            message = functions.proto_type()
            message.ParseFromString(data)
            item = functions.from_proto(message, import_scope=scope or None)
            if getattr(item, "name", object()) not in known:
                found.append(item)
        return
    values = getattr(collection, kind).value
    if kind == "node_list":
        for name in values:
            graph.add_to_collection(key, graph.as_graph_element(_prepended(name, scope)))
    else:
        for value in values:
            graph.add_to_collection(key, int(value) if kind == "int64_list" else _text_below(value, scope))


def _text_below(value: Any, scope: str) -> Any:
    """A text, which may be a name, as it is below `scope`; other values as they are."""
    if isinstance(value, bytes) and scope:
        with contextlib.suppress(UnicodeDecodeError):
            return _prepended(value.decode(), scope)
    return value


def _prepended(name: str, scope: str) -> str:
    return re.sub(r"^(\^?)", rf"\1{scope}/", name) if scope else name
