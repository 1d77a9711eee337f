"""`tf.contrib.tensor_forest.tensor_forest_ops`: operations on features."""

from __future__ import annotations

from flowstone.framework.declarations.op_functions import positional

__all__ = ["reinterpret_string_to_float"]

reinterpret_string_to_float = positional("ReinterpretStringToFloat")
