"""Synchronous training: several workers in threads make the updates that one worker with all data makes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.training.optimizers.sync_replicas import SyncReplicasOptimizer
from stepping import until

pytestmark = pytest.mark.usefixtures("graph")

RATE = 0.1


class Workers:
    """A linear model, and the training operations of `count` workers, each with its own optimiser."""

    def __init__(self, count: int, aggregate: int, use_resource: bool = False, **options: Any) -> None:
        self.global_step = tf.train.get_or_create_global_step()
        self.w = tf.get_variable("w", initializer=np.float32([1.0, -2.0]), use_resource=use_resource)
        self.table = tf.get_variable(
            "table", initializer=np.ones((4, 2), np.float32), use_resource=use_resource
        )
        self.x = [tf.placeholder(tf.float32, [2]) for _ in range(count)]
        self.rows = [tf.placeholder(tf.int32, [None]) for _ in range(count)]
        self.optimizers, self.train = [], []
        for x, rows in zip(self.x, self.rows):
            loss = tf.reduce_sum(tf.square(self.w - x)) + tf.reduce_sum(tf.gather(self.table, rows) * 3.0)
            inner = tf.train.GradientDescentOptimizer(RATE)
            optimizer = SyncReplicasOptimizer(inner, aggregate, count, **options)
            self.optimizers.append(optimizer)
            self.train.append(optimizer.minimize(loss, global_step=self.global_step))
        self.chief = self.optimizers[0]
        self.hook = self.chief.make_session_run_hook(True, num_tokens=0)  # steps end with their update
        self.hook.begin()

    def start(self, session: Any) -> tf.train.Coordinator:
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        self.hook.after_create_session(session, coordinator)
        for optimizer in self.optimizers[1:]:
            session.run(optimizer.local_step_init_op)
        return coordinator

    def run(self, session: Any, data: np.ndarray[Any, Any], rows: Any, workers: Any) -> None:
        """One step of each of these workers, at the same time."""
        failures: list[Exception] = []

        def step(i: int) -> None:
            try:
                session.run(self.train[i], {self.x[i]: data[i], self.rows[i]: rows[i]})
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=step, args=(i,), daemon=True) for i in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads) and failures == []


def end(session: Any, workers: Workers, coordinator: tf.train.Coordinator) -> None:
    coordinator.request_stop()
    session.run(workers.chief.get_chief_queue_runner().cancel_op)
    session.close()


@pytest.mark.parametrize("use_resource", [False, True])
def test_two_workers_equal_one_with_all_data(use_resource: bool) -> None:
    workers = Workers(2, 2, use_resource)
    generator = np.random.default_rng(0)
    w, table = np.array([1.0, -2.0]), np.ones((4, 2))
    session = tf.Session()
    coordinator = workers.start(session)
    for n in range(5):
        data = generator.normal(size=(2, 2)).astype(np.float32)
        rows = [[0, 1], [1, 1]]
        workers.run(session, data, rows, (0, 1))
        w = w - RATE * (2.0 * (w - data)).mean(0)
        # of row 0 one worker has a slice, of row 1 both: 3, and 3 and 6
        table[0] -= RATE * 3.0
        table[1] -= RATE * 4.5
        assert session.run(workers.global_step) == n + 1
    np.testing.assert_allclose(session.run(workers.w), w, rtol=1e-5)
    np.testing.assert_allclose(session.run(workers.table), table, rtol=1e-5)
    end(session, workers, coordinator)


def test_late_gradients_are_dropped() -> None:
    workers = Workers(3, 2)
    session = tf.Session()
    coordinator = workers.start(session)
    data, rows = np.zeros((3, 2), np.float32), [[0], [0], [0]]
    workers.run(session, data, rows, (0, 1))
    assert session.run(workers.global_step) == 1
    accumulated = workers.chief._accumulators[0][0].num_accumulated()
    workers.run(session, data, rows, (2,))  # computed from step 0
    assert session.run(accumulated) == 0
    np.testing.assert_allclose(session.run(workers.w), [0.8, -1.6], rtol=1e-6)
    workers.run(session, data, rows, (0, 2))  # it got a token, and is up to date
    assert session.run(workers.global_step) == 2
    np.testing.assert_allclose(session.run(workers.w), [0.64, -1.28], rtol=1e-6)
    end(session, workers, coordinator)


def test_averages_follow_updates() -> None:
    averages = tf.train.ExponentialMovingAverage(0.5)
    w = tf.get_variable("only", initializer=np.float32(4.0))
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(1.0), 1, variable_averages=averages, variables_to_average=[w]
    )
    train = optimizer.apply_gradients([(tf.constant(1.0), w)], step)
    hook = optimizer.make_session_run_hook(True, num_tokens=0)
    hook.begin()
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    coordinator = tf.train.Coordinator()
    hook.after_create_session(session, coordinator)
    for _ in range(2):
        session.run(train)
    assert session.run([w, step]) == [2.0, 2]
    until(lambda: session.run(averages.average(w)) == 2.75)  # of 4, 3 and 2; tokens come before it
    coordinator.request_stop()
    session.close()


def test_names_and_what_there_is(graph: Any) -> None:
    step = tf.train.get_or_create_global_step()
    v = tf.Variable([1.0, 2.0], name="v")
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), 2)
    train = optimizer.apply_gradients([(tf.constant([1.0, 1.0]), v)], step)
    assert optimizer.get_slot_names() == ["momentum"] and optimizer.get_slot(v, "momentum") is not None
    assert [x.op.name for x in tf.local_variables()] == ["sync_rep_local_step"]
    names = {o.name for o in graph.get_operations()}
    assert names >= {
        "sync_replicas/conditional_accumulator",
        "sync_replicas/ResourceAccumulatorApplyGradient",
        "sync_replicas/ResourceAccumulatorTakeGradient",
        "Momentum/update_v/ApplyMomentum",
        "Momentum",
        "sync_token_q",
        "sync_token_q_Dequeue",
        "sync_token_q_EnqueueMany",
        "dummy_queue_Close",
        "sync_replicas/SetGlobalStep",
        "sync_replicas/group_deps",
    }
    assert (train.op.type, train.dtype.base_dtype) == ("Assign", tf.int64)
    accumulator = graph.get_operation_by_name("sync_replicas/conditional_accumulator")
    assert accumulator.get_attr("shared_name") == b"v:0/grad_accum"
    given = graph.get_operation_by_name("sync_replicas/ResourceAccumulatorApplyGradient")
    assert given in graph.get_operation_by_name("sync_token_q_Dequeue").control_inputs
    runner = optimizer.get_chief_queue_runner()
    assert [o.name for o in runner.enqueue_ops] == ["sync_token_q_EnqueueMany"]
    assert optimizer.get_init_tokens_op(0).name == "no_init_tokens"
    assert optimizer.ready_for_local_init_op.dtype == tf.string


def test_mistakes() -> None:
    step = tf.train.get_or_create_global_step()
    v = tf.Variable([1.0, 2.0])
    pair = (tf.constant([1.0, 1.0]), v)

    def make(**options: Any) -> Any:
        return SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 3, **options)

    for words, mistake in (
        ("Should be called after apply_gradients", lambda: make().get_chief_queue_runner()),
        ("should be called after apply_gradients", lambda: make().get_init_tokens_op()),
        ("Must supply at least one variable", lambda: make().apply_gradients([], step)),
        ("Global step is required to check staleness", lambda: make().apply_gradients([pair])),
        ("Unknown grad type!", lambda: make().apply_gradients([("x", v)], step)),
        ("No gradients provided for any variable", lambda: make().apply_gradients([(None, v)], step)),
        ("should be called before using the hook", lambda: make().make_session_run_hook(True).begin()),
    ):
        with pytest.raises(ValueError, match=words):
            mistake()
    few = make(total_num_replicas=1)
    few.apply_gradients([pair], step)
    with pytest.raises(
        ValueError, match=r"Too few tokens to finish the first step: 0 \(given\) vs 2 \(needed\)"
    ):
        few.get_init_tokens_op(0)
    hook = few.make_session_run_hook(False)
    assert hook._sync_optimizer is few  # read by libraries that compare hooks
    hook.begin()
    with tf.Session() as session, pytest.raises(RuntimeError, match="not initialized: global_step, Variable"):
        hook.after_create_session(session, tf.train.Coordinator())
