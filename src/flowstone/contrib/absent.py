"""Packages of `tf.contrib` that are not here, and what to use in their place."""

from __future__ import annotations

from flowstone.contrib.module_paths import module_names

__all__ = ["NEAREST", "nearest"]

NEAREST: dict[str, str] = {
    "ndlstm": "tf.nn.dynamic_rnn along each dimension of the image",
    "recurrent": "tf.nn.dynamic_rnn",
    "tensorrt": "the graph itself: its plan is compiled for the processor that it runs on",
}


def nearest(package: str) -> str:
    """The message that `tf.contrib.PACKAGE` is not here, with the nearest thing that is."""
    if package not in module_names():
        return f"flowstone does not have the name tf.contrib.{package}, nor do TensorFlow 1.4 and 1.15"
    message = f"flowstone does not have the name tf.contrib.{package}"
    return f"{message}; use {NEAREST[package]}" if package in NEAREST else message
