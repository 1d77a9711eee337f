"""Arrays that are tensors: which ones go, which stay, and equal results without it."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from agreement import agree, ops, text

X = np.arange(12, dtype="f").reshape(4, 3)


def arrays(fetches: Any, feeds: Any) -> int:
    found = ops(text(fetches, feeds, "fold_constants", "apply_identities", "forward_whole_arrays"))
    return sum(op.startswith("TensorArray") for op in found)


def filled(**how: Any) -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [4, 3])
    return x, tf.TensorArray(tf.float32, 4, **how).unstack(tf.square(x))


def test_a_whole_array_and_its_gradient_are_tensors(monkeypatch) -> None:
    x, array = filled()
    y = array.stack()
    fetches = [y, *tf.gradients(tf.sin(y), x)]
    assert arrays(fetches, [x]) == 0
    assert "is the tensor that was written as a whole" in agree(
        monkeypatch, fetches, {x: X}, "forward_whole_arrays", fires=2
    )


def test_the_flow_may_be_waited_for(monkeypatch) -> None:
    x, array = filled()
    with tf.control_dependencies([array.flow]):
        y = array.stack() + 1.0
    assert arrays([y], [x]) == 0
    agree(monkeypatch, [y], {x: X}, "forward_whole_arrays", fires=1)


def test_parts_and_other_orders_stay(monkeypatch) -> None:
    x, array = filled()
    some = array.gather([2, 0, 1])
    y, other = filled(clear_after_read=False)
    twice = [other.stack(), other.read(1)]
    z, more = filled(dynamic_size=True)
    longer = more.write(4, tf.ones(3)).stack()
    for fetches, feed in (([some], {x: X}), (twice, {y: X}), ([longer], {z: X})):
        assert arrays(fetches, list(feed)) > 0
        agree(monkeypatch, fetches, feed, "forward_whole_arrays", fires=0)


def test_an_array_whose_flow_is_fetched_stays(monkeypatch) -> None:
    x, array = filled()
    assert arrays([array.flow, array.stack()], [x]) > 0
    agree(monkeypatch, [array.flow, array.stack()], {x: X}, "forward_whole_arrays", fires=1)


def test_gradients_that_are_added_up_stay(monkeypatch) -> None:
    x, array = filled(clear_after_read=False)
    a, b = array.stack(), array.stack()
    fetches = [a, *tf.gradients(tf.sin(a) + tf.cos(b) * 2.0, x)]
    agree(monkeypatch, fetches, {x: X}, "forward_whole_arrays", fires=0)
