"""Partitioning as text before and after: one pair for a tensor and destination, loops, compression."""

from __future__ import annotations

import re

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import errors
from flowstone.partition.subgraphs import partition, show
from flowstone.placement.devices import SimulatedDevice
from flowstone.rewriting.simplification.partial_execution import prune

pytestmark = pytest.mark.usefixtures("graph")

TASK = "/job:localhost/replica:0/task:0"
DEVICES = [SimulatedDevice(f"{TASK}/device:CPU:{i}") for i in range(3)]
LANE = SimulatedDevice(f"{TASK}/device:LANE:0", "LANE")


def parts_of(subgraph, elsewhere, **options):
    """`elsewhere`: devices by node names; all others are on CPU:0."""
    return partition(subgraph, {n: elsewhere.get(n.name, DEVICES[0]) for n in subgraph.nodes}, **options)


def text(parts):
    """Without what is the same in all names, and with a way as source->target."""
    shown = show(parts).replace(f"{TASK}/device:", "")
    return re.sub(r" recv_device='(\S+)' send_device='(\S+)' tensor_name='(\S+)'", r" \3 \2->\1", shown)


def test_one_pair_for_each_tensor_and_destination():
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    c = tf.constant([[1.0, 2.0], [3.0, 4.0]], name="c")
    y = tf.matmul(x, c, name="y")
    p, q = tf.add(y, c, name="p"), tf.multiply(y, x, name="q")
    r = tf.negative(y, name="r")
    subgraph = prune([p, q, r], [], [x])
    assert str(subgraph) == (
        "%0 = _Arg() index=0 : float32[2,2]  # x\n"
        "%1 = Const() value=[[1.,2.], [3.,4.]] : float32[2,2]  # c\n"
        "%2 = MatMul(%0, %1) : float32[2,2]  # y\n"
        "%3 = Add(%2, %1) : float32[2,2]  # p\n"
        "%4 = Mul(%2, %0) : float32[2,2]  # q\n"
        "%5 = Neg(%2) : float32[2,2]  # r\n"
        "return %3, %4, %5"
    )
    parts = parts_of(subgraph, {"p": DEVICES[1], "q": DEVICES[1], "r": DEVICES[2]})
    assert text(parts) == (
        "# CPU:0\n"
        "%0 = _Arg() index=0 : float32[2,2]  # x\n"
        "%1 = Const() value=[[1.,2.], [3.,4.]] : float32[2,2]  # c\n"
        "%2 = MatMul(%0, %1) : float32[2,2]  # y\n"
        "%3 = _Send(%2) y:0 CPU:0->CPU:1  # y/send\n"
        "%4 = _Send(%2) y:0 CPU:0->CPU:2  # y/send\n"
        "return \n\n"
        "# CPU:1\n"
        "%0 = _Arg() index=0 : float32[2,2]  # x\n"
        "%1 = Const() value=[[1.,2.], [3.,4.]] : float32[2,2]  # c\n"
        "%2 = _Recv() y:0 CPU:0->CPU:1 tensor_type=float32 : float32[2,2]  # y/receive\n"
        "%3 = Add(%2, %1) : float32[2,2]  # p\n"
        "%4 = Mul(%2, %0) : float32[2,2]  # q\n"
        "return %3, %4\n\n"
        "# CPU:2\n"
        "%0 = _Recv() y:0 CPU:0->CPU:2 tensor_type=float32 : float32[2,2]  # y/receive\n"
        "%1 = Neg(%0) : float32[2,2]  # r\n"
        "return %1"
    )
    assert [(part.feeds, part.fetches) for part in parts] == [([0], []), ([0], [0, 1]), ([], [2])]


