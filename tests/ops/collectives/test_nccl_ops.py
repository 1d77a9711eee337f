"""Sums and broadcasts over the devices of one process, on CPUs (TensorFlow has them on GPUs alone)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.collectives import nccl_ops

LIMIT = tf.RunOptions(timeout_in_ms=20_000)


def session() -> tf.Session:
    return tf.Session(config=tf.ConfigProto(device_count={"CPU": 3}))


def tensors(count: int = 3, dtype: Any = np.float32) -> list[Any]:
    found = []
    for i in range(count):
        with tf.device(f"/cpu:{i}"):
            found.append(tf.constant(np.array([1, 2, 5], dtype) + dtype(i)))
    return found


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("all_sum", [6, 9, 18]), ("all_prod", [6, 24, 210]), ("all_min", [1, 2, 5]), ("all_max", [3, 4, 7]),
    ],
)  # fmt: skip
def test_all_devices_have_the_result(function: str, expected: list[int], dtype: Any) -> None:
    with tf.Graph().as_default(), session() as running:
        results = getattr(nccl_ops, function)(tensors(dtype=dtype))
        assert [result.device for result in results] == [f"/device:CPU:{i}" for i in range(3)]
        for _ in range(2):
            for value in running.run(results, options=LIMIT):
                assert value.dtype == dtype
                assert value.tolist() == expected


def test_several_sums_on_one_device() -> None:
    """The members are told by their nodes, so that all may be on one device."""
    with tf.Graph().as_default(), tf.Session() as running:
        with tf.device("/cpu:0"):
            given = [tf.constant(1.0), tf.constant(2.0)]
        results = nccl_ops.all_sum(given) + nccl_ops.all_max(given)
        assert running.run(results, options=LIMIT) == [3.0, 3.0, 2.0, 2.0]


def test_shapes_that_differ() -> None:
    with tf.Graph().as_default(), session() as running:
        with tf.device("/cpu:0"):
            given = [tf.constant([1.0]), tf.constant([1.0, 2.0])]
        with pytest.raises(tf.errors.InvalidArgumentError, match="Shape mismatch"):
            running.run(nccl_ops.all_sum(given), options=LIMIT)


def test_a_sum_on_one_device() -> None:
    with tf.Graph().as_default(), session() as running:
        given = tensors()
        with tf.device("/cpu:1"):
            total = nccl_ops.reduce_sum(given)
        assert running.run(total).tolist() == [6, 9, 18]
        there, others = nccl_ops.reduce_sum(given, "/cpu:2")
        assert (there.device, others) == ("/device:CPU:2", [])
        assert running.run(there).tolist() == [6, 9, 18]
        with pytest.raises(ValueError, match="cpu:7"):
            nccl_ops.reduce_sum(given, "/cpu:7")


def test_a_broadcast() -> None:
    with tf.Graph().as_default(), session() as running:
        given = tensors(1)[0]
        assert running.run(nccl_ops.broadcast(given)).tolist() == [1, 2, 5]
        sent, received = nccl_ops.broadcast(given, ["/cpu:0", "/cpu:2"])
        assert [each.device for each in received] == ["/device:CPU:0", "/device:CPU:2"]
        values = running.run([*received, sent])[:2]
        assert [value.tolist() for value in values] == [[1, 2, 5]] * 2


def test_gradients_of_sums() -> None:
    """Each tensor is in every sum, so its gradient is the sum of theirs."""
    with tf.Graph().as_default(), session() as running:
        given = tensors(2)
        sums = nccl_ops.all_sum(given)
        weighed = [total * factor for total, factor in zip(sums, (2.0, 3.0))]
        gradients = tf.gradients(weighed, given)
        assert [x.op.type for x in gradients] == ["NcclAllReduce"] * 2
        for value in running.run(gradients, options=LIMIT):
            assert value.tolist() == [5, 5, 5]
        (gradient,) = tf.gradients(nccl_ops.reduce_sum(given) * 4.0, given[:1])
        assert running.run(gradient).tolist() == [4, 4, 4]
        (gradient,) = tf.gradients(nccl_ops.broadcast(given[0]) * 4.0, given[:1])
        assert running.run(gradient).tolist() == [4, 4, 4]


@pytest.mark.parametrize("function", ["all_prod", "all_min", "all_max"])
def test_only_sums_have_gradients(function: str) -> None:
    with tf.Graph().as_default():
        given = tensors(2)
        with pytest.raises(LookupError, match="no gradient"):
            tf.gradients(getattr(nccl_ops, function)(given), given)


@pytest.mark.parametrize("function", ["all_sum", "all_prod", "all_min", "all_max", "reduce_sum"])
def test_tensors_must_be_on_devices(function: str) -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="at least one tensor"):
            getattr(nccl_ops, function)([])
        with pytest.raises(ValueError, match="no device"):
            getattr(nccl_ops, function)([tf.constant(1.0)])
        with pytest.raises(ValueError, match="no device"):
            nccl_ops.broadcast(tf.constant(1.0))
