"""Collective operations over CPU devices of one process: small graphs that TensorFlow and flowstone both run.

`PROGRAMS` has functions by name, which take the module of TensorFlow's API and the one of collective
operations, and give what is to be fetched. `outcome` is what comes of one: values, or the class of the error
and where it came.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

A = np.array([1, 2, 3], np.float32)
B = np.array([10, 20, 30], np.float32)
INTEGERS = np.array([-2, 5, 7], np.int32), np.array([-5, 2, 2], np.int32)
PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {}


def _reduce(*values: Any, merge: str = "Add", final: str = "Id", sizes: Any = None) -> Any:
    def program(tf: Any, collective: Any) -> Any:
        results = []
        for i, value in enumerate(values):
            with tf.device(f"/cpu:{i}"):
                size = sizes[i] if sizes else len(values)
                results.append(collective.all_reduce(tf.constant(value), size, 1, 1, merge, final))
        return results

    return program


def _gather(*values: Any) -> Any:
    def program(tf: Any, collective: Any) -> Any:
        results = []
        for i, value in enumerate(values):
            with tf.device(f"/cpu:{i}"):
                results.append(collective.all_gather(tf.constant(value), len(values), 1, 2))
        return results

    return program


def _broadcast(sources: Any, shape: Any = (3,), dtype: str = "float32", count: int = 3) -> Any:
    def program(tf: Any, collective: Any) -> Any:
        results = []
        for i in range(count):
            with tf.device(f"/cpu:{i}"):
                if i in sources:
                    results.append(collective.broadcast_send(tf.constant(A), [3], tf.float32, count, 1, 3))
                else:
                    kind = getattr(tf, dtype)
                    results.append(collective.broadcast_recv(list(shape), kind, count, 1, 3))
        return results

    return program


def _two_operations(tf: Any, collective: Any) -> Any:
    return _reduce(A, B)(tf, collective) + _gather(A, B)(tf, collective)


def _gradient(tf: Any, collective: Any) -> Any:
    x = tf.constant(A)
    return tf.gradients(collective.all_reduce(x, 2, 1, 1, "Add", "Id"), x)


for _merge in ("Add", "Mul", "Min", "Max"):
    for _final in ("Id", "Div"):
        PROGRAMS[f"{_merge} {_final}"] = _reduce(A, B, 2 * A, merge=_merge, final=_final)
        PROGRAMS[f"{_merge} {_final} of integers"] = _reduce(*INTEGERS, merge=_merge, final=_final)
for _dtype in ("float16", "float64", "int64"):
    PROGRAMS[f"sum of {_dtype}"] = _reduce(A.astype(_dtype), B.astype(_dtype))
    PROGRAMS[f"gather of {_dtype}"] = _gather(A.astype(_dtype), B.astype(_dtype))
PROGRAMS.update(
    {
        "sum of scalars": _reduce(np.float32(2), np.float32(3)),
        "sum of nothing": _reduce(np.zeros([0, 2], np.float32), np.zeros([0, 2], np.float32)),
        "sum of one": _reduce(A),
        "sum of matrices": _reduce(np.outer(A, B), np.outer(B, B)),
        "gather of vectors": _gather(A, B, A),
        "gather of matrices": _gather(np.outer(A, A), np.outer(B, B)),
        "gather of one": _gather(A),
        "broadcast from the first": _broadcast({0}),
        "broadcast from the last": _broadcast({2}),
        "two operations": _two_operations,
        "shapes differ": _reduce(A, B[:2]),
        "ranks differ": _reduce(A, B.reshape(3, 1)),
        "types differ": _reduce(A, B.astype(np.float64)),
        "shapes of a gather differ": _gather(A, B[:2]),
        "types of a gather differ": _gather(A, B.astype(np.int32)),
        "shapes of a broadcast differ": _broadcast({0}, shape=(2,)),
        "types of a broadcast differ": _broadcast({0}, dtype="float64"),
        "a broadcast without a source": _broadcast(set()),
        "a broadcast with two sources": _broadcast({0, 1}),
        "a broadcast of one": _broadcast({0}, count=1),
        "sizes of a group differ": _reduce(A, B, sizes=(2, 3)),
        "a group is full": _reduce(A, B, A, sizes=(2, 2, 2)),
        "a group of none": _reduce(A, sizes=(0,)),
        "a member is missing": _reduce(A, sizes=(2,)),
        "a gather of scalars": _gather(np.float32(1), np.float32(2)),
        "a sum of bools": _reduce(A > 1, B > 1),
        "an unknown merge": _reduce(A, B, merge="Sum"),
        "a gradient": _gradient,
    }
)


def outcome(tf: Any, collective: Any, program: Callable[[Any, Any], Any]) -> Any:
    """Lists of the values, or where it failed ("building", "running") and the class of the error."""
    with tf.Graph().as_default():
        try:
            fetches = program(tf, collective)
        except Exception as error:
            return ["building", type(error).__name__]
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 3})) as session:
            try:
                values = session.run(fetches, options=tf.RunOptions(timeout_in_ms=2000))
            except tf.errors.OpError as error:
                return ["running", type(error).__name__]
        return [np.asarray(value).astype(float).tolist() for value in values]
