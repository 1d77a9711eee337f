"""`tf.distribute`, as programs of TensorFlow 1.14 and 1.15 call it."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.compat.module_paths import register
from flowstone.contrib.distribute import core
from flowstone.framework.names.alias_modules import alias_module

register()


def test_a_step_within_a_strategy() -> None:
    with tf.Graph().as_default(), core.MirroredStrategy(["/cpu:0"], core.NcclAllReduce(2)).scope():
        assert core.has_strategy() and core.in_cross_replica_context()
        weights = tf.get_variable("weights", [2], initializer=tf.ones_initializer())
        step = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(weights * weights))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(step)
            np.testing.assert_allclose(session.run(weights), [0, 0])


def test_a_strategy_for_all_that_follows() -> None:
    strategy = core.experimental.CentralStorageStrategy()
    core.experimental_set_strategy(strategy)
    try:
        assert core.get_strategy() is strategy
        with strategy.scope():
            pass
    finally:
        core.experimental_set_strategy(None)
    assert not core.has_strategy()
    with strategy.scope(), pytest.raises(RuntimeError, match="Must not be called inside"):
        core.experimental_set_strategy(strategy)


def test_one_worker_alone() -> None:
    ring = core.experimental.CollectiveCommunication.RING
    assert core.experimental.MultiWorkerMirroredStrategy(ring).num_replicas_in_sync == 1


def test_a_resolver_of_devices() -> None:
    assert core.MirroredStrategy().num_replicas_in_sync == 1
    strategy = core.MirroredStrategy(["/gpu:0", "/gpu:1"])
    assert strategy.extended.worker_devices == tuple(f"/replica:0/task:0/device:GPU:{i}" for i in range(2))
    central = core.experimental.CentralStorageStrategy(["/gpu:0", "/gpu:1"])
    assert central.extended.parameter_devices == ("/replica:0/task:0/device:CPU:0",)
    with pytest.raises(ValueError, match="Duplicates"):
        core.MirroredStrategy(["/cpu:0", "/device:CPU:0"])


def test_parameter_servers_of_a_resolver() -> None:
    spec = tf.train.ClusterSpec({"ps": ["a:1", "b:1"], "worker": ["c:1", "d:1"]})
    resolver = core.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=1)
    strategy = core.experimental.ParameterServerStrategy(resolver)
    assert strategy.extended.worker_devices == ("/job:worker/task:1/device:CPU:0",)
    assert core.experimental.ParameterServerStrategy().extended.parameter_devices == ("/device:CPU:0",)


def test_where_libraries_find_it() -> None:
    context = alias_module("tensorflow.python.distribute.distribution_strategy_context")
    assert context is not None and context.get_strategy is core.get_strategy
    assert core.get_replica_context().merge_call(lambda strategy, x: x + 1, args=(2,)) == 3
    reduced = alias_module("tensorflow.python.distribute.reduce_util")
    assert reduced is not None and reduced.ReduceOp.SUM is core.ReduceOp.SUM
