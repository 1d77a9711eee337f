"""Calls with arguments that do not go together, and at which stage and with which class they fail.

`golden/wrong_calls.jsonl` has a call a line: an expression of `tf`, `np` and its inputs, the inputs as
[name, type, shape, values, what the graph knows of the shape], and TensorFlow's answer, a stage and a class.
Mistakes were put into good calls of public functions at random: other types, ranks, sizes and values.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "wrong_calls.jsonl"


def wrong_calls() -> list[Any]:
    """The lines: [expression, inputs, answer]."""
    return [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def answer(tf: Any, expression: str, inputs: Any) -> list[str] | None:
    """[stage, class] of the error, or None."""
    with tf.Graph().as_default() as graph:
        names, feed = {"tf": tf, "np": np}, {}
        for name, dtype, shape, values, known in inputs:
            value = _array(dtype, shape, values)
            if known == "constant":
                names[name] = tf.constant(value, dtype)
            else:
                names[name] = tf.placeholder(dtype, known)
                feed[names[name]] = value
        try:
            found = eval(expression, names)
        except Exception as error:
            return ["build", type(error).__name__]
        try:
            with tf.Session(graph=graph) as session:
                session.run([tf.global_variables_initializer(), tf.local_variables_initializer()], feed)
                session.run(found, feed)
        except Exception as error:
            return ["run", type(error).__name__]
    return None


def _array(dtype: str, shape: list[int], values: list[Any]) -> np.ndarray:
    if dtype == "string":
        found = np.empty(len(values), object)
        found[:] = [each.encode("latin-1") for each in values]
        return found.reshape(shape)
    if dtype.startswith("complex"):
        values = [complex(*each) for each in values]
    return np.array(values, dtype).reshape(shape)
