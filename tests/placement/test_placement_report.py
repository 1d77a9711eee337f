"""Placements as text and as a picture, and the example in the documentation."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import flowstone as tf
from flowstone.placement.cost_model import CostModel
from flowstone.placement.devices import Link, SimulatedDevice
from flowstone.placement.placement_report import draw_placement, placement_table
from flowstone.rewriting.simplification.partial_execution import prune

A, B = (SimulatedDevice(f"/device:CPU:{i}") for i in range(2))


@pytest.fixture
def placed():
    """x -> y on one device, -> z on the other, of 10, 20 and 30 us and 400 bytes each."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [100], name="x")
        y = tf.negative(x, name="y")
        z = tf.exp(y, name="z")
        subgraph = prune([z], [], [x])
    costs = CostModel()
    for name, device, us in (("x", A, 10.0), ("y", A, 20.0), ("z", B, 30.0)):
        costs.record(name, device.name, us)
    return subgraph, dict(zip(subgraph.nodes, (A, A, B))), costs, lambda a, b: Link(5.0, 0.1)


def test_a_table_of_devices_and_nodes(placed):
    text = placement_table(*placed)
    assert text == (
        "device         nodes  busy us  share  peak bytes\n"
        "/device:CPU:0      2     30.0    29%         800\n"
        "/device:CPU:1      1     30.0    29%         800\n"
        "makespan 105.0 us, 1 transfer of 400 bytes\n"
        "\n"
        "node  op    device         start us    us\n"
        "x     _Arg  /device:CPU:0       0.0  10.0\n"
        "y     Neg   /device:CPU:0      10.0  20.0\n"
        "z     Exp   /device:CPU:1      75.0  30.0"
    )
    assert placement_table(*placed, nodes=False) == text.split("\n\n")[0]


@pytest.mark.parametrize(("ending", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_picture(placed, tmp_path, ending, begins):
    pytest.importorskip("matplotlib")
    subgraph, placement, costs, links = placed
    path = tmp_path / f"placement.{ending}"
    draw_placement(subgraph, placement, path, costs, links)
    content = path.read_bytes()
    assert content.startswith(begins)
    if ending == "svg":
        assert b"makespan 105" in content or content.count(b"<path") > 5


def test_the_example_in_the_documentation():
    document = Path(__file__).parents[2] / "docs/placement.md"
    results = doctest.testfile(str(document), module_relative=False)
    assert results.attempted > 5 and results.failed == 0
