"""Shapes that programs may have."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.lowering.programs.program_limits import (
    NARROW,
    WIDE,
    Untranslatable,
    check_size,
    static_dims,
    strides_of,
)
from flowstone.rewriting.simplification.partial_execution import prune


def test_steps_of_contiguous_arrays() -> None:
    assert strides_of((4, 3, 2)) == (6, 2, 1)
    assert strides_of(()) == ()


def test_shapes_must_be_known_and_small() -> None:
    (node,) = prune([tf.constant(1.0)], [], []).nodes
    assert static_dims(node, (2, 3)) == (2, 3)
    assert static_dims(node, ()) == ()
    for dims in (None, (None, 3)):
        with pytest.raises(Untranslatable, match="not known before the step") as error:
            static_dims(node, dims)
        assert error.value.node is node
    check_size(node, (200, 200), WIDE)
    with pytest.raises(Untranslatable, match="an array is large"):
        check_size(node, (200, 200), NARROW)
    for dims in ((0, 3), (600, 600)):
        with pytest.raises(Untranslatable, match="empty or large"):
            static_dims(node, dims)
