"""`tf.data.experimental.Optional`; the texts and structures are TensorFlow 1.15's."""

from __future__ import annotations

import pytest

import flowstone as tf

E = tf.data.experimental


def _optional() -> tuple[tf.data.Iterator, E.Optional]:
    dataset = tf.data.Dataset.range(3).map(lambda x: (x, {"a": x * 2}))
    iterator = tf.data.make_initializable_iterator(dataset)
    return iterator, E.get_next_as_optional(iterator)


def test_an_iterator_gives_optionals_and_ends_with_one_without_a_value() -> None:
    iterator, optional = _optional()
    assert isinstance(optional, E.Optional)
    assert optional.value_structure == (tf.TensorSpec([], tf.int64), {"a": tf.TensorSpec([], tf.int64)})
    has, value = optional.has_value(), optional.get_value()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert [session.run(has) for _ in range(4)] == [True, True, True, False]
        session.run(iterator.initializer)
        assert session.run([has, value]) == [True, (0, {"a": 0})]
        assert session.run(value) == (1, {"a": 2})
        assert session.run(value) == (2, {"a": 4})
        with pytest.raises(tf.errors.InvalidArgumentError, match="The given optional does not have a value"):
            session.run(value)


def test_a_loop_ends_where_there_is_no_value() -> None:
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(5))

    def body(total: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        optional = E.get_next_as_optional(iterator)
        has = optional.has_value()
        return tf.cond(has, lambda: total + optional.get_value(), lambda: total), has

    start = [tf.constant(0, tf.int64), tf.constant(True)]
    result = tf.while_loop(lambda total, has: has, body, start)
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run(result) == (10, False)


def test_optionals_of_values_and_of_structures() -> None:
    sparse = tf.SparseTensor([[1]], [5.0], [3])
    made = E.Optional.from_value({"x": tf.constant([1.0, 2.0]), "s": sparse})
    dataset = tf.data.Dataset.from_tensors({"x": 1.0, "s": sparse})
    none = E.Optional.none_from_structure(E.get_structure(dataset))
    assert none.value_structure == E.get_structure(dataset)
    with tf.Session() as session:
        found = session.run(made.get_value())
        assert found["x"].tolist() == [1, 2] and found["s"].values.tolist() == [5]
        assert session.run([made.has_value(), none.has_value()]) == [True, False]
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not have a value"):
            session.run(none.get_value())
