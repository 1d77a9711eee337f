"""What tests of programs share: a graph computed by nodes, by a program's own nodes and by machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.programs.program_regions import join_programs
from flowstone.native.programs.programs import Program
from flowstone.rewriting.simplification.partial_execution import prune


def repeated(step: Callable[[Any], Any], x: Any) -> Any:
    """Puts an operation into a loop of two iterations, since only what has loops or branches is compiled."""
    outputs = step(x)
    first = [tf.zeros_like(y) for y in outputs]
    loop = tf.while_loop(lambda i, *_: i < 2, lambda i, *_: [i + 1, *step(x)], [0, *first])
    return list(loop[1:])


def steps(fetches: Any, feed: Any, setup: Any = None, runs: int = 2) -> tuple[list[Any], str]:
    """What some steps of a new session give, and how they are computed."""
    with tf.Session() as session:
        if setup is not None:
            session.run(setup)
        plan = session.explain(fetches, feed)
        return [y for _ in range(runs) for y in session.run(fetches, feed)], plan


def assert_equal_three_ways(
    monkeypatch: pytest.MonkeyPatch, fetches: Any, feed: Any, setup: Any = None, tolerance: float = 2e-5
) -> None:
    """All loops and branches must become programs, which must give what the nodes do."""
    monkeypatch.setattr(flags, "NATIVE", 0)
    wanted, plan = steps(fetches, feed, setup)
    assert "_Program(" not in plan
    for native in (1, 2):  # in few steps, the first means the program's own nodes
        monkeypatch.setattr(flags, "NATIVE", native)
        found, plan = steps(fetches, feed, setup)
        assert "_Program(" in plan, plan
        assert "Enter(" not in plan, plan
        assert "Merge(" not in plan, plan
        for x, y in zip(found, wanted, strict=True):
            if y is None:
                continue
            assert x.dtype == y.dtype and np.shape(x) == np.shape(y)
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=1e-6)


def programs(
    fetches: Any, feeds: Any, before: Sequence[Callable[[Any], None]] = ()
) -> tuple[list[Program], str, list[Any]]:
    """The programs that the pass finds, alone or after others; the graph's text after it, and its log."""
    subgraph = prune(fetches, [], feeds)
    for each in before:
        each(subgraph)
    join_programs(subgraph)
    found = [node.attributes["members"].program for node in subgraph.nodes if node.type == "_Program"]
    return found, str(subgraph), subgraph.log
