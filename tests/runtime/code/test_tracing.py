"""Traced steps: what StepStats, partition graphs and cost graphs say, and that traces change nothing."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest
import torch
from tests.runtime import test_random_programs as random_programs

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import Environment
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.code.segments import compile_segment
from flowstone.runtime.code.tracing import Trace, TracedStep
from flowstone.runtime.explaining.step_stats import step_stats

pytestmark = pytest.mark.usefixtures("graph")

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
CPU = "/job:localhost/replica:0/task:0/device:CPU:{}"
FULL = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)


def session(devices=1, **graph_options):
    config = tf.ConfigProto(device_count={"CPU": devices, "GPU": 0})
    for name, value in graph_options.items():
        setattr(config.graph_options, name, value)
    return tf.Session(config=config)


def traced(fetches, feed_dict=None, devices=1, **options):
    """The fetched values, and the metadata of a step with a full trace."""
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, **options)
    with session(devices) as sess:
        sess.run(tf.global_variables_initializer())
        values = sess.run(fetches, feed_dict, options, metadata)
    return values, metadata


def runs(metadata, device=0):
    """The runs of nodes on a device, in order."""
    (own,) = [each for each in metadata.step_stats.dev_stats if each.device == CPU.format(device)]
    return list(own.node_stats)


def names(metadata, device=0):
    return [node.node_name for node in runs(metadata, device)]


def by_name(metadata, device=0):
    return {node.node_name: node for node in runs(metadata, device)}


# ---- one segment


def test_every_node_has_its_times_its_thread_and_its_label():
    x = tf.placeholder(tf.float32, [2, 4], name="x")
    w = tf.Variable(tf.ones([4, 2]), name="w")
    y = tf.matmul(x, w, name="y")
    a, b = tf.split(y, 2, 1, name="s")
    with tf.control_dependencies([y]):
        z = tf.add(a, b, name="z")
    before = time.time_ns()
    value, metadata = traced(z, {x: np.ones((2, 4), np.float32)})
    after = time.time_ns()
    np.testing.assert_array_equal(value, [[8.0], [8.0]])
    found = by_name(metadata)
    assert [found[name].timeline_label for name in ("x", "w", "y", "s", "z")] == [
        "x = _Arg()",
        "w = VariableV2()",
        "y = MatMul(x, w)",
        "s = Split(s/split_dim, y)",
        "z = Add(s, s:1)",  # s waits for y
    ]
    ends = []
    for name in ("x", "y", "s", "z"):
        node = found[name]
        assert before - 10**6 <= node.all_start_nanos <= after + 10**6
        assert node.all_start_micros == node.all_start_nanos // 1000
        assert 0 <= node.op_end_rel_nanos == node.all_end_rel_nanos
        assert node.scheduled_nanos <= node.all_start_nanos
        assert node.thread_id == threading.get_native_id()
        assert not ends or ends[-1] <= node.all_start_nanos
        ends.append(node.all_start_nanos + node.all_end_rel_nanos)
    (device,) = metadata.step_stats.dev_stats
    assert dict(device.thread_names) == {threading.get_native_id(): threading.current_thread().name}
    assert not metadata.partition_graphs and not metadata.cost_graph.node


def test_state_is_there_from_the_beginning_and_its_update_is_a_run():
    v = tf.Variable([1.0, 2.0], name="v")
    r = tf.get_variable("r", [3], use_resource=True, initializer=tf.zeros_initializer())
    with tf.control_dependencies([tf.assign_add(v, [1.0, 1.0], name="more"), r.assign_add([1.0] * 3)]):
        value = tf.add(tf.identity(v), 0.5, name="value")
    found, metadata = traced([value, r.read_value()])
    np.testing.assert_array_equal(found[0], [2.5, 3.5])
    nodes = by_name(metadata)
    assert nodes["v"].memory_stats.persistent_memory_size == 8
    assert nodes["v"].all_end_rel_nanos == 0
    assert nodes["more"].timeline_label.startswith("more = AssignAdd(v, ")
    assert not nodes["more"].memory
    assert "r" in nodes


@pytest.mark.by_aten
def test_only_the_branch_that_is_taken_runs():
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.cond(x > 0.0, lambda: tf.exp(x, name="yes"), lambda: tf.log(x, name="no"))
    value, metadata = traced(y, {x: 0.0})
    assert value == -np.inf
    assert "cond/no" in names(metadata) and "cond/yes" not in names(metadata)


@pytest.mark.by_aten
def test_a_loop_in_a_segment_has_a_run_an_iteration():
    x = tf.placeholder(tf.float32, [2], name="x")
    _, y = tf.while_loop(lambda i, u: i < 3, lambda i, u: (i + 1, tf.tanh(u, name="tanh")), [0, x])
    value, metadata = traced(y, {x: [1.0, 2.0]})
    np.testing.assert_allclose(value, np.tanh(np.tanh(np.tanh([1.0, 2.0]))), rtol=1e-6)
    assert names(metadata).count("while/tanh") == 3
    assert names(metadata).count("while/Less") == 4
    (output,) = by_name(metadata)["while/Less"].output
    assert output.tensor_description.dtype == tf.bool.as_datatype_enum
    assert not output.tensor_description.shape.dim


# ---- units and devices


def test_waiting_for_a_queue_is_a_run_until_there_is_an_element():
    q = tf.FIFOQueue(3, tf.float32, name="q")
    element, put = q.dequeue(name="out"), q.enqueue(1.0)
    metadata = tf.RunMetadata()
    with session() as sess:
        waiting = threading.Thread(target=lambda: sess.run(element, options=FULL, run_metadata=metadata))
        waiting.start()
        while not sess.steps:
            time.sleep(0.001)
        time.sleep(0.02)
        put_at = time.time_ns()
        sess.run(put)
        waiting.join()
    out = by_name(metadata)["out"]
    assert out.all_start_nanos < put_at < out.all_start_nanos + out.all_end_rel_nanos + 10**6


def two_devices():
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    with tf.device("/cpu:0"):
        a = tf.exp(x, name="a")
    with tf.device("/cpu:1"):
        b = tf.negative(a, name="b")
    with tf.device("/cpu:0"):
        return x, tf.add(a, b, name="c")


def test_devices_send_and_receive():
    x, c = two_devices()
    value, metadata = traced(c, {x: np.ones((2, 2), np.float32)}, devices=2)
    np.testing.assert_array_equal(value, np.zeros((2, 2)))
    assert {"a", "a/send", "b/receive", "c"} <= set(names(metadata, 0))
    assert {"a/receive", "b", "b/send"} <= set(names(metadata, 1))
    first, second = by_name(metadata, 0), by_name(metadata, 1)
    assert first["a/send"].timeline_label == "a/send = _Send(a)"
    assert second["a/receive"].timeline_label == "a/receive = _Recv(a/send)"
    assert second["b"].timeline_label == "b = Neg(a/receive)"
    assert first["c"].timeline_label == "c = Add(a, b/receive)"
    sent, received = first["a/send"], second["a/receive"]
    assert sent.all_start_nanos <= received.all_start_nanos + received.all_end_rel_nanos
    assert not received.memory  # the devices share the host's
    assert received.output[0].tensor_description.allocation_description.requested_bytes == 16
    assert first["a"].thread_id != second["b"].thread_id


def test_partition_graphs_are_what_each_device_runs():
    x, c = two_devices()
    _, metadata = traced(c, {x: np.ones((2, 2), np.float32)}, devices=2, output_partition_graphs=True)
    first, second = metadata.partition_graphs
    assert {node.device for node in first.node} == {CPU.format(0)}
    assert {node.device for node in second.node} == {CPU.format(1)}
    assert {"a", "a/send", "b/receive", "c"} <= {node.name for node in first.node}
    found = {node.name: node for node in second.node}
    assert found["b"].op == "Neg" and found["b"].input == ["a/receive"]
    assert found["a/receive"].op == "_Recv"
    assert found["a/receive"].attr["send_device"].s.decode() == CPU.format(0)
    assert found["b/send"].input == ["b"]


def test_partition_graphs_without_a_trace():
    y = tf.negative(tf.placeholder_with_default(1.0, [], name="x"), name="y")
    metadata = tf.RunMetadata()
    with session() as sess:
        assert sess.run(y, None, tf.RunOptions(output_partition_graphs=True), metadata) == -1.0
    (graph_def,) = metadata.partition_graphs
    assert "y" in {node.name for node in graph_def.node}
    assert not metadata.step_stats.dev_stats


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_compute_the_same_with_a_trace(seed, devices):
    rng = random.Random(1000 + seed)
    given = random_programs.start(rng)
    statements = random_programs.program(rng, len(given), rng.randint(3, 8), 2, queues=True)
    feeds = [tf.placeholder(tf.int32, [3]) for _ in given]
    result = random_programs.build(statements, feeds, devices)
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, timeout_in_ms=60_000)
    options.output_partition_graphs = True
    metadata = tf.RunMetadata()
    with session(devices) as sess:
        value = sess.run(result, dict(zip(feeds, given)), options, metadata)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(value, random_programs.evaluate(statements, given))
    graphs = {graph_def.node[0].device: graph_def for graph_def in metadata.partition_graphs}
    for device in metadata.step_stats.dev_stats:
        known = {node.name: node.op for node in graphs[device.device].node}
        for node in device.node_stats:
            kind = node.timeline_label.partition(" = ")[2].partition("(")[0]
            assert known.get(node.node_name) == kind


# ---- metadata and options


def test_metadata_tell_of_the_last_step_alone():
    y = tf.negative(1.0, name="y")
    bad = tf.check_numerics(tf.log(tf.constant(-1.0)), "not a number")
    metadata = tf.RunMetadata()
    metadata.step_stats.dev_stats.add(device="old")
    with session() as sess:
        sess.run(y, options=FULL, run_metadata=metadata)
        assert [each.device for each in metadata.step_stats.dev_stats] == [CPU.format(0)]
        with pytest.raises(tf.errors.InvalidArgumentError, match="not a number"):
            sess.run(bad, options=FULL, run_metadata=metadata)
        assert metadata.step_stats.dev_stats  # a step that fails tells nothing
        sess.run(y, run_metadata=metadata)
        assert not metadata.step_stats.dev_stats
        sess.run(y, options=FULL)  # nobody listens


@pytest.mark.parametrize("level", ["SOFTWARE_TRACE", "HARDWARE_TRACE", "FULL_TRACE"])
def test_all_levels_of_tracing_trace(level):
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=getattr(tf.RunOptions, level))
    with session() as sess:
        sess.run(tf.negative(tf.placeholder_with_default(1.0, []), name="y"), None, options, metadata)
    assert "y" in names(metadata)


def test_callables_take_options():
    x = tf.placeholder(tf.float32, [None], name="x")
    y = tf.negative(x, name="y")
    metadata = tf.RunMetadata()
    with session() as sess:
        call = sess.make_callable(y, [x], accept_options=True)
        np.testing.assert_array_equal(call([1.0]), [-1.0])
        np.testing.assert_array_equal(call([1.0, 2.0], options=FULL, run_metadata=metadata), [-1.0, -2.0])
        assert by_name(metadata)["y"].output[0].tensor_description.shape.dim[0].size == 2
        call([1.0], run_metadata=metadata)
        assert not metadata.step_stats.dev_stats


def test_thread_pools_that_are_not_configured():
    y = tf.negative(1.0)
    with session() as sess:
        assert sess.run(y, options=tf.RunOptions(inter_op_thread_pool=-1)) == -1.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid inter_op_thread_pool: 1"):
            sess.run(y, options=tf.RunOptions(inter_op_thread_pool=1))


def test_a_traced_step_keeps_its_deadline():
    q = tf.FIFOQueue(3, tf.float32)
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, timeout_in_ms=20)
    with session() as sess, pytest.raises(tf.errors.DeadlineExceededError):
        sess.run(q.dequeue(), options=options, run_metadata=tf.RunMetadata())


def test_a_failure_in_a_traced_step_names_its_node():
    x = tf.placeholder(tf.float32, name="x")
    y = tf.matmul(x, x, name="bad_product")
    with session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="node bad_product") as caught:
        sess.run(y, {x: np.ones((2, 3), np.float32)}, FULL)
    assert caught.value.op is y.op


def test_traced_steps_are_compared_with_the_interpreter_unless_they_loop(monkeypatch):
    monkeypatch.setattr(flags, "CHECK", 2)
    x = tf.placeholder(tf.float32, [2], name="x")
    _, y = tf.while_loop(lambda i, u: i < 3, lambda i, u: (i + 1, u * 2.0), [0, x])
    assert traced(y, {x: [1.0, 2.0]})[0].tolist() == [8.0, 16.0]
    assert traced(tf.exp(x), {x: [0.0, 0.0]})[0].tolist() == [1.0, 1.0]


def test_a_step_without_a_trace_pays_nothing():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.negative(tf.exp(x), name="y")
    environment = Environment(resources=ResourceStore())
    plain = compile_segment(prune([y], [], [x]), environment).source
    clocked = compile_segment(prune([y], [], [x]), environment, traced_device="/cpu:0").source
    assert "_clock" not in plain and "trace" not in plain
    assert clocked.count("_record(") == 2 and len(clocked.splitlines()) == len(plain.splitlines()) + 1


# ---- the cost model

FROM_TENSORFLOW = {  # (build_cost_model, build_cost_model_after): which of nine runs are measured
    (2, 0): [2, 4, 6, 8],
    (2, 1): [3, 5, 7, 9],
    (1, 2): [3, 4, 5, 6, 7, 8, 9],
    (3, 2): [5, 8],
}


@pytest.mark.parametrize("every, after", FROM_TENSORFLOW)
def test_which_runs_are_measured(every, after):
    x = tf.placeholder(tf.float32, [])
    y, z = x + 1.0, x * 2.0
    with session(build_cost_model=every, build_cost_model_after=after) as sess:
        measured = []
        for run in range(1, 10):
            metadata = tf.RunMetadata()
            assert sess.run(y, {x: 1.0}, run_metadata=metadata) == 2.0
            assert bool(metadata.cost_graph.node) == bool(metadata.step_stats.dev_stats)
            measured += [run] if metadata.cost_graph.node else []
        assert measured == FROM_TENSORFLOW[every, after]
        first = tf.RunMetadata()
        sess.run(z, {x: 1.0}, FULL, first)  # fetches are counted apart, and a trace alone is no measurement
        assert first.step_stats.dev_stats and bool(first.cost_graph.node) == (every == 1 and after == 0)


def test_the_cost_graph_has_measured_costs_of_both_devices():
    x, c = two_devices()
    metadata = tf.RunMetadata()
    with session(2, build_cost_model=1) as sess:
        sess.run(c, {x: np.ones((2, 2), np.float32)}, run_metadata=metadata)
    nodes = {node.name: node for node in metadata.cost_graph.node}
    assert nodes["a"].device == CPU.format(0) and nodes["b"].device == CPU.format(1)
    assert not nodes["b"].inaccurate and nodes["b"].output_info[0].size == 16
    assert nodes["c"].is_final
    number = {node.id: node.name for node in metadata.cost_graph.node}
    assert [number[each.preceding_node] for each in nodes["c"].input_info] == ["a", "b/receive"]


def test_later_plans_are_placed_by_measured_costs():
    def slow(x):
        time.sleep(0.005)
        return x

    x = tf.placeholder(tf.float32, [], name="x")
    a = tf.py_func(slow, [x], tf.float32, stateful=False, name="a")
    b = tf.py_func(slow, [x], tf.float32, stateful=False, name="b")
    y = tf.add(a, b, name="y")
    options = tf.RunOptions(output_partition_graphs=True)
    with session(2, build_cost_model=1, build_cost_model_after=1) as sess:
        devices = []
        for _ in range(3):
            metadata = tf.RunMetadata()
            assert sess.run(y, {x: 2.0}, options, metadata) == 4.0
            placed = {
                node.name: graph_def for graph_def in metadata.partition_graphs for node in graph_def.node
            }
            devices.append({placed[name].node[0].device for name in "ab"})
    assert [len(each) for each in devices] == [1, 1, 2]


# ---- GPUs


class Mark:
    """A CUDA event of a stream that is never behind."""

    def __init__(self, enable_timing):
        self.at = 0

    def record(self, stream):
        self.at = time.perf_counter_ns()

    def synchronize(self):
        assert self.at

    def elapsed_time(self, later):
        return (later.at - self.at) / 1e6


def test_kernels_are_listed_a_second_time(monkeypatch):
    monkeypatch.setattr(torch.cuda, "Event", Mark)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    x = tf.placeholder(tf.float32, [8], name="x")
    subgraph = prune([tf.negative(tf.exp(x, name="e"), name="n")], [], [x])
    segment = compile_segment(subgraph, Environment(resources=ResourceStore()), traced_device=GPU)
    trace = Trace({GPU: torch.device("cuda", 0)})
    trace.restart()
    (value,) = segment.function(TracedStep(trace), torch.zeros(8))
    assert value.tolist() == [-1.0] * 8
    trace.finish()
    launched, kernels = step_stats(trace, {GPU: {node.name: node for node in subgraph.nodes}}).dev_stats
    assert (launched.device, kernels.device) == (GPU, f"{GPU}/stream:all")
    assert [node.node_name for node in launched.node_stats] == ["e", "n"]
    assert [node.node_name for node in kernels.node_stats] == ["e:Exp", "n:Neg"]
    for launch, kernel in zip(launched.node_stats, kernels.node_stats):
        assert abs(launch.all_start_nanos - kernel.all_start_nanos) < 10**6
        assert kernel.all_end_rel_nanos > 0
    assert launched.node_stats[0].memory[0].allocator_name == "GPU_0"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_kernels_on_a_gpu_have_times_of_their_own():
    x = tf.placeholder(tf.float32, [512, 512], name="x")
    y = tf.matmul(tf.matmul(x, x, name="a"), x, name="b")
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        for _ in range(2):
            sess.run(y, {x: np.ones((512, 512), np.float32)}, FULL, metadata)
    found = {each.device.rpartition("device:")[2]: each for each in metadata.step_stats.dev_stats}
    launched = {node.node_name: node for node in found["GPU:0"].node_stats}
    kernels = {node.node_name: node for node in found["GPU:0/stream:all"].node_stats}
    assert {"a:MatMul", "b:MatMul"} <= kernels.keys()
    assert kernels["a:MatMul"].all_start_nanos <= kernels["b:MatMul"].all_start_nanos
    assert all(node.all_end_rel_nanos > 0 for node in kernels.values())
    description = launched["a"].output[0].tensor_description.allocation_description
    assert (description.allocator_name, description.requested_bytes) == ("GPU_0", 512 * 512 * 4)
