"""Profiles of steps: times, shapes, floors and memory of what was traced."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.client.described_runs import DescribedRuns
from flowstone.client.feeds_fetches import FetchStructure
from flowstone.client.step_observation import StepObserver
from flowstone.runtime.code.tracing import Event, Trace
from flowstone.runtime.explaining.floors import Floors
from flowstone.runtime.explaining.step_profile import profile
from flowstone.runtime.plans.plan import Plan

pytestmark = pytest.mark.usefixtures("graph")

MACHINE = Floors("cpu", 1, 1e9, 1e8, ((1 << 40, 1e9),), 1e-6)


def session(devices: int = 1) -> tf.Session:
    return tf.Session(config=tf.ConfigProto(device_count={"CPU": devices, "GPU": 0}))


class Recording:
    """An observer in a test's hands: keeps the plan and the trace of each step."""

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self.traces: list[Trace] = []

    def runner(self, planner, steps, structure, feeds, by_shape, plain, traced):
        def run(*values):
            result, self.plan, trace = traced(*values)
            self.traces.append(trace)
            return result

        return run


def traced_steps(sess, fetches, feed_dict=None, steps=1):
    feed_dict = feed_dict or {}
    recording, structure = Recording(), FetchStructure(sess.graph, fetches)
    run = DescribedRuns(sess.planner, sess.steps).observed_runner(
        structure, list(feed_dict), sess.run, recording
    )
    for _ in range(steps):
        run(*feed_dict.values())
    return recording.plan, recording.traces


def profiled(sess, fetches, feed_dict=None, steps=1):
    plan, traces = traced_steps(sess, fetches, feed_dict, steps)
    return profile(plan, traces, dict.fromkeys(plan.parts, MACHINE))


def node(found, name):
    (own,) = [each for each in found.nodes if each.name == name]
    return own


def test_a_product_has_its_shapes_operations_bytes_and_floor():
    x = tf.placeholder(tf.float32, [None, 30])
    y = tf.matmul(x, tf.constant(1.0, shape=[30, 20]), name="product")
    with session() as sess:
        found = profiled(sess, y, {x: np.ones((10, 30), np.float32)}, steps=3)
    product = node(found, "product")
    assert found.traced_steps == 3
    assert product.inputs == ("float32[10,30]", "float32[30,20]")
    assert product.outputs == ("float32[10,20]",)
    assert product.operations == 2 * 10 * 20 * 30
    assert product.traffic == 4 * (300 + 600 + 200)
    assert product.floor_ms == pytest.approx(0.012)
    assert product.bound == "compute"
    assert product.ratio == pytest.approx(product.ms / 0.012)
    assert product.user_line.startswith(__file__)
    assert product.allocated == 4 * 200


def test_shapes_are_those_of_the_step_where_the_graph_has_none():
    x = tf.placeholder(tf.int32, [8])
    values, _ = tf.unique(x)
    y = tf.tile(tf.cast(values, tf.float32), [3], name="tiled")
    with session() as sess:
        found = profiled(sess, y, {x: [1, 1, 2, 2, 1, 2, 1, 5]})
    assert node(found, "tiled").inputs[0] == "float32[3]"
    assert node(found, "tiled").outputs == ("float32[9]",)


def test_a_convolution_is_held_to_convolutions():
    image = tf.placeholder(tf.float32, [1, 8, 8, 3])
    y = tf.nn.conv2d(image, tf.ones([3, 3, 3, 4]), [1, 1, 1, 1], "SAME", name="convolution")
    with session() as sess:
        found = profiled(sess, y, {image: np.ones((1, 8, 8, 3), np.float32)})
    operations = 2 * 8 * 8 * 4 * 9 * 3
    assert node(found, "convolution").operations == operations
    assert node(found, "convolution").floor_ms == pytest.approx(operations / 1e8 * 1e3)


def test_a_handle_counts_as_its_variable():
    v = tf.get_variable("v", [50, 40], use_resource=True, initializer=tf.zeros_initializer())
    update = v.assign_add(tf.placeholder(tf.float32, [50, 40], name="x"))
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        x = sess.graph.get_tensor_by_name("x:0")
        found = profiled(sess, update.op, {x: np.ones((50, 40), np.float32)})
    (added,) = [each for each in found.nodes if each.type == "AssignAddVariableOp"]
    assert added.traffic == 4 * 2 * 2000
    assert found.memory.peak == 0


