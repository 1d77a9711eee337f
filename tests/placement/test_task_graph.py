"""The packed form of a placement problem: tasks, tensors, groups, loops and memory."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.placement.devices import Link, SimulatedDevice
from flowstone.placement.synthetic_graphs import random_cluster, random_tasks
from flowstone.placement.task_graph import ASSUMED_ITERATIONS, link_table, placed_task_graph
from flowstone.rewriting.simplification.partial_execution import prune

CPUS = [SimulatedDevice(f"/job:localhost/replica:0/task:0/device:CPU:{i}") for i in range(2)]


def packed(fetches: Any, feeds: Any, elsewhere: Any = ()) -> tuple[Any, Any, dict[str, int]]:
    subgraph = prune(fetches, [], feeds)
    tasks, chosen = placed_task_graph(subgraph, {n: CPUS[n.name in elsewhere] for n in subgraph.nodes})
    return tasks, chosen, {node.name: i for i, node in enumerate(subgraph.nodes)}


def test_a_device_reaches_itself_at_once() -> None:
    table = link_table(CPUS, lambda a, b: Link(5.0, 0.5))
    assert [[way.time_us(2) for way in row] for row in table] == [[0, 6], [6, 0]]


def test_tensors_and_control_edges_are_numbered_over_all_tasks() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [10], name="x")
        with tf.control_dependencies([tf.sin(x, name="waited")]):
            y = tf.exp(x, name="y")
        tasks, chosen, place = packed([y], [x], {"y"})
    assert chosen == [0, 0, 1] and tasks.group == [0, 1, 2] and tasks.expand(chosen) == chosen
    value, control = tasks.outputs[place["x"]][0], tasks.outputs[place["waited"]][-1]
    assert set(tasks.inputs[place["y"]]) == {value, control}
    assert (tasks.size[value], tasks.size[control]) == (40, 0)
    assert tasks.producer[value] == place["x"] and tasks.consumers[control] == [place["y"]]
    assert tasks.kept == {tasks.outputs[place["y"]][0]}


def test_views_lie_in_their_inputs_buffer_and_state_is_resident() -> None:
    with tf.Graph().as_default():
        v = tf.get_variable("v", [10], use_resource=False)
        y = tf.reshape(tf.exp(v, name="e"), [2, 5], name="view")
        tasks, _, place = packed([y], [])
    view, made = tasks.outputs[place["view"]][0], tasks.outputs[place["e"]][0]
    assert tasks.storage[view] == made and (tasks.buffer[view], tasks.buffer[made]) == (0, 40)
    assert tasks.resident[place["v"]] == 40 and not tasks.has_limits


def test_a_loop_counts_several_iterations_and_stays_together() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [100], name="x")
        y = tf.while_loop(lambda y: y[0] < 9.0, lambda y: tf.exp(y, name="inside"), [x])
        z = tf.exp(x, name="outside")
        tasks, _, place = packed([y, z], [x])
    inside, outside = (tasks.times[0][place[name]] for name in ("while/inside", "outside"))
    assert inside == ASSUMED_ITERATIONS * outside
    assert place["while/inside"] in tasks.frame and place["outside"] not in tasks.frame


def test_limits_are_the_devices() -> None:
    free, limited = (random_cluster(2, 1, memory_limit=limit) for limit in (None, 100))
    assert not random_tasks(3, free, 1).has_limits and random_tasks(3, limited, 1).has_limits
