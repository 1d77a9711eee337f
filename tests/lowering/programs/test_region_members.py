"""Groups as programs: what stays the same is translated once, and no program takes or gives arrays."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import flowstone as tf
from flowstone.lowering.programs import region_members
from flowstone.lowering.programs.program_limits import NARROW, Untranslatable
from flowstone.lowering.programs.program_regions import join_programs
from flowstone.lowering.programs.program_units import Units
from flowstone.lowering.programs.region_members import RegionMembers
from flowstone.rewriting.analyses.frames import order_by_frames
from flowstone.rewriting.simplification.partial_execution import prune
from small_loops import trained_loops


def test_groups_that_stay_the_same_are_translated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Counter[Any]()
    translated = region_members.translated

    def counted(subgraph: Any, nodes: Any, inputs: Any, outputs: Any, limits: Any) -> Any:
        seen[tuple(nodes), tuple(inputs), limits] += 1
        return translated(subgraph, nodes, inputs, outputs, limits=limits)

    monkeypatch.setattr(region_members, "translated", counted)
    fetches, feeds = trained_loops()
    join_programs(prune(fetches, [], feeds))
    assert seen and set(seen.values()) == {1}


def test_an_array_that_others_take_keeps_its_maker_out() -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    y = tf.TensorArray(tf.float32, 2, element_shape=[3]).unstack(x).read(0) * 2.0
    subgraph = prune([y], [], [x])
    order_by_frames(subgraph)
    members = RegionMembers(subgraph, Units(subgraph))
    (maker,) = [node for node in subgraph.nodes if node.type == "TensorArrayV3"]
    with pytest.raises(Untranslatable, match="others take resource values of it") as raised:
        members.members([maker], {}, NARROW)
    assert raised.value.node is maker
    (taker,) = [node for node in subgraph.nodes if node.type == "TensorArrayReadV3"]
    with pytest.raises(Untranslatable, match="why") as raised:
        members.members([taker], {maker: "why"}, NARROW)
    assert raised.value.node is taker
