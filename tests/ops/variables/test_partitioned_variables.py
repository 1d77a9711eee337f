"""Partitioned variables and partitioners, as TensorFlow's."""

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

SHAPE = tf.TensorShape([10, 4])


def test_partitioners() -> None:
    assert tf.fixed_size_partitioner(3)(shape=SHAPE, dtype=tf.float32) == [3, 1]
    assert tf.fixed_size_partitioner(20)(shape=SHAPE, dtype=tf.float32) == [10, 1]
    assert tf.variable_axis_size_partitioner(64)(SHAPE, tf.float32) == [3, 1]
    assert tf.variable_axis_size_partitioner(64, 1)(SHAPE, tf.float64) == [1, 4]
    assert tf.variable_axis_size_partitioner(64, max_shards=2)(SHAPE, tf.float32) == [2, 1]
    assert tf.variable_axis_size_partitioner(64)(SHAPE, tf.string) == [10, 1]
    assert tf.min_max_variable_partitioner(4, min_slice_size=32)(SHAPE, tf.float32) == [4, 1]
    assert tf.min_max_variable_partitioner(4)(SHAPE, tf.float32) == [1, 1]
    with pytest.raises(ValueError, match="must be positive"):
        tf.variable_axis_size_partitioner(0)


def test_parts_know_their_place_and_concatenate(graph: tf.Graph) -> None:
    whole = tf.get_variable(
        "p", [5, 2], partitioner=tf.fixed_size_partitioner(2), initializer=tf.ones_initializer()
    )
    assert [part.name for part in whole] == ["p/part_0:0", "p/part_1:0"]
    assert [part._get_save_slice_info().spec for part in whole] == ["5 2 0,3:0,2", "5 2 3,2:0,2"]
    assert (whole.name, whole.shape.as_list(), len(whole)) == ("p", [5, 2], 2)
    tensor = tf.convert_to_tensor(whole)
    assert tensor.name == "p:0" and tensor.op.inputs[0].op.name == "p/ConcatPartitions/concat"
    update = whole.assign_add(np.arange(10, dtype=np.float32).reshape(5, 2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)
        np.testing.assert_array_equal(session.run(whole + 1.0), np.arange(10).reshape(5, 2) + 2)


def test_initial_values_are_cut() -> None:
    parts = tf.create_partitioned_variables([3, 2], [2, 1], tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    assert [part.name for part in parts] == ["PartitionedVariable/part_0:0", "PartitionedVariable/part_1:0"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert [session.run(part).tolist() for part in parts] == [[[1, 2], [3, 4]], [[5, 6]]]


def test_initialisers_are_told_of_the_whole() -> None:
    seen = []

    def initializer(shape: list[int], dtype: object = None, partition_info: object = None) -> tf.Tensor:
        seen.append((shape, partition_info.full_shape, partition_info.var_offset))  # type: ignore[attr-defined]
        return tf.ones(shape, dtype)

    tf.get_variable("p", [3], partitioner=tf.fixed_size_partitioner(2), initializer=initializer)
    assert seen == [([2], [3], [0]), ([1], [3], [2])]


def test_sharing() -> None:
    whole = tf.get_variable("y", [5], partitioner=tf.fixed_size_partitioner(1))
    with pytest.raises(ValueError, match="Partitioned variable with name y already exists"):
        tf.get_variable("y", [5], partitioner=tf.fixed_size_partitioner(1))
    with pytest.raises(ValueError, match="No partitioner was provided"):
        tf.get_variable("y", [5])
    with tf.variable_scope("", reuse=True):
        assert tf.get_variable("y", [5]) is whole
        with pytest.raises(ValueError, match=r"specified shape \(6,\) and found shape \(5,\)"):
            tf.get_variable("y", [6], partitioner=tf.fixed_size_partitioner(1))
        with pytest.raises(ValueError, match=r"specified partitions \[2\] and found partitions \[1\]"):
            tf.get_variable("y", [5], partitioner=tf.fixed_size_partitioner(2))
        with pytest.raises(ValueError, match="PartitionedVariable z does not exist"):
            tf.get_variable("z", [5], partitioner=tf.fixed_size_partitioner(2))


def test_errors() -> None:
    with pytest.raises(ValueError, match="does not match the Variable's rank"):
        tf.get_variable("x", [10], partitioner=lambda shape, dtype: [2, 2])
    with pytest.raises(ValueError, match="must return a sequence, but saw: 3"):
        tf.get_variable("x", [10], partitioner=lambda **_: 3)
    with pytest.raises(ValueError, match="zero partitions"):
        tf.get_variable("x", [10], partitioner=lambda **_: [0])
    with pytest.raises(ValueError, match="must be fully defined, but instead was <unknown>"):
        tf.get_variable("x", partitioner=lambda **_: [1])
    with pytest.raises(ValueError, match=r"Can only slice a variable along one dimension: shape: \(10, 4\)"):
        tf.create_partitioned_variables([10, 4], [3, 2], tf.ones_initializer())
    with pytest.raises(ValueError, match="must have the length"):
        tf.create_partitioned_variables([10, 4], [1], tf.ones_initializer())
