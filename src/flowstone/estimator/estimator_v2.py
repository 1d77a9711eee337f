"""`EstimatorV2`: TensorFlow 1.15's class of version 2's estimators, which libraries ask for by name."""

from __future__ import annotations

from typing import Any

from flowstone.estimator.estimator import Estimator

__all__ = ["EstimatorV2"]


class _Gone:
    """A method of Estimator that the class no longer has."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        raise AttributeError("EstimatorV2 has no `export_savedmodel`: use `export_saved_model`")


class EstimatorV2(Estimator):
    """An `Estimator` without `export_savedmodel`."""

    export_savedmodel: Any = _Gone()
