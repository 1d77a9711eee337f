"""Boosted trees: ensembles of decision trees over feature columns, each grown to lessen the loss of those
before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.estimator.canned.tree_features import column_names, count_features
from flowstone.estimator.canned.tree_growers import TreeHParams
from flowstone.estimator.canned.tree_model import DEBUG_KEY, explained_spec, tree_spec
from flowstone.estimator.estimator import Estimator
from flowstone.estimator.head.base_head import Head, dense_labels
from flowstone.estimator.head.binary_class_head import BinaryClassHead
from flowstone.estimator.head.multi_class_head import MultiClassHead
from flowstone.estimator.head.regression_head import RegressionHead
from flowstone.io.proto import boosted_trees_pb2

__all__ = [
    "BoostedTreesClassifier",
    "BoostedTreesEstimator",
    "BoostedTreesRegressor",
    "boosted_trees_classifier_train_in_memory",
    "boosted_trees_regressor_train_in_memory",
]

_ONE = object()  # the one number of classes, or of numbers a label, that there is
_MEAN = "weighted_sum_over_batch_size"


class _BoostedTreesBase(Estimator):
    """What the Estimators of boosted trees share.

    Args:
        feature_columns: the columns; `head`: the Head; `hparams`: TreeHParams.
        n_batches_per_layer: how many batches a layer needs.
        is_classification: whether a logit stands for a probability.
        model_dir: the folder of checkpoints and logs; `config`: a RunConfig.
        more: further arguments of `tree_spec`.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        head: Head,
        hparams: Any,
        n_batches_per_layer: Any,
        is_classification: bool,
        model_dir: Any,
        config: Any,
        **more: Any,
    ) -> None:
        columns = sorted(feature_columns, key=lambda column: column.name)

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            return tree_spec(
                features,
                labels,
                mode,
                config,
                head=head,
                columns=columns,
                hparams=hparams,
                n_batches_per_layer=n_batches_per_layer,
                **more,
            )

        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config)
        self._sorted_feature_columns, self._head, self._hparams = columns, head, hparams
        self._n_features = count_features(columns)
        self._feature_col_names = column_names(columns)
        self._center_bias, self._is_classification = hparams.center_bias, is_classification

    def experimental_feature_importances(self, normalize: bool = False) -> OrderedDict[str, float]:
        """By how much the splits by each column lessened the loss, the greatest first.

        Args:
            normalize: whether all make 1 together.

        Raises ValueError before training; AssertionError for `normalize` if a gain is negative or nothing was
        split.
        """
        reader = tf.train.load_checkpoint(self.model_dir)
        serialized = reader.get_tensor("boosted_trees:0_serialized")
        serialized = serialized.item() if isinstance(serialized, np.ndarray) else serialized
        if not serialized:
            raise ValueError(
                "Found empty serialized string for TreeEnsemble."
                "You should only call this method after training."
            )
        ensemble = boosted_trees_pb2.TreeEnsemble.FromString(serialized)
        importances = np.zeros(self._n_features)
        for tree, weight in zip(ensemble.trees, ensemble.tree_weights, strict=True):
            for node in tree.nodes:
                if node.WhichOneof("node") == "bucketized_split":
                    importances[node.bucketized_split.feature_id] += weight * node.metadata.gain
        if normalize:
            assert np.all(importances >= 0), "feature_importances must be non-negative."
            total = np.sum(importances)
            assert total > 0, "Trees are all empty or contain only a root node."
            importances /= total
        return _by_column(self._feature_col_names, importances)

    def experimental_predict_with_explanations(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        hooks: Any = None,
        checkpoint_path: Any = None,
    ) -> Iterator[dict[str, Any]]:
        """Predictions, with what each column adds to them.

        Args: as of `predict`.

        Yields an example's predictions, `bias` (that of all data), and `dfc`, a dict of what the columns add
        to it, the greatest first. ValueError unless the trees were made with `center_bias`, and for a head of
        regression that changes logits.
        """
        if not self._center_bias:
            raise ValueError(
                "center_bias must be enabled during estimator instantiation when using"
                " experimental_predict_with_explanations."
            )
        inverse_link = getattr(self._head, "_inverse_link_fn", None)
        if not self._is_classification and inverse_link not in (None, tf.identity):
            raise ValueError(
                "For now only identity inverse_link_fn in regression_head is supported for"
                " experimental_predict_with_explanations."
            )
        head, columns, epsilon = (
            self._head,
            self._sorted_feature_columns,
            self._hparams.quantile_sketch_epsilon,
        )

        def model_fn(features: Any, labels: Any, mode: str) -> Any:
            return explained_spec(features, head=head, columns=columns, epsilon=epsilon)

        model = Estimator(model_fn=model_fn, model_dir=self.model_dir, config=self.config)
        keys = None if predict_keys is None else {*predict_keys, DEBUG_KEY}
        for prediction in model.predict(input_fn, keys, hooks, checkpoint_path):
            bias, contributions = self._explained(prediction.pop(DEBUG_KEY))
            yield {**prediction, "bias": bias, "dfc": contributions}

    def _explained(self, serialized: Any) -> tuple[float, OrderedDict[str, float]]:
        output = boosted_trees_pb2.DebugOutput.FromString(bytes(serialized))
        predictions = np.array(output.logits_path)
        if self._is_classification:
            predictions = 1 / (1 + np.exp(-predictions))
        features = np.array(output.feature_ids, np.int64)
        sums = np.bincount(features, weights=np.diff(predictions), minlength=self._n_features)
        return predictions[0], _by_column(self._feature_col_names, sums)


