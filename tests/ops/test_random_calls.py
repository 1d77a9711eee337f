"""Random calls of the public functions and of ops give what TensorFlow gives: values, element types, static
shapes, gradients, classes of errors.

`tests/golden/calls.jsonl` has the calls with TensorFlow's answers; `compare_calls.py` compares any number of
others.
"""

from __future__ import annotations

import functools
import json
import pathlib
from typing import Any

import pytest

import flowstone as tf
import random_calls
from call_recipes import RECIPES
from compare_calls import package
from random_calls import Call

PATH = pathlib.Path(__file__).parents[1] / "golden" / "calls.jsonl"
GROUPS = 20


@functools.lru_cache
def answered() -> list[dict[str, Any]]:
    """The calls with their answers."""
    return [json.loads(line) for line in PATH.read_text().splitlines()]


@pytest.mark.parametrize("group", range(GROUPS))
def test_answers_are_tensorflow_s(group: int) -> None:
    """A call's answer differs in nothing."""
    _, op = package("flowstone")
    differences = []
    for one in answered()[group::GROUPS]:
        call = Call.from_json(one)
        found = random_calls.answer(tf, op, call)
        if text := random_calls.difference(found, one["answer"], call):
            differences.append(f"{one['call']} {one['inputs']}: {text}; {found.get('message', '')}")
    assert differences == []


def test_there_are_some_of_many_functions() -> None:
    """The file is read, and does not ask the same function all the time."""
    functions = {one["call"].partition("(")[0] for one in answered()}
    assert len(answered()) > 300 and len(functions) > 100


def test_every_recipe_names_a_function() -> None:
    """What a recipe calls is there."""
    for name, _ in RECIPES:
        if name[0].isalpha() and name != "getitem":
            assert callable(functools.reduce(getattr, name.split("."), tf)), name


def test_a_seed_gives_one_call() -> None:
    """Equal in every process, and through JSON."""
    calls = [random_calls.random_call(seed) for seed in range(50)]
    assert calls == [random_calls.random_call(seed) for seed in range(50)]
    assert calls == [Call.from_json(json.loads(json.dumps(call.to_json()))) for call in calls]


def test_differences_are_seen() -> None:
    """Each part of an answer counts."""
    call = Call(
        "tf.square(a)", {"a": random_calls.Argument(random_calls.Spec("normal", (2,), (), "float32"), [2])}
    )
    _, op = package("flowstone")
    right = random_calls.answer(tf, op, call)
    assert random_calls.difference(right, right, call) is None
    [[dtype, static, values]] = right["outputs"]
    gradient = right["gradients"]["a"]
    for wrong in (
        {"error": ["run", "InvalidArgumentError"]},
        right | {"outputs": [["float64", static, values]]},
        right | {"outputs": [[dtype, None, values]]},
        right | {"outputs": [[dtype, [3], values]]},
        right | {"outputs": [[dtype, static, [[2], [values[1][0] + 0.1, values[1][1]]]]]},
        right | {"gradients": {"a": None}},
        right | {"gradients": {"a": [[2], [gradient[1][0], gradient[1][1] + 0.1]]}},
        right | {"gradients": {"error": ["build", "LookupError"]}},
    ):
        assert random_calls.difference(wrong, right, call) is not None
