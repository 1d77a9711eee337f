"""Small programs make what they make in TensorFlow 1.15.5: values, names, collections, gradients, errors."""

from __future__ import annotations

import pytest
from tests.contrib.small_programs import answer, difference, programs

import flowstone as tf

GROUPS = 12


@pytest.mark.filterwarnings("ignore")  # what is deprecated is called, too
@pytest.mark.parametrize("group", range(GROUPS))
def test_programs(group: int) -> None:
    lines = programs()[group::GROUPS]
    assert lines
    different = [(source, difference(answer(tf, source), expected)) for source, expected in lines]
    assert [pair for pair in different if pair[1] is not None] == []