def _by_column(names: list[str], values: Any) -> OrderedDict[str, float]:
    """The sums of the values of each column's features, the greatest by absolute value first."""
    sums: dict[str, float] = {}
    for name, value in zip(names, values, strict=True):
        sums[name] = sums.get(name, 0) + value
    return OrderedDict(sorted(sums.items(), key=lambda pair: abs(pair[1]), reverse=True))


def _logistic_derivatives(head: Head) -> Callable[[Any, Any], tuple[Any, Any]]:
    """The first and second derivatives of the mean logistic loss."""

    def derivatives(logits: Any, labels: Any) -> tuple[Any, Any]:
        predictions = tf.reciprocal(tf.exp(-logits) + 1.0)
        share = tf.reciprocal(tf.cast(tf.size(predictions), tf.float32))
        targets = dense_labels(tf.cast(labels, tf.float32), logits, head.logits_dimension)
        return (predictions - targets) * share, predictions * (1.0 - predictions) * share

    return derivatives


def _classification(
    n_classes: Any, weight_column: Any, label_vocabulary: Any, pruning_mode: Any
) -> tuple[Head, dict[str, Any]]:
    """The head, and what `tree_spec` needs of it; ValueError for other than two classes."""
    if n_classes is not _ONE and n_classes != 2:
        if n_classes > 2 and pruning_mode is not None:
            raise ValueError("For now pruning is not supported with multi class.")
        raise ValueError(f"For now only binary classification is supported.n_classes given as {n_classes}")
    head = BinaryClassHead(weight_column, None, label_vocabulary, _MEAN)
    is_plain = weight_column is None and label_vocabulary is None
    return head, {
        "derivatives": _logistic_derivatives(head) if is_plain else None,
        "weight_column": weight_column,
    }


def _regression(label_dimension: Any, weight_column: Any) -> tuple[Head, dict[str, Any]]:
    """The head, and what `tree_spec` needs of it; ValueError for several numbers a label."""
    if label_dimension is not _ONE and label_dimension != 1:
        raise ValueError("For now pruning is not supported with multi-dimensionregression.")
    return RegressionHead(1, weight_column, _MEAN), {"weight_column": weight_column}


class BoostedTreesClassifier(_BoostedTreesBase):
    """Boosted trees that tell two classes apart.

    Args:
        feature_columns: numeric, bucketized and indicator columns.
        n_batches_per_layer: how many batches a layer needs: of the data, once all.
        model_dir: the folder of checkpoints and logs.
        n_classes: 2.
        weight_column: the feature with examples' weights; `label_vocabulary`: the labels, if they are
            strings.
        n_trees: how many trees; `max_depth`: how many layers each has.
        learning_rate: by which leaves are multiplied.
        l1_regularization, l2_regularization: what weights of leaves cost.
        tree_complexity: what a split costs; `min_node_weight`: the sum of hessians that a node needs to be
            split.
        config: a RunConfig.
        center_bias: whether the bias is found before trees grow.
        pruning_mode: "none", "pre" or "post": splits that do not pay are not made, or taken back in the end.
        quantile_sketch_epsilon: the error of numeric columns' quantiles; its inverse is the number of
            buckets.
        train_in_memory: whether a batch is all data.

    Raises ValueError for other numbers of classes.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        n_batches_per_layer: Any,
        model_dir: Any = None,
        n_classes: Any = _ONE,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: Any = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
    ) -> None:
        head, more = _classification(n_classes, weight_column, label_vocabulary, pruning_mode)
        hparams = TreeHParams(
            n_trees,
            max_depth,
            learning_rate,
            l1_regularization,
            l2_regularization,
            tree_complexity,
            min_node_weight,
            center_bias,
            pruning_mode,
            quantile_sketch_epsilon,
        )
        more["train_in_memory"] = train_in_memory
        super().__init__(feature_columns, head, hparams, n_batches_per_layer, True, model_dir, config, **more)


class BoostedTreesRegressor(_BoostedTreesBase):
    """Boosted trees that tell a number.

    Args: as of `BoostedTreesClassifier`; `label_dimension` is 1.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        n_batches_per_layer: Any,
        model_dir: Any = None,
        label_dimension: Any = _ONE,
        weight_column: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: Any = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
    ) -> None:
        head, more = _regression(label_dimension, weight_column)
        hparams = TreeHParams(
            n_trees,
            max_depth,
            learning_rate,
            l1_regularization,
            l2_regularization,
            tree_complexity,
            min_node_weight,
            center_bias,
            pruning_mode,
            quantile_sketch_epsilon,
        )
        more["train_in_memory"] = train_in_memory
        super().__init__(
            feature_columns, head, hparams, n_batches_per_layer, False, model_dir, config, **more
        )


