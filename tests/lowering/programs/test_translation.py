"""What a translation makes once, as text."""

from __future__ import annotations

import flowstone as tf
from three_ways import programs


def test_what_a_loop_does_not_change_is_moved_once() -> None:
    x, w = tf.placeholder(tf.float32, [1, 4]), tf.placeholder(tf.float32, [4, 4])
    y = tf.while_loop(lambda i, _: i < 4, lambda i, a: (i + 1, tf.matmul(a, w, transpose_b=True)), [0, x])[1]
    lines = str(programs([y], [x, w])[0][0]).splitlines()
    (copied,) = [i for i, line in enumerate(lines) if "Copy(" in line]
    (begins,) = [i for i, line in enumerate(lines) if line.startswith("loop")]
    assert copied < begins
