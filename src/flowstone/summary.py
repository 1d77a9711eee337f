"""`flowstone.summary`: what a step reports to TensorBoard."""

from flowstone.ops.summaries.summaries import merge, merge_all, scalar
