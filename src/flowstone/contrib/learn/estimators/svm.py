"""`SVM`: a linear support vector machine for two classes, trained by dual coordinate ascent.

Variables are those of the linear models and what `SDCAOptimizer` keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flowstone.contrib.learn.constants import PredictionKey
from flowstone.contrib.learn.estimators import head as head_lib
from flowstone.contrib.learn.estimators.estimator import Estimator
from flowstone.contrib.learn.estimators.linear import sdca_model_fn
from flowstone.contrib.linear_optimizer.sdca_optimizer import SDCAOptimizer

__all__ = ["SVM"]


def _as_iterable(predictions: Any, output: str) -> Iterable[Any]:
    for prediction in predictions:
        yield prediction[output]


class SVM(Estimator):
    """A linear support vector machine for two classes.

    Args:
        example_id_column: the feature with the identifiers of examples, strings.
        feature_columns: columns of numbers, and sparse ones.
        weight_column_name: the feature with the weights of examples, or None.
        model_dir: the folder of checkpoints and logs.
        l1_regularization, l2_regularization: the strengths of regularization; the second is at least 1.
        num_loss_partitions: how many workers train at once.
        kernels: None; there are linear machines only, ValueError for others.
        config, feature_engineering_fn: see `Estimator`.
    """

    def __init__(
        self,
        example_id_column: str,
        feature_columns: Iterable[Any],
        weight_column_name: str | None = None,
        model_dir: Any = None,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        num_loss_partitions: int = 1,
        kernels: Any = None,
        config: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        if kernels is not None:
            raise ValueError("Kernel SVMs are not currently supported.")
        self._optimizer = SDCAOptimizer(
            example_id_column=example_id_column,
            num_loss_partitions=num_loss_partitions,
            symmetric_l1_regularization=l1_regularization,
            symmetric_l2_regularization=l2_regularization,
        )
        self._feature_columns = list(feature_columns)
        head = head_lib.binary_svm_head(weight_column_name=weight_column_name, enable_centered_bias=False)
        super().__init__(
            model_fn=sdca_model_fn,
            model_dir=model_dir,
            config=config,
            params={
                "head": head,
                "feature_columns": self._feature_columns,
                "optimizer": self._optimizer,
                "weight_column_name": weight_column_name,
                "loss_type": "hinge_loss",
            },
            feature_engineering_fn=feature_engineering_fn,
        )

    def predict_classes(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """The classes of all examples, 0 or 1; see `Estimator.predict`."""
        return self._predicted_output(PredictionKey.CLASSES, x, input_fn, batch_size, as_iterable)

    def predict_proba(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Any = None,
        as_iterable: bool = True,
    ) -> Any:
        """Raises ValueError when it is used: this model has no probabilities, in TensorFlow either."""
        del outputs
        return self._predicted_output(PredictionKey.PROBABILITIES, x, input_fn, batch_size, as_iterable)

    def _predicted_output(
        self, output: str, x: Any, input_fn: Any, batch_size: int | None, as_iterable: bool
    ) -> Any:
        found = self.predict(
            x=x, input_fn=input_fn, batch_size=batch_size, outputs=[output], as_iterable=as_iterable
        )
        return _as_iterable(found, output) if as_iterable else found[output]
