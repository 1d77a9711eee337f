"""`flowstone.ragged`: tensors whose rows have different lengths."""

from flowstone.ops.ragged import dispatching as _dispatching
from flowstone.ops.ragged.conversions import constant, placeholder
from flowstone.ops.ragged.functions import (
    boolean_mask,
    map_flat_values,
    range,
    stack,
    stack_dynamic_partitions,
)
from flowstone.ops.ragged.ragged_values import RaggedTensorValue, constant_value
from flowstone.ops.ragged.row_layouts import row_splits_to_segment_ids, segment_ids_to_row_splits
