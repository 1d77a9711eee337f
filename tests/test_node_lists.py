"""Common programs make TensorFlow 1.15's nodes, and as many of them before each random operation.

So with a seed of the graph alone they draw its numbers.
"""

from __future__ import annotations

import lzma
from collections import Counter
from pathlib import Path

import pytest
from tests.golden import (
    function_node_programs,  # noqa: F401
    gradient_node_programs,  # noqa: F401
    model_programs,  # noqa: F401
    recurrent_programs,  # noqa: F401
    trained_programs,  # noqa: F401
)
from tests.golden.node_programs import PROGRAMS, node_lines

import flowstone as tf

GOLDEN = Path(__file__).parent / "golden" / "names" / "nodes.txt.xz"

OTHER_NODES: frozenset[str] = frozenset(
    {
        "loss_weighted",
        "image_changes",
        "image_decoding",
        "decoding_scheduled",
        "decoding_scheduled_outputs",
        "gradients_of_gathers_in_batches",
        "gradients_given",
        "decayed_rates",
        "head_binary",
        "rnn_block_cell",
        "beam_search",
        "crf",
        "gradients_of_loop_gathered_batch",
        "gradients_of_loop_writes_known",
        "gradients_of_dynamic_partition_of_known",
        "gradients_of_cumprod_of_known",
        "gradients_of_accumulate_n_of_known",
        "gradients_of_sparse_softmax_of_known",
        "gradients_of_dynamic_partition_of_batch",
    }
)
"""Programs whose random operations have TensorFlow's seeds, though later or unread nodes differ."""

OTHER_SEEDS: frozenset[str] = frozenset(
    {
        "head_multi",
        "gradients_of_loop_branches_batch",
        "gradients_of_batch_gather_of_known",
        "gradients_of_cholesky_of_known",
        "gradients_of_complex_of_known",
        "gradients_of_safe_lookup_sparse_of_known",
        "gradients_of_sparse_dense_of_known",
        "gradients_of_sparse_sum_of_known",
        "gradients_of_sparse_times_dense_of_known",
        "gradients_of_sparse_reorder_of_known",
        "updates_by_descent_resource_rows",
    }
)
"""Programs that make another number of nodes before a random operation."""


def golden_lines() -> dict[str, list[str]]:
    programs: dict[str, list[str]] = {}
    for line in lzma.decompress(GOLDEN.read_bytes()).decode().splitlines():
        if line.startswith("# "):
            programs[line[2:]] = lines = []
        else:
            lines.append(line)
    return programs


GOLDENS = golden_lines()


def seeds(lines: list[str]) -> list[str]:
    return [f"{line.split()[0]} {line.split()[-1]}" for line in lines if "seed2=" in line]


def test_every_program_has_its_nodes() -> None:
    assert list(GOLDENS) == list(PROGRAMS)
    assert set(PROGRAMS) >= OTHER_NODES | OTHER_SEEDS


@pytest.mark.parametrize("name", PROGRAMS)
def test_nodes_are_tensorflows(name: str) -> None:
    expected, found = GOLDENS[name], node_lines(tf, PROGRAMS[name])
    missing, more = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    if name in OTHER_SEEDS:
        assert seeds(found) != seeds(expected), "the seeds are right now"
    elif name in OTHER_NODES:
        assert seeds(found) == seeds(expected)
        assert missing or more, "all nodes are there now"
    else:
        assert (sorted(missing), sorted(more)) == ([], [])
