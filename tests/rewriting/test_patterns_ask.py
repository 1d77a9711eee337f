"""What patterns ask: whatever else a program has in the places that a rewrite looks at, its values stay.

For every pass there are programs in which it applies; all variants of these (`pattern_variants.py`) are
computed with all passes and node by node.
"""

from __future__ import annotations

from typing import Any

import pytest

import training_programs
from flowstone.framework import onednn
from flowstone.lowering.convolutions import filter_layout, fused_convolutions, normalization_fusion, winograd
from flowstone.lowering.packing import packed_products, packed_weights
from flowstone.lowering.passes import NAMES
from flowstone.rewriting.memory import joined_values, memory_schedule, recomputation, swapping
from pattern_programs import PROGRAMS
from pattern_variants import Program, disagreements, rewritten

assert training_programs  # which adds to PROGRAMS

IDS = [f"{each.name}-{i}" for i, each in enumerate(PROGRAMS)]


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: Any) -> None:
    """Has passes apply to small programs, too."""
    monkeypatch.setattr(winograd, "pays", lambda sizes, *_: sizes.taps > 1 and sizes.count > 1)
    monkeypatch.setattr(normalization_fusion, "_FEWEST", 1)
    monkeypatch.setattr(filter_layout, "_FEWEST", 1)
    monkeypatch.setattr(fused_convolutions, "_LARGE", 1)
    monkeypatch.setitem(packed_weights.SMALLEST, 2, 1)
    monkeypatch.setitem(packed_weights.SMALLEST, 4, 1)
    monkeypatch.setattr(packed_products, "_PAGE", 1)
    monkeypatch.setattr(onednn, "multiplies_faster", onednn.is_available)
    for module in (joined_values, memory_schedule, recomputation):
        monkeypatch.setattr(module, "WORTHWHILE", 1)
    monkeypatch.setattr(swapping, "SMALLEST", 1)
    monkeypatch.setattr(swapping, "has_gpu", lambda: True)


BY_ONEDNN = ("convolve_by_winograd", "pack_filters", "pack_weights", "join_lstm_layers", "join_lstm_loops")


def test_every_pass_has_a_program() -> None:
    assert {each.name for each in PROGRAMS if each.applies} == NAMES


@pytest.mark.parametrize("program", PROGRAMS, ids=IDS)
def test_the_pass_applies_or_not(program: Program) -> None:
    changed: set[str] = set()
    rewritten(program.drafted().pruned(), program.name, lambda name, *_: changed.add(name))
    applies = program.applies and (onednn.is_available() or program.name not in BY_ONEDNN)
    assert (program.name in changed) == applies


@pytest.mark.parametrize("program", PROGRAMS, ids=IDS)
def test_no_variant_has_other_values(program: Program) -> None:
    found = disagreements(program)
    assert not found, f"{len(found)} variants differ, first:\n{found[0]}"
