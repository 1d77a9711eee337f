"""The debugger of `tensorflow.python.debug`: sessions and hooks that keep or show the tensors of a step.

| file | gives |
| --- | --- |
| `watching` | which tensors a run shall send to files |
| `dumps` | one dumped tensor, and the filter `has_inf_or_nan` |
| `dump_folder` | all that one run has dumped, with its graph |
| `wrapper_sessions` | sessions whose runs are dumped |
| `command_line` | sessions that stop before and after a run and take commands |
| `hooks` | the same for monitored sessions |

A step dumps through nodes that `runtime/plans/debug_watches.py` puts into its plan. Files are TensorFlow's.
"""

from __future__ import annotations

from flowstone.framework.names.late_names import late_names
from flowstone.framework.names.refusals import refused_class

_SERVERS = "DumpingDebugWrapperSession or LocalCLIDebugWrapperSession: there is no debugger's server"
GrpcDebugHook = refused_class("GrpcDebugHook", _SERVERS)
GrpcDebugWrapperSession = refused_class("GrpcDebugWrapperSession", _SERVERS)
TensorBoardDebugHook = refused_class("TensorBoardDebugHook", _SERVERS)
TensorBoardDebugWrapperSession = refused_class("TensorBoardDebugWrapperSession", _SERVERS)

__getattr__, __dir__ = late_names(
    globals(),
    {
        "flowstone.debugger.command_line": "LocalCLIDebugWrapperSession",
        "flowstone.debugger.dump_folder": "DebugDumpDir WatchKeyDoesNotExistInDebugDumpDirError",
        "flowstone.debugger.dumps": "DebugTensorDatum InconvertibleTensorProto has_inf_or_nan"
        " load_tensor_from_event load_tensor_from_event_file",
        "flowstone.debugger.hooks": "DumpingDebugHook LocalCLIDebugHook",
        "flowstone.debugger.watching": "add_debug_tensor_watch reconstruct_non_debug_graph_def watch_graph"
        " watch_graph_with_blacklists",
        "flowstone.debugger.wrapper_sessions": "DumpingDebugWrapperSession WatchOptions",
    },
)
