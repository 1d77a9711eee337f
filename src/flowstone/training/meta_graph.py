"""MetaGraphDef: a graph with its collections and its Saver, written and read.

Names outside an exported scope are left out; an input from outside is named ``$unbound_inputs_…`` and must be
mapped when the graph is imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from flowstone.framework import logging
from flowstone.framework.collection_protos import proto_functions_of
from flowstone.framework.collections import GraphKeys
from flowstone.framework.graph import Graph
from flowstone.framework.graph_def import op_def
from flowstone.framework.import_graph import import_graph_def
from flowstone.framework.operation import registry
from flowstone.framework.scope import get_default_graph
from flowstone.framework.tensor_proto import messages
from flowstone.framework.versions import GIT_VERSION, VERSION
from flowstone.io.file_system import (
    as_path,
    atomic_write_string_to_file,
    file_exists,
    read_bytes,
    recursive_create_dir,
)
from flowstone.ops.control import context_messages  # noqa: F401 (registers the messages of contexts)
from flowstone.ops.variables.save_slice_info import without_scope

__all__ = [
    "add_collection_def",
    "create_meta_graph_def",
    "export_meta_graph",
    "export_scoped_meta_graph",
    "import_scoped_meta_graph",
    "read_meta_graph_file",
    "stripped_op_list_for_graph",
    "write_graph",
]

_UNBOUND = "$unbound_inputs_"


# ---- writing


def export_meta_graph(
    filename: Any = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Iterable[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> Any:
    """A graph as a MetaGraphDef, written to `filename` if it is given.

    Args:
        filename: the path; `as_text`: whether it is written as text.
        meta_info_def: a MetaInfoDef to begin with.
        graph_def: a GraphDef instead of that of `graph`, or of the default graph.
        saver_def: the SaverDef that belongs to it.
        collection_list: the names of the collections to write; all if None.
        export_scope: only what is in this name scope, with names as seen from inside.
        clear_devices: nodes name no devices.
        clear_extraneous_savers: operations of Savers other than `saver_def` are left out.
        strip_default_attrs: attributes with their default values are left out.

    Raises TypeError for a graph that is none.
    """
    return export_scoped_meta_graph(
        filename,
        graph_def,
        graph,
        export_scope,
        as_text,
        clear_devices=clear_devices,
        saver_def=saver_def,
        clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs,
        meta_info_def=meta_info_def,
        collection_list=collection_list,
        **kwargs,
    )[0]


def export_scoped_meta_graph(
    filename: Any = None,
    graph_def: Any = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    as_text: bool = False,
    unbound_inputs_col_name: str | None = "unbound_inputs",
    clear_devices: bool = False,
    saver_def: Any = None,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    meta_info_def: Any = None,
    collection_list: Iterable[str] | None = None,
    **kwargs: Any,
) -> tuple[Any, dict[str, Any]]:
    """As `export_meta_graph`; returns also the variables that were exported, by name."""
    graph = graph or get_default_graph()
    if not isinstance(graph, Graph):
        raise TypeError(f"graph must be of type Graph not {type(graph)}")
    given = graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def
    excluded = _other_savers(graph, saver_def) if clear_extraneous_savers else ()
    scope = export_scope.rstrip("/") if export_scope else ""
    exported, unbound = _scoped(given, scope, excluded, clear_devices)
    variables = _variables_in(graph, scope)
    meta = create_meta_graph_def(
        meta_info_def,
        exported,
        saver_def,
        collection_list,
        graph,
        scope or None,
        excluded,
        strip_default_attrs,
    )
    if unbound and unbound_inputs_col_name:
        meta.collection_def[unbound_inputs_col_name].bytes_list.value.extend(
            name.encode() for name in sorted(unbound)
        )
    if filename:
        path = as_path(filename)
        write_graph(meta, os.path.dirname(path), os.path.basename(path), as_text=as_text)
    return meta, variables


def _variables_in(graph: Graph, scope: str) -> dict[str, Any]:
    found = graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=f"{scope}/" if scope else None)
    return {without_scope(variable.op.name, scope or None): variable for variable in found}


def _other_savers(graph: Graph, saver_def: Any) -> tuple[str, ...]:
    """The scopes of the operations of other Savers."""
    own = saver_def.save_tensor_name.rpartition("/")[0] if saver_def is not None else ""
    scopes = set()
    for saver in graph.get_collection(GraphKeys.SAVERS):
        definition = saver if hasattr(saver, "save_tensor_name") else saver.saver_def
        scopes.add(definition.save_tensor_name.rpartition("/")[0])
    return tuple(f"{scope}/" for scope in scopes - {own, ""})


def _scoped(given: Any, scope: str, excluded: tuple[str, ...], clear_devices: bool) -> tuple[Any, set[str]]:
    """The nodes in the scope with names as seen from inside, and the inputs from outside."""
    if not (scope or excluded or clear_devices):
        return given, set()
    exported = type(given)()
    exported.versions.CopyFrom(given.versions)
    exported.library.CopyFrom(given.library)
    unbound: set[str] = set()
    prefix = f"{scope}/" if scope else ""
    for node in given.node:
        if not node.name.startswith(prefix) or node.name.startswith(excluded):
            continue
        kept = exported.node.add()
        kept.CopyFrom(node)
        kept.name = node.name[len(prefix) :]
        if clear_devices:
            kept.device = ""
        if prefix:
            kept.input[:] = [_input_from_inside(name, prefix, unbound) for name in node.input]
            _strip_colocation(kept, prefix)
    return exported, unbound


def _input_from_inside(name: str, prefix: str, unbound: set[str]) -> str:
    mark, bare = ("^", name[1:]) if name.startswith("^") else ("", name)
    if bare.startswith(prefix):
        return mark + bare[len(prefix) :]
    unbound.add(f"{mark}{_UNBOUND}{bare}")
    return f"{mark}{_UNBOUND}{bare}"


def _strip_colocation(node: Any, prefix: str) -> None:
    if "_class" in node.attr:
        old = [name.decode() for name in node.attr["_class"].list.s]
        kept = [f"loc:@{name[5 + len(prefix) :]}" for name in old if name[5:].startswith(prefix)]
        if kept:
            node.attr["_class"].list.s[:] = [name.encode() for name in kept]
        else:
            del node.attr["_class"]


def create_meta_graph_def(
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Iterable[str] | None = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    exclude_nodes: tuple[str, ...] = (),
    strip_default_attrs: bool = False,
) -> Any:
    """The MetaGraphDef of these parts, which are those of `graph`, or the default graph, where they are
    None."""
    graph = graph or get_default_graph()
    meta = messages("meta_graph_pb2").MetaGraphDef()
    if meta_info_def is not None:
        meta.meta_info_def.MergeFrom(meta_info_def)
    meta.meta_info_def.tensorflow_version = VERSION
    meta.meta_info_def.tensorflow_git_version = GIT_VERSION
    meta.graph_def.MergeFrom(graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def)
    if len(meta.meta_info_def.stripped_op_list.op) == 0:
        meta.meta_info_def.stripped_op_list.MergeFrom(stripped_op_list_for_graph(meta.graph_def))
    if strip_default_attrs:
        _strip_defaults(meta)
    if saver_def is not None:
        meta.saver_def.MergeFrom(saver_def)
    names = graph.get_all_collection_keys() if collection_list is None else list(collection_list)
    for name in names:
        add_collection_def(meta, name, graph, export_scope, exclude_nodes)
    return meta


def stripped_op_list_for_graph(graph_def: Any) -> Any:
    """The OpList of the ops that a GraphDef and its functions use. Ops that are not known here are left
    out."""
    nodes = [
        *graph_def.node,
        *(node for function in graph_def.library.function for node in function.node_def),
    ]
    functions = {function.signature.name for function in graph_def.library.function}
    used = sorted({node.op for node in nodes} - functions)
    found = messages("op_def_pb2").OpList()
    found.op.extend(op_def(registry[name]) for name in used if name in registry)
    return found


def _strip_defaults(meta: Any) -> None:
    """Leaves out attributes that have their default values, so that older consumers read the rest."""
    defaults = {
        op.name: {spec.name: spec.default_value for spec in op.attr if spec.HasField("default_value")}
        for op in meta.meta_info_def.stripped_op_list.op
    }
    for node in meta.graph_def.node:
        for name, value in defaults.get(node.op, {}).items():
            if name in node.attr and node.attr[name] == value:
                del node.attr[name]
    meta.meta_info_def.stripped_default_attrs = True


def add_collection_def(
    meta_graph_def: Any,
    key: str,
    graph: Graph | None = None,
    export_scope: str | None = None,
    exclude_nodes: tuple[str, ...] = (),
    override_contents: Iterable[Any] | None = None,
) -> None:
    """Adds a collection; a warning says so if its items have no form in messages."""
    graph = graph or get_default_graph()
    items = list(graph.get_collection(key) if override_contents is None else override_contents)
    items = [item for item in items if not _is_within(item, exclude_nodes)]
    if not items:
        return
    collection = messages("meta_graph_pb2").CollectionDef()
    try:
        _write_items(collection, key, items, export_scope)
    except Exception as error:  # what users put into collections is theirs
        logging.warning(
            f"Issue encountered when serializing {key}.\nType is unsupported, or the types of the items "
            "don't match field type in CollectionDef. Note this is a warning and probably safe to ignore.\n"
            f"{error}"
        )
        return
    if collection.WhichOneof("kind"):
        meta_graph_def.collection_def[key].CopyFrom(collection)


def _is_within(item: Any, scopes: tuple[str, ...]) -> bool:
    definition = getattr(item, "saver_def", item)
    name = getattr(definition, "save_tensor_name", None) or getattr(item, "name", None)
    return bool(scopes) and isinstance(name, str) and name.startswith(scopes)


def _write_items(collection: Any, key: str, items: list[Any], scope: str | None) -> None:
    functions = proto_functions_of(key)
    if functions is not None and functions.to_proto is not None:
        for item in items:
            message = functions.to_proto(item, export_scope=scope)
            if message is not None:
                collection.bytes_list.value.append(message.SerializeToString())
        return
    first = items[0]
    if getattr(getattr(first, "DESCRIPTOR", None), "full_name", "") == "google.protobuf.Any":
        collection.any_list.value.extend(items)
    elif hasattr(first, "SerializeToString"):
        collection.bytes_list.value.extend(item.SerializeToString() for item in items)
    elif isinstance(first, (str, bytes)):
        collection.bytes_list.value.extend(item.encode() if isinstance(item, str) else item for item in items)
    elif isinstance(first, int):
        collection.int64_list.value.extend(items)
    elif isinstance(first, float):
        collection.float_list.value.extend(items)
    else:
        names = [item.name for item in items]
        prefix = f"{scope}/" if scope else ""
        collection.node_list.value.extend(
            without_scope(name, scope) for name in names if name.startswith(prefix)
        )


def write_graph(graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True) -> str:
    """Writes a graph, or a message of one, to the file `name` in the folder `logdir`, which is made if it is
    not there; returns the path. `as_text`: as text, else in the binary form."""
    from google.protobuf import text_format

    message = graph_or_graph_def
    if isinstance(message, Graph):
        message = message.as_graph_def()
    folder = as_path(logdir)
    if folder and not file_exists(folder):
        recursive_create_dir(folder)
    path = os.path.join(folder, name)
    content: Any = text_format.MessageToString(message) if as_text else message.SerializeToString()
    atomic_write_string_to_file(path, content)
    return path


# ---- reading


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
        import_scope: the name scope that everything is put below.
        input_map: tensors in place of inputs; all that are unbound must be here (ValueError).
        restore_collections_predicate: whether a collection is restored, by its name.
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
        import_graph_def(graph_def, input_map=mapped, name=scope, producer_op_list=producer)
        full = _full_scope(graph, scope)
        for key in sorted(meta.collection_def):
            if key == unbound_inputs_col_name:
                continue
            if restore_collections_predicate is None or restore_collections_predicate(key):
                _restore_collection(graph, key, meta.collection_def[key], full)
        return _variables_in(graph, full)


def _full_scope(graph: Graph, scope: str) -> str:
    prefix = graph._scopes.name
    return "/".join(part for part in (prefix, scope) if part)


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
            graph.add_to_collection(key, int(value) if kind == "int64_list" else value)


def _prepended(name: str, scope: str) -> str:
    return re.sub(r"^(\^?)", rf"\1{scope}/", name) if scope else name