class BoostedTreesEstimator(_BoostedTreesBase):
    """Boosted trees under any head of one logit, whose loss has a second derivative.

    Args: as of `BoostedTreesClassifier`; `head`: the Head.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        n_batches_per_layer: Any,
        head: Head,
        model_dir: Any = None,
        weight_column: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: Any = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
    ) -> None:
        hparams = TreeHParams(
            n_trees,
            max_depth,
            learning_rate,
            l1_regularization,
            l2_regularization,
            tree_complexity,
            min_node_weight,
            center_bias,
            pruning_mode,
            quantile_sketch_epsilon,
        )
        is_classification = isinstance(head, BinaryClassHead | MultiClassHead)
        super().__init__(
            feature_columns, head, hparams, n_batches_per_layer, is_classification, model_dir, config
        )


def boosted_trees_classifier_train_in_memory(
    train_input_fn: Callable[..., Any],
    feature_columns: Iterable[Any],
    model_dir: Any = None,
    n_classes: Any = _ONE,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    n_trees: int = 100,
    max_depth: int = 6,
    learning_rate: float = 0.1,
    l1_regularization: float = 0.0,
    l2_regularization: float = 0.0,
    tree_complexity: float = 0.0,
    min_node_weight: float = 0.0,
    config: Any = None,
    train_hooks: Any = None,
    center_bias: bool = False,
    pruning_mode: str = "none",
    quantile_sketch_epsilon: float = 0.01,
) -> BoostedTreesClassifier:
    """A `BoostedTreesClassifier`, trained on the one batch that `train_input_fn` gives again and again."""
    model = BoostedTreesClassifier(
        feature_columns,
        1,
        model_dir,
        n_classes,
        weight_column,
        label_vocabulary,
        n_trees,
        max_depth,
        learning_rate,
        l1_regularization,
        l2_regularization,
        tree_complexity,
        min_node_weight,
        config,
        center_bias,
        pruning_mode,
        quantile_sketch_epsilon,
        train_in_memory=True,
    )
    model.train(train_input_fn, hooks=train_hooks)
    return model


def boosted_trees_regressor_train_in_memory(
    train_input_fn: Callable[..., Any],
    feature_columns: Iterable[Any],
    model_dir: Any = None,
    label_dimension: Any = _ONE,
    weight_column: Any = None,
    n_trees: int = 100,
    max_depth: int = 6,
    learning_rate: float = 0.1,
    l1_regularization: float = 0.0,
    l2_regularization: float = 0.0,
    tree_complexity: float = 0.0,
    min_node_weight: float = 0.0,
    config: Any = None,
    train_hooks: Any = None,
    center_bias: bool = False,
    pruning_mode: str = "none",
    quantile_sketch_epsilon: float = 0.01,
) -> BoostedTreesRegressor:
    """A `BoostedTreesRegressor`, trained on the one batch that `train_input_fn` gives again and again."""
    model = BoostedTreesRegressor(
        feature_columns,
        1,
        model_dir,
        label_dimension,
        weight_column,
        n_trees,
        max_depth,
        learning_rate,
        l1_regularization,
        l2_regularization,
        tree_complexity,
        min_node_weight,
        config,
        center_bias,
        pruning_mode,
        quantile_sketch_epsilon,
        train_in_memory=True,
    )
    model.train(train_input_fn, hooks=train_hooks)
    return model
