"""Random numbers in loops: with seeds those of the kernels, without seeds others in each run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.operation import F
from flowstone.lowering.programs.random_statements import CHOSEN, DRAWS
from three_ways import programs, repeated

LOGITS = np.float32([[0.5, 2.0, -1.0, 0.1], [3.0, np.inf, 1.0, np.nan]])
CASES: dict[str, Callable[[Any], list[Any]]] = {
    "Multinomial": lambda x: [
        tf.multinomial(LOGITS, 5),
        tf.multinomial(LOGITS.astype(np.float64), 2, output_dtype=tf.int32),
        tf.multinomial(np.full([1, 3], -np.inf, np.float32), 2),
    ],
    "RandomStandardNormal": lambda x: [tf.random_normal([33]), tf.random_normal([2, 3], seed=5)],
    "RandomUniform": lambda x: [tf.random_uniform([]), tf.random_uniform([40, 9], dtype=tf.float64)],
    "RandomUniformInt": lambda x: [
        tf.random_uniform([7], -3, 9, tf.int32),
        tf.random_uniform([2, 2], 0, 2**40, tf.int64),
    ],
    "TruncatedNormal": lambda x: [tf.truncated_normal([70]), tf.truncated_normal([1], dtype=tf.float32)],
    "_KeptByMargin": lambda x: [
        tf.where(tf.random_uniform([6, 5]) >= 0.5, x, tf.zeros([6, 5])),
        tf.nn.dropout(x, keep_prob=0.5),
    ],
}


def test_every_operation_has_a_case() -> None:
    assert set(CASES) == {*DRAWS, *CHOSEN}


def runs(fetches: Any, native: int, monkeypatch: pytest.MonkeyPatch, feed: Any) -> list[Any]:
    monkeypatch.setattr(flags, "NATIVE", native)
    with tf.Session() as session:
        assert ("_DrawingProgram(" in session.explain(fetches, feed)) == bool(native)
        return [y for _ in range(3) for y in session.run(fetches, feed)]


@pytest.mark.parametrize("name", CASES)
def test_numbers_with_seeds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tf.set_random_seed(3)
    x = tf.placeholder(tf.float32, [6, 5])
    results, feed = repeated(CASES[name], x), {x: np.ones([6, 5])}
    wanted = runs(results, 0, monkeypatch, feed)
    for native in (1, 2):  # in few runs, the first means the program's own nodes
        for a, b in zip(runs(results, native, monkeypatch, feed), wanted, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def test_numbers_without_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    x = repeated(lambda _: [tf.random_uniform([4000])], tf.zeros([]))
    found = runs(x, 2, monkeypatch, {}) + runs(x, 2, monkeypatch, {})
    assert len({each.tobytes() for each in found}) == len(found)
    assert all(0.45 < each.mean() < 0.55 and each.min() >= 0 and each.max() < 1 for each in found)


def test_a_sequence_goes_on_after_a_program_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    tf.set_random_seed(3)
    size = tf.placeholder(tf.int32, [])

    def body(i: Any, x: Any) -> list[Any]:
        return [i + 1, x * 10 + tf.random_uniform([2], 0, 9, tf.int32) // size]

    result = tf.while_loop(lambda i, _: i < 3, body, [0, tf.zeros([2], tf.int32)])[1]
    found = []
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Session() as session:
            first = session.run(result, {size: 1})
            with pytest.raises(tf.errors.InvalidArgumentError, match="zero"):
                session.run(result, {size: 0})
            found.append([first, session.run(result, {size: 1})])
    np.testing.assert_array_equal(*found)


def test_threads_share_a_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    tf.set_random_seed(3)
    (x,) = repeated(lambda _: [tf.random_uniform([3000])], tf.zeros([]))
    found: list[bytes] = []
    with tf.Session() as session:
        session.run(x)
        some = [threading.Thread(target=lambda: found.extend([session.run(x).tobytes() for _ in range(40)]))
                for _ in range(4)]  # fmt: skip
        for each in some:
            each.start()
        for each in some:
            each.join()
    assert len(set(found)) == 160


def test_no_bounds_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    x = repeated(lambda _: [F.RandomUniformInt([2], np.int32(4), np.int32(4))], tf.zeros([]))
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="minval < maxval"):
        session.run(x)


def test_results_depend_on_what_a_program_draws_that_reads_a_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flags, "CHECK", 1)
    w = tf.get_variable("w", [3], use_resource=False)
    (x,) = repeated(lambda x: [x * w], tf.random_uniform([3]))
    with tf.Session() as session:
        assert "_DrawingProgram(%0" in session.explain(x)


def test_a_drawing_program_is_no_part_of_straight_code() -> None:
    x = tf.random_uniform([3])
    for _ in range(60):
        x = tf.cumsum(x) * 0.5
    found, _, _ = programs([x], [])
    assert not found
