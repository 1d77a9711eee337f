"""`tensorflow.python.summary.text_summary`: texts for TensorBoard."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["PLUGIN_NAME", "text_summary"]

PLUGIN_NAME = "text"


def text_summary(name: str, tensor: Any, collections: Any = None) -> Any:
    """`tf.summary.text`: a summary of strings. ValueError for a tensor that is not of strings."""
    if tensor.dtype != tf.string:
        raise ValueError(f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype}")
    return tf.summary.text(name, tensor, collections)
