"""What classifiers and regressors predict when no outputs are named, and by the methods of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowstone.contrib.learn.constants import PredictionKey
from flowstone.contrib.learn.estimators.base_estimator import BaseEstimator

__all__ = ["ClassPredictions", "ScorePredictions"]


class _OneOutput(BaseEstimator):
    """An Estimator with a main output."""

    _MAIN = PredictionKey.SCORES

    def predict(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Iterable[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The predictions for all examples: the main ones by themselves if `outputs` are not named.

        See `Estimator.predict`.
        """
        if outputs:
            return super().predict(x, input_fn, batch_size, outputs, as_iterable, iterate_batches)
        return self._only(self._MAIN, x, input_fn, batch_size, as_iterable, iterate_batches)

    def _only(
        self,
        key: str,
        x: Any,
        input_fn: Any,
        batch_size: int | None,
        as_iterable: bool,
        iterate_batches: bool = False,
    ) -> Any:
        """The predictions of one name."""
        found = super().predict(x, input_fn, batch_size, [key], as_iterable, iterate_batches)
        return (each[key] for each in found) if as_iterable else found[key]


class ClassPredictions(_OneOutput):
    """A classifier: its main output are the classes."""

    _MAIN = PredictionKey.CLASSES

    def predict_classes(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """The classes of all examples; see `Estimator.predict`."""
        return self._only(PredictionKey.CLASSES, x, input_fn, batch_size, as_iterable)

    def predict_proba(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """The probabilities of the classes of all examples; see `Estimator.predict`."""
        return self._only(PredictionKey.PROBABILITIES, x, input_fn, batch_size, as_iterable)


class ScorePredictions(_OneOutput):
    """A regressor: its main output are the scores."""

    def predict_scores(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """The scores of all examples; see `Estimator.predict`."""
        return self._only(PredictionKey.SCORES, x, input_fn, batch_size, as_iterable)
