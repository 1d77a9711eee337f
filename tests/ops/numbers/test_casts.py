"""Conversions that have no meaning."""

import pytest

import flowstone as tf


@pytest.mark.parametrize(("value", "target"), [(["1"], tf.int32), ([1.5], tf.string), ([True], tf.string)])
def test_texts_are_not_cast(value, target):
    with tf.Session() as session:
        number = tf.cast(value, target)
        with pytest.raises(tf.errors.UnimplementedError, match=r"Cast \w+ to \w+ is not supported"):
            session.run(number)
        assert session.run(tf.raw_ops.Cast(x=["a"], DstT=tf.string)) == [b"a"]
