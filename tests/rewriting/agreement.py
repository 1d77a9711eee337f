"""What tests of rewriting passes share: the graph after some passes, and steps with and without them."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.invariants import check
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.plans import plan


def text(fetches: Any, feeds: Any, *names: str, targets: Any = ()) -> list[str]:
    """The graph's lines after only the passes of these names."""
    subgraph = prune(fetches, list(targets), feeds)
    run_passes(subgraph, EVERY, {p.name for p in EVERY} - set(names))
    check(subgraph)
    return str(subgraph).splitlines()


def ops(lines: list[str]) -> list[str]:
    """The ops of a graph's lines."""
    return [line.split(" = ")[1].split("(")[0] for line in lines if " = " in line]


def agree(
    monkeypatch: Any,
    fetches: Any,
    feed: Any,
    *names: str,
    fires: int | tuple[int, ...],
    setup: Any = None,
    tolerance: float = 1e-4,
) -> str:
    """Computes with and without the passes, which must agree; returns how the plan with them came about.

    `fires`: how many entries the pass has in that plan's log, of several passes in their order; 0 says that
    the program is one that it must leave alone. `setup` is run first in each session.
    """
    everything = flags.DISABLED_PASSES
    results, logs = [], []
    for disabled in (everything, everything | frozenset(names)):
        monkeypatch.setattr(plan, "run_passes", _with(disabled))
        with tf.Session() as s:
            if setup is not None:
                s.run(setup)
            logs.append(s.explain(fetches, feed))
            results.append([s.run(fetches, feed) for _ in range(2)])
    for a, b in zip(*results):
        for x, y in zip(a, b):
            if x is not None:
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)
    expected = (fires,) if isinstance(fires, int) else fires
    assert tuple(entries(logs[0], name) for name in names) == expected, logs[0]
    assert not any(entries(logs[1], name) for name in names)
    return logs[0]


def entries(explanation: str, name: str) -> int:
    """How many entries the pass has in the log at the top of a plan's explanation."""
    return sum(line.startswith(f"{name}: ") for line in explanation.splitlines())


def _with(disabled: frozenset[str]) -> Any:
    return lambda subgraph, passes, others: run_passes(subgraph, passes, disabled | others)
