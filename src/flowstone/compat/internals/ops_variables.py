"""`tensorflow.python.ops.variables`: variables by TensorFlow 1.15's name of the class."""

from __future__ import annotations

import flowstone as tf

__all__ = ["VariableV1"]

VariableV1 = tf.Variable
