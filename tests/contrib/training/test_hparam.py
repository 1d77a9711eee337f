"""`tf.contrib.training.HParams` answers as TensorFlow 1.15.5 does (make_contrib_training_goldens.py)."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowstone.contrib import training

ANSWERS = json.loads((Path(__file__).parents[2] / "golden/contrib/hparam_answers.json").read_text())


def then(value: Any, change: Callable[[Any], Any], ask: Callable[[Any], Any]) -> Any:
    change(value)
    return ask(value)


@pytest.mark.parametrize("answer", ANSWERS, ids=[answer[0] for answer in ANSWERS])
def test_answers_are_tensorflows(answer: list[str]) -> None:
    call, kind, expected, *_ = answer
    names = {"T": training, "then": then}
    if kind == "value":
        assert repr(eval(call, names)) == expected
    else:
        with pytest.raises(getattr(builtins, expected)):
            eval(call, names)


def test_a_message_survives_its_bytes() -> None:
    parameters = training.HParams(rate=0.5, layers=[3, 4], name="first", deep=True, words=["a", "b"])
    message = parameters.to_proto()
    again = type(message).FromString(message.SerializeToString())
    assert training.HParams(hparam_def=again).values() == parameters.values()


def test_a_value_of_no_field_has_no_message() -> None:
    with pytest.raises(ValueError, match="Unsupported parameter type"):
        training.HParams(structure={}).to_proto()


@pytest.mark.parametrize(
    ("text", "truth"), [("7", True), ("-1", True), ("0", False), ("1", True), ("true", True)]
)
def test_truths_may_be_whole_numbers(text: str, truth: bool) -> None:
    parameters = training.HParams(deep=not truth)
    assert parameters.parse(f"deep={text}").deep is truth
    with pytest.raises(ValueError, match="Could not parse hparam 'deep'"):
        parameters.parse("deep=yes")
