"""Areas from all predictions are TensorFlow's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.contrib.metrics import area_programs

import flowstone as tf

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "contrib" / "areas.json").read_text())


@pytest.mark.parametrize("metric", sorted(area_programs.metrics(tf)))
def test_areas_and_intervals_are_tensorflows(metric: str) -> None:
    assert set(GOLDEN[metric]) == set(area_programs.BATCHES)
    for name, batches in area_programs.BATCHES.items():
        found = area_programs.answer(tf, metric, batches)
        np.testing.assert_allclose(found, GOLDEN[metric][name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_results_are_published_under_the_metrics_scope() -> None:
    for kind in (tf.contrib.metrics.streaming_dynamic_auc, tf.contrib.metrics.auc_with_confidence_intervals):
        with tf.Graph().as_default() as graph:
            value, update = kind(
                [0, 1], [0.2, 0.4], metrics_collections=["a"], updates_collections=["b"], name="scope"
            )
            assert graph.get_collection("a") == [value] and graph.get_collection("b") == [update]
            assert all(each.name.startswith("scope/concat_") for each in tf.local_variables())


@pytest.mark.parametrize("metric", ["ROC", "interval"])
def test_labels_are_0_or_1(metric: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels must be 0 or 1, at least one is >1"):
        area_programs.answer(tf, metric, [([2, 1], [0.1, 0.2])])


def test_arguments_that_mean_nothing() -> None:
    with pytest.raises(ValueError, match="curve must be either ROC or PR, x unknown"):
        tf.contrib.metrics.streaming_dynamic_auc([0], [0.1], curve="x")
    with pytest.raises(ValueError, match=r"alpha must be between 0 and 1; currently 1\.50"):
        tf.contrib.metrics.auc_with_confidence_intervals([0], [0.1], alpha=1.5)
