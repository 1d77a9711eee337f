"""`SummaryLog`: what hooks and supervisors write for TensorBoard, on `io.events`.

`summary_log(logdir)` is the program's one log of a folder, which all hooks share.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from flowstone.framework.scope import get_default_graph
from flowstone.framework.tensor_proto import messages
from flowstone.io.events import EventLog
from flowstone.io.file_system import as_path
from flowstone.training.meta_graph import create_meta_graph_def

__all__ = ["SummaryLog", "session_log", "summary_log"]


class SummaryLog:
    """Adds messages to an event file in the folder `logdir`, which is made if there is none; at first
    `graph`, if it is given."""

    def __init__(self, logdir: Any, graph: Any = None) -> None:
        self._log = EventLog(logdir)
        if graph is not None:
            self.add_graph(graph)
            self.add_meta_graph(create_meta_graph_def(graph=graph))

    def get_logdir(self) -> str:
        """The folder."""
        return self._log.logdir

    def add_event(self, event: Any) -> None:
        """Adds an Event message."""
        self._log.add_event(event)

    def _add(self, global_step: Any, **content: Any) -> None:
        step = 0 if global_step is None else int(global_step)
        self.add_event(messages("event_pb2").Event(wall_time=time.time(), step=step, **content))

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Adds a Summary message, or the bytes of one."""
        if isinstance(summary, bytes):
            summary = messages("summary_pb2").Summary.FromString(summary)
        self._add(global_step, summary=summary)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Adds a SessionLog message."""
        self._add(global_step, session_log=session_log)

    def add_graph(self, graph: Any, global_step: Any = None) -> None:
        """Adds a graph."""
        self._add(global_step, graph_def=graph.as_graph_def(add_shapes=True).SerializeToString())

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Adds a MetaGraphDef message."""
        self._add(global_step, meta_graph_def=meta_graph_def.SerializeToString())

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Adds the RunMetadata of a step, under a name."""
        tagged = messages("event_pb2").TaggedRunMetadata(
            tag=tag, run_metadata=run_metadata.SerializeToString()
        )
        self._add(global_step, tagged_run_metadata=tagged)

    def flush(self) -> None:
        """Returns when all that was added is in the file."""
        self._log.flush()

    def close(self) -> None:
        """Ends the file."""
        self._log.close()

    def reopen(self) -> None:
        """Begins a new file, if the log is closed."""
        self._log.reopen()


_logs: dict[str, Any] = {}
_lock = threading.Lock()


def summary_log(logdir: Any) -> Any:
    """The program's one log of this folder; made with the default graph in it the first time."""
    path = as_path(logdir)
    with _lock:
        if path not in _logs:
            _logs[path] = SummaryLog(path, graph=get_default_graph())
        return _logs[path]


def session_log(status: str, checkpoint_path: str = "") -> Any:
    """A SessionLog message: `status` is ``"START"``, ``"STOP"`` or ``"CHECKPOINT"``."""
    message = messages("event_pb2").SessionLog
    return message(status=getattr(message, status), checkpoint_path=checkpoint_path)
