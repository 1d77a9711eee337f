"""`tf.contrib.framework`: scopes of arguments, variables by name, checkpoints."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.train": "create_global_step get_global_step get_or_create_global_step",
    },
)
