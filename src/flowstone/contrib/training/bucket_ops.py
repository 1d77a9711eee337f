"""Batches of examples that belong together: the names of `training.bucketing`."""

from flowstone.training.input.bucketing import bucket as bucket
from flowstone.training.input.bucketing import bucket_by_sequence_length as bucket_by_sequence_length
