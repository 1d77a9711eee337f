"""`tf.contrib.tfprof`: `tf.profiler` under its first name, and `ProfileContext`."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.package_names import package_names

TRAINABLE_VARS_PARAMS_STAT_OPTIONS = tf.profiler.ProfileOptionBuilder.trainable_variables_parameter()
FLOAT_OPS_OPTIONS = tf.profiler.ProfileOptionBuilder.float_operation()
PRINT_ALL_TIMING_MEMORY = tf.profiler.ProfileOptionBuilder.time_and_memory()


def print_model_analysis(
    graph: Any,
    run_meta: Any = None,
    op_log: Any = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Any = TRAINABLE_VARS_PARAMS_STAT_OPTIONS,
) -> Any:
    """`tf.profiler.profile`, with the options that this module has by default."""
    return tf.profiler.profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)


__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.profiling.profile_context": "ProfileContext",
        "flowstone.profiler": "Profiler advise write_op_log",
    },
)
