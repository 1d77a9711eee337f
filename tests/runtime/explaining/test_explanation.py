"""Explanations of steps: what was rewritten, and what was measured."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import flowstone as tf
from flowstone.runtime.explaining.explanation import group_rewrites

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture(autouse=True)
def source_tree_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3] / "src"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.mark.by_aten
def test_a_session_explains_without_a_step_unless_asked_to_measure() -> None:
    v = tf.Variable(0.0, name="v")
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    add = tf.assign_add(v, tf.reduce_sum(tf.square(x, name="squares")), name="add")
    value = np.ones((3, 4), np.float32)
    with tf.Session() as session:
        session.run(v.initializer)
        plain = session.explain(add, {x: value})
        assert "the machine" not in plain and session.run(v) == 0.0
        text = session.explain(add, {x: value}, measure=True, steps=2)
        steps = session.run(v) / 12
        assert text.startswith("in short\n  [1] add") and text.endswith(plain)
        assert steps == 8
        assert "where the time goes (median of 2 traced steps)" in text
        assert re.search(r"squares\(float32\[3,4\]\) -> float32\[3,4\]", text)
        assert "1 intra-op thread" in text or "intra-op threads" in text
        for feeds, count in (([x], 5), ({x: value}, 0)):
            with pytest.raises(ValueError, match="needs the values of all feeds"):
                session.explain(add, feeds, measure=True, steps=count)
        assert session.run(v) == 12 * 8


def test_like_rewrites_are_one_line() -> None:
    log = [
        ("fold", "a/x", "known before the step"),
        ("merge", "b", "same as a/x"),
        ("fold", "b", "known before the step"),
        ("merge", "c", "same as b"),
        ("merge", "d", "same as b"),
        ("shrink", "e", "3 of 7 columns"),
        ("shrink", "f", "3 of 7 columns"),
    ]
    assert group_rewrites(log) == [
        ("fold", "known before the step", ("a/x", "b")),
        ("merge", "same as …", ("b", "c", "d")),
        ("shrink", "3 of 7 columns", ("e", "f")),
    ]
