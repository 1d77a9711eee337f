"""Texts, look-up tables, sparse tensors and boxes of 100,000 elements: what ATen has no kernels for.

Each operation is timed twice: `fed`, a whole `session.run` whose inputs are NumPy arrays and whose result is
fetched, and `in the graph`, with inputs that are variables and a result that nobody fetches. ELEMENTS is the
number of elements. Prints a line of JSON for each; ONLY names the operations that are timed, with semicolons
between.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

from text_and_table_cases import CASES, Inputs
from tf1 import tf

from measuring import SECONDS, once

ONLY = set(filter(None, os.environ.get("ONLY", "").split(";")))


def least_seconds(function: Callable[[], object]) -> float:
    """The shortest of the calls that fit into BENCHMARK_SECONDS, three at least after one that warms up."""
    passed, times = once(function), []
    while len(times) < 3 or passed < SECONDS:
        times.append(once(function))
        passed += times[-1]
    return min(times)


def fed(build: Any, inputs: Inputs) -> float:
    """Seconds of a run that feeds and fetches."""
    with tf.Graph().as_default(), tf.Session() as session:
        holders = {name: tf.placeholder(dtype_of(value), value.shape) for name, value in inputs.items()}
        result, prepare = build(**holders)
        feeds = {holders[name]: value for name, value in inputs.items()}
        for each in prepare:
            session.run(each, feeds)
        return least_seconds(lambda: session.run(result, feeds))


def in_the_graph(build: Any, inputs: Inputs) -> float:
    """Seconds of a run that neither feeds nor fetches."""
    with tf.Graph().as_default(), tf.Session() as session:
        held = {}
        for name, value in inputs.items():
            holder = tf.placeholder(dtype_of(value), value.shape)
            held[name] = tf.Variable(holder, trainable=False)
            session.run(held[name].initializer, {holder: value})
        result, prepare = build(**{name: each.value() for name, each in held.items()})
        for each in prepare:
            session.run(each)
        while isinstance(result, (list, tuple)):
            result = result[0]
        return least_seconds(session.make_callable(getattr(result, "op", result)))


def dtype_of(value: Any) -> Any:
    return tf.string if value.dtype == object else tf.as_dtype(value.dtype)


def measured() -> Iterator[tuple[str, str, float]]:
    """(operation, way, seconds) of each."""
    for name, make, build in CASES:
        if ONLY and name not in ONLY:
            continue
        for way in (fed, in_the_graph):
            yield name, way.__name__.replace("_", " "), way(build, make())


for name, way, seconds in measured():
    print(json.dumps({"operation": name, "way": way, "seconds": seconds}), flush=True)
