"""Calls that TensorFlow 1.15.5 refuses are refused at the same stage, with the same class of error."""

from __future__ import annotations

from typing import Any

import pytest
from tests.mistakes.wrong_calls import answer, wrong_calls

import flowstone as tf


@pytest.mark.filterwarnings("ignore")  # what is deprecated is called, too
@pytest.mark.parametrize("call", wrong_calls(), ids=lambda call: call[0])
def test_refusals(call: Any) -> None:
    expression, inputs, expected = call
    assert answer(tf, expression, inputs) == expected
