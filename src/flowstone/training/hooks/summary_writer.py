"""`FileWriter`: the log of a program for TensorBoard, and the writers of each folder."""

from __future__ import annotations

import threading
import time
import warnings
from types import TracebackType
from typing import Any

from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types.tensor_proto import messages
from flowstone.io.events import EventLog
from flowstone.io.file_system import as_path
from flowstone.training.checkpoints.meta_graph import create_meta_graph_def

__all__ = ["FileWriter", "FileWriterCache"]


class FileWriter:
    """Writes events to a file in `logdir`, from a thread of its own.

    Args:
        logdir: the folder, which is made if it is not there.
        graph: a Graph that is written first.
        max_queue: how many events may wait to be written.
        flush_secs: after how many seconds what was added can be read.
        graph_def: a GraphDef instead of `graph`, an old form.
        filename_suffix: of the file's name.

    As a context it is closed at the end.
    """

    def __init__(
        self,
        logdir: Any,
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        self._logdir = as_path(logdir)
        self._log = EventLog(self._logdir, max_queue, flush_secs, filename_suffix or "")
        self._tags_with_metadata: set[str] = set()
        self._run_tags: set[str] = set()
        if graph is not None or graph_def is not None:
            self._add_first_graph(graph, graph_def)

    def _add_first_graph(self, graph: Any, graph_def: Any) -> None:
        self.add_graph(graph=graph, graph_def=graph_def)
        if isinstance(graph, Graph):
            self.add_meta_graph(create_meta_graph_def(graph=graph))

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- what is written

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Adds a Summary, or the bytes of one, for this step. The metadata of a tag is written once."""
        message = messages("summary_pb2").Summary()
        message.ParseFromString(
            bytes(summary) if isinstance(summary, (bytes, bytearray)) else _serialized(summary)
        )
        for value in message.value:
            if not value.HasField("metadata"):
                continue
            if value.tag in self._tags_with_metadata:
                value.ClearField("metadata")
            else:
                self._tags_with_metadata.add(value.tag)
        self._add(global_step, summary=message)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Adds a SessionLog: that a session began, stopped or saved a checkpoint."""
        self._add(global_step, session_log=session_log)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Adds a graph with the known shapes of its tensors. ValueError for none or two, TypeError for what
        is no graph."""
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        if isinstance(graph, Graph):
            message = graph.as_graph_def(add_shapes=True)
        elif isinstance(graph, messages("graph_pb2").GraphDef) or graph_def is not None:
            warnings.warn(
                "Passing a `GraphDef` to the SummaryWriter is deprecated. Pass a `Graph` object instead, "
                "such as `sess.graph`.",
                stacklevel=2,
            )
            message = graph if graph is not None else graph_def
        elif graph is None:
            raise ValueError("Please pass one of graph or graph_def (deprecated).")
        else:
            raise TypeError(
                f"The passed graph must be an instance of `Graph` or `GraphDef`, not {type(graph)}"
            )
        self._add(global_step, graph_def=message.SerializeToString())

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Adds a MetaGraphDef. TypeError for anything else."""
        if not isinstance(meta_graph_def, messages("meta_graph_pb2").MetaGraphDef):
            raise TypeError(f"meta_graph_def must be type MetaGraphDef, saw type: {type(meta_graph_def)}")
        self._add(global_step, meta_graph_def=meta_graph_def.SerializeToString())

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Adds the RunMetadata of a step under `tag`, which the graph's page offers. ValueError for a tag
        twice."""
        if tag in self._run_tags:
            raise ValueError("The provided tag was already used for this event type")
        self._run_tags.add(tag)
        tagged = messages("event_pb2").TaggedRunMetadata(
            tag=tag, run_metadata=run_metadata.SerializeToString()
        )
        self._add(global_step, tagged_run_metadata=tagged)

    def add_event(self, event: Any) -> None:
        """Adds an Event as it is."""
        self._log.add_event(event)

    def _add(self, global_step: Any, **content: Any) -> None:
        event = messages("event_pb2").Event(wall_time=time.time(), **content)
        if global_step is not None:
            event.step = int(global_step)
        self._log.add_event(event)

    # ---- the file

    def get_logdir(self) -> str:
        """The folder."""
        return self._logdir

    def flush(self) -> None:
        """Returns when all that was added can be read."""
        self._log.flush()

    def close(self) -> None:
        """Writes what was added, and ends the file."""
        self._log.close()

    def reopen(self) -> None:
        """After `close`: the next events go to a new file."""
        self._log.reopen()


def _serialized(summary: Any) -> bytes:
    return summary.SerializeToString()  # type: ignore[no-any-return]


class FileWriterCache:
    """The writers of folders, so that a folder has one."""

    _writers: dict[str, FileWriter] = {}
    _lock = threading.Lock()

    @staticmethod
    def get(logdir: Any) -> FileWriter:
        """The writer of a folder, made with the default graph when it is first asked for."""
        path = as_path(logdir)
        with FileWriterCache._lock:
            found = FileWriterCache._writers.get(path)
            if found is None:
                found = FileWriterCache._writers[path] = FileWriter(path, get_default_graph())
            return found

    @staticmethod
    def clear() -> None:
        """Forgets all writers."""
        with FileWriterCache._lock:
            FileWriterCache._writers = {}
