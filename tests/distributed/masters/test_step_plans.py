"""A master's plans of steps: one a kind, or those for the shapes that are fed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import clusters
import flowstone as tf
from flowstone.distributed.masters.master import MasterSession
from flowstone.distributed.masters.own_servers import masters
from flowstone.distributed.masters.step_plans import RegisteredParts, StepKind, StepPlan, StepPlans
from flowstone.framework import errors
from flowstone.framework.types.shape import Dims
from flowstone.runtime.code.planning_costs import PlanCosts

KIND = StepKind(("x:0",), ("y:0",), ())


class Made:
    """What `StepPlans` asked for; `parts` stand for themselves."""

    def __init__(self, dims: Dims) -> None:
        self.shapes: list[Any] = []
        self.forgotten: list[Any] = []
        self.plans = StepPlans(self.make, lambda kind: [dims], self.forgotten.append)

    def make(self, kind: StepKind, shapes: Any) -> StepPlan:
        self.shapes.append(shapes)
        parts: Any = RegisteredParts([shapes])
        return StepPlan(parts, [], [], None, shapes, 100, PlanCosts(0.0, 1, 0.0))  # type: ignore[arg-type]

    def shapes_for(self, *dims: int) -> Any:
        return self.plans.choose(KIND, [np.zeros(dims)]).shapes


def test_a_kind_of_known_shapes_has_one_plan() -> None:
    made = Made((2,))
    assert [made.shapes_for(2), made.shapes_for(2)] == [None, None]
    assert made.shapes == [None]
    assert len(made.plans) == 1


def test_shapes_that_are_fed_have_plans_of_their_own() -> None:
    made = Made((None,))
    assert [made.shapes_for(2), made.shapes_for(3), made.shapes_for(2)] == [((2,),), ((3,),), ((2,),)]
    assert made.shapes_for(4) == ((-1,),)  # a plan for any size that is at least 2
    assert made.shapes_for(4) == ((-1,),)
    made.plans.wait()
    assert made.shapes_for(4) == ((4,),)
    assert made.plans.last(KIND).shapes == ((4,),)


def test_values_in_pieces_have_the_plan_for_all_shapes() -> None:
    made = Made((None,))
    kind = KIND._replace(in_pieces=True)
    assert made.plans.choose(kind, ()).shapes is None
    assert made.plans.last(kind).shapes is None


def test_parts_that_nobody_has_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made((None,))
    held = made.plans.choose(KIND, [np.zeros(2)])
    made.shapes_for(3)
    made.plans.clear()
    gc.collect()
    made.plans.wait()
    assert made.forgotten == [[((3,),)]]
    del held
    made.plans.wait()
    assert made.forgotten == [[((3,),)], [((2,),)]]


def test_after_the_end_nothing_is_forgotten_any_more() -> None:
    made = Made((None,))
    made.shapes_for(3)
    made.plans.stop()
    made.plans.clear()
    gc.collect()
    made.plans.wait()
    assert not made.forgotten


# ---- on a cluster


@pytest.fixture
def session(cluster: clusters.Cluster) -> Iterator[tf.Session]:
    with tf.Session(cluster.target()) as found:
        yield found


def master_session(cluster: clusters.Cluster) -> MasterSession:
    """The newest session of the first worker's master."""
    return list(masters[cluster.target()]._sessions.values())[-1]


def parts_at(cluster: clusters.Cluster, job: str, task: int) -> list[Any]:
    """The parts that a worker has of that session."""
    handle = master_session(cluster).handle
    return list(cluster.servers[job, task]._worker._sessions[handle].graphs.values())


def test_parts_of_all_tasks_have_the_shapes_that_are_fed(
    cluster: clusters.Cluster, session: tf.Session
) -> None:
    """Also a task that is fed nothing, whose values come from others."""
    x = tf.placeholder(tf.float32, [None, 3])
    with tf.device("/job:worker/task:0"):
        doubled = x * 2.0
    with tf.device("/job:worker/task:1"):
        y = tf.reduce_sum(tf.matmul(doubled, tf.ones([3, 2])), 1)
    np.testing.assert_array_equal(session.run(y, {x: np.ones([5, 3])}), np.full(5, 12.0))
    (part,) = parts_at(cluster, "worker", 1)
    products = [node for node in part.plan.subgraph.nodes if node.outputs and node.outputs[0].dims == (5,)]
    assert products
    assert "5" in session.explain(y)


def model(place: Any) -> tuple[Any, Any]:
    """A recurrent loss over [batch, time] numbers, and its update."""
    x = tf.placeholder(tf.float32, [None, None])
    with tf.device(place):
        cell = tf.nn.rnn_cell.BasicLSTMCell(4)
        outputs, _ = tf.nn.dynamic_rnn(cell, tf.expand_dims(x, 2), dtype=tf.float32)
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(outputs, 2) - x))
        loss += 0.01 * tf.reduce_mean(tf.random_uniform(tf.shape(x), seed=3))
        return x, [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)]


def trained(target: str, place: Any) -> list[float]:
    """The losses over batches of many shapes, which come again."""
    losses = []
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        x, step = model(place)
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            for seed in range(3):
                random = np.random.RandomState(seed)
                for length in random.permutation(range(2, 9)):
                    losses.append(session.run(step, {x: random.rand(1 + length % 3, length)})[0])
    return losses


def test_many_shapes_train_as_in_one_process(cluster: clusters.Cluster) -> None:
    """The variables are on the parameter server, the computation is on a worker."""
    setter = tf.train.replica_device_setter(1, worker_device="/job:worker/task:1")
    np.testing.assert_allclose(trained(cluster.target(), setter), trained("", None), rtol=2e-5)


def test_workers_forget_the_parts_of_shapes_that_no_longer_come(
    cluster: clusters.Cluster, session: tf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowstone.runtime.plans.plans_by_shape.MOST_PLANS", 2)
    monkeypatch.setattr("flowstone.runtime.code.planning_costs.MOST_USES", 2)
    monkeypatch.setattr("flowstone.runtime.code.planning_costs.PATIENCE", 0)
    x = tf.placeholder(tf.float32, [None])
    with tf.device("/job:ps/task:0"):
        y = x + 1.0
    for n in range(1, 9):
        for _ in range(3):
            np.testing.assert_array_equal(session.run(y, {x: np.zeros(n)}), np.ones(n))
            master_session(cluster)._plans.wait()
    gc.collect()
    master_session(cluster)._plans.wait()
    found = [part.part.feeds for part in parts_at(cluster, "ps", 0)]
    dims = [next(iter(feeds.values())).dims for feeds in found]
    assert 2 <= len(dims) <= 4  # two special plans, a wide one and that for all
    assert (8,) in dims and (1,) not in dims


def test_shapes_that_the_graph_contradicts_say_where(session: tf.Session) -> None:
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    with tf.device("/job:worker/task:1"):
        z = tf.add(x, y, name="joined")
    np.testing.assert_array_equal(session.run(z, {x: [1.0, 2.0], y: [3.0, 4.0]}), [4.0, 6.0])
    with pytest.raises(errors.InvalidArgumentError, match="joined"):
        session.run(z, {x: [1.0, 2.0], y: [3.0, 4.0, 5.0]})
    np.testing.assert_array_equal(session.run(z, {x: [1.0], y: [3.0]}), [4.0])
