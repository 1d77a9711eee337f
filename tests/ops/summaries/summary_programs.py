"""Summaries that flowstone and TensorFlow make alike: `PROGRAMS`, by name, of the module `tf`."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

RAMP = np.linspace(-2, 3, 24).reshape(2, 3, 4, 1).astype(np.float32)
HOLED = RAMP.copy()
HOLED[0, 0, 0], HOLED[1, 1, 1] = np.nan, np.inf
NUMBERS = np.concatenate([np.linspace(-3, 3, 50), [0.0, 0.0, 1e-13, -1e-13, 1e25, -1e25, 2e-12]])

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "scalar": lambda tf: tf.summary.scalar("a b", 1.5),
    "scalar of a family": lambda tf: tf.summary.scalar("a", tf.constant(3, tf.int32), family="f"),
    "histogram": lambda tf: tf.summary.histogram("h", tf.constant(NUMBERS)),
    "histogram of one": lambda tf: tf.summary.histogram("h", [1.0]),
    "histogram of zeros": lambda tf: tf.summary.histogram("h", tf.zeros([5], tf.int64)),
    "histogram of nothing": lambda tf: tf.summary.histogram("h", tf.zeros([0])),
    "histogram of integers": lambda tf: tf.summary.histogram("h", tf.constant([1, 2, 2, 200], tf.uint8)),
    "histogram with NaN": lambda tf: tf.summary.histogram("h", [1.0, float("nan")]),
    "histogram with infinity": lambda tf: tf.summary.histogram("h", [1.0, float("inf")]),
    "image": lambda tf: tf.summary.image("im", tf.constant(RAMP)),
    "image without negative numbers": lambda tf: tf.summary.image("im", tf.constant(np.abs(RAMP)), 1),
    "image of doubles": lambda tf: tf.summary.image("im", tf.constant(RAMP.astype(np.float64) * 100)),
    "image of halves": lambda tf: tf.summary.image("im", tf.constant(RAMP.astype(np.float16))),
    "image of bytes": lambda tf: tf.summary.image("im", tf.constant((RAMP * 40 + 90).astype(np.uint8))),
    "image with holes": lambda tf: tf.summary.image("im", tf.constant(HOLED)),
    "image of colours": lambda tf: tf.summary.image("im", tf.constant(np.repeat(HOLED, 3, 3))),
    "image of colours and alpha": lambda tf: tf.summary.image("im", tf.constant(np.repeat(HOLED, 4, 3))),
    "image without contrast": lambda tf: tf.summary.image("im", tf.zeros([1, 2, 2, 1])),
    "image, some of many": lambda tf: tf.summary.image("im", tf.ones([4, 1, 1, 1]), max_outputs=2),
    "image of two channels": lambda tf: tf.summary.image("im", tf.placeholder_with_default(
        np.zeros([1, 2, 2, 2], np.float32), None)),
    "audio": lambda tf: tf.summary.audio("au", tf.constant([[0.0, 0.5, -2.0, 1.0]]), 8000.0),
    "audio of two channels": lambda tf: tf.summary.audio("au", tf.constant(RAMP[:, :, :2, 0] / 3), 44100, 1),
    "no audio": lambda tf: tf.summary.audio("au", tf.zeros([0, 3]), 8000.0),
    "no image": lambda tf: tf.summary.image("im", tf.zeros([0, 2, 2, 1])),
    "image without width": lambda tf: tf.summary.image("im", tf.zeros([1, 2, 0, 1])),
    "tensor": lambda tf: tf.summary.tensor_summary(
        "t", tf.constant([[1.0, 2.0]]), summary_description="what", display_name="shown", family="f"),
    "text": lambda tf: tf.summary.text("note", tf.constant([["a", "b"]])),
    "merged": lambda tf: tf.summary.merge([tf.summary.scalar("a", 1.0), tf.summary.scalar("b", 2.0)]),
    "merged twice": lambda tf: tf.summary.merge([tf.summary.scalar("a", 1.0)] * 2),
}  # fmt: skip


def run(tf: Any, name: str, pixels: Callable[[bytes], Any]) -> dict[str, Any]:
    """The values of a summary; images as their pixels, which `pixels` reads."""
    with tf.Graph().as_default(), tf.Session() as session:
        try:
            made = PROGRAMS[name](tf)
            message = tf.Summary.FromString(session.run(made))
        except (ValueError, TypeError, tf.errors.OpError) as error:
            return {"error": type(error).__name__}
        nodes = [f"{op.name} {op.type}" for op in tf.get_default_graph().get_operations()]
        collected = len(tf.get_collection(tf.GraphKeys.SUMMARIES))
    return {
        "values": [described(value, pixels) for value in message.value],
        "nodes": nodes,
        "kept": collected,
    }


def described(value: Any, pixels: Callable[[bytes], Any]) -> dict[str, Any]:
    kind = value.WhichOneof("value")
    found: dict[str, Any] = {"tag": value.tag, "kind": kind}
    if value.HasField("metadata"):
        metadata = value.metadata
        found["metadata"] = [
            metadata.plugin_data.plugin_name, metadata.display_name, metadata.summary_description
        ]  # fmt: skip
    if kind == "simple_value":
        found["value"] = value.simple_value
    elif kind == "histo":
        histo = value.histo
        found["value"] = [histo.min, histo.max, histo.num, histo.sum, histo.sum_squares]
        found["limits"], found["buckets"] = list(histo.bucket_limit), list(histo.bucket)
    elif kind == "image":
        found["value"] = [value.image.height, value.image.width, value.image.colorspace]
        found["pixels"] = np.asarray(pixels(value.image.encoded_image_string)).reshape(-1).tolist()
    elif kind == "audio":
        audio = value.audio
        found["value"] = [audio.sample_rate, audio.num_channels, audio.length_frames, audio.content_type]
        found["bytes"] = audio.encoded_audio_string.hex()
    else:
        found["value"] = value.tensor.SerializeToString().hex()
    return found


def by_pillow(data: bytes) -> Any:
    from PIL import Image

    return Image.open(io.BytesIO(data))
