"""`DebugDumpDir`: all that one run has dumped, with the graph that it ran."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.graph_pb2 import GraphDef

from flowstone.debugger.dumps import DEVICE_PREFIX, DebugTensorDatum
from flowstone.io import file_system

__all__ = [
    "FEED_KEYS_FILE",
    "FETCHES_FILE",
    "GRAPH_PREFIX",
    "DebugDumpDir",
    "WatchKeyDoesNotExistInDebugDumpDirError",
]

GRAPH_PREFIX = "_tfdbg_graph_"
FETCHES_FILE = "_tfdbg_fetches_info_"
FEED_KEYS_FILE = "_tfdbg_feed_keys_info_"


class WatchKeyDoesNotExistInDebugDumpDirError(ValueError):
    """An output is asked for that was not dumped."""


class DebugDumpDir:
    """The dumps of one run.

    Args:
        dump_root: the run's folder.
        partition_graphs: the GraphDefs that ran; None for those that were dumped.
        validate: whether every dumped tensor must be of a node of these graphs.

    Raises IOError for a folder that does not exist, ValueError for dumps that do not fit the graph.
    """

    def __init__(self, dump_root: str, partition_graphs: Any = None, validate: bool = True) -> None:
        if not file_system.is_directory(dump_root):
            raise OSError(f"Dump root directory {dump_root} does not exist")
        self._dump_root = dump_root
        self._data: list[DebugTensorDatum] = []
        self._graphs: list[Any] = list(partition_graphs or [])
        self._python_graph: Any = None
        for folder in sorted(file_system.list_directory(dump_root)):
            if folder.startswith(DEVICE_PREFIX):
                self._load_device(folder.rstrip("/"), read_graphs=not partition_graphs)
        self._data.sort(key=lambda datum: (datum.timestamp, datum.extended_timestamp))
        self._nodes = {node.name: node for graph in self._graphs for node in graph.node}
        self._recipients: dict[str, list[tuple[str, bool]]] = {}
        for node in self._nodes.values():
            for name in node.input:
                self._recipients.setdefault(_node_of(name), []).append((node.name, name.startswith("^")))
        if validate and self._graphs:
            for datum in self._data:
                self._node(datum.node_name)

    def _load_device(self, folder: str, read_graphs: bool) -> None:
        top = os.path.join(self._dump_root, folder)
        for place, _, files in file_system.walk(top):
            for name in files:
                path = os.path.relpath(os.path.join(place, name), self._dump_root)
                if not name.startswith("_tfdbg_"):
                    self._data.append(DebugTensorDatum(self._dump_root, path))
                elif name.startswith(GRAPH_PREFIX) and read_graphs:
                    event = _read_event(os.path.join(place, name))
                    self._graphs.append(GraphDef.FromString(event.graph_def))

    # ---- tensors

    @property
    def dumped_tensor_data(self) -> list[DebugTensorDatum]:
        """The dumped tensors, in the order of their times."""
        return self._data

    @property
    def size(self) -> int:
        """How many tensors were dumped."""
        return len(self._data)

    @property
    def t0(self) -> int | None:
        """The time of the first dump in microseconds; None without any."""
        return self._data[0].timestamp if self._data else None

    def find(
        self,
        predicate: Callable[[Any, Any], bool],
        first_n: int = 0,
        device_name: str | None = None,
        exclude_node_names: str | None = None,
    ) -> list[DebugTensorDatum]:
        """The dumped tensors for which ``predicate(datum, value)`` is true; at most `first_n` if positive."""
        found = []
        for datum in self._data:
            if device_name is not None and datum.device_name != device_name:
                continue
            if exclude_node_names and re.match(exclude_node_names, datum.node_name):
                continue
            if predicate(datum, datum.get_tensor()):
                found.append(datum)
                if len(found) == first_n:
                    break
        return found

    def watch_key_to_data(
        self, debug_watch_key: str, device_name: str | None = None
    ) -> list[DebugTensorDatum]:
        """The dumped tensors of a key NODE:SLOT:OP, by time."""
        return [
            datum
            for datum in self._data
            if datum.watch_key == debug_watch_key and device_name in (None, datum.device_name)
        ]

    def debug_watch_keys(self, node_name: str, device_name: str | None = None) -> list[str]:
        """The keys under which tensors of a node were dumped."""
        keys = [
            datum.watch_key
            for datum in self._data
            if datum.node_name == node_name and device_name in (None, datum.device_name)
        ]
        return list(dict.fromkeys(keys))

    def _of_key(
        self, node_name: str, output_slot: int, debug_op: str, device_name: str | None
    ) -> list[DebugTensorDatum]:
        key = f"{node_name}:{output_slot}:{debug_op}"
        found = self.watch_key_to_data(key, device_name)
        if not found:
            raise WatchKeyDoesNotExistInDebugDumpDirError(
                f'Watch key "{key}" does not exist in the debug dump of device {device_name}'
            )
        return found

    def get_tensors(
        self, node_name: str, output_slot: int, debug_op: str, device_name: str | None = None
    ) -> list[Any]:
        """The values of an output, by time. ValueError if it was not dumped."""
        return [datum.get_tensor() for datum in self._of_key(node_name, output_slot, debug_op, device_name)]

    def get_tensor_file_paths(
        self, node_name: str, output_slot: int, debug_op: str, device_name: str | None = None
    ) -> list[str]:
        """The files of an output, by time. ValueError if it was not dumped."""
        return [datum.file_path for datum in self._of_key(node_name, output_slot, debug_op, device_name)]

    def get_rel_timestamps(
        self, node_name: str, output_slot: int, debug_op: str, device_name: str | None = None
    ) -> list[int]:
        """When an output was dumped, in microseconds from the first dump. ValueError if it was not dumped."""
        start = self.t0 or 0
        return [
            each.timestamp - start for each in self._of_key(node_name, output_slot, debug_op, device_name)
        ]

    def get_dump_sizes_bytes(
        self, node_name: str, output_slot: int, debug_op: str, device_name: str | None = None
    ) -> list[int]:
        """The sizes of an output's files. ValueError if it was not dumped."""
        return [each.dump_size_bytes for each in self._of_key(node_name, output_slot, debug_op, device_name)]

    # ---- the run

    def devices(self) -> list[str]:
        """The names of the devices that dumped."""
        return list(dict.fromkeys(datum.device_name for datum in self._data))

    @property
    def run_fetches_info(self) -> str | None:
        """What was fetched, as text; None if that was not noted."""
        return self._note(FETCHES_FILE)

    @property
    def run_feed_keys_info(self) -> str | None:
        """What was fed, as text; None if that was not noted."""
        return self._note(FEED_KEYS_FILE)

    def _note(self, file: str) -> str | None:
        path = os.path.join(self._dump_root, file)
        if not file_system.file_exists(path):
            return None
        return str(_read_event(path).log_message.message)

    # ---- the graph

    def loaded_partition_graphs(self) -> bool:
        """Whether the graph of the run is known."""
        return bool(self._graphs)

    def partition_graphs(self) -> list[Any]:
        """The GraphDefs that ran. LookupError if they are not known."""
        if not self._graphs:
            raise LookupError("No partition graphs have been loaded.")
        return self._graphs

    reconstructed_non_debug_partition_graphs = partition_graphs

    def nodes(self, device_name: str | None = None) -> list[str]:
        """The names of the nodes that ran."""
        self.partition_graphs()
        return list(self._nodes)

    def node_exists(self, node_name: str, device_name: str | None = None) -> bool:
        """Whether a node ran."""
        self.partition_graphs()
        return node_name in self._nodes

    def _node(self, name: str) -> Any:
        self.partition_graphs()
        if name not in self._nodes:
            raise ValueError(f"Node name '{name}' is not found in partition graphs.")
        return self._nodes[name]

    def node_op_type(self, node_name: str, device_name: str | None = None) -> str:
        """The op of a node. ValueError if there is no such node, as for the other questions about nodes."""
        return str(self._node(node_name).op)

    def node_device(self, node_name: str) -> str:
        """The device of a node."""
        return str(self._node(node_name).device)

    def node_attributes(self, node_name: str, device_name: str | None = None) -> Any:
        """The attributes of a node: AttrValues by name."""
        return self._node(node_name).attr

    def node_inputs(
        self, node_name: str, is_control: bool = False, device_name: str | None = None
    ) -> list[str]:
        """The nodes whose outputs a node takes, or for which it waits if `is_control`."""
        inputs = [name for name in self._node(node_name).input if name.startswith("^") == is_control]
        return [_node_of(name) for name in inputs]

    def node_recipients(
        self, node_name: str, is_control: bool = False, device_name: str | None = None
    ) -> list[str]:
        """The nodes that take a node's outputs, or wait for it if `is_control`."""
        self._node(node_name)
        return [name for name, control in self._recipients.get(node_name, []) if control == is_control]

    def transitive_inputs(
        self,
        node_name: str,
        include_control: bool = True,
        include_reversed_ref: bool = False,
        device_name: str | None = None,
    ) -> list[str]:
        """All nodes that a node depends on, sorted."""
        found: set[str] = set()
        waiting = [node_name]
        while waiting:
            for name in self._node(waiting.pop()).input:
                source = _node_of(name)
                if (include_control or not name.startswith("^")) and source not in found:
                    found.add(source)
                    if source in self._nodes:
                        waiting.append(source)
        return sorted(found)

    @property
    def python_graph(self) -> Any:
        """The program's graph, if `set_python_graph` told it."""
        return self._python_graph

    def set_python_graph(self, python_graph: Any) -> None:
        """Tells the program's graph, of which `node_traceback` knows the lines."""
        self._python_graph = python_graph

    def node_traceback(self, element_name: str) -> Any:
        """Where the program made a node, or the node of a tensor.

        Raises LookupError without the program's graph, KeyError for a node that it does not have.
        """
        if self._python_graph is None:
            raise LookupError("Python graph is not available for traceback lookup")
        return self._python_graph.get_operation_by_name(_node_of(element_name)).traceback


def _node_of(name: str) -> str:
    return name.removeprefix("^").partition(":")[0]


def _read_event(path: str) -> Any:
    return Event.FromString(file_system.read_bytes(path))
