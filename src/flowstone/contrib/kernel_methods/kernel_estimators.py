"""`KernelLinearClassifier`: a linear classifier of features, of which some are mapped first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.kernel_methods.random_fourier_features import DenseKernelMapper
from flowstone.contrib.learn.estimators import head as head_lib
from flowstone.contrib.learn.estimators.canned_predictions import ClassPredictions
from flowstone.contrib.learn.estimators.estimator import Estimator
from flowstone.contrib.learn.estimators.linear import feature_dict, linear_model_fn

__all__ = ["KernelLinearClassifier"]


def _kernel_model_fn(
    features: Any, labels: Any, mode: str, params: dict[str, Any], config: Any = None
) -> Any:
    features, columns = dict(feature_dict(features)), set(params["feature_columns"])
    for column, mappers in (params["kernel_mappers"] or {}).items():
        if not hasattr(column, "dimension"):
            tf.logging.warning(
                "Updates are currently supported on RealValuedColumns only. Metadata for FeatureColumn "
                f"{column.name} will not be updated."
            )
            continue
        name = f"{column.name}_MAPPED"
        width = sum(mapper.output_dim for mapper in mappers)
        columns.add(tf.contrib.layers.real_valued_column(name, width))
        features[name] = tf.concat([mapper.map(features[column.name]) for mapper in mappers], 1)
    return linear_model_fn(features, labels, mode, {**params, "feature_columns": columns}, config)


def _are_mappers(given: Any) -> bool:
    return all(isinstance(each, DenseKernelMapper) for listed in (given or {}).values() for each in listed)


class KernelLinearClassifier(ClassPredictions, Estimator):
    """A linear model of classes, some of whose features are mapped first.

    Args:
        feature_columns: the columns that are taken as they are.
        model_dir: where the model is kept.
        n_classes: how many classes.
        weight_column_name: the features with the weights of examples.
        optimizer: as of `tf.contrib.learn.LinearClassifier`.
        kernel_mappers: from columns of numbers to the lists of mappers that are applied to them.
        config: a RunConfig.

    Raises ValueError without columns and mappers, for mappers that are none and for less than two classes.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any] | None = None,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        kernel_mappers: Mapping[Any, list[Any]] | None = None,
        config: Any = None,
    ) -> None:
        head = head_lib.multi_class_head(n_classes, weight_column_name=weight_column_name)
        if not feature_columns and not kernel_mappers:
            raise ValueError("You should set at least one of feature_columns, kernel_mappers.")
        if not _are_mappers(kernel_mappers):
            raise ValueError("Invalid kernel mappers.")
        params = {
            "head": head,
            "feature_columns": list(feature_columns or ()),
            "optimizer": optimizer,
            "kernel_mappers": kernel_mappers,
        }
        super().__init__(_kernel_model_fn, model_dir, config, params)
