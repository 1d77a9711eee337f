"""`flowstone.summary`: what a step reports to TensorBoard."""

from flowstone.framework.names.late_names import late_names as _late_names
from flowstone.ops.summaries.summaries import merge, merge_all, scalar

_PROTO = "tensorboard.compat.proto"
__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone.ops.summaries.histograms": "histogram",
        "flowstone.ops.summaries.pictures": "audio image",
        "flowstone.ops.summaries.tensors": "get_summary_description tensor_summary text",
        "flowstone.contrib.summary.summary_ops": "all_v2_summary_ops=all_summary_ops initialize",
        "flowstone.training.hooks.summary_writer": "FileWriter FileWriterCache",
        f"{_PROTO}.event_pb2": "Event SessionLog TaggedRunMetadata",
        f"{_PROTO}.summary_pb2": "Summary SummaryDescription",
    },
)
