"""Graphs that reduce tensors of several devices: every device gets the result, whatever the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib import all_reduce

TASK = "/job:localhost/replica:0/task:0"


def tensors(count: int, shape: tuple[int, ...], task: str = "") -> tuple[list[Any], list[Any]]:
    """Arrays, and as many constants, one a device."""
    chance = np.random.RandomState(count)
    arrays = [chance.randn(*shape).astype(np.float32) for _ in range(count)]
    found = []
    for i, array in enumerate(arrays):
        with tf.device(f"{task}/device:CPU:{i}"):
            found.append(tf.constant(array))
    return arrays, found


def half(x: Any) -> Any:
    return x * 0.5


def devices(*numbers: int, task: str = "") -> list[str]:
    return [f"{task}/device:CPU:{i}" for i in numbers]


WAYS: dict[str, Callable[[list[Any], Any], list[Any]]] = {
    "ring": lambda x, un: all_reduce.build_ring_all_reduce(x, len(x), 1, [0], tf.add, un),
    "ring of two parts": lambda x, un: all_reduce.build_ring_all_reduce(x, len(x), 2, [0], tf.add, un),
    "ring of pairs": lambda x, un: all_reduce.build_ring_all_reduce(x, len(x) // 2, 1, [1, 0], tf.add, un),
    "halves": lambda x, un: all_reduce.build_recursive_hd_all_reduce(x, tf.add, un),
    "shuffle": lambda x, un: all_reduce.build_shuffle_all_reduce(x, devices(0, 1, 2), tf.add_n, un),
    "nccl": lambda x, un: all_reduce.build_nccl_all_reduce(x, tf.add, un),
}


def check(count: int, shape: tuple[int, ...], build: Any, un_op: Any, task: str = "") -> None:
    with tf.Graph().as_default():
        arrays, given = tensors(count, shape, task)
        results = build(given, un_op)
        assert [result.device for result in results] == [x.device for x in given]
        assert [result.shape.as_list() for result in results] == [list(shape)] * count
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": count})) as session:
            values = session.run(results, options=tf.RunOptions(timeout_in_ms=20_000))
    expected = sum(arrays) * (0.5 if un_op else 1.0)
    for value in values:
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(value, values[0])


@pytest.mark.parametrize("un_op", [None, half], ids=["sum", "half of it"])
@pytest.mark.parametrize("shape", [(16,), (3, 5), (1,), (2, 3, 4)])
@pytest.mark.parametrize("way", WAYS)
def test_every_device_has_the_sum(way: str, shape: tuple[int, ...], un_op: Any) -> None:
    check(4, shape, WAYS[way], un_op)


HYBRIDS: dict[str, Callable[[list[Any], Any], list[Any]]] = {
    "nccl, ring": lambda x, un: all_reduce.build_nccl_then_ring(x, 1, tf.add, un),
    "nccl, halves": lambda x, un: all_reduce.build_nccl_then_recursive_hd(x, tf.add, un),
    "nccl, shuffle": lambda x, un: all_reduce.build_nccl_then_shuffle(
        x, devices(0, task=TASK), tf.add, tf.add_n, un
    ),
    "shuffle, ring": lambda x, un: all_reduce.build_shuffle_then_ring(
        x, devices(0, 1, task=TASK), 1, tf.add_n, tf.add, un
    ),
    "shuffle, shuffle": lambda x, un: all_reduce.build_shuffle_then_shuffle(
        x, devices(0, 1, task=TASK), devices(0, task=TASK), tf.add_n, un
    ),
}


@pytest.mark.parametrize("un_op", [None, half], ids=["sum", "half of it"])
@pytest.mark.parametrize("way", HYBRIDS)
def test_within_one_task(way: str, un_op: Any) -> None:
    check(4, (6, 2), HYBRIDS[way], un_op, TASK)


@pytest.mark.parametrize("way", HYBRIDS)
def test_within_tasks_and_among_them(way: str) -> None:
    """Two tasks with two devices each; the tasks are only names here, replaced by devices of this one."""
    place = {
        f"/job:worker/replica:0/task:{t}/device:CPU:{i}": f"/device:CPU:{2 * t + i}"
        for t in range(2)
        for i in range(2)
    }
    ways = {
        "nccl, shuffle": lambda x, un: all_reduce.build_nccl_then_shuffle(
            x, [*place][:1], tf.add, tf.add_n, un
        ),
        "shuffle, ring": lambda x, un: all_reduce.build_shuffle_then_ring(
            x, [*place], 1, tf.add_n, tf.add, un
        ),
        "shuffle, shuffle": lambda x, un: all_reduce.build_shuffle_then_shuffle(
            x, [*place], [*place][:2], tf.add_n, un
        ),
    }
    build = ways.get(way, HYBRIDS[way])
    with tf.Graph().as_default() as graph:
        given = []
        for i, device in enumerate(place):
            with tf.device(device):
                given.append(tf.constant(np.arange(6, dtype=np.float32) * (i + 1)))
        results = build(given, half)
        assert [result.device for result in results] == [*place]
        message = graph.as_graph_def()
    for node in message.node:
        node.device = place.get(node.device, node.device)
    with tf.Graph().as_default():
        fetches = tf.import_graph_def(message, return_elements=[x.name for x in results])
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 4})) as session:
            for value in session.run(fetches, options=tf.RunOptions(timeout_in_ms=20_000)):
                np.testing.assert_allclose(value, np.arange(6) * 5.0)


def test_other_merges() -> None:
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"CPU": 4})) as session:
        arrays, given = tensors(4, (7,))
        ring = all_reduce.build_ring_all_reduce(given, 4, 1, [0], tf.maximum)
        halves = all_reduce.build_recursive_hd_all_reduce(given, tf.multiply)
        maximum, product = session.run([ring[2], halves[1]])
    np.testing.assert_array_equal(maximum, np.max(arrays, axis=0))
    np.testing.assert_allclose(product, np.prod(arrays, axis=0), rtol=1e-5)


def test_mistakes() -> None:
    with tf.Graph().as_default():
        _, three = tensors(3, (4,))
        with pytest.raises(ValueError, match="power of 2, not 3"):
            all_reduce.build_recursive_hd_all_reduce(three, tf.add)
        with pytest.raises(ValueError, match="length 2 or longer"):
            all_reduce.build_ring_all_reduce(three[:1], 1, 1, [0], tf.add)
        with pytest.raises(IndexError, match="do not have 3 tensors"):
            all_reduce.build_ring_all_reduce(three, 2, 1, [0], tf.add)
        with pytest.raises(ValueError, match="cannot be empty"):
            all_reduce.build_shuffle_all_reduce(three, [], tf.add_n)
        with pytest.raises(ValueError, match="cannot be empty"):
            all_reduce.build_shuffle_all_reduce([], devices(0), tf.add_n)
        with pytest.raises(ValueError, match=r"it is tf\.add"):
            all_reduce.build_nccl_all_reduce(three, tf.multiply)
        with pytest.raises(ValueError, match="names no task"):
            all_reduce.build_nccl_then_ring(three, 1, tf.add)
        with pytest.raises(ValueError, match="known statically"):
            all_reduce.build_shuffle_all_reduce([tf.placeholder(tf.float32)], devices(0), tf.add_n)
        with pytest.raises(ValueError, match="has the shape"):
            all_reduce.build_shuffle_all_reduce([three[0], tf.zeros([2])], devices(0), tf.add_n)
