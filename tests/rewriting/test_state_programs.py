"""Random programs with state have TensorFlow's values, and every pass has such programs around what it knows.

The answers are TensorFlow's (`tests/golden/make_state_goldens.py`). `compare_state_programs.py` tries more
programs, and makes those that differ small.
"""

from __future__ import annotations

import pathlib
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from compare_state_programs import Flowstone, difference
from flowstone.framework import flags
from flowstone.lowering.passes import NAMES
from state_patterns import program
from state_programs import Body, Program, Run, State, Statement
from state_sessions import lower_sizes

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "state_programs.npz"
TRIED = 100
WITHOUT_A_GPU = {"swap_hinted", "swap_activations"}  # these leave the step alone
SILENT = {"remove_unneeded"}  # it tells nobody what it drops
# Off in these tests (`tests/conftest.py`); tests/lowering has tests of them.
WITHOUT_MACHINE_CODE = {
    "compare_classes",
    "compile_narrow_layers",
    "compile_products",
    "compile_row_updates",
    "compile_updates",
    "convolve_channels",
    "convolve_directly",
    "convolve_in_tiles",
    "join_clusters",
    "join_decayed_rows",
    "join_descents",
    "join_programs",
    "join_straight_programs",
    "normalize_batches",
    "pool_in_bytes",
    "skip_zero_gradients",
}
# No program casts truths, picks rows of distinct indices, joins picked ones, sums concatenations in a loop or
# has sparse tensors; programs for the patterns do.
UNDRAWN = {
    "accumulate_parts",
    "count_truths",
    "dilate_convolutions",
    "fill_kept_rows",
    "join_rows",
    "keep_own_sizes",
    "multiply_einsums",
    "pick_present_rows",
    "pick_rows_directly",
    "spread_kept_rows",
    "sum_picked_rows",
}


def known_answers() -> Iterator[tuple[int, int, np.ndarray]]:
    """A program's number, the digest of its text, and its answers one behind the other."""
    with np.load(GOLDEN) as golden:
        ends = np.cumsum(golden["sizes"])
        values = np.split(golden["values"], ends[:-1])
        yield from zip(golden["seeds"].tolist(), golden["digests"].tolist(), values)


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "CHECK", 1)


@pytest.mark.parametrize(("seed", "digest", "expected"), list(known_answers())[:TRIED])
def test_has_the_values_of_tensorflow(seed: int, digest: int, expected: np.ndarray) -> None:
    wanted = program(seed)
    assert zlib.crc32(str(wanted).encode()) == digest, (
        "other programs: make_state_goldens.py makes answers anew"
    )
    found = Flowstone()(wanted)
    assert not isinstance(found, str), f"{found}\n{wanted}"
    flat = np.concatenate([x.ravel() for run in found for x in run]).astype(np.float32)
    words = difference([[flat]], [[expected]])
    assert not words, f"{words}\n{wanted}"


# Of seeds from 10,000 on, the first whose programs meet a pass that none before has met.
MEETING = (
    10_000, 10_002, 10_004, 10_005, 10_007, 10_009, 10_011, 10_012, 10_015, 10_016, 10_017, 10_019,
    10_021, 10_033, 10_039, 10_040, 10_043, 10_058, 10_063, 10_066, 10_072, 10_078, 10_079, 10_084,
    10_103, 10_105, 10_147, 10_166, 10_185, 10_235, 10_343,
)  # fmt: skip


@pytest.mark.needs_onednn
def test_every_pass_meets_such_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise what is tried above would say nothing of it."""
    lower_sizes(monkeypatch.setattr)
    monkeypatch.setattr(flags, "CHECK", 0)
    ordinary, saving = Flowstone(), Flowstone(enabled=flags.OPTIONAL_PASSES)
    unspread = Flowstone(disabled=frozenset({"spread_convolutions"}))  # which takes others' convolutions
    for seed in (*MEETING, *range(10_000, 11_500)):
        wanted = program(seed)
        way = saving if seed % 3 == 0 or wanted.is_alone else ordinary
        (unspread if seed % 3 == 1 else way)(wanted)
        left_alone = WITHOUT_A_GPU | WITHOUT_MACHINE_CODE | SILENT | UNDRAWN
        missing = NAMES - ordinary.seen - saving.seen - unspread.seen - left_alone
        if not missing:
            return
    raise AssertionError(f"no program is changed by {', '.join(sorted(missing))}")


R, V = "reference", "resource"


def matrix(name: str, kind: str, *arguments: str, **facts: Any) -> Statement:
    options = tuple(facts.pop("options", {}).items())
    return Statement(name, kind, arguments, options, **facts)


SMALL = {
    "cells of reference variables are no references": Program(
        "float32",
        (State("w", (8, 16), R, 1), State("b", (16,), V, 2), State("x", (4, 4), R, 3)),
        (),
        (matrix("y", "lstm", "x", "w", "b"),),
        (Run(("y",)),),
    ),
    "an activation is no part of what is joined later": Program(
        "float32",
        (State("w", (4, 4), R, 1), State("x", (4, 4), R, 2)),
        (),
        (
            matrix("a", "relu", "x"),
            matrix("c", "matmul", "a", "w"),
            matrix("d", "tanh", "c"),
            matrix("e", "matmul", "d", "w"),
            matrix("f", "relu", "e"),
            matrix("g", "matmul", "f", "w"),
            matrix("h", "sum_all", "g", dims=()),
            matrix("y", "gradient", "h", "w"),
        ),
        (Run(("y", "e")), Run(("y", "e"), fed=("d",))),
    ),
    "an array that must be read stays whole": Program(
        "float64",
        (State("v", (4, 4), R, 1), State("u", (4, 4), R, 2)),
        (),
        (
            matrix(
                "y",
                "cond",
                "u",
                bodies=tuple(
                    Body(
                        (
                            matrix(f"a{i}", "unpacked", "v"),
                            matrix(f"b{i}", "assign_turned", "v"),
                            matrix(f"c{i}", "mul", f"a{i}", "v"),
                        ),
                        f"c{i}",
                    )
                    for i in range(2)
                ),
            ),
        ),
        (Run(("y",)), Run(("y",))),
    ),
}


@pytest.mark.parametrize("wanted", SMALL.values(), ids=SMALL.keys())
def test_small_programs_have_the_values_of_the_plain_graph(
    monkeypatch: pytest.MonkeyPatch, wanted: Program
) -> None:
    """Programs that were wrong once, made small."""
    lower_sizes(monkeypatch.setattr)
    expected = Flowstone(NAMES)(wanted)
    for enabled in (frozenset[str](), frozenset({"recompute_activations", "recompute_hinted"})):
        assert not difference(Flowstone(enabled=enabled)(wanted), expected)
