"""`import_meta_graph`: a graph from a file, with the Saver that belongs to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types.tensor_proto import messages
from flowstone.training.checkpoints.meta_graph_import import (
    import_scoped_meta_graph_with_return_elements,
    read_meta_graph_file,
)
from flowstone.training.checkpoints.saver import Saver

__all__ = ["import_meta_graph", "import_meta_graph_with_return_elements"]


def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None, **kwargs: Any
) -> Saver | None:
    """Adds the graph of a MetaGraphDef, or of the file of one, to the default graph, and its collections.

    Returns the Saver that belongs to it: that of the message, or a new one of its variables; None if it has
    none. See `import_scoped_meta_graph` for the arguments. OSError for a file that holds no graph.
    """
    return import_meta_graph_with_return_elements(meta_graph_or_file, clear_devices, import_scope, **kwargs)[
        0
    ]


def import_meta_graph_with_return_elements(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    return_elements: Sequence[str] | None = None,
    **kwargs: Any,
) -> tuple[Saver | None, list[Any] | None]:
    """As `import_meta_graph`; returns also the operations and tensors of the names `return_elements`, or
    None.
    """
    meta = meta_graph_or_file
    if not isinstance(meta, messages("meta_graph_pb2").MetaGraphDef):
        meta = read_meta_graph_file(meta)
    variables, elements = import_scoped_meta_graph_with_return_elements(
        meta, clear_devices, import_scope=import_scope, return_elements=return_elements, **kwargs
    )
    if meta.HasField("saver_def"):
        scope = _scope_of(variables) if variables else import_scope
        if scope and meta.saver_def.filename_tensor_name.startswith(f"{scope}/"):
            scope = None
        return Saver.from_proto(meta.saver_def, scope), elements
    has_more = variables or get_default_graph().get_collection(GraphKeys.SAVEABLE_OBJECTS)
    return Saver() if has_more else None, elements


def _scope_of(variables: dict[str, Any]) -> str | None:
    """The scope that imported variables, by their names in the message, have come into."""
    name, variable = next(iter(variables.items()))
    return variable.name.removesuffix(name).rstrip("/") or None
