"""`tf.keras.metrics`: what the package lacks, has only for TensorFlow 2, or for fewer types."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import strategy_of_several
from flowstone.keras.extensions.names import unique_name
from flowstone.keras.published import own
from flowstone.ops.variables.replicas import current_replica

__all__ = ["extend"]


def add_weight(
    self: Any,
    name: str,
    shape: Any = (),
    aggregation: Any = None,
    synchronization: Any = None,
    initializer: Any = None,
    dtype: Any = None,
) -> Any:
    """A new variable of a metric's state, which training does not change, in no collection; for subclasses.

    Of several replicas each has its own part of the state, which is their sum unless the arguments say else.
    """
    base = own("engine.base_layer").Layer
    return base.add_weight(
        self, name, shape, dtype or self.dtype, initializer, trainable=False,
        synchronization=synchronization or tf.VariableSynchronization.ON_READ,
        aggregation=aggregation or tf.VariableAggregation.SUM, collections=[],
    )  # fmt: skip


def _changed_call(published: Any) -> Any:
    def __call__(self: Any, *arguments: Any, **keywords: Any) -> Any:
        """Counts in and gives the result; outside of replicas' code for each of several replicas."""
        strategy = strategy_of_several()
        if strategy is None or current_replica() is not None:
            return published(self, *arguments, **keywords)

        def counted(*given: Any, **options: Any) -> Any:
            return published(self, *given, **options)

        found = strategy.extended.call_for_each_replica(counted, arguments, keywords)
        found._metric_obj = self
        return found

    return __call__


def _tensor_class(metric: Any) -> Any:
    class MeanTensor(metric):  # type: ignore[misc]
        """The means of tensors of one shape, element by element, weighted where weights are given."""

        def __init__(self, name: str = "mean_tensor", dtype: Any = None) -> None:
            super().__init__(name=name, dtype=dtype)
            self._shape: Any = None

        @property
        def total(self) -> Any:
            """The weighted sum: a variable; None before the first update."""
            return self._total if self._shape is not None else None

        @property
        def count(self) -> Any:
            """The sum of the weights: a variable; None before the first update."""
            return self._count if self._shape is not None else None

        def update_state(self, values: Any, sample_weight: Any = None) -> Any:
            """Counts in a tensor; ValueError for another shape than the first one's."""
            values = tf.cast(tf.convert_to_tensor(values), self.dtype)
            if self._shape is None:
                self._shape = values.shape
                self._total = self.add_weight("total", self._shape.as_list(), initializer="zeros")
                self._count = self.add_weight("count", self._shape.as_list(), initializer="zeros")
            elif values.shape != self._shape:
                raise ValueError(
                    "MeanTensor input values must always have the same shape. Expected shape (set during the "
                    f"first call): {self._shape}. Got: {values.shape}"
                )
            weights = tf.ones_like(values)
            if sample_weight is not None:
                given = tf.cast(tf.convert_to_tensor(sample_weight), self.dtype)
                while given.shape.ndims < values.shape.ndims:
                    given = tf.expand_dims(given, -1)
                weights = weights * given
                values = values * given
            return [self._total.assign_add(values), self._count.assign_add(weights)]

        def result(self) -> Any:
            """The means."""
            if self._shape is None:
                raise ValueError(
                    "MeanTensor does not have any result yet. Please call the MeanTensor instance or use "
                    "`.update_state(value)` before retrieving the result."
                )
            return tf.div_no_nan(self._total, self._count)

        def reset_states(self) -> None:
            """Forgets what was counted."""
            if self._shape is not None:
                tf.keras.backend.batch_set_value(
                    [(v, tf.keras.backend.get_value(v) * 0) for v in self.weights]
                )

    return MeanTensor


def _relative_error_class(mean: Any) -> Any:
    class MeanRelativeError(mean):  # type: ignore[misc]
        """The mean of |y_pred - y_true| / normalizer, 0 where that is 0."""

        def __init__(self, normalizer: Any, name: str | None = None, dtype: Any = None) -> None:
            super().__init__(name=name or "mean_relative_error", dtype=dtype)
            self.normalizer = tf.cast(tf.convert_to_tensor(normalizer), self.dtype)
            self._given = normalizer

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            """Counts in a batch."""
            true, predicted = (tf.cast(tf.convert_to_tensor(y), self.dtype) for y in (y_true, y_pred))
            errors = tf.div_no_nan(tf.abs(true - predicted), self.normalizer)
            return mean.update_state(self, errors, sample_weight=sample_weight)

        def get_config(self) -> dict[str, Any]:
            """What it is made of."""
            return {**super().get_config(), "normalizer": tf.keras.backend.eval(self.normalizer)}

    return MeanRelativeError


