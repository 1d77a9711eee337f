"""The area under a curve from histograms; its values are with the other metrics'."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [([1, 0], [0.5, 0.5], "must be bools"), ([True], [0.5, 0.5], "incompatible")],
)
def test_refused(labels: Any, scores: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        tf.contrib.metrics.auc_using_histogram(labels, scores, [0.0, 1.0])
