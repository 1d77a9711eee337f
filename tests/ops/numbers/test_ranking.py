"""Whether targets are among the best of their rows, of few rows and of many."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("rows", "classes"), [(1, 1), (9, 30), (200, 40)])
def test_targets_among_the_best(rows: int, classes: int, dtype: str) -> None:
    """Equal numbers count for the target; not in rows with infinities or NaN, nor out of range."""
    random = np.random.RandomState(rows)
    predictions = random.randint(0, 12, (rows, classes)).astype(np.float32)
    predictions[2::7, 0], predictions[3::7, -1], predictions[4::7, 0] = np.nan, np.inf, -np.inf
    targets = random.randint(-1, classes + 1, rows).astype(dtype)
    expected = [
        bool(0 <= i < classes and np.isfinite(row).all() and (row > row[i]).sum() < 3)
        for row, i in zip(predictions, targets)
    ]
    with tf.Session() as session:
        fed = tf.placeholder(tf.float32, [rows, classes])
        for k in (3, tf.constant(3, dtype)):
            assert (
                session.run(tf.nn.in_top_k(fed, tf.constant(targets), k), {fed: predictions}).tolist()
                == expected
            )
