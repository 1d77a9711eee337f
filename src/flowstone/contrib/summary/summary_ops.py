"""Summaries that are written when they are recorded (`recording`), to the default writer.

Each function gives a bool scalar, whether it has written, which joins the graph's `all_summary_ops`; without
a default writer an operation that does nothing. `family` comes before the tag; `step` is the global step if
None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.summary.recording import current, recorded_if
from flowstone.contrib.summary.summary_writers import default_writer, summary_writer_initializer_op
from flowstone.framework.declarations.operation import F
from flowstone.ops.summaries.summaries import summary_scope

__all__ = [
    "SUMMARIES",
    "all_summary_ops",
    "audio",
    "generic",
    "graph",
    "histogram",
    "image",
    "import_event",
    "initialize",
    "scalar",
]

SUMMARIES = "_SUMMARY_V2"
_RED = (255, 0, 0, 255)


def _step(step: Any) -> tf.Tensor:
    number = tf.train.get_or_create_global_step() if step is None else step
    as_long: tf.Tensor = tf.cast(tf.convert_to_tensor(number), tf.int64)
    return as_long


def _recorded(name: str, family: Any, step: Any, tensor: Any, summary: Callable[[str, Any], Any]) -> Any:
    """Writes ``summary(tag, tensor)`` when summaries are recorded."""
    writer, condition = default_writer(), current()
    if writer is None:
        return tf.no_op()
    value = tf.convert_to_tensor(tensor)

    number = _step(step)  # outside of the branch
    with summary_scope(name, family, default_name="summary") as (tag, scope), tf.device("cpu:0"):

        def write() -> tf.Tensor:
            with tf.name_scope(scope):
                message = summary(tag, tf.identity(value))
                operation = F.WriteRawProtoSummary.operation(writer._resource, number, message, name=scope)
                with tf.control_dependencies([operation]):
                    return tf.constant(True)

        written = recorded_if(condition, write)
    tf.add_to_collection(SUMMARIES, written)
    return written


def scalar(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """A real number."""
    return _recorded(name, family, step, tensor, F.ScalarSummary)


def histogram(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """The distribution of real values of any shape."""
    return _recorded(name, family, step, tensor, F.HistogramSummary)


def image(
    name: str,
    tensor: Any,
    bad_color: Any = None,
    max_images: int = 3,
    family: str | None = None,
    step: Any = None,
) -> Any:
    """Up to `max_images` images, see `tf.summary.image`. `bad_color`: four uint8 values, for pixels that are
    not finite; red if None."""
    color = np.array(_RED if bad_color is None else bad_color, np.uint8)
    return _recorded(name, family, step, tensor, lambda tag, value: F.ImageSummary(
        tag, value, max_images=max_images, bad_color=color))  # fmt: skip


def audio(
    name: str, tensor: Any, sample_rate: Any, max_outputs: int, family: str | None = None, step: Any = None
) -> Any:
    """Up to `max_outputs` sounds, see `tf.summary.audio`."""
    return _recorded(name, family, step, tensor, lambda tag, value: F.AudioSummaryV2(
        tag, value, tf.cast(sample_rate, tf.float32), max_outputs=max_outputs))  # fmt: skip


def generic(name: str, tensor: Any, metadata: Any = None, family: str | None = None, step: Any = None) -> Any:
    """A tensor of any type. `metadata`: a SummaryMetadata, or the bytes of one."""
    about = metadata.SerializeToString() if hasattr(metadata, "SerializeToString") else metadata or b""
    return _recorded(name, family, step, tensor, lambda tag, value: F.TensorSummaryV2(tag, value, about))


def graph(param: Any, step: Any = None, name: str | None = None) -> Any:
    """The operation that writes a graph: a GraphDef, or a string scalar that is one serialised. TypeError for
    a Graph, which has more than a step can write, and for anything else."""
    writer = default_writer()
    if isinstance(param, tf.Graph) or not isinstance(param, (tf.Tensor, tf.GraphDef)):
        raise TypeError(f"graph() needs a tf.GraphDef or a tf.Tensor of one, not a {type(param).__name__}")
    if writer is None:
        return tf.no_op()
    tensor = param if isinstance(param, tf.Tensor) else tf.constant(param.SerializeToString())
    with tf.device("cpu:0"):
        return F.WriteGraphSummary.operation(writer._resource, _step(step), tensor, name=name)


def import_event(tensor: Any, name: str | None = None) -> Any:
    """The operation that writes an event as it is: a string scalar, a serialised Event."""
    writer = default_writer()
    if writer is None:
        return tf.no_op()
    return F.ImportEvent.operation(writer._resource, tf.convert_to_tensor(tensor, tf.string), name=name)


def all_summary_ops() -> list[Any]:
    """What the summaries of the graph return, to be run with a step."""
    found: list[Any] = tf.get_collection(SUMMARIES)
    return found


def initialize(graph: Any = None, session: Any = None) -> None:
    """Opens the files of the graph's writers; `graph` (a Graph or GraphDef), if any, is written for step 0.

    `session`: the default session if None. RuntimeError without a default writer, ValueError without a
    session.
    """
    if default_writer() is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found")
    session = tf.get_default_session() if session is None else session
    if session is None:
        raise ValueError("session must be passed if no default session exists")
    session.run(summary_writer_initializer_op())
    if graph is not None:
        definition = graph.as_graph_def(add_shapes=True) if isinstance(graph, tf.Graph) else graph
        session.run(_graph(definition, step=0))


_graph = graph