def test_a_control_edge_becomes_a_constant_that_waits():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.exp(x, name="y")
    with tf.control_dependencies([y]):
        e, f = tf.negative(x, name="e"), tf.square(x, name="f")
    assert text(parts_of(prune([e, f], [], [x]), {"e": DEVICES[1], "f": DEVICES[1]})) == (
        "# CPU:0\n"
        "%0 = _Arg() index=0 : float32[2]  # x\n"
        "%1 = Exp(%0) : float32[2]  # y\n"
        "%2 = Const(^%1) value=0. : float32[]  # y/ran\n"
        "%3 = _Send(%2) y/ran:0 CPU:0->CPU:1  # y/ran/send\n"
        "return \n\n"
        "# CPU:1\n"
        "%0 = _Arg() index=0 : float32[2]  # x\n"
        "%1 = _Recv() y/ran:0 CPU:0->CPU:1 tensor_type=float32 : float32[]  # y/ran/receive\n"
        "%2 = Neg(%0, ^%1) : float32[2]  # e\n"
        "%3 = Square(%0, ^%1) : float32[2]  # f\n"
        "return %2, %3"
    )


def test_other_memories_get_feeds_and_give_fetches_by_the_host():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.negative(x, name="y")
    parts = parts_of(prune([y], [], [x]), {"x": LANE, "y": LANE}, host=DEVICES[0])
    assert text(parts) == (
        "# CPU:0\n"
        "%0 = _Arg() index=0 : float32[2]  # x\n"
        "%1 = _Send(%0) x:0 CPU:0->LANE:0  # x/send\n"
        "%2 = _Recv() y:0 LANE:0->CPU:0 tensor_type=float32 : float32[2]  # y/receive\n"
        "return %2\n\n"
        "# LANE:0\n"
        "%0 = _Recv() x:0 CPU:0->LANE:0 tensor_type=float32 : float32[2]  # x/receive\n"
        "%1 = Neg(%0) : float32[2]  # y\n"
        "%2 = _Send(%1) y:0 LANE:0->CPU:0  # y/send\n"
        "return "
    )


def test_a_gpu_receives_shapes_in_host_memory():
    x, n = tf.placeholder(tf.float32, [6], name="x"), tf.placeholder(tf.int32, [], name="n")
    y = tf.reshape(x, tf.stack([n, -1], name="shape"), name="y")
    gpu = SimulatedDevice(f"{TASK}/device:GPU:0", "GPU")
    shown = text(parts_of(prune([y], [], [x, n]), {"y": gpu}, host=DEVICES[0]))
    assert "_HostRecv() shape:0/host CPU:0->GPU:0" in shown and "_Recv() x:0 CPU:0->GPU:0" in shown


@pytest.mark.parametrize("use_resource", [False, True])
def test_references_and_handles_stay(use_resource):
    v = tf.get_variable("v", [2], use_resource=use_resource)
    update = v.assign_add([1.0, 2.0])
    subgraph = prune([], [update.op], [])
    names = {node.name for node in subgraph.nodes if "Assign" in node.type}
    with pytest.raises(errors.InvalidArgumentError, match="they must be on one device"):
        parts_of(subgraph, dict.fromkeys(names, DEVICES[1]))


def test_parts_keep_the_order_of_the_whole():
    """A schedule of low peak memory would be lost otherwise."""
    x = tf.placeholder(tf.float32, [2], name="x")
    first, second = tf.exp(x, name="first"), tf.square(x, name="second")
    there = tf.negative(second, name="there")
    subgraph = prune([first, there], [], [x])
    nodes = {node.name: node for node in subgraph.nodes}
    subgraph.nodes = [nodes[name] for name in ("x", "second", "there", "first")]
    here, _ = parts_of(subgraph, {"there": DEVICES[1]})
    assert [node.name for node in here.subgraph.nodes] == ["x", "second", "second/send", "first"]


# ---- compression


