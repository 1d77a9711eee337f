"""What loops and branches are as programs, as text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from three_ways import assert_equal_three_ways, programs


def text(fetches: Any, feeds: Any) -> list[str]:
    """The lines of the only program of a graph."""
    (program,) = programs(fetches, feeds)[0]
    return str(program).splitlines()


def test_a_loop() -> None:
    x = tf.placeholder(tf.float32, [3])
    y = tf.while_loop(lambda i, _: i < 4, lambda i, a: (i + 1, a * 2.0), [0, x])[1]
    assert text([y], [x]) == [
        "%0 = input float32[3]",
        "%1 = constant 0 : int32[]",
        "%4 = constant 4 : int32[]",
        "%6 = constant 1 : int32[]",
        "%8 = constant 2.0 : float32[]",
        "loop %2 = (%1, %7), %3 = (%0, %9)",
        "    %5 = Less(%2, %4) : bool[]",
        "    while %5",
        "    %7 = AddV2(%2, %6) : int32[]",
        "    %9 = Mul(%3, %8) : float32[3]",
        "return %3",
    ]


def test_a_loop_until_an_error_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [3])
    y = tf.while_loop(
        lambda i, a, error: tf.logical_and(i < 50, error > 1e-4),
        lambda i, a, error: (i + 1, a * 0.5 + 1.0, tf.reduce_sum(tf.abs(a * 0.5 - 1.0))),
        [0, x, 1.0],
    )[1]
    lines = text([y], [x])
    assert next(line for line in lines if line.startswith("loop")).count("=") == 3  # the error is one of them
    assert_equal_three_ways(monkeypatch, [y], {x: [1.0, 5.0, -3.0]})


def test_a_branch() -> None:
    x, p = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: x * 2.0, lambda: x + 1.0)
    assert text([y], [x, p]) == [
        "%0 = input bool[]",
        "%1 = input float32[3]",
        "%2 = constant 2.0 : float32[]",
        "%4 = constant 1.0 : float32[]",
        "%3 = Mul(%1, %2) : float32[3] if %0",
        "%5 = AddV2(%1, %4) : float32[3] if not %0",
        "%6 = Set(%5) : float32[3] if not %0",
        "%6 = Set(%3) : float32[3] if %0",
        "return %6",
    ]


def test_branches_inside_of_branches() -> None:
    x, p, q = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.cond(q, lambda: x * 2.0, lambda: x + 1.0), lambda: -x)
    guards = {line.partition(" if ")[2] for line in text([y], [x, p, q]) if " if " in line}
    assert len(guards) == 4  # both of the inner one, and of the outer one
    assert sum(" and " in guard for guard in guards) == 2


def test_a_branch_inside_of_a_loop_is_guarded_by_its_own_predicate_only() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.while_loop(
        lambda i, _: i < 4,
        lambda i, a: (i + 1, tf.cond(a > 0.0, lambda: a - 1.0, lambda: a * a)),
        [0, x],
    )[1]
    lines = [line for line in text([y], [x]) if " if " in line]
    assert lines and all(" and " not in line for line in lines)


def test_constants_of_many_numbers_are_handed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.arange(100, dtype=np.float32).reshape(50, 2)
    n = tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i, _: i < n, lambda i, a: (i + 1, a + tf.gather(table, i)), [0, tf.zeros([2])])[
        1
    ]
    assert any(line.endswith("input float32[50,2]") for line in text([y], [n]))
    assert_equal_three_ways(monkeypatch, [y], {n: 7})


def test_two_variables_that_change_places(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [3])
    results = tf.while_loop(lambda i, *_: i < 5, lambda i, a, b: (i + 1, b, a + b), [0, x, x * 2.0])
    assert_equal_three_ways(monkeypatch, list(results), {x: [1.0, 2.0, 3.0]})


def test_merges_that_say_which_branch_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    x, p = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.bool, [])
    on, off = tf.raw_ops.Switch(data=x, pred=p)[::-1]
    merged = tf.raw_ops.Merge(inputs=[off * 2.0, on + 1.0])
    for value in (True, False):
        assert_equal_three_ways(
            monkeypatch, [merged.output, merged.value_index], {x: [1.0, 2.0, 3.0], p: value}
        )


def test_values_that_take_much_memory() -> None:
    """At once, that is: a chain of as many values shares memory."""
    x = tf.placeholder(tf.float32, [10_000])

    def together(i: Any, a: Any) -> Any:
        parts = [tf.reverse(a * float(k), [0]) for k in range(2, 18)]
        return i + 1, tf.add_n(parts)

    def in_turn(i: Any, a: Any) -> Any:
        for k in range(2, 18):
            a = tf.reverse(a * float(k), [0])
        return i + 1, a

    for body, is_much in ((together, True), (in_turn, False)):
        y = tf.while_loop(lambda i, _: i < 4, body, [0, x])[1]
        found, _, log = programs([y], [x])
        assert bool(found) != is_much
        assert ("its values take much memory" in str(log)) == is_much
