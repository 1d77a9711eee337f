"""What FLOWSTONE_CHECK=1 finds in generated code: each decision about memory, taken wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.runtime.code.aliasing import Aliasing

START = np.arange(4.0, dtype=np.float32).reshape(2, 2)


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(flags, "CHECK", 1)
    with tf.Graph().as_default():
        yield


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


def variable(resource: bool = True) -> Any:
    return tf.get_variable("v", initializer=tf.constant(START), use_resource=resource)


def never(*_: Any, **__: Any) -> bool:
    return False


def test_an_operand_that_is_used_later(monkeypatch: Any) -> None:
    x = tf.placeholder(tf.float32, [2, 2])
    y = tf.exp(x)
    z = tf.square(y, name="z") + tf.tanh(y)
    expected = run(z, {x: START})
    monkeypatch.setattr(Aliasing, "may_overwrite", lambda *_: True)
    with pytest.raises(AssertionError, match=r"which others have|has overwritten"):
        run(z, {x: START})
    assert expected[0, 0] == pytest.approx(1 + np.tanh(1))


@pytest.mark.by_aten
def test_what_a_loop_takes_from_outside(monkeypatch: Any) -> None:
    x = tf.placeholder(tf.float32, [2, 2])
    y = tf.exp(x)
    z = tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + tf.square(y)), [0, x])[1]
    run(z, {x: START})
    monkeypatch.setattr(Aliasing, "may_overwrite", lambda self, node, i: node.type == "Square")
    with pytest.raises(AssertionError, match=r"has overwritten|which others have"):
        run(z, {x: START})


def test_a_read_that_outlives_a_change(monkeypatch: Any) -> None:
    v = variable()
    before = v.read_value()
    with tf.control_dependencies([before]):
        change = v.assign_add(START + 1)
    with tf.control_dependencies([change]):
        after = before * 2
    assert run(after).tolist() == (2 * START).tolist()
    monkeypatch.setattr(Aliasing, "must_copy_read", never)
    with pytest.raises(AssertionError, match=r"whose memory AssignAdd.* has overwritten"):
        run(after)


def test_an_update_from_a_view_of_itself(monkeypatch: Any) -> None:
    v = variable(resource=False)
    update = tf.assign(v, tf.transpose(v))
    assert run(update).tolist() == START.T.tolist()
    monkeypatch.setattr(Aliasing, "copied_operands", lambda *_: [])
    monkeypatch.setattr(Aliasing, "must_copy_read", never)
    with pytest.raises(AssertionError, match="Assign changes what transpose:0 lies in while it reads that"):
        run(update)


def test_what_an_array_keeps(monkeypatch: Any) -> None:
    v = variable()
    array = tf.TensorArray(tf.float32, 1).write(0, v.read_value())
    with tf.control_dependencies([array.flow]):
        change = v.assign_add(START + 1)
    with tf.control_dependencies([change]):
        kept = array.read(0)
    assert run(kept).tolist() == START.tolist()
    monkeypatch.setattr(Aliasing, "must_copy_read", never)
    with pytest.raises(
        AssertionError, match=r"what TensorArrayWrite.* keeps takes .*AssignAdd.* has overwritten"
    ):
        run(kept)


def test_a_reference_is_read_as_it_is() -> None:
    v = variable(resource=False)
    with tf.control_dependencies([tf.assign_add(v, START + 1)]):
        after = tf.identity(v) * 1
    assert run(after).tolist() == (2 * START + 1).tolist()


@pytest.mark.parametrize("passes_off", ["", "remove_dead_branches"])
def test_a_branch_that_is_never_taken_decides_nothing(monkeypatch: Any, passes_off: str) -> None:
    """It has no code, so that its changes of state need no copies."""
    monkeypatch.setattr(flags, "DISABLED_PASSES", frozenset([passes_off]))
    v = variable(resource=False)

    def change() -> Any:
        with tf.control_dependencies([tf.assign(v, tf.transpose(v))]):
            return tf.identity(v)

    assert run(tf.cond(tf.constant(False), change, lambda: v * 2)).tolist() == (2 * START).tolist()
    given = tf.placeholder(tf.bool, [])
    chosen = tf.cond(given, change, lambda: v * 2)
    assert run(chosen, {given: True}).tolist() == START.T.tolist()
    assert run(chosen, {given: False}).tolist() == (2 * START).tolist()
