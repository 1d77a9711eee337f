from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.client.feeds_fetches import FetchStructure
from flowstone.runtime.code.tracing import TracedStep
from flowstone.runtime.explaining.traced_plans import partition_graph, start_trace, with_feeds


@pytest.mark.by_aten
def test_a_plan_is_traced_with_its_feeds() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.tanh(x, name="y")
        plan = session.planner.plan(FetchStructure(graph, y), [x], traced=True)
        trace = start_trace(plan, session.planner.options.devices)
        with torch.inference_mode():
            (value,) = with_feeds(plan, trace)(TracedStep(trace), torch.zeros(2))
        trace.finish()
        np.testing.assert_array_equal(value, np.zeros(2))
        assert [event.node.name for event in trace.events] == ["x", "y"]
        ((device, part),) = plan.parts.items()
        message = partition_graph(part, device)
        assert [(node.name, node.op, node.device) for node in message.node] == [
            ("x", "_Arg", device), ("y", "Tanh", device),
        ]  # fmt: skip
