"""Copies of elements, broadcasts and shapes of programs."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.lowering.programs.program_limits import (
    Untranslatable,
)
from flowstone.lowering.programs.statement_parts import walk_of
from flowstone.rewriting.simplification.partial_execution import prune


def any_node() -> PlanNode:
    (node,) = prune([tf.constant(1.0)], [], []).nodes
    return node


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (np.arange(6).reshape(2, 3), ((2, 3), (3, 1), 0)),
        (np.arange(6).reshape(2, 3).T, ((3, 2), (1, 3), 0)),
        (np.arange(6)[::-2], ((3,), (-2,), 5)),
        (np.broadcast_to(np.arange(3), (4, 3)), ((4, 3), (0, 1), 0)),
        (np.array(4), ((), (), 4)),
        (np.array([[7]]), ((1, 1), (0, 0), 7)),
    ],
)
def test_places_are_walked_with_steps_of_one_length(places: np.ndarray, expected: tuple) -> None:  # type: ignore[type-arg]
    assert walk_of(any_node(), places) == expected


def test_places_without_a_regular_step() -> None:
    with pytest.raises(Untranslatable, match="in no regular way"):
        walk_of(any_node(), np.array([0, 1, 3]))
