"""The graph where a region became one node, before and after."""

from __future__ import annotations

import flowstone as tf
from three_ways import programs


def test_the_graph_of_a_branch_before_and_after() -> None:
    x = tf.placeholder(tf.float32, [3], name="x")
    p = tf.placeholder(tf.bool, [], name="p")
    y = tf.cond(p, lambda: x * 2.0, lambda: x + 1.0, name="c") - x
    _, text, log = programs([y], [x, p])
    assert text.splitlines() == [
        "%0 = _Arg() index=0 : float32[3]  # x",
        "%1 = _Arg() index=1 : bool[]  # p",
        "%2 = _Program(%1, %0) Tout=[tf.float32] operations='Mul+AddV2+Set+Set+Sub' : float32[3]  # sub",
        "return %2",
    ]
    assert log == [("join_programs", "sub", "12 nodes, 0 loops and 1 merges of branches as machine code")]
