"""Graphs divided into parts, written and read: ends, names, loops, devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.distributed.cluster_devices import ClusterDevice
from flowstone.distributed.workers.part_graphs import PartGraph, divide, read_part
from flowstone.framework import errors
from flowstone.runtime.plans.plan_options import PlanOptions

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
DEVICES = [
    ClusterDevice(f"{WORKER}/device:CPU:0", "CPU", None, 11),
    ClusterDevice(f"{PS}/device:CPU:0", "CPU", None, (1 << 64) - 1),
    ClusterDevice(f"{PS}/device:CPU:1", "CPU", None, 13),
]


def divided(fetches: list[Any], feeds: list[Any] = [], targets: list[Any] = []) -> dict[str, PartGraph]:  # noqa: B006
    parts, *_ = divide(fetches, targets, feeds, PlanOptions(DEVICES), WORKER)  # type: ignore[arg-type]
    return {part.task: part for part in parts}


def test_a_part_for_each_task_with_its_ends() -> None:
    x, y = (tf.placeholder(tf.float32, [2, None], name=name) for name in "xy")
    with tf.device("/job:ps/task:0/cpu:1"):
        a = tf.add(x, 1.0, name="a")
    b = tf.multiply(a, y, name="b")
    parts = divided([b, a], [y, x])
    assert set(parts) == {PS, WORKER}
    assert [i for _, i in parts[PS].feeds] == [1] and [i for _, i in parts[PS].fetches] == [1]
    assert [i for _, i in parts[WORKER].feeds] == [0] and [i for _, i in parts[WORKER].fetches] == [0]
    assert parts[PS].sends and not parts[WORKER].sends
    devices = {node.name: node.device for node in parts[PS].graph_def.node}
    assert devices["a"] == f"{PS}/device:CPU:1"
    assert parts[PS].feeds[0][0] == f"{PS}/device:CPU:0;{'f' * 16};{PS}/device:CPU:0;feed 1;0:0"


def test_a_part_is_read_as_it_was_written() -> None:
    x = tf.placeholder(tf.float32, [2, None], name="x")
    with tf.device("/job:ps/task:0"):
        a = tf.add(x, 1.0, name="a")
    part = divided([tf.exp(a, name="b")], [x])[PS]
    read = read_part(part.graph_def)
    assert list(read.feeds) == [key for key, _ in part.feeds] and not read.fetches
    assert next(iter(read.feeds.values())).shape.as_list() == [2, None]
    assert read.sends and [op.type for op in read.targets] == ["_Send"]
    (send,) = read.targets
    assert send.attributes["send_device_incarnation"] & (1 << 64) - 1 == (1 << 64) - 1


def test_nodes_with_state_are_assigned() -> None:
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [2])
    _, assigned, placement, _ = divide([v + 1.0], [], [], PlanOptions(DEVICES), WORKER)  # type: ignore[arg-type]
    assert assigned["v"].startswith(f"{PS}/device:CPU:")
    assert placement["add"] == f"{WORKER}/device:CPU:0"


def test_a_loop_that_gives_nothing_here_still_runs() -> None:
    """On the task of a loop's constant nothing hangs on its control loop, which sends it each time."""
    x = tf.placeholder(tf.int32, [2])
    with tf.device("/job:ps/task:0"):
        y = x + 1

    def body(i: Any, z: Any) -> Any:
        with tf.device("/job:ps/task:0"):
            held = tf.identity(y)
        return i + 1, z * held

    _, z = tf.while_loop(lambda i, z: i < 3, body, [tf.constant(0), x])
    read = read_part(divided([z], [x])[PS].graph_def)
    reached, pending = set(), list(read.targets)
    while pending:
        operation = pending.pop()
        if operation not in reached:
            reached.add(operation)
            pending += [x.op for x in operation.inputs] + list(operation.control_inputs)
    ends = {op for op in read.graph.get_operations() if op.attributes.get("client_terminated")}
    assert set(read.graph.get_operations()) - ends <= reached


def test_nodes_of_one_name_get_names_of_their_own() -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/job:ps/task:0"):
        p, q = tf.split(x, 2, name="halves")
    part = divided([p * 2.0, q * 3.0], [x])[PS]
    names = [node.name for node in part.graph_def.node]
    assert len(names) == len(set(names))
    sent = {node.attr["tensor_name"].s for node in part.graph_def.node if node.op == "_Send"}
    assert sent == {b"halves:0", b"halves:1"}


def test_what_no_task_has_is_refused() -> None:
    with tf.device("/job:worker/task:7"):
        x = tf.constant(np.ones(2)) + 1.0
    with pytest.raises(errors.InvalidArgumentError, match="Cannot assign a device for operation"):
        divided([x], [])


def test_a_malformed_part_is_refused() -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    message = divided([x + 1.0], [x])[WORKER].graph_def
    message.node[0].input.append("not_there")
    with pytest.raises((ValueError, errors.OpError)):
        read_part(message)
