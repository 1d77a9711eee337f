"""Writers of event files that a step uses, and which of them is the default."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.framework.names.refusals import refused_function

__all__ = [
    "SummaryWriter",
    "create_db_writer",
    "create_file_writer",
    "default_writer",
    "eval_dir",
    "flush",
    "summary_writer_initializer_op",
]

_INITIALIZERS = "_SUMMARY_WRITER_V2"
_QUEUE, _FLUSH_MILLIS, _SUFFIX = 10, 2 * 60 * 1000, ".v2"
_defaults: list[Any] = [None]


class SummaryWriter:
    """A writer in the graph: `resource`, and `initializer`, which opens its file. Without a resource it
    writes nothing."""

    def __init__(self, resource: Any = None, initializer: Any = None) -> None:
        self._resource, self._initializer = resource, initializer

    @contextlib.contextmanager
    def as_default(self) -> Iterator[SummaryWriter]:
        """A context whose summaries go to this writer."""
        _defaults.append(self if self._resource is not None else _defaults[-1])
        try:
            yield self
        finally:
            _defaults.pop()

    def set_as_default(self) -> None:
        """Summaries of what follows go to this writer."""
        if self._resource is not None:
            _defaults[-1] = self

    def init(self) -> Any:
        """The operation that opens the file."""
        return tf.no_op() if self._resource is None else self._initializer

    def flush(self) -> Any:
        """An operation after which all that was written can be read."""
        return flush(self)

    def close(self) -> Any:
        """An operation that writes what is left and ends the file."""
        if self._resource is None:
            return tf.no_op()
        with tf.device("cpu:0"), tf.control_dependencies([self.flush()]):
            return F.CloseSummaryWriter.operation(self._resource)


def default_writer() -> SummaryWriter | None:
    """The writer of `SummaryWriter.as_default`."""
    writer: SummaryWriter | None = _defaults[-1]
    return writer


def create_file_writer(
    logdir: Any,
    max_queue: Any = None,
    flush_millis: Any = None,
    filename_suffix: Any = None,
    name: str | None = None,
) -> SummaryWriter:
    """A writer of an event file in the folder `logdir`; one that writes nothing if that is None.

    Args:
        logdir: a string scalar.
        max_queue: how many events may wait to be written, 10 if None.
        flush_millis: after how many milliseconds they can be read, two minutes' if None.
        filename_suffix: of the file's name, ".v2" if None.
        name: writers of one name are one in a session; the folder's if None.
    """
    if logdir is None:
        return SummaryWriter()
    path = tf.convert_to_tensor(logdir, tf.string)
    shared = name if name is not None else f"logdir:{logdir}"
    with tf.device("cpu:0"):
        writer = F.SummaryWriter(shared_name=shared)
        initializer = F.CreateSummaryFileWriter.operation(
            writer,
            path,
            tf.constant(_QUEUE if max_queue is None else max_queue, tf.int32),
            tf.constant(_FLUSH_MILLIS if flush_millis is None else flush_millis, tf.int32),
            tf.constant(_SUFFIX if filename_suffix is None else filename_suffix),
        )
    tf.add_to_collection(_INITIALIZERS, initializer)
    return SummaryWriter(writer, initializer)


create_db_writer = refused_function(
    "tf.contrib.summary.create_db_writer",
    "tf.contrib.summary.create_file_writer, whose files TensorBoard reads",
)


def flush(writer: Any = None, name: str | None = None) -> Any:
    """An operation after which all that `writer`, the default one if None, was given can be read."""
    found = default_writer() if writer is None else writer
    if found is None or found._resource is None:
        return tf.no_op()
    with tf.device("cpu:0"):
        return F.FlushSummaryWriter.operation(found._resource, name=name)


def summary_writer_initializer_op() -> list[Any]:
    """The operations that open the files of the graph's writers."""
    initializers: list[Any] = tf.get_collection(_INITIALIZERS)
    return initializers


def flush_writers() -> list[Any]:
    """Operations after which all that the graph's writers were given can be read."""
    writers = [initializer.inputs[0] for initializer in summary_writer_initializer_op()]
    return [flush(SummaryWriter(writer)) for writer in writers]


def eval_dir(model_dir: str, name: str | None = None) -> str:
    """The folder of an evaluation's summaries, ``eval`` or ``eval_NAME`` in the model's."""
    return os.path.join(model_dir, "eval" if not name else f"eval_{name}")
