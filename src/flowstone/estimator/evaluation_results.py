"""The results of an evaluation as summaries in its folder."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf

__all__ = ["write_checkpoint_path", "write_results"]


def _text(results: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} = {value!s}" for name, value in sorted(results.items()) if not isinstance(value, bytes)
    )


def write_results(folder: str, results: dict[str, Any], step: int) -> None:
    """Logs results and writes a summary with a value for each, under their names.

    Numbers become scalars, serialised Summary messages their values, arrays tensors; other things are left
    out with a warning.
    """
    tf.logging.info("Saving dict for global step %d: %s", step, _text(results))
    summary = tf.Summary()
    for name in results:
        value = results[name]
        if name == "global_step" or value is None:
            continue
        if isinstance(value, (float, int, np.floating, np.integer)):
            summary.value.add(tag=name, simple_value=float(value))
        elif isinstance(value, bytes):
            _add_summary(summary, name, value)
        elif isinstance(value, np.ndarray):
            summary.value.add(tag=name).tensor.CopyFrom(tf.make_tensor_proto(value))
        else:
            tf.logging.warning(
                "Skipping summary for %s, must be a float, np.float32, np.int64, np.int32 or int or "
                "np.ndarray "
                "or a serialized string of Summary.",
                name,
            )
    _write(folder, summary, step)


def write_checkpoint_path(folder: str, checkpoint_path: str, step: int) -> None:
    """Logs and writes which checkpoint was evaluated, as the text "checkpoint_path"."""
    tf.logging.info("Saving 'checkpoint_path' summary for global step %d: %s", step, checkpoint_path)
    summary = tf.Summary()
    proto = tf.make_tensor_proto(checkpoint_path, dtype=tf.string)
    summary.value.add(tag="checkpoint_path").tensor.CopyFrom(proto)
    _write(folder, summary, step)


def _add_summary(summary: Any, name: str, content: bytes) -> None:
    try:
        parsed = tf.Summary.FromString(content)
    except Exception:  # the parsers of protobuf raise different errors
        tf.logging.warning("Skipping summary for %s, cannot parse string to Summary.", name)
        return
    for index, value in enumerate(parsed.value):
        value.tag = f"{name}/{index}"
        summary.value.add().CopyFrom(value)


def _write(folder: str, summary: Any, step: int) -> None:
    writer = tf.summary.FileWriterCache.get(folder)
    writer.add_summary(summary, step)
    writer.flush()
