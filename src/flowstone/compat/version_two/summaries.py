"""`tf.compat.v2.summary` in graphs: summaries that a step writes itself, as plugins of TensorBoard have them.

    writer = tf.compat.v2.summary.create_file_writer(logdir)
    with writer.as_default(), tf.compat.v2.summary.record_if(lambda: tf.equal(step % 100, 0)):
        tf.compat.v2.summary.scalar("loss", loss, step=step)
    session.run(writer.init())
    session.run([train, *tf.compat.v1.summary.all_v2_summary_ops()])

Each function gives a bool scalar, whether it has written: False without a default writer. Tags are the names
behind the name scope, the same for two summaries of one name.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import flowstone as tf
from flowstone.contrib.summary import summary_writers
from flowstone.contrib.summary.recording import recorded_if, recording, recording_condition
from flowstone.contrib.summary.summary_ops import SUMMARIES
from flowstone.contrib.summary.summary_writers import SummaryWriter as SummaryWriter
from flowstone.contrib.summary.summary_writers import flush as flush
from flowstone.framework.declarations.operation import F

__all__ = [
    "SummaryWriter",
    "audio",
    "create_file_writer",
    "create_noop_writer",
    "experimental",
    "flush",
    "histogram",
    "image",
    "record_if",
    "scalar",
    "text",
    "write",
]

_NO_STEP = "No step set via 'step' argument or tf.summary.experimental.set_step()"
_BUCKETS = 30
_WAV = b"\x10\x0b"  # the encoding, in the message of TensorBoard's plugin
_numbers = itertools.count()
_steps: list[Any] = [None]


def create_file_writer(
    logdir: Any,
    max_queue: Any = None,
    flush_millis: Any = None,
    filename_suffix: Any = None,
    name: str | None = None,
) -> SummaryWriter:
    """A writer of an event file of its own; see `tf.contrib.summary.create_file_writer`."""
    with tf.name_scope(name or "create_file_writer"):
        return summary_writers.create_file_writer(
            logdir, max_queue, flush_millis, filename_suffix, f"summary_writer_{next(_numbers)}"
        )


def create_noop_writer() -> SummaryWriter:
    """A writer that writes nothing."""
    return SummaryWriter()


def record_if(condition: Any) -> Any:
    """A context within which summaries are written if `condition` is true: a bool, a tensor, or a function
    that gives one."""
    return recording(condition)


# ---- steps and scopes


def _set_step(step: Any) -> None:
    """Sets the step of summaries that are told none; None: no step."""
    _steps[0] = step


def _get_step() -> Any:
    """The step that `set_step` has set, or None."""
    return _steps[0]


@contextlib.contextmanager
def _summary_scope(name: str, default_name: str = "summary", values: Any = None) -> Iterator[tuple[str, str]]:
    """A name scope for a summary; gives the tag and the scope."""
    name = name or default_name
    current = tf.get_default_graph().get_name_scope()
    tag = f"{current}/{name}" if current else name
    with tf.name_scope(re.sub(r"[^A-Za-z0-9_./-]", "", name) or default_name) as scope:
        yield tag, scope


# ---- summaries


def write(tag: Any, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None) -> Any:
    """Writes a tensor, or what a function gives that is called where summaries are written.

    `metadata`: a SummaryMetadata, or the bytes of one. ValueError without a step, where there is a writer.
    """
    with tf.name_scope(name or "write_summary") as scope:
        writer = summary_writers.default_writer()
        if writer is None:
            return tf.constant(False)
        step = _steps[0] if step is None else step
        if step is None:
            raise ValueError(_NO_STEP)
        about = metadata.SerializeToString() if hasattr(metadata, "SerializeToString") else metadata or b""
        number = tf.cast(tf.convert_to_tensor(step, name="step"), tf.int64)

        def record() -> Any:
            with tf.device("cpu:0"):
                value = tf.convert_to_tensor(tensor() if callable(tensor) else tf.identity(tensor))
                operation = F.WriteSummary.operation(writer._resource, number, value, tag, about, name=scope)
                with tf.control_dependencies([operation]):
                    return tf.constant(True)

        condition = recording_condition(by_default=True)
        condition = condition() if callable(condition) else condition
        if not isinstance(condition, tf.Tensor):
            condition = bool(condition)
        written = recorded_if(condition, record, "summary_cond")
        tf.add_to_collection(SUMMARIES, written)
        return written


def _written(
    name: str, kind: str, tensor: Callable[[], Any], step: Any, description: Any, content: bytes = b""
) -> Any:
    metadata = tf.SummaryMetadata(summary_description=description or "")
    metadata.plugin_data.plugin_name, metadata.plugin_data.content = kind, content
    return write(name, tensor, step, metadata)


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Any:
    """A real number. ValueError for a tensor that is no scalar."""
    with _summary_scope(name, "scalar_summary") as (tag, _):
        tf.assert_scalar(data)
        value = tf.cast(data, tf.float32)
        return _written(tag, "scalars", lambda: tf.identity(value), step, description)


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Any:
    """Texts of any shape."""
    with _summary_scope(name, "text_summary") as (tag, _):
        value = tf.convert_to_tensor(data, tf.string)
        return _written(tag, "text", lambda: tf.identity(value), step, description)


def histogram(
    name: str, data: Any, step: Any = None, buckets: int | None = None, description: str | None = None
) -> Any:
    """How many of the values lie in each of so many parts (30) of their range: [parts, (left, right, count)];
    no part without values, one for equal ones."""
    with _summary_scope(name, "histogram_summary") as (tag, _):
        values = tf.cast(tf.reshape(data, [-1]), tf.float64)
        number = _BUCKETS if buckets is None else buckets
        return _written(tag, "histograms", lambda: _counted(values, number), step, description)


def _counted(values: Any, buckets: int) -> Any:
    def several() -> Any:
        least, most = tf.reduce_min(values), tf.reduce_max(values)
        spread = most - least
        return tf.cond(tf.equal(spread, 0), lambda: alone(least), lambda: parts(least, most, spread))

    def alone(value: Any) -> Any:
        count = tf.cast(tf.size(values), tf.float64)
        return tf.expand_dims(tf.stack([value - 0.5, value + 0.5, count]), 0)

    def parts(least: Any, most: Any, spread: Any) -> Any:
        numbers = tf.cast(tf.floor((values - least) / (spread / buckets)), tf.int32)
        counts = tf.bincount(tf.minimum(numbers, buckets - 1), minlength=buckets, dtype=tf.float64)
        edges = tf.linspace(least, most, buckets + 1)
        return tf.stack([edges[:-1], edges[1:], counts], 1)

    return tf.cond(tf.equal(tf.size(values), 0), lambda: tf.zeros([0, 3], tf.float64), several)


def image(
    name: str, data: Any, step: Any = None, max_outputs: int = 3, description: str | None = None
) -> Any:
    """Up to `max_outputs` of the images [number, height, width, channels], uint8 or reals from 0 to 1."""
    with _summary_scope(name, "image_summary") as (tag, _):
        images = tf.convert_to_tensor(data)

        def encoded() -> Any:
            chosen = tf.image.convert_image_dtype(images, tf.uint8, saturate=True)[:max_outputs]
            files = tf.map_fn(tf.image.encode_png, chosen, dtype=tf.string, name="encode_each_image")
            height, width = tf.shape(images)[1], tf.shape(images)[2]
            return tf.concat([tf.as_string(tf.stack([width, height])), files], 0)

        return _written(tag, "images", encoded, step, description)


def audio(
    name: str,
    data: Any,
    sample_rate: Any,
    step: Any = None,
    max_outputs: int = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> Any:
    """Up to `max_outputs` of the sounds [number, frames, channels], reals from -1 to 1. ValueError for an
    encoding other than "wav"."""
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}")
    with _summary_scope(name, "audio_summary") as (tag, _):
        sounds = tf.convert_to_tensor(data)

        def encoded() -> Any:
            files = tf.map_fn(
                lambda sound: tf.audio.encode_wav(sound, sample_rate),
                sounds[:max_outputs],
                dtype=tf.string,
                name="encode_each_audio",
            )
            return tf.stack([files, tf.fill(tf.shape(files), "")], 1)

        return _written(tag, "audio", encoded, step, description, _WAV)


experimental = SimpleNamespace(get_step=_get_step, set_step=_set_step, summary_scope=_summary_scope)
summary = sys.modules[__name__]  # by which the table of names finds the module
