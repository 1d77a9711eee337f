"""`tf.contrib.input_pipeline`: a list that the workers of a cluster go through together."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {"flowstone.contrib.input_pipeline.input_pipeline_ops": "obtain_next seek_next"},
    "input_pipeline_ops",
)