def _iou_class(metric: Any) -> Any:
    class MeanIoU(metric):  # type: ignore[misc]
        """The mean over `num_classes` classes of intersection over union, by a matrix of confusion."""

        def __init__(self, num_classes: int, name: str | None = None, dtype: Any = None) -> None:
            super().__init__(name=name or unique_name("MeanIoU"), dtype=dtype)
            self.num_classes = num_classes
            self.total_cm = self.add_weight(
                "total_confusion_matrix", (num_classes, num_classes), initializer="zeros", dtype=tf.float64
            )

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            """Counts in a batch of classes by their numbers."""
            flat = [tf.reshape(tf.cast(tf.convert_to_tensor(y), tf.int64), [-1]) for y in (y_true, y_pred)]
            weights = None
            if sample_weight is not None:
                weights = tf.reshape(tf.cast(tf.convert_to_tensor(sample_weight), tf.float64), [-1])
            matrix = tf.confusion_matrix(*flat, self.num_classes, weights=weights, dtype=tf.float64)
            return self.total_cm.assign_add(matrix)

        def result(self) -> Any:
            """The mean, over the classes that are there."""
            matrix = tf.cast(self.total_cm, self.dtype)
            both = tf.diag_part(matrix)
            union = tf.reduce_sum(matrix, 0) + tf.reduce_sum(matrix, 1) - both
            found = tf.reduce_sum(tf.cast(tf.not_equal(union, 0), self.dtype))
            return tf.div_no_nan(tf.reduce_sum(tf.div_no_nan(both, union)), found)

        def reset_states(self) -> None:
            """Forgets what was counted."""
            size = self.num_classes
            tf.keras.backend.set_value(self.total_cm, [[0.0] * size for _ in range(size)])

        def get_config(self) -> dict[str, Any]:
            """What it is made of."""
            return {**super().get_config(), "num_classes": self.num_classes}

    return MeanIoU


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """For each example whether the largest prediction is that of its class, as a number."""
    true, predicted = tf.convert_to_tensor(y_true), tf.convert_to_tensor(y_pred)
    ranks = true.shape.ndims, predicted.shape.ndims
    if None not in ranks and ranks[0] == ranks[1]:
        true = tf.squeeze(true, [-1])
    found = tf.cast(tf.argmax(predicted, -1), true.dtype.base_dtype)
    return tf.cast(tf.equal(true, found), tf.keras.backend.floatx())


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Any:
    """The share of predictions that are on the labels' side of the threshold, along the last axis."""
    predicted = tf.convert_to_tensor(y_pred)
    limit = tf.cast(threshold, predicted.dtype.base_dtype)
    predicted = tf.cast(predicted > limit, predicted.dtype.base_dtype)
    return tf.reduce_mean(tf.cast(tf.equal(y_true, predicted), tf.keras.backend.floatx()), -1)


def _with_configurations(published: Any, names: Any) -> Any:
    def get(identifier: Any) -> Any:
        """The metric of a name, a function or a configuration, which models that are loaded give."""
        return names["deserialize"](identifier) if isinstance(identifier, dict) else published(identifier)

    return get


def _counted(published: Callable[..., Any]) -> Callable[..., Any]:
    """What `update_state` of a program's metric changes happens whether or not it gives it, as in
    TensorFlow, and the metric's value waits for it.
    """

    def update_state_wrapper(update_state: Callable[..., Any]) -> Callable[..., Any]:
        """`update_state`, as a list of the operations that change state: the metric's updates."""
        is_own = update_state.__module__.startswith("flowstone.")  # they give all that they change

        def updates(*arguments: Any, **keywords: Any) -> list[Any]:
            graph = tf.get_default_graph()
            before = graph.version
            found = update_state(*arguments, **keywords)
            given = [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]
            known = [getattr(x, "op", x) for x in given]
            return given if is_own else given + [x for x in _changes_since(graph, before) if x not in known]

        return published(updates)  # type: ignore[no-any-return]

    return update_state_wrapper


def _changes_since(graph: Any, version: int) -> list[Any]:
    """The operations that change state and were added after `version`, outside branches and loops."""
    context = graph._get_control_flow_context()
    added = [operation for operation in graph.get_operations() if operation._id > version]
    return [
        operation
        for operation in added
        if operation.declaration.mutates and operation._get_control_flow_context() is context
    ]


def _changed_reduced(published: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def result(self: Any) -> Any:
        """The sum, or the mean: 0 of no values."""
        return tf.div_no_nan(self.total, self.count) if hasattr(self, "count") else published(self)

    return result


def _update_squared_error(self: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
    y_true, y_pred = (tf.cast(y, self.dtype) for y in (y_true, y_pred))
    y_pred, y_true = own("utils.losses_utils").squeeze_or_expand_dimensions(y_pred, y_true)
    error = tf.squared_difference(y_pred, y_true)
    return own("metrics").Mean.update_state(self, error, sample_weight=sample_weight)


def _root_of_mean(self: Any) -> Any:
    return tf.sqrt(tf.div_no_nan(self.total, self.count))


def extend(module: ModuleType) -> None:
    """Puts the functions and classes into `keras.metrics`."""
    names = vars(module)
    names["sparse_categorical_accuracy"] = sparse_categorical_accuracy
    names["binary_accuracy"] = binary_accuracy
    if "Metric" not in names:  # Keras 2.2
        return
    names["Metric"].__call__ = _changed_call(names["Metric"].__call__)
    utilities = names["metrics_utils"]
    utilities.update_state_wrapper = _counted(utilities.update_state_wrapper)
    names["get"] = _with_configurations(names["get"], names)
    names["Metric"].add_weight = add_weight
    names["Reduce"].result = _changed_reduced(names["Reduce"].result)
    names["RootMeanSquaredError"].update_state = _update_squared_error
    names["RootMeanSquaredError"].result = _root_of_mean
    names["MeanTensor"] = _tensor_class(names["Metric"])
    names["MeanRelativeError"] = _relative_error_class(names["Mean"])
    names["MeanIoU"] = _iou_class(names["Metric"])
    names["KLD"] = names["kld"] = names["kullback_leibler_divergence"]
