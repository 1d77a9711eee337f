"""Which nodes compute from state that their own run changes."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.rewriting.analyses.changing_values import changing_nodes
from flowstone.rewriting.simplification.partial_execution import prune


def changing(fetches: list[Any], changes: list[Any]) -> set[str]:
    return {
        node.name
        for node in changing_nodes(prune(fetches, [getattr(each, "op", each) for each in changes], []))
    }


def test_what_depends_on_a_changed_variable_and_nothing_else() -> None:
    v, w = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="w")
    y = tf.tanh(tf.exp(v, "of_v") + tf.exp(w, "of_w"), "of_both")
    change = tf.assign(v, 3.0)
    found = changing([y], [change])
    assert {"of_v", "of_both"} <= found and "of_w" not in found
    assert not changing([y], [])


def test_all_where_nothing_is_fetched() -> None:
    v = tf.Variable(tf.exp(tf.fill([2], 1.0), "start"), name="v")
    assert "start" in changing([], [v.initializer])


def test_what_a_loop_hands_back() -> None:
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    body = lambda i, x, y: (i + 1, tf.sin(y, "second"), y + v)  # noqa: E731
    _, x, _ = tf.while_loop(lambda i, x, y: i < 3, body, [0, 1.0, 1.0])
    found = changing([x], [v.assign(5.0)])
    assert any(name.endswith("second") for name in found)
