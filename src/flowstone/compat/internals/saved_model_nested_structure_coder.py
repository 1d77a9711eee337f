"""`tensorflow.python.saved_model.nested_structure_coder`: structures as messages, which are refused."""

from __future__ import annotations

from flowstone.framework.names.refusals import refused_class

__all__ = ["StructureCoder"]

StructureCoder = refused_class(
    "tensorflow.python.saved_model.nested_structure_coder.StructureCoder",
    "tf.saved_model.simple_save, whose signatures have tensors",
)
