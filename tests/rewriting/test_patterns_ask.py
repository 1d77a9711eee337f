"""What patterns ask: whatever else a program has in the places that a rewrite looks at, its values stay.

For every pass there are programs in which it applies; all variants of these (`pattern_variants.py`) are
computed with all passes and node by node.
"""

from __future__ import annotations

from typing import Any

import pytest

import training_programs
from flowstone.framework import flags
from flowstone.framework.machine import machine, onednn
from flowstone.lowering.convolutions import (
    batch_normalization,
    byte_pooling,
    depthwise_convolutions,
    sparse_gradients,
    spread_convolutions,
    tiled_convolutions,
)
from flowstone.lowering.passes import NAMES
from flowstone.lowering.programs import program_regions
from flowstone.lowering.programs.program_limits import NARROW
from flowstone.lowering.updates import joint_descents
from flowstone.native.clusters import kernels
from flowstone.native.codegen import making
from flowstone.rewriting.memory import joined_values, memory_schedule, recomputation, swapping
from pattern_programs import PROGRAMS
from pattern_variants import Program, disagreements, rewritten
from state_sessions import SMALL

assert training_programs  # which adds to PROGRAMS

TRIED = 200  # variants of a program at most; `make check` tries all
IDS = [f"{each.name}-{i}" for i, each in enumerate(PROGRAMS)]


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: Any, set_profile: Any, request: Any) -> None:
    """Has passes apply to small programs, too."""
    called = getattr(request.node, "callspec", None)
    if called and called.params["program"].name in OF_LARGE_LOOPS:
        monkeypatch.setattr(program_regions, "LIMITS", [NARROW._replace(memory=-1, in_loops=-1)])
    takers = ("lay_out_filters", "pack_filters", "skip_zero_gradients")
    takes_convolutions = called and called.params["program"].name in takers
    usual = machine.current().profile
    direct = 0 if takes_convolutions else usual.direct_products
    own = {"layer_cells": usual.layer_cells, "narrow_columns": 16, "direct_products": direct}
    set_profile(**{**SMALL, **own})
    for module in (joined_values, memory_schedule, recomputation):
        monkeypatch.setattr(module, "WORTHWHILE", 1)
    monkeypatch.setattr(swapping, "SMALLEST", 1)
    monkeypatch.setattr(flags, "NATIVE", 2)
    make = kernels._module_of  # quick code, which has the best code's bits, takes a third of the time to make
    monkeypatch.setattr(kernels, "_module_of", lambda code, quickly: make(code, quickly=True))
    monkeypatch.setattr(making, "later", lambda make, work=0.0: None)
    monkeypatch.setattr(tiled_convolutions, "WORTHWHILE", 1e9)
    monkeypatch.setattr(spread_convolutions, "WORTHWHILE", 1e9)
    monkeypatch.setattr(sparse_gradients, "LEAST", 0)
    monkeypatch.setattr(byte_pooling, "WORTHWHILE", 1)
    monkeypatch.setattr(joint_descents, "LEAST", 1)
    monkeypatch.setattr(batch_normalization, "WORTHWHILE", 1)
    monkeypatch.setattr(depthwise_convolutions, "SMALL", 1e9)
    monkeypatch.setattr(swapping, "has_gpu", lambda: True)


OF_LARGE_LOOPS = ("join_lstm_loops", "stack_accumulators")  # small ones become programs
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
    found = disagreements(program, None if flags.CHECK else TRIED)
    assert not found, f"{len(found)} variants differ, first:\n{found[0]}"
