"""`tf.contrib.copy_graph`: operations and variables of a graph made again in another."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.copy_graph.copy_elements": "copy_op_to_graph copy_variable_to_graph get_copied_op",
    },
)