def test_floats_cross_in_16_bits_only_between_devices_and_only_if_asked_to():
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    y, n = tf.exp(x, name="y"), tf.cast(x, tf.int32, name="n")
    p, k, same = tf.negative(y, name="p"), tf.negative(n, name="k"), tf.square(y, name="same")
    elsewhere = {"p": DEVICES[1], "k": DEVICES[1]}
    assert "bfloat16" not in text(parts_of(prune([p, k, same], [], [x]), elsewhere))
    assert text(parts_of(prune([p, k, same], [], [x]), elsewhere, compresses=True)) == (
        "# CPU:0\n"
        "%0 = _Arg() index=0 : float32[2,2]  # x\n"
        "%1 = Exp(%0) : float32[2,2]  # y\n"
        "%2 = Cast(%1) DstT=bfloat16 Truncate=True : bfloat16[2,2]  # y/truncate\n"
        "%3 = _Send(%2) y:0 CPU:0->CPU:1  # y/send\n"
        "%4 = Cast(%0) DstT=int32 : int32[2,2]  # n\n"
        "%5 = _Send(%4) n:0 CPU:0->CPU:1  # n/send\n"
        "%6 = Square(%1) : float32[2,2]  # same\n"
        "return %6\n\n"
        "# CPU:1\n"
        "%0 = _Recv() y:0 CPU:0->CPU:1 tensor_type=bfloat16 : bfloat16[2,2]  # y/receive\n"
        "%1 = Cast(%0) DstT=float32 Truncate=True : float32[2,2]  # y/fill\n"
        "%2 = _Recv() n:0 CPU:0->CPU:1 tensor_type=int32 : int32[2,2]  # n/receive\n"
        "%3 = Neg(%1) : float32[2,2]  # p\n"
        "%4 = Neg(%2) : int32[2,2]  # k\n"
        "return %3, %4"
    )


@pytest.mark.parametrize("compresses", [False, True])
def test_the_lower_16_bits_are_cut_off_and_come_back_as_zeros(compresses):
    given = np.random.RandomState(0).randn(1000).astype(np.float32)
    given[:5] = [0.0, -0.0, np.inf, -np.inf, np.float32(1e-40)]
    x = tf.placeholder(tf.float32, [1000])
    with tf.device("/cpu:0"):
        here = tf.negative(x)
    with tf.device("/cpu:1"):
        there = tf.reverse(here, [0])
    options = tf.GraphOptions(enable_bfloat16_sendrecv=compresses)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}, graph_options=options)) as session:
        same, crossed = session.run([here, there], {x: given})
    np.testing.assert_array_equal(same, -given)
    bits = (-given)[::-1].view(np.uint32) & np.uint32(0xFFFF0000 if compresses else 0xFFFFFFFF)
    np.testing.assert_array_equal(crossed.view(np.uint32), bits)


def test_training_with_compression_converges():
    rng = np.random.RandomState(0)
    inputs = rng.randn(64, 5).astype(np.float32)
    wanted = inputs @ rng.randn(5, 1).astype(np.float32)
    x, y = tf.placeholder(tf.float32, [64, 5]), tf.placeholder(tf.float32, [64, 1])
    with tf.device("/cpu:0"):
        w = tf.Variable(tf.zeros([5, 1]))
    with tf.device("/cpu:1"):
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    options = tf.GraphOptions(enable_bfloat16_sendrecv=True)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}, graph_options=options)) as session:
        session.run(tf.global_variables_initializer())
        first = session.run(loss, {x: inputs, y: wanted})
        for _ in range(100):
            session.run(train, {x: inputs, y: wanted})
        assert session.run(loss, {x: inputs, y: wanted}) < 1e-3 * first


def test_a_variable_is_sent_after_what_its_reader_waits_for():
    x = tf.placeholder(tf.float32, [2], name="x")
    v = tf.Variable([1.0, 2.0], name="v")
    before = tf.identity(v._ref(), name="before")
    change = tf.assign_add(v, x, name="change")
    with tf.control_dependencies([change]):
        after = tf.identity(v._ref(), name="after")
    nodes = {"before": DEVICES[1], "after": DEVICES[1]}
    shown = text(parts_of(prune([before, after], [], [x]), nodes))
    assert (
        "%2 = _Send(%1) v:0 CPU:0->CPU:1  # v/send\n"
        "%3 = AssignAdd(%1, %0) : float32_ref[2]  # change\n"
        "%4 = _Send(%1, ^%3) v:0/1 CPU:0->CPU:1  # v/send\n"
    ) in shown
    assert re.search(r"%(\d+) = _Recv\(\) v:0/1 .*\n(.*\n)*.* Identity\(%\1, .*# after", shown)
