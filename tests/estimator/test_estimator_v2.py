"""`EstimatorV2` against what TensorFlow 1.15.5 has under the name."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.compat.module_paths import register
from flowstone.estimator.estimator_v2 import EstimatorV2
from flowstone.framework.names.alias_modules import alias_module


def test_it_is_an_estimator_without_the_old_export() -> None:
    assert issubclass(EstimatorV2, tf.estimator.Estimator)
    estimator = EstimatorV2(lambda features: None)
    for owner in (EstimatorV2, estimator):
        assert not hasattr(owner, "export_savedmodel")
        assert callable(owner.export_saved_model)
    with pytest.raises(ValueError, match="override"):

        class Own(EstimatorV2):
            def train(self) -> None:  # type: ignore[override]
                """Another method of the name."""

        Own(lambda features: None)


def test_internal_modules_have_it() -> None:
    register()
    estimator: Any = alias_module("tensorflow.python.estimator.estimator")
    assert estimator.EstimatorV2 is EstimatorV2
    assert not isinstance(estimator.Estimator(lambda features: None), EstimatorV2)
