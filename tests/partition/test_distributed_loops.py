"""Loops over devices: each gets the loop's control, and the predicate is sent to it."""

from __future__ import annotations

import re

import pytest

import flowstone as tf
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


def test_a_loop_gets_control_nodes_on_each_device():
    x = tf.placeholder(tf.float32, [], name="x")
    r = tf.while_loop(lambda r: r < 3, lambda r: tf.square(r, name="t"), [x])
    shown = text(parts_of(prune([r], [], [x]), {"while/t": DEVICES[1]}))
    here, there = shown.split("\n\n")
    assert there == (
        "# CPU:1\n"
        "%0 = Const() value=0. : float32[]  # while/while_context/control/Const\n"
        "%1 = Enter(%0) frame_name='while/while_context' : float32[]  # while/while_context/control/Enter\n"
        "%2 = Merge(%1, %7) : float32[], int32[]  # while/while_context/control/Merge\n"
        "%3 = _Recv(^%2) while/Less:0 CPU:0->CPU:1 tensor_type=bool : bool[]  # while/Less/receive\n"
        "%4 = LoopCond(%3) : bool[]  # while/while_context/control/LoopCond\n"
        "%5 = Switch(%2, %4) : float32[], float32[]  # while/while_context/control/Switch\n"
        "%6 = Identity(%5:1) : float32[]  # while/while_context/control/Identity\n"
        "%7 = NextIteration(%6) : float32[]  # while/while_context/control/NextIteration\n"
        "%8 = _Recv(^%6) while/Identity:0 CPU:0->CPU:1 tensor_type=float32 : float32[]"
        "  # while/Identity/receive\n"
        "%9 = Square(%8) : float32[]  # while/t\n"
        "%10 = _Send(%9) while/t:0 CPU:1->CPU:0  # while/t/send\n"
        "return "
    )
    assert re.search(r"_Recv\(\^%(\d+)\) while/t:0 CPU:1->CPU:0", here), "the loop's variable comes back"


def test_what_steers_control_flow_stays_in_host_memory():
    x = tf.placeholder(tf.float32, [], name="x")
    r = tf.while_loop(lambda r: r < 3, lambda r: tf.square(r, name="t"), [x])
    shown = text(parts_of(prune([r], [], [x]), {"while/t": LANE}, host=DEVICES[0]))
    assert "_HostSend" in shown and "while/Less:0/host CPU:0->LANE:0" in shown
    assert shown.count("_HostRecv") == 1


def test_a_loop_on_one_device_gets_none():
    x = tf.placeholder(tf.float32, [], name="x")
    r = tf.while_loop(lambda r: r < 3, lambda r: tf.square(r, name="t"), [x])
    shown = text(parts_of(prune([tf.negative(r, name="y")], [], [x]), {"y": DEVICES[1]}))
    here, there = shown.split("\n\n")
    assert "control/" not in shown and "Enter" in here and "Enter" not in there


def test_each_loop_of_a_nest_gets_its_control():
    x = tf.placeholder(tf.float32, [], name="x")

    def outer(r):
        return tf.while_loop(lambda s: s < 3, lambda s: tf.square(s, name="t"), [r + 1.0], name="inner")

    r = tf.while_loop(lambda r: r < 9, outer, [x], name="outer")
    shown = text(parts_of(prune([r], [], [x]), {"outer/inner/t": DEVICES[1]}))
    _, there = shown.split("\n\n")
    assert there.count(" = LoopCond(") == there.count(" = NextIteration(") == 2
