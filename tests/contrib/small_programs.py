"""Small programs of `tf.contrib`, of layers, metrics and variable scopes, and what they make.

`golden/contrib/programs.jsonl` has a program a line, with TensorFlow's answer. A program sets `out`, tensors
or what can be shown; it may have `updates`, which run before. `feed(value, shape)` makes a placeholder, `f`
and `u` are random arrays of float32, `i` of int32. The programs were drawn at random.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "contrib" / "programs.jsonl"
TOLERANCES = {"float32": 2e-4, "float64": 1e-6, "float16": 5e-3}


def programs() -> list[Any]:
    """The lines: [source, answer]."""
    return [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def answer(tf: Any, source: str) -> dict[str, Any]:
    """What a program makes: its values, types, variables, collections and gradients, or the error's class."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(7)
        names, fed = _names(tf)
        try:
            exec(compile(source, "<program>", "exec"), names)
            outputs = _flat(tf, names["out"])
        except Exception as error:
            return {"error": ["build", type(error).__name__]}
        found: dict[str, Any] = {"variables": _variables(tf), "collections": _collections(graph)}
        tensors = [each for each in outputs if isinstance(each, tf.Tensor)]
        floats = [each for each in tensors if each.dtype.is_floating]
        sources = [each for each in fed if each.dtype.is_floating] if names["differentiates"] else []
        try:
            gradients = tf.gradients(floats, sources) if floats and sources else []
            found["gradients"] = [type(each).__name__ for each in gradients]
            tensors += [tf.convert_to_tensor(each) for each in gradients if each is not None]
        except Exception as error:
            return {**found, "error": ["gradients", type(error).__name__]}
        try:
            session.run(
                [
                    tf.global_variables_initializer(),
                    tf.local_variables_initializer(),
                    tf.tables_initializer(),
                ],
                fed,
            )
            session.run(names["updates"], fed)
            values = session.run(tensors, fed)
        except Exception as error:
            return {**found, "error": ["run", type(error).__name__]}
        found["types"] = [each.dtype.name if isinstance(each, tf.Tensor) else str(each) for each in outputs]
        found["values"] = [_listed(value) for value in values]
        return found


def difference(found: dict[str, Any], expected: dict[str, Any]) -> str | None:
    """How two answers differ; None if they do not."""
    for key in sorted({*found, *expected} - {"values"}):
        if found.get(key) != expected.get(key):
            return f"{key} {found.get(key)} instead of {expected.get(key)}"
    for at, (ours, theirs) in enumerate(zip(found.get("values", []), expected.get("values", []))):
        if ours[0] != theirs[0]:
            return f"value {at} of shape {ours[0]} instead of {theirs[0]}"
        if not all(map(_are_close, ours[1], theirs[1])):
            return f"value {at}: {ours[1]} instead of {theirs[1]}"
    return None


def _are_close(ours: Any, theirs: Any) -> bool:
    if ours == theirs or (ours != ours and theirs != theirs):
        return True
    if isinstance(ours, str) or isinstance(theirs, str):
        return False
    return bool(abs(ours - theirs) <= 3e-4 * max(abs(ours), abs(theirs), 0.05))


def _names(tf: Any) -> tuple[dict[str, Any], dict[Any, Any]]:
    random, fed = np.random.RandomState(5), {}

    def feed(value: Any, shape: Any = "same") -> Any:
        value = np.asarray(value)
        made = tf.placeholder(value.dtype, value.shape if isinstance(shape, str) else shape)
        fed[made] = value
        return made

    names = {
        "tf": tf, "np": np, "ph": feed, "updates": [], "out": None, "differentiates": True,
        "f": lambda *shape: np.round(random.randn(*shape), 2).astype("f"),
        "u": lambda *shape: np.round(random.rand(*shape), 2).astype("f"),
        "i": lambda limit, *shape: random.randint(0, limit, shape).astype("i"),
    }  # fmt: skip
    return names, fed


def _flat(tf: Any, value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [part for each in value for part in _flat(tf, each)]
    if isinstance(value, tf.SparseTensor):
        return [value.indices, value.values, value.dense_shape]
    if isinstance(value, tf.Variable) or type(value).__name__ == "PartitionedVariable":
        return [tf.convert_to_tensor(value)]
    return [value]


def _variables(tf: Any) -> list[Any]:
    made, trained = [*tf.global_variables(), *tf.local_variables()], tf.trainable_variables()
    return [[each.name, each.dtype.base_dtype.name, str(each.shape), each in trained] for each in made]


def _collections(graph: Any) -> dict[str, list[str]]:
    keys = [key for key in graph.get_all_collection_keys() if isinstance(key, str) and "context" not in key]
    named = {key: [each.name for each in graph.get_collection(key) if hasattr(each, "name")] for key in keys}
    return {key: names for key, names in sorted(named.items()) if names}


def _listed(value: Any) -> list[Any]:
    value = np.asarray(value)
    elements = value.reshape(-1)
    if value.dtype.kind in "OSU":
        return [list(value.shape), [str(each) for each in elements]]
    if value.dtype.kind == "f":
        return [list(value.shape), [float(f"{each:.6g}") for each in elements.astype(np.float64)]]
    return [list(value.shape), [int(each) for each in elements]]
