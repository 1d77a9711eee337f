"""`MultiDeviceIterator`: elements go to the devices in turn, as TensorFlow 1.15.5's do."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.data.multi_device_iterator import MultiDeviceIterator
from flowstone.framework import errors


def test_elements_go_to_devices_in_turn() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        dataset = tf.data.Dataset.range(7).map(lambda x: (x, x * 2))
        iterator = MultiDeviceIterator(dataset, ["/cpu:0", "/cpu:1"])
        both, second = iterator.get_next(), iterator.get_next("/cpu:1")
        with pytest.raises(ValueError, match="not in list"):
            iterator.get_next("/cpu:5")
        for _ in range(2):
            session.run(iterator.initializer)
            assert session.run(both) == [(0, 0), (1, 2)]
            assert session.run(second) == (3, 6)
            assert session.run(second) == (5, 10)
            assert session.run(both[0]) == (2, 4)
            assert session.run(both[0][0]) == 4
            assert session.run(both[0][1]) == 12
            with pytest.raises(errors.OutOfRangeError):
                session.run(second)
        assert iterator.output_types == (tf.int64, tf.int64)


def test_each_element_of_a_shuffled_dataset_comes_once() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = MultiDeviceIterator(tf.data.Dataset.range(12).shuffle(12), ["/cpu:0", "/gpu:0", "/gpu:1"])
        each = iterator.get_next()
        session.run(iterator.initializer)
        found = [value for _ in range(4) for value in session.run(each)]
    assert sorted(found) == list(range(12))


def test_an_iterator_without_a_pass_says_so() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        each = MultiDeviceIterator(tf.data.Dataset.range(2), ["/cpu:0"]).get_next()
        with pytest.raises(errors.FailedPreconditionError):
            session.run(each)
