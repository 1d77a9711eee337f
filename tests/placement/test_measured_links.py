"""Links as measured: lines through transfers, and placements by them."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.placement.cost_model import CostModel
from flowstone.placement.devices import SimulatedDevice, default_link
from flowstone.placement.measured_links import MeasuredLinks
from flowstone.placement.node_placement import place
from flowstone.placement.placement_report import placement_table
from flowstone.rewriting.simplification.partial_execution import prune

A, B = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1"


def test_a_line_through_transfers_of_several_sizes() -> None:
    links = MeasuredLinks()
    for size in (0, 10_000, 1_000_000):
        links.record(f"{A}/device:CPU:0", f"{B}/device:CPU:0", size, 200.0 + size / 500)
    found = links.link(f"{A}/device:CPU:0", f"{B}/device:CPU:0")
    assert found is not None
    assert found.latency_us == pytest.approx(200.0) and found.us_per_byte == pytest.approx(1 / 500)


def test_devices_of_two_tasks_share_their_link_in_one_direction() -> None:
    links = MeasuredLinks()
    links.record(f"{A}/device:CPU:0", f"{B}/device:GPU:0", 4000, 100.0)
    assert links.link(f"{A}/device:CPU:1", f"{B}/device:CPU:0") is not None
    assert links.link(f"{B}/device:CPU:0", f"{A}/device:CPU:0") is None
    links.record(f"{A}/device:CPU:0", f"{A}/device:GPU:0", 4000, 100.0)
    assert links.link(f"{A}/device:CPU:0", f"{A}/device:GPU:1") is None


@pytest.mark.parametrize(
    ("size", "latency", "rate"), [(0, 50.0, 0.0), (1000, 25.0, 0.025), (1_000_000, 0.0, 50e-6)]
)
def test_transfers_of_one_size(size: int, latency: float, rate: float) -> None:
    links = MeasuredLinks()
    for _ in range(3):
        links.record(A, B, size, 50.0)
    found = links.link(A, B)
    assert found is not None and found == pytest.approx((latency, rate))
    assert found.time_us(size) == pytest.approx(50.0)


def test_a_line_never_falls() -> None:
    links = MeasuredLinks()
    links.record(A, B, 100, 90.0)
    links.record(A, B, 100_000, 30.0)
    found = links.link(A, B)
    assert found is not None and found.latency_us >= 0 and found.us_per_byte >= 0


def test_links_change() -> None:
    links = MeasuredLinks()
    for time_us in [1000.0] * 10 + [10.0] * 300:
        links.record(A, B, 1_000_000, time_us)
    found = links.link(A, B)
    assert found is not None and found.time_us(1_000_000) < 20.0


def test_what_is_negative_is_refused() -> None:
    with pytest.raises(ValueError, match="is negative: -1 bytes"):
        MeasuredLinks().record(A, B, -1, 1.0)


def test_measured_links_decide_placements_and_their_tables() -> None:
    """Two long products fit onto two devices if the way between these is short."""
    here = SimulatedDevice(f"{A}/device:CPU:0", memory_limit=None)
    there = SimulatedDevice(f"{B}/device:CPU:0")
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [512, 512], name="x")
        y = tf.add(tf.matmul(x, x, name="a"), tf.matmul(x, x, True, name="b"), name="y")
    subgraph = prune([y], [], [x])
    costs = CostModel()
    assert costs.link(here, there) == default_link(here, there)
    used = {}
    for name, us_per_byte in (("fast", 1e-7), ("slow", 1.0)):
        costs = CostModel()
        for source, target in ((here, there), (there, here)):
            for size in (0, 1_000_000):
                costs.links.record(source.name, target.name, size, 1.0 + size * us_per_byte)
        placement = place(subgraph, [here, there], costs=costs)
        used[name] = len(set(placement.values()))
        spread = {node: there if node.name == "b" else here for node in subgraph.nodes}
        makespan = placement_table(subgraph, spread, costs).split("makespan ")[1].split(" us")[0]
        used[f"{name} makespan"] = float(makespan)
    assert (used["fast"], used["slow"]) == (2, 1)
    assert used["slow makespan"] > used["fast makespan"] + 1e6
