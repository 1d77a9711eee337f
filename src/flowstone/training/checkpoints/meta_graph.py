"""MetaGraphDef: a graph with its collections and its Saver, written; `meta_graph_import.py` reads it.

Names outside an exported scope are left out; an input from outside is named ``$unbound_inputs_…`` and must be
mapped when the graph is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.collection_protos import proto_functions_of
from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.graphs.graph_def import op_def
from flowstone.framework.process import logging
from flowstone.framework.process.versions import GIT_VERSION, VERSION
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types.tensor_proto import messages
from flowstone.io.file_system import (
    as_path,
    atomic_write_string_to_file,
    file_exists,
    recursive_create_dir,
)
from flowstone.ops.control import context_messages  # noqa: F401 (registers the messages of contexts)
from flowstone.ops.variables.save_slice_info import without_scope

__all__ = [
    "add_collection_def",
    "create_meta_graph_def",
    "export_meta_graph",
    "export_scoped_meta_graph",
    "ops_used_by_graph_def",
    "strip_graph_default_valued_attrs",
    "stripped_op_list_for_graph",
    "variables_in",
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
    variables = variables_in(graph, scope)
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


def variables_in(graph: Graph, scope: str) -> dict[str, Any]:
    """The variables in a name scope, by their tensors' names in it."""
    found = graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=f"{scope}/" if scope else None)
    return {without_scope(variable.name, scope or None): variable for variable in found}


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
        strip_graph_default_valued_attrs(meta)
    if saver_def is not None:
        meta.saver_def.MergeFrom(saver_def)
    names = graph.get_all_collection_keys() if collection_list is None else list(collection_list)
    for name in names:
        add_collection_def(meta, name, graph, export_scope, exclude_nodes)
    return meta


def stripped_op_list_for_graph(graph_def: Any) -> Any:
    """The OpList of the ops that a GraphDef and its functions use. Ops that are not known here are left
    out."""
    found = messages("op_def_pb2").OpList()
    used = sorted(ops_used_by_graph_def(graph_def))
    found.op.extend(op_def(registry[name]) for name in used if name in registry)
    return found


def ops_used_by_graph_def(graph_def: Any) -> set[str]:
    """The names of the ops that a GraphDef and its functions use."""
    functions = graph_def.library.function
    used = {node.op for nodes in (graph_def.node, *(each.node_def for each in functions)) for node in nodes}
    return used - {function.signature.name for function in functions}


def strip_graph_default_valued_attrs(meta_graph_def: Any) -> None:
    """Removes attributes of a MetaGraphDef that have their default values, so that older consumers read the
    rest.
    """
    defaults = {
        op.name: {spec.name: spec.default_value for spec in op.attr if spec.HasField("default_value")}
        for op in meta_graph_def.meta_info_def.stripped_op_list.op
    }
    for node in meta_graph_def.graph_def.node:
        for name, value in defaults.get(node.op, {}).items():
            if name in node.attr and node.attr[name] == value:
                del node.attr[name]
    meta_graph_def.meta_info_def.stripped_default_attrs = True


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
    items = [item for item in items if not _is_within(item, exclude_nodes) and _is_of(item, export_scope)]
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


def _is_of(item: Any, scope: str | None) -> bool:
    """Whether the item is exported with this scope: what has no name is, and a text counts as one."""
    name = item if isinstance(item, str) else getattr(item, "name", None)
    return not scope or not isinstance(name, str) or name.startswith((f"{scope}/", _UNBOUND))


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
        collection.node_list.value.extend(without_scope(item.name, scope) for item in items)


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
