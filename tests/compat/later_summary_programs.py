"""A program of `tf.compat.v2.summary`, and what its files hold, for JSON; runs over TensorFlow too.

`tests/golden/make_later_summary_goldens.py` asks TensorFlow 1.15.
"""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

__all__ = ["written"]


def _held(tf: Any, value: Any) -> list[Any]:
    array = tf.make_ndarray(value.tensor).ravel().tolist()
    return [str(each[:30]) if isinstance(each, bytes) else each for each in array]


def _events(tf: Any, folder: str) -> list[Any]:
    found: list[Any] = []
    for path in sorted(pathlib.Path(folder).glob("**/events*")):
        for event in tf.train.summary_iterator(str(path)):
            found += [
                [event.step, value.tag, value.metadata.plugin_data.plugin_name,
                 str(value.metadata.plugin_data.content), value.metadata.summary_description,
                 list(tf.make_ndarray(value.tensor).shape), _held(tf, value)]
                for value in event.summary.value
            ]  # fmt: skip
            found += ["graph"] * bool(event.graph_def)
    return sorted(found, key=str)


def _every_second(tf: Any, summary: Any, session: Any, folder: str) -> list[Any]:
    step = tf.train.get_or_create_global_step()
    writer = summary.create_file_writer(folder, flush_millis=1000)
    data = np.linspace(-1, 1, 12, dtype=np.float32)
    with writer.as_default(), summary.record_if(lambda: tf.equal(step % 2, 0)):
        with tf.name_scope("sc"):
            summary.scalar("loss", tf.cast(step, tf.float32), step=step)
        summary.histogram("h", tf.range(10.0), step=step)
        summary.histogram("few", data, step=step, buckets=3)
        summary.histogram("equal", tf.ones([2, 3]), step=step, description="ones")
        summary.histogram("none", tf.zeros([0]), step=step)
        summary.image("im", tf.zeros([5, 2, 3, 3]), step=step, max_outputs=2)
        summary.image("grey", tf.reshape(data, [1, 3, 4, 1]), step=step)
        summary.text("tx", tf.constant(["hello", "you"]), step=step, description="words")
        summary.audio("au", tf.zeros([1, 4, 1]), 8000, step=step)
    operations = tf.compat.v1.summary.all_v2_summary_ops()
    session.run([tf.global_variables_initializer(), writer.init()])
    found = []
    for _ in range(3):
        found.append([bool(each) for each in session.run(operations)])
        session.run(step.assign_add(1))
    session.run(writer.flush())
    return [found, [each.name for each in operations]]


def _default_writer(tf: Any, summary: Any, session: Any, folder: str) -> list[Any]:
    assert not session.run(summary.scalar("nobody", 1.0, step=1))
    writer = summary.create_file_writer(folder, max_queue=1, filename_suffix=".sfx")
    with writer.as_default():
        operations = [summary.scalar("x", 1, step=tf.constant(2, tf.int64))]
        operations.append(summary.scalar("x", 2.0, step=3, description="again"))
        operations.append(summary.write("tag", tf.constant([1, 2]), step=4))
        summary.experimental.set_step(5)
        operations.append(summary.scalar("y", 3.0))
        summary.experimental.set_step(None)
        with summary.record_if(False):
            operations.append(summary.scalar("off", 1.0, step=1))
        try:
            summary.scalar("no", 1.0)
        except ValueError as error:
            words = str(error)
        tf.compat.v1.summary.initialize(session=session, graph=tf.get_default_graph())
        found = [bool(each) for each in session.run(operations)]
        session.run(summary.flush())
    session.run(writer.close())
    suffix = [path.suffix for path in pathlib.Path(folder).glob("events*")]
    return [found, words, suffix, [each.name for each in operations]]


def written(tf: Any, summary: Any, folder: str) -> dict[str, Any]:
    """For each program its results, and what its files hold."""
    found = {}
    for program in (_every_second, _default_writer):
        with tf.Graph().as_default(), tf.Session() as session:
            own = f"{folder}/{program.__name__}"
            found[program.__name__] = [program(tf, summary, session, own), _events(tf, own)]
    return found
