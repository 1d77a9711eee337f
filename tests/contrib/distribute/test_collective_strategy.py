"""`CollectiveAllReduceStrategy`: workers with graphs and sessions of their own train as one process does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from clusters import cluster_of
from flowstone.framework.names.refusals import NotInGraphModeError

distribute = tf.contrib.distribute


def on_workers(count: int, program: Callable[[Any, Any, int], Any]) -> list[Any]:
    """What ``program(strategy, session, rank)`` gives on each worker, all at the same time."""
    cluster, results = cluster_of(worker=count), [None] * count
    servers = [tf.train.Server(cluster, "worker", i) for i in range(count)]

    def run(rank: int) -> None:
        try:
            strategy = distribute.CollectiveAllReduceStrategy()
            config = tf.ConfigProto(operation_timeout_in_ms=20_000)
            strategy.configure(config, cluster, "worker", rank)
            with tf.Graph().as_default(), tf.Session(servers[rank].target, config=config) as session:
                results[rank] = program(strategy, session, rank)
        except BaseException as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for server in servers:
        server._server.stop()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


X = np.random.RandomState(0).randn(8, 3).astype(np.float32)
Y = X @ np.array([[1.0], [-2.0], [0.5]], np.float32)


def trained(strategy: Any, session: Any, rank: int, optimizer: Any) -> Any:
    """The weights after steps on this worker's part of the examples."""
    count = strategy.num_replicas_in_sync
    part = slice(rank * 8 // count, (rank + 1) * 8 // count)

    def model() -> Any:
        w = tf.get_variable("w", [3, 1], initializer=tf.random_normal_initializer(seed=rank))
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(X[part]), w) - Y[part])) / count
        return w, optimizer().minimize(loss)

    with strategy.scope():
        w, train = strategy.experimental_run_v2(model)
    session.run(tf.global_variables_initializer())
    for _ in range(10):
        session.run(train)
    return session.run(w)


@pytest.mark.parametrize(
    "optimizer",
    [lambda: tf.train.GradientDescentOptimizer(0.1), lambda: tf.train.AdamOptimizer(0.1)],
    ids=["gradient descent", "Adam"],
)
def test_workers_train_as_one_process(optimizer: Any) -> None:
    """The workers' own initial values differ; they begin with the first one's."""
    with tf.Graph().as_default(), tf.Session() as session:
        one = trained(distribute.OneDeviceStrategy("/cpu:0"), session, 0, optimizer)
    first, second = on_workers(2, lambda *arguments: trained(*arguments, optimizer))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, one, rtol=1e-5, atol=1e-6)


def test_values_are_reduced_over_the_workers() -> None:
    def program(strategy: Any, session: Any, rank: int) -> Any:
        def replica() -> Any:
            context = distribute.get_replica_context()
            assert (context.replica_id_in_sync_group, context.num_replicas_in_sync) == (rank, 3)
            x = tf.constant([1.0, 2.0]) * (rank + 1)
            return context.all_reduce("MEAN", {"x": x, "y": x * 2})

        found = strategy.experimental_run_v2(replica)
        with strategy.scope():
            total = strategy.reduce("SUM", tf.constant([[1.0, rank], [2.0, rank]]), axis=0)
        return session.run([found, total])

    for found, total in on_workers(3, program):
        assert found["x"].tolist() == [2.0, 4.0]
        assert found["y"].tolist() == [4.0, 8.0]
        assert total.tolist() == [9.0, 6.0]


def test_sparse_gradients_are_added_up() -> None:
    def program(strategy: Any, session: Any, rank: int) -> Any:
        with strategy.scope():
            w = tf.get_variable("w", initializer=np.zeros([4, 2], np.float32))
            loss = tf.reduce_sum(tf.nn.embedding_lookup(w, [rank, 3]))
            train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
        session.run(tf.global_variables_initializer())
        session.run(train)
        return session.run(w)

    for weights in on_workers(2, program):
        assert weights[:, 0].tolist() == [-1.0, -1.0, 0.0, -2.0]


def test_each_worker_has_its_inputs() -> None:
    def program(strategy: Any, session: Any, rank: int) -> Any:
        def inputs(context: Any) -> Any:
            return tf.data.Dataset.range(6).shard(context.num_input_pipelines, context.input_pipeline_id)

        with strategy.scope():
            iterator = strategy.make_input_fn_iterator(inputs)
            following = iterator.get_next()
            with pytest.raises(NotInGraphModeError, match=r"Dataset\.shard"):
                strategy.make_dataset_iterator(tf.data.Dataset.range(6))
        session.run(iterator.initialize())
        return [int(session.run(following)) for _ in range(3)]

    assert on_workers(2, program) == [[0, 2, 4], [1, 3, 5]]


def test_local_variables_are_each_workers_own() -> None:
    def program(strategy: Any, session: Any, rank: int) -> Any:
        with strategy.scope():
            own = tf.get_variable("own", initializer=float(rank), collections=[tf.GraphKeys.LOCAL_VARIABLES])
        session.run(tf.local_variables_initializer())
        return session.run(own)

    assert on_workers(2, program) == [0.0, 1.0]


def test_without_a_cluster_it_is_one_replica() -> None:
    weights = []
    for strategy in (distribute.CollectiveAllReduceStrategy(), distribute.OneDeviceStrategy("/cpu:0")):
        assert strategy.num_replicas_in_sync == 1
        with tf.Graph().as_default(), tf.Session() as session:
            weights.append(trained(strategy, session, 0, lambda: tf.train.GradientDescentOptimizer(0.1)))
    np.testing.assert_array_equal(*weights)


def test_the_configuration_of_sessions() -> None:
    strategy = distribute.CollectiveAllReduceStrategy()
    config = tf.ConfigProto(device_filters=["/job:ps"], allow_soft_placement=True)
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}
    strategy.configure(config, cluster, "worker", 1)
    assert config.experimental.collective_group_leader == "/job:chief/task:0"
    assert list(config.device_filters) == ["/job:worker/task:1"]
    assert config.allow_soft_placement
    assert strategy.num_replicas_in_sync == 3
    assert not strategy.extended.should_checkpoint
    assert strategy.extended.worker_devices == ("/job:worker/task:1/device:CPU:0",)
    with pytest.raises(ValueError, match="ps is none of the jobs that train"):
        strategy.configure(None, cluster, "ps", 0)
