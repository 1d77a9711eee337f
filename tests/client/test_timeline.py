"""Timeline: traces for Perfetto as TensorFlow makes them, and finer ones where times are finer."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import numpy as np
import pytest
from tensorboard.compat.proto.step_stats_pb2 import StepStats
from tests.client.step_stats_cases import OPTIONS, steps

import flowstone as tf
from flowstone.client.timeline import Timeline

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "timelines.json").read_text(encoding="utf-8"))


def events(stats, **options):
    return json.loads(Timeline(stats).generate_chrome_trace_format(**options))["traceEvents"]


@pytest.mark.parametrize("name, options, expected, maxima", GOLDEN, ids=lambda value: str(value)[:40])
def test_steps_are_shown_as_tensorflow_shows_them(name, options, expected, maxima):
    stats = steps(StepStats)[name]
    assert events(stats, **options) == expected
    analysis = Timeline(stats).analyze_step_stats(**{"show_memory": False, **options})
    assert maxima == {
        allocator: [most.timestamp, most.num_bytes, sorted(most.tensors)]
        for allocator, most in analysis.allocator_maximums.items()
    }


def test_every_case_has_a_golden():
    assert [(name, options) for name in steps(StepStats) for options in OPTIONS[name]] == [
        (name, options) for name, options, *_ in GOLDEN
    ]


def run(stats, device, name, start, duration, label, address=0, size=0):
    node = stats.add(node_name=name, timeline_label=label, all_start_nanos=start, all_end_rel_nanos=duration)
    if size:
        allocation = node.output.add().tensor_description.allocation_description
        allocation.requested_bytes, allocation.ptr, allocation.allocator_name = size, address, device
    return node


def fine_step():
    """Nodes shorter than a microsecond, at an epoch that a float of microseconds does not resolve."""
    step, epoch = StepStats(), 1_795_278_185_093_191_861
    nodes = step.dev_stats.add(device="/device:CPU:0").node_stats
    run(nodes, "cpu", "a", epoch, 400, "a = Neg()", address=64, size=8)
    run(nodes, "cpu", "b", epoch + 400, 300, "b = Reshape(a)", address=64, size=8)
    run(nodes, "cpu", "c", epoch + 800, 150, "c = Neg(b)", address=128, size=8)
    return step


def test_nanoseconds_are_shown_from_the_first_node_on():
    shown = [event for event in events(fine_step()) if event["ph"] == "X"]
    assert [(event["name"], event["ts"], event["dur"]) for event in shown] == [
        ("Neg", 0.0, 0.4),
        ("Reshape", 0.4, 0.3),
        ("Neg", 0.8, 0.15),
    ]
    assert {event["tid"] for event in shown} == {0}  # what touches shares a row


def test_a_buffer_of_several_tensors_counts_once():
    curve = [event for event in events(fine_step(), show_memory=True) if event["ph"] == "C"]
    assert max(event["args"]["cpu"] for event in curve) == 16
    assert curve[-1]["args"] == {"cpu": 0}
    most = Timeline(fine_step()).analyze_step_stats().allocator_maximums["cpu"]
    assert most.num_bytes == 16 and most.timestamp == 0.8


def traced(fetches, feed_dict=None, devices=1):
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": devices})) as session:
        session.run(tf.global_variables_initializer())
        session.run(fetches, feed_dict, options=options, run_metadata=metadata)
    return metadata.step_stats


def test_a_traced_step_of_two_devices_has_arrows_between_them():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        with tf.device("/cpu:1"):
            y = tf.matmul(x, x, name="y")
        with tf.device("/cpu:0"):
            z = tf.add(y, x, name="z")
        stats = traced(z, {x: np.ones((2, 2), np.float32)}, devices=2)
    shown = events(stats, show_memory=True)
    process = {event["args"]["name"]: event["pid"] for event in shown if event["ph"] == "M"}
    task = "/job:localhost/replica:0/task:0"
    first, second = (process[f"{task}/device:CPU:{i} Compute"] for i in range(2))
    starts = {event["id"]: event for event in shown if event["ph"] == "s"}
    ends = {event["id"]: event for event in shown if event["ph"] == "t"}
    assert starts.keys() == ends.keys()
    assert (second, first) in {(starts[i]["pid"], ends[i]["pid"]) for i in starts}
    ran = {event["args"]["name"]: event for event in shown if event["ph"] == "X"}
    assert {"x", "y", "y/send", "y/receive", "z"} <= ran.keys()
    assert ran["y"]["args"] == {"name": "y", "op": "MatMul", "input0": "x", "input1": "x"}
    assert ran["z"]["args"]["input0"] == "y/receive"
    assert all(event["ts"] >= 0 and event.get("dur", 0) >= 0 for event in shown if event["ph"] != "M")


def test_the_trace_is_found_where_tensorflow_has_it():
    from flowstone.compat.module_paths import find_sources

    assert find_sources("tensorflow.python.client.timeline") == ("flowstone.client.timeline",)


@pytest.mark.parametrize("nothing", [None, "step"])
def test_what_is_not_step_stats_is_refused(nothing):
    with pytest.raises(AttributeError):
        Timeline(nothing).generate_chrome_trace_format()


def test_the_documentation_says_what_happens():
    document = Path(__file__).parents[2] / "docs/tracing.md"
    assert doctest.testfile(str(document), module_relative=False).failed == 0
