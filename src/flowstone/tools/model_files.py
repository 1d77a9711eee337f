"""Files that hold graphs or values: GraphDefs, MetaGraphDefs, SavedModels and checkpoints, told apart by what
they hold."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from google.protobuf import message as protobuf

from flowstone.framework.errors import DataLossError, InvalidArgumentError, NotFoundError, OpError
from flowstone.framework.types.tensor_proto import messages
from flowstone.io import any_messages
from flowstone.io.file_system import as_path, file_exists, is_directory, read_bytes
from flowstone.saved_model.loader import maybe_saved_model_directory, read_saved_model
from flowstone.training.checkpoints.checkpoint_reading import NewCheckpointReader
from flowstone.training.checkpoints.checkpoint_state import checkpoint_exists, latest_checkpoint

__all__ = ["Held", "read"]

_OP_NAME = re.compile(r"\w+(>\w+)*\Z")


class Held(NamedTuple):
    """What a file holds: a `kind` for people, the MetaGraphDefs (a GraphDef is one with nothing else), and
    the prefix of the checkpoint, or ""."""

    kind: str
    graphs: list[Any]
    checkpoint: str


def read(given: str) -> Held:
    """What is at a path: a folder, a file, or the prefix of a checkpoint.

    NotFoundError if nothing is there, DataLossError for a file that cannot be parsed.
    """
    path = as_path(given)
    if is_directory(path):
        return _of_folder(path)
    if file_exists(path) and not path.endswith(".index"):
        content = read_bytes(path)
        for kind, parse in (("GraphDef", _graph), ("MetaGraphDef", _meta_graph)):
            found = parse(content)
            if found is not None:
                return Held(kind, [found], "")
    prefix = path.removesuffix(".index")
    if not checkpoint_exists(prefix):
        raise NotFoundError(None, None, f"There is no file, folder or checkpoint {path}")
    try:
        NewCheckpointReader(prefix)
    except OpError as error:
        message = f"It holds no GraphDef, MetaGraphDef or checkpoint: {error.message}"
        raise DataLossError(None, None, message) from None
    return Held("checkpoint", [], prefix)


def _of_folder(path: str) -> Held:
    if maybe_saved_model_directory(path):
        try:
            model = read_saved_model(path)
        except OSError as error:
            raise DataLossError(None, None, str(error)) from None
        variables = f"{path.rstrip('/')}/variables/variables"
        return Held("SavedModel", list(model.meta_graphs), variables if checkpoint_exists(variables) else "")
    latest = latest_checkpoint(path)
    if latest is None:
        raise NotFoundError(None, None, f"The folder {path} has no SavedModel and no checkpoint")
    return Held("checkpoint", [], latest)


def _parsed(content: bytes, message: Any) -> Any:
    """The message, binary or text; None if it is neither."""
    try:
        message.ParseFromString(content)
        return message
    except protobuf.DecodeError:
        message.Clear()
    try:
        return any_messages.parse_text(content, message)
    except InvalidArgumentError:
        return None


def _is_graph(graph: Any) -> bool:
    return bool(graph.node) and all(node.name and _OP_NAME.match(node.op) for node in graph.node)


def _graph(content: bytes) -> Any:
    graph = _parsed(content, messages("graph_pb2").GraphDef())
    if graph is None or not _is_graph(graph):
        return None
    return messages("meta_graph_pb2").MetaGraphDef(graph_def=graph)


def _meta_graph(content: bytes) -> Any:
    meta = _parsed(content, messages("meta_graph_pb2").MetaGraphDef())
    return meta if meta is not None and _is_graph(meta.graph_def) else None
