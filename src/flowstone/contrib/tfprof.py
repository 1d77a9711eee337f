"""`tf.contrib.tfprof`: `tf.profiler` under its first name, and `ProfileContext`."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.profiling.profile_context": "ProfileContext",
        "flowstone.profiler": "Profiler advise write_op_log",
    },
)