def test_times_are_medians_of_the_steps():
    x = tf.placeholder(tf.float32, [4])
    y = tf.exp(x, name="y")
    with session() as sess:
        plan, traces = traced_steps(sess, y, {x: np.ones(4, np.float32)}, steps=3)

    def lasting(event: Event, us: int) -> Event:
        return event._replace(end=event.start + 1000 * us)

    for trace, us in zip(traces, (5, 900, 7)):
        trace.events = [lasting(e, us) if e.node.name == "y" else e for e in trace.events]
    found = profile(plan, traces, {}, durations_ms=[3.0, 1.0, 2.0])
    assert node(found, "y").ms == pytest.approx(0.007)
    assert node(found, "y").floor_ms == node(found, "y").ratio == 0.0
    assert found.step_ms == 2.0
    assert found.node_ms == sum(each.ms for each in found.nodes)


@pytest.mark.by_aten
def test_the_runs_of_a_loop_are_added():
    w = tf.placeholder(tf.float32, [5, 5])
    _, y = tf.while_loop(
        lambda i, a: i < 7, lambda i, a: (i + 1, tf.matmul(a, w, name="product")), [0, tf.ones([5, 5])]
    )
    with session() as sess:
        found = profiled(sess, y, {w: np.eye(5, dtype=np.float32)})
    (product,) = [each for each in found.nodes if each.type == "MatMul"]
    assert product.runs == 7
    assert product.operations == 7 * 2 * 125
    assert 0 < found.memory.peak <= 4 * 100  # never all iterations' values


def test_memory_is_held_from_the_node_that_makes_it_to_the_last_that_takes_it():
    x = tf.placeholder(tf.float32, [1000])
    a = tf.cumsum(x, name="a")
    b = tf.cumsum(a, name="b")
    c = tf.cumsum(b, name="c")
    with session() as sess:
        found = profiled(sess, tf.add(tf.reverse(c, [0]), 1.0), {x: np.ones(1000, np.float32)})
    memory = found.memory
    assert memory.fed == 4000
    assert memory.peak == 8000
    assert memory.estimated_peak == 8000
    assert memory.allocated >= 4 * 4000
    assert [held.size for held in memory.held] == [4000, 4000]
    assert {held.type for held in memory.held} == {"float32[1000]"}
    assert memory.at in {"b", "c"} and all("test_step_profile.py:" in held.user_line for held in memory.held)


def test_what_is_fetched_is_held_to_the_end():
    x = tf.placeholder(tf.float32, [1000])
    kept = [tf.cumsum(x, exclusive=i == 1, reverse=i == 2, name=f"kept{i}") for i in range(3)]
    with session() as sess:
        found = profiled(sess, kept, {x: np.ones(1000, np.float32)})
    assert found.memory.peak == 12000


@pytest.mark.by_aten
def test_variables_are_no_memory_of_the_step():
    v = tf.Variable(tf.ones([100, 100]))
    y = tf.reduce_sum(tf.square(v))
    with session() as sess:
        sess.run(v.initializer)
        found = profiled(sess, y)
    assert 40_000 <= found.memory.state < 40_100  # and the numbers of axes
    assert 40_000 <= found.memory.peak < 41_000  # the squares


def test_waiting_is_marked_and_has_no_floor():
    queue = tf.FIFOQueue(5, [tf.float32], [[3]])
    fill = queue.enqueue([[1.0, 2.0, 3.0]])
    taken = queue.dequeue(name="taken")
    with session() as sess:
        sess.run(fill)
        found = profiled(sess, tf.exp(taken))
    assert node(found, "taken").waits
    assert node(found, "taken").floor_ms == 0.0


def test_each_device_has_its_nodes():
    x = tf.placeholder(tf.float32, [20, 20])
    with tf.device("/cpu:0"):
        a = tf.matmul(x, x, name="a")
    with tf.device("/cpu:1"):
        b = tf.matmul(a, x, name="b")
    with session(2) as sess:
        found = profiled(sess, b, {x: np.eye(20, dtype=np.float32)})
    assert node(found, "a").device.endswith("CPU:0")
    assert node(found, "b").device.endswith("CPU:1")
    assert node(found, "b").inputs[0] == "float32[20,20]"
    assert node(found, "b").floor_ms == pytest.approx(0.016)


