"""`tf.contrib.tpu` on this machine: one shard, Estimators as they are."""

from __future__ import annotations

import pytest

import flowstone as tf


def test_one_shard() -> None:
    tpu = tf.contrib.tpu
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.Variable([1.0, 2.0])
        optimizer = tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(0.1, 0.9))
        train = optimizer.minimize(tf.reduce_sum(x * x))
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(x).tolist() == pytest.approx([0.8, 1.6])
        assert optimizer.get_slot_names() == ["momentum"] and optimizer.get_slot(x, "momentum") is not None
        assert session.run(tpu.cross_replica_sum(tf.constant(3.0))) == 3.0
        session.run([tpu.initialize_system(), tpu.shutdown_system()])
    with pytest.raises(ValueError, match="Unsupported reduction"):
        tpu.CrossShardOptimizer(tf.train.AdamOptimizer(), "none")
    with pytest.raises(TypeError, match=r"only works with tf\.train\.Optimizer"):
        tpu.CrossShardOptimizer(3)


def test_names_of_estimators_and_refusals() -> None:
    tpu = tf.contrib.tpu
    assert tpu.TPUEstimator is tf.estimator.tpu.TPUEstimator and tpu.RunConfig is tf.estimator.tpu.RunConfig
    for name in ("rewrite", "batch_parallel", "shard", "replicate", "keras_to_tpu_model"):
        with pytest.raises(NotImplementedError, match="on CPUs and GPUs"):
            getattr(tpu, name)(lambda: None)


def test_compiled_computations_and_nests() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        (doubled,) = tf.xla.experimental.compile(lambda x: [x * 2], [tf.constant(3)])
        with tf.xla.experimental.jit_scope():
            assert session.run(doubled) == 6
    assert tf.nest.map_structure(lambda a: a + 1, {"a": [1, (2,)]}) == {"a": [2, (3,)]}
    assert tf.nest.flatten({"b": 1, "a": [2]}) == [2, 1] and tf.nest.is_nested([1])
