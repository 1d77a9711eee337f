"""Units and their groups; the search looks at each unit once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import flowstone as tf
from flowstone.lowering.programs import program_regions
from flowstone.lowering.programs.program_regions import join_programs
from flowstone.lowering.programs.program_units import Units
from flowstone.rewriting.simplification.partial_execution import prune
from small_loops import trained_loops


def test_a_loop_is_one_unit_and_groups_end_at_what_may_not_join() -> None:
    x = tf.placeholder(tf.float32, [3])
    y = tf.while_loop(lambda a: tf.reduce_sum(a) < 9.0, lambda a: a * 2.0, [tf.exp(x)])
    subgraph = prune([tf.sin(tf.cos(y))], [], [x])
    units = Units(subgraph)
    (loop,) = [unit for unit in units.all if unit.is_loop]
    assert {node.type for node in loop.nodes} >= {"Enter", "Merge", "Switch", "NextIteration", "Exit"}
    assert all(units.of[node] is loop for node in loop.nodes)

    def types(without: str) -> list[set[str]]:
        groups = units.groups(lambda unit: unit.first.type not in (without, "Const", "Placeholder", "_Arg"))
        return [{"loop" if unit.is_loop else unit.first.type for unit in group.units} for group in groups]

    assert types("") == [{"Exp", "loop", "Cos", "Sin"}]
    assert types("Cos") == [{"Exp", "loop"}, {"Sin"}]


def test_each_unit_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, rounds = Counter[Any](), []
    looks, groups = program_regions._Search._looks_translatable, Units.groups

    def counted(self: Any, unit: Any) -> bool:
        looked[self, unit] += 1
        return looks(self, unit)

    monkeypatch.setattr(program_regions._Search, "_looks_translatable", counted)
    monkeypatch.setattr(Units, "groups", lambda *args: rounds.append(args[0]) or groups(*args))
    fetches, feeds = trained_loops()
    join_programs(prune(fetches, [], feeds))
    assert len(rounds) > 4 and len(set(rounds)) == 1  # some units are left out, of the same units
    assert set(looked.values()) == {1}
