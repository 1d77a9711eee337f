"""`SKCompat`: an Estimator with the methods of scikit-learn's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from flowstone.contrib.learn.estimators._sklearn import _BaseEstimator
from flowstone.contrib.learn.estimators.input_functions import fed, input_fn_of, joined

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["SKCompat"]


class SKCompat(_BaseEstimator):
    """An Estimator with the methods of scikit-learn's, on arrays; `estimator`: the Estimator."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator

    def fit(
        self,
        x: Any,
        y: Any,
        batch_size: int | None = 128,
        steps: int | None = None,
        max_steps: int | None = None,
        monitors: Any = None,
    ) -> Self:
        """Trains on arrays, whose order is drawn; see `Estimator.fit`."""
        feed, input_fn = fed(x, y, batch_size, shuffle=True, epochs=None)
        self._estimator.fit(
            input_fn=input_fn, steps=steps, max_steps=max_steps, monitors=[*feed, *(monitors or ())]
        )
        return self

    def score(
        self,
        x: Any,
        y: Any,
        batch_size: int | None = 128,
        steps: int | None = None,
        metrics: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Evaluates on arrays; see `Estimator.evaluate`."""
        input_fn, feed_fn = input_fn_of(x, y, None, None, batch_size)
        if metrics is not None and not isinstance(metrics, Mapping):
            raise ValueError(f"Metrics argument should be None or dict. Got {metrics}.")
        values, step = self._estimator._evaluate_model(input_fn, steps, feed_fn, metrics, name or "")
        values["global_step"] = step
        return values  # type: ignore[no-any-return]

    def predict(self, x: Any, batch_size: int | None = 128, outputs: Iterable[str] | None = None) -> Any:
        """The predictions for arrays, as arrays; see `Estimator.predict`."""
        input_fn, feed_fn = input_fn_of(x, None, None, None, batch_size)
        found = list(
            self._estimator._infer_model(input_fn, feed_fn, outputs, as_iterable=True, iterate_batches=True)
        )
        return joined(found)
