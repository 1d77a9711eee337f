"""Iterators whose threads stayed in the process that a child was forked from."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def in_child(work: Callable[[], Any]) -> str:
    """What `work` returns, or the trace of what it raises, in a child of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(work())
        except BaseException:
            text = traceback.format_exc()
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as text:
        found = text.read()
    os.waitpid(child, 0)
    return found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no processes that are forked")
@pytest.mark.parametrize("threads", ["prefetch", "map"])
def test_an_iterator_of_a_parent_fails_and_can_be_begun_anew(threads: str) -> None:
    dataset = tf.data.Dataset.range(100)
    dataset = dataset.prefetch(2) if threads == "prefetch" else dataset.map(lambda x: x, num_parallel_calls=2)
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()

    with tf.Session() as session:

        def until_it_fails() -> str:
            try:
                for _ in range(20):
                    session.run(element)
            except tf.errors.FailedPreconditionError as error:
                session.run(iterator.initializer)
                return f"{error.op.name} {session.run(element)}"
            return "it did not fail"

        session.run(iterator.initializer)
        assert session.run(element) == 0
        assert in_child(until_it_fails) == "IteratorGetNext 0"
        session.run(element)
