"""What passes between programs: where in a pack each value is."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.lowering.programs import straight_regions
from flowstone.lowering.programs.program_members import places_in
from flowstone.lowering.programs.straight_regions import join_straight_programs
from flowstone.rewriting.simplification.partial_execution import prune


def test_packs_hold_values_end_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(straight_regions, "_MOST_STATEMENTS", 40)
    x = tf.placeholder(tf.float32, [4])
    a, b, c = x, tf.reduce_sum(x), tf.reduce_max(x)
    for _ in range(100):
        a, b, c = tf.tanh(a * b + c), b * 0.9 + tf.reduce_sum(a), c * 0.5 + b
    subgraph = prune([a, b, c], [], [x])
    join_straight_programs(subgraph)
    found = [node.attributes["members"] for node in subgraph.nodes if node.type == "_Program"]
    assert len(found) > 3
    for members in found[1:-1]:
        (pack,) = members.packed_outputs
        sizes = [4 if y.dims == (4,) else 1 for y in pack]
        assert places_in([pack]) == [(0, sum(sizes[:i]), y) for i, y in enumerate(pack)]
        taken = {y for node in members.nodes for y in node.inputs}
        assert members.unpacked() == [each for each in places_in(members.packed_inputs) if each[2] in taken]
        assert members.unpacked()