def test_an_observer_numbers_the_steps_that_it_traces():
    x = tf.placeholder(tf.float32, [None])
    y = tf.exp(x)
    with session() as sess:
        for spread, expected in ((True, [0, 4, 6, 8, 10, 12, 15, 18]), (False, [0, *range(4, 20, 2)])):
            seen: list[int] = []
            observer, calls = StepObserver(3, spread), iter(range(100))

            def traced(value, seen=seen, calls=calls):
                seen.append(next(calls))
                return (None, None, None)

            def plain(value, calls=calls):
                next(calls)

            run = observer.runner(
                sess.planner, sess.steps, FetchStructure(sess.graph, y), [x], True, plain, traced
            )
            for _ in range(20):
                run([1.0])
            assert seen == expected


@pytest.mark.by_aten
def test_fused_nodes_count_what_they_do():
    x = tf.placeholder(tf.float32, [40, 60], name="x")
    labels = tf.placeholder(tf.float32, [40, 10], name="labels")
    w = tf.Variable(tf.zeros([60, 10]))
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(x, w)))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    feeds = {x: np.ones((40, 60), np.float32), labels: np.ones((40, 10), np.float32)}
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        found = profiled(sess, [train, loss], feeds)
    products = [each for each in found.nodes if each.type in ("MatMul", "_ApplyProduct")]
    assert [each.operations for each in products] == [2 * 40 * 60 * 10] * 2
    (losses,) = [each for each in found.nodes if each.type == "_SoftmaxCrossEntropyTotal"]
    assert losses.operations == 15 * 400


@pytest.mark.parametrize("channels", [8, 32])  # the larger filter comes in its kernel's order
def test_a_convolution_with_bias_counts_as_one(channels):
    image = tf.placeholder(tf.float32, [2, 16, 16, channels])
    filters = tf.Variable(tf.ones([3, 3, channels, 16]))
    biased = tf.nn.bias_add(tf.nn.conv2d(image, filters, [1, 1, 1, 1], "SAME"), tf.ones([16]))
    pooled = tf.nn.max_pool(tf.nn.relu(biased), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    with session() as sess:
        sess.run(filters.initializer)
        found = profiled(sess, pooled, {image: np.ones((2, 16, 16, channels), np.float32)})
    (convolution,) = [each for each in found.nodes if "Conv2D" in each.type]
    assert convolution.operations == 2 * 2 * 16 * 16 * 16 * 9 * channels
    (pooling,) = [each for each in found.nodes if "MaxPool" in each.type]
    assert pooling.operations == 4 * 2 * 8 * 8 * 16


def test_a_sum_of_stacked_products_has_their_operations():
    w = tf.Variable(tf.ones([30, 20]))
    xs = [tf.placeholder(tf.float32, [10, 30]) for _ in range(6)]
    loss = tf.add_n([tf.reduce_sum(tf.square(tf.matmul(x, w))) for x in xs])
    (gradient,) = tf.gradients(loss, [w])
    with session() as sess:
        sess.run(w.initializer)
        found = profiled(sess, gradient, {x: np.ones((10, 30), np.float32) for x in xs})
    products = [each for each in found.nodes if "MatMul" in each.type or "Product" in each.type]
    assert sum(each.operations for each in products) == 2 * 6 * 2 * 10 * 30 * 20


@pytest.mark.by_aten
def test_the_products_that_a_loop_adds_up_have_their_operations():
    x = tf.placeholder(tf.float32, [4, 30])
    w = tf.Variable(tf.ones([30, 30]) * 0.1)
    _, y = tf.while_loop(lambda i, h: i < 5, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])
    (gradient,) = tf.gradients(tf.reduce_sum(y), [w])
    with session() as sess:
        sess.run(w.initializer)
        found = profiled(sess, gradient, {x: np.ones((4, 30), np.float32)})
    kinds = ("MatMul", "_ProductSum", "_ProductSumAdd", "_ProductSumTotal")
    counted = {each.type: 0.0 for each in found.nodes if each.type in kinds}
    for each in found.nodes:
        if each.type in kinds:
            counted[each.type] += each.operations
    assert sum(counted.values()) == pytest.approx(3 * 5 * 2 * 4 * 30 * 30, rel=0.1), counted
