"""`tf.contrib.learn.monitors`: what watches a training loop, before there were hooks.

A monitor is told when training begins and ends and when each step begins and ends. It may ask for tensors
when a step begins, has their values when it ends, and may end the training. `RunHookAdapterForMonitors` makes
a hook of a list of monitors, so that every loop of `tf.train` takes them.
"""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone": "SessionLog Summary",
        "flowstone.contrib.framework": "deprecated",
        "flowstone.contrib.learn.monitors.base_monitor": "BaseMonitor EveryN _as_graph_element"
        " _extract_output",
        "flowstone.contrib.learn.monitors.estimator_monitors": "ExportMonitor ValidationMonitor",
        "flowstone.contrib.learn.monitors.monitor_hooks": "RunHookAdapterForMonitors"
        " replace_monitors_with_hooks",
        "flowstone.contrib.learn.monitors.saving_monitors": "CheckpointSaver StepCounter SummarySaver"
        " get_default_monitors",
        "flowstone.contrib.learn.monitors.stopping_monitors": "NanLoss StopAtStep",
        "flowstone.contrib.learn.monitors.tensor_monitors": "CaptureVariable GraphDump LoggingTrainable"
        " PrintTensor",
        "flowstone.contrib.learn.summary_writer_cache": "SummaryWriterCache",
        "flowstone.training.hooks.tensor_hooks": "NanLossDuringTrainingError",
    },
)
