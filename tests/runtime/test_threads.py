"""Intra-op threads: decided from sizes, changed for the calling thread alone."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.rewriting.partial_execution import prune
from flowstone.runtime.threads import limit, wants_one_thread


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


@pytest.mark.parametrize(
    ("rows", "inner", "columns", "expected"),
    [
        (2, 2, 2, False),
        (100, 784, 5, True),
        (100, 784, 10, False),
        (128, 784, 256, False),
        (None, 784, 10, False),
    ],
)
def test_only_steps_that_would_wake_a_team_in_vain_are_limited(rows, inner, columns, expected):
    x = tf.placeholder(tf.float32, [rows, inner])
    product = tf.matmul(x, tf.zeros([inner, columns]))
    assert wants_one_thread(prune([product], [], [x])) is expected


@pytest.mark.skipif(limit() is None, reason="torch's OpenMP runtime is not to be found on this machine")
def test_the_number_of_threads_is_put_back():
    seen, afterwards = [], []
    x = tf.placeholder(tf.float32, [100, 300])
    product = tf.matmul(x, tf.zeros([300, 10]))
    watched = tf.py_func(lambda v: (seen.append(torch.get_num_threads()), v)[1], [product], tf.float32)
    failing = tf.py_func(lambda v: seen.append(torch.get_num_threads()) or 1 // 0, [product], tf.float32)
    for output in (watched, failing):
        output.set_shape([100, 10])
    value = np.zeros((100, 300), np.float32)

    def work() -> None:  # in a thread of its own, so that no other test sees the number that it sets
        torch.get_num_threads()  # torch sets a thread's number when the thread first asks
        limit()(3)
        with tf.Session(graph=product.graph) as session:
            session.run(watched, {x: value})
            afterwards.append(torch.get_num_threads())
            with pytest.raises(tf.errors.OpError):
                session.run(failing, {x: value})
            afterwards.append(torch.get_num_threads())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [1, 1]
    assert afterwards == [3, 3]
