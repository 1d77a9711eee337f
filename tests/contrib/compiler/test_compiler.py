"""`tf.contrib.compiler`: functions run as they are. The forms of results are those of TensorFlow 1.15.5."""

from __future__ import annotations

import pytest

import flowstone as tf

xla = tf.contrib.compiler.xla


def test_compiled_functions_are_the_functions() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(xla.compile(lambda x, y: x + y, [1, 2])) == [3]
        assert session.run(xla.compile(lambda: (tf.constant(1), tf.no_op()))) == [1]
        assert session.run(xla.compile(lambda: {"a": tf.constant(1)})) == {"a": 1}
        assert xla.compile(tf.no_op).type == "NoOp"
        assert xla.compile(lambda: None).type == "NoOp"
        with pytest.raises(TypeError):
            xla.compile(lambda x: x, 3)


def test_scopes_and_model_functions() -> None:
    with tf.Graph().as_default(), tf.contrib.compiler.jit.experimental_jit_scope():
        assert tf.constant(1, name="c").op.name == "c"
    assert xla.estimator_model_fn(max) is max
    assert xla.estimator_model_fn()(max) is max
