"""`GradientBoostedDecisionTreeModel`: the graph of boosted trees that learn from batches.

A step sums gradients and Hessians of the loss by node, feature and value. Once a layer's examples have come,
each feature's best splits are found, and the best of them grow the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.boosted_trees import batch_ops_utils, model_ops, prediction_ops, training_ops
from flowstone.contrib.boosted_trees.categorical_split_handler import EqualitySplitHandler
from flowstone.contrib.boosted_trees.example_features import ExampleFeatures, extract_features
from flowstone.contrib.boosted_trees.loss_derivatives import LossDerivatives
from flowstone.contrib.boosted_trees.ordinal_split_handler import DenseSplitHandler, SparseSplitHandler
from flowstone.contrib.boosted_trees.stats_accumulator_ops import StatsAccumulator
from flowstone.io.proto import learner_pb2

__all__ = [
    "ENSEMBLE_STAMP",
    "LEAF_INDEX",
    "NUM_LAYERS_ATTEMPTED",
    "NUM_TREES_ATTEMPTED",
    "NUM_USED_HANDLERS",
    "PARTITION_IDS",
    "PREDICTIONS",
    "USED_HANDLERS_MASK",
    "GradientBoostedDecisionTreeModel",
    "extract_features",
]

ENSEMBLE_STAMP = "ensemble_stamp"
PREDICTIONS = "predictions"
PARTITION_IDS = "partition_ids"
NUM_LAYERS_ATTEMPTED = "num_layers"
NUM_TREES_ATTEMPTED = "num_trees"
NUM_USED_HANDLERS = "num_used_handlers"
USED_HANDLERS_MASK = "used_handlers_mask"
LEAF_INDEX = "leaf_index"

_EPSILON = 0.01
_Config = learner_pb2.LearnerConfig
Splits = tuple[Any, list[tuple[Any, Any, Any]]]


def _completed(config: Any, logits_dimension: int) -> Any:
    """A copy of the configuration in which everything is said; ValueError for what cannot be."""
    found = _Config()
    found.CopyFrom(config)
    if found.num_classes < 2:
        raise ValueError("Number of classes must be >=2")
    if found.growing_mode == _Config.GROWING_MODE_UNSPECIFIED:
        found.growing_mode = _Config.LAYER_BY_LAYER
    if found.pruning_mode == _Config.PRUNING_MODE_UNSPECIFIED:
        found.pruning_mode = _Config.POST_PRUNE
    if not found.constraints.max_tree_depth:
        found.constraints.max_tree_depth = 6
    tuner = found.learning_rate_tuner.WhichOneof("tuner")
    if not tuner:
        found.learning_rate_tuner.fixed.learning_rate = 0.1
    elif tuner == "line_search":
        raise ValueError("Line search is not supported yet.")
    if logits_dimension == 1:
        found.multi_class_strategy = _Config.TREE_PER_CLASS
    elif found.multi_class_strategy == _Config.MULTI_CLASS_STRATEGY_UNSPECIFIED:
        found.multi_class_strategy = _Config.DIAGONAL_HESSIAN
    if (
        found.weak_learner_type == _Config.OBLIVIOUS_DECISION_TREE
        and found.pruning_mode == _Config.POST_PRUNE
    ):
        found.pruning_mode = _Config.PRE_PRUNE
    return found


def _counter(name: str | None = None) -> Any:
    return tf.Variable(tf.zeros([], tf.int64), trainable=False, name=name)


class GradientBoostedDecisionTreeModel:
    """The graph of an ensemble.

    Args:
        is_chief: whether this process grows the ensemble.
        num_ps_replicas: the number of parameter servers.
        ensemble_handle: the ensemble.
        center_bias: whether the first tree is the bias, found before the others.
        examples_per_layer: how many examples a layer takes, or a function of the number of the layer.
        learner_config: a message LearnerConfig.
        features: tensors [examples, …] of float32, SparseTensors of float32 or int64, by name.
        logits_dimension: how many numbers an example has.
        loss_reduction: how the loss is made from those of examples.
        feature_columns: of `tf.contrib.layers`, if features are to be made by them.
        use_core_columns: whether they are those of `tf.feature_column`.
        output_leaf_index: whether predictions have the leaves of examples too, in the modes
            `output_leaf_index_modes`, inference alone if None.
        num_quantiles: how many buckets a feature of numbers has.
    """

    def __init__(
        self,
        is_chief: bool,
        num_ps_replicas: int,
        ensemble_handle: Any,
        center_bias: bool,
        examples_per_layer: int | Callable[[Any], Any],
        learner_config: Any,
        features: Mapping[str, Any] | None,
        logits_dimension: int,
        loss_reduction: str = "weighted_sum_by_nonzero_weights",
        feature_columns: Sequence[Any] | None = None,
        use_core_columns: bool = False,
        output_leaf_index: bool = False,
        output_leaf_index_modes: Sequence[str] | None = None,
        num_quantiles: int = 100,
    ) -> None:
        self._learner_config = _completed(learner_config, logits_dimension)
        self._learner_config_serialized = self._learner_config.SerializeToString()
        self._is_chief, self._num_ps_replicas = is_chief, num_ps_replicas
        self._ensemble_handle, self._center_bias = ensemble_handle, center_bias
        self._examples_per_layer, self._num_quantiles = examples_per_layer, num_quantiles
        self._logits_dimension = logits_dimension
        self._sums_loss = loss_reduction == tf.losses.Reduction.SUM
        self._attempted_trees, self._finalized_trees = _counter(), _counter()
        self._output_leaf_index = output_leaf_index
        self._output_leaf_index_modes = output_leaf_index_modes or ["infer"]
        self._features = ExampleFeatures(*extract_features(features, feature_columns, use_core_columns))
        self._reduce_dim = logits_dimension + 1 == self._learner_config.num_classes

    # ---- predictions

    def _stats(self) -> tuple[Any, Any]:
        stamp = model_ops.tree_ensemble_stamp_token(self._ensemble_handle)
        return stamp, model_ops.tree_ensemble_stats(self._ensemble_handle, stamp)

    def predict(self, mode: str) -> dict[str, Any]:
        """Predictions float32 [examples, logits], the stamp that they are for, and what training needs."""
        stamp, stats = self._stats()
        is_training = mode == "train"
        tuner = self._learner_config.learning_rate_tuner.WhichOneof("tuner")
        say = prediction_ops.gradient_trees_prediction_verbose
        with_leaves = self._output_leaf_index and mode in self._output_leaf_index_modes
        if not with_leaves:
            say = prediction_ops.gradient_trees_prediction
        outputs = say(
            self._ensemble_handle,
            stats.attempted_trees,
            *self._features.inputs(),
            learner_config=self._learner_config_serialized,
            apply_dropout=is_training and tuner is not None,
            apply_averaging=not is_training,
            use_locking=True,
            center_bias=self._center_bias,
            reduce_dim=self._reduce_dim,
        )
        with tf.control_dependencies([stats.num_trees]):
            partitions = prediction_ops.gradient_trees_partition_examples(
                self._ensemble_handle, *self._features.inputs(), use_locking=True
            )
        used = model_ops.tree_ensemble_used_handlers(
            self._ensemble_handle, stamp, num_all_handlers=len(self._features.names)
        )
        found = {
            ENSEMBLE_STAMP: stamp,
            PREDICTIONS: outputs.predictions,
            PARTITION_IDS: partitions,
            NUM_LAYERS_ATTEMPTED: stats.attempted_layers,
            NUM_TREES_ATTEMPTED: stats.attempted_trees,
            NUM_USED_HANDLERS: used.num_used_handlers,
            USED_HANDLERS_MASK: used.used_handlers_mask,
        }
        if with_leaves:
            found[LEAF_INDEX] = outputs.leaf_index
        return found

    def get_number_of_trees_tensor(self) -> tuple[Any, Any]:
        """The variables of how many trees are finalized, and how many were attempted."""
        return self._finalized_trees, self._attempted_trees

    def get_max_tree_depth(self) -> Any:
        """How many layers a tree has at most: int32, []."""
        return tf.constant(self._learner_config.constraints.max_tree_depth, tf.int32)

    # ---- training

    def train(
        self,
        loss: Any,
        predictions_dict: Mapping[str, Any],
        labels: Any,
        gradients: Any = None,
        hessians: Any = None,
    ) -> Any:
        """The operation of a step.

        Args:
            loss: the batch's, float32, [].
            predictions_dict: what `predict` gave.
            labels: of the batch; `gradients`, `hessians`: of the loss, derived from it if None.

        Raises ValueError if there are no features to split by.
        """
        if not self._features.names:
            raise ValueError("No feature columns were given to train a tree by.")
        derivatives = LossDerivatives(
            loss, predictions_dict[PREDICTIONS], self._learner_config.multi_class_strategy,
            self._logits_dimension, predictions_dict[NUM_TREES_ATTEMPTED], gradients, hessians,
        )  # fmt: skip
        stamp = predictions_dict[ENSEMBLE_STAMP]
        handlers = self._handlers(derivatives)
        steps = StatsAccumulator(0, [], [], name="StepsAccumulator")
        shapes = ([], []) if self._center_bias else (derivatives.gradient_shape, derivatives.hessian_shape)
        bias = StatsAccumulator(0, *shapes, name="BiasAccumulator")
        progress = _Progress(self._attempted_trees, self._finalized_trees)
        centering = tf.Variable(self._center_bias, name="continue_centering", trainable=False)
        updates = self._update_bias(stamp, derivatives, bias, centering)
        updates += self._update_handlers(stamp, derivatives, handlers, predictions_dict)
        with tf.control_dependencies(updates):
            count = tf.to_float(tf.shape(derivatives.partition_like)[0])
            add_step = steps.add(stamp, [0], [[0, 0]], [count], [1.0])
        with tf.control_dependencies([add_step]):
            sums = steps.serialize()
            examples, layer_steps = tf.to_int64(sums[4][0]), tf.to_int64(sums[5][0])
            reset = progress.note_layer(examples, layer_steps)
            enough = self._examples_of_layer(progress)

            def update_ensemble() -> Any:
                return self._update_ensemble(
                    stamp, handlers, bias, steps, centering, derivatives.class_id, predictions_dict, progress
                )

            grow = tf.cond(examples >= enough, update_ensemble, tf.no_op)
        return tf.group(grow, *reset)

    def _examples_of_layer(self, progress: _Progress) -> Any:
        if callable(self._examples_per_layer):
            return tf.to_int64(self._examples_per_layer(progress.active_layer))
        return tf.constant(self._examples_per_layer, tf.int64)

    def _handlers(self, derivatives: LossDerivatives) -> list[Any]:
        """A handler for each column, in the order of the columns' names."""
        config, found = self._learner_config, []
        rules = config.regularization, config.constraints
        penalties = {
            "l1_regularization": tf.constant(rules[0].l1),
            "l2_regularization": tf.constant(rules[0].l2),
            "tree_complexity_regularization": tf.constant(rules[0].tree_complexity),
            "min_node_weight": tf.constant(rules[1].min_node_weight),
            "gradient_shape": derivatives.gradient_shape,
            "hessian_shape": derivatives.hessian_shape,
            "multiclass_strategy": tf.constant(config.multi_class_strategy),
            "init_stamp_token": tf.constant(0, tf.int64),
            "loss_uses_sum_reduction": self._sums_loss,
        }
        buckets = {"epsilon": _EPSILON, "num_quantiles": self._num_quantiles}
        learner = {"weak_learner_type": tf.constant(config.weak_learner_type)}
        names = iter(self._features.names)
        for kinds, columns, more in (
            (DenseSplitHandler, self._features.dense, buckets | learner),
            (SparseSplitHandler, self._features.sparse_floats, buckets),
            (EqualitySplitHandler, self._features.sparse_ints, learner),
        ):
            for number, column in enumerate(columns):
                make: Any = kinds
                found.append(
                    make(column, feature_column_group_id=number, name=next(names), **penalties, **more)
                )
        return found

    def _update_bias(self, stamp: Any, derivatives: LossDerivatives, bias: Any, centering: Any) -> list[Any]:
        if not self._center_bias:
            return []

        def add() -> Any:
            numbers = tf.range(self._logits_dimension)
            features = tf.zeros([self._logits_dimension, 2], tf.int64)
            return bias.add(stamp, numbers, features, *derivatives.sums())

        return [tf.cond(centering, add, tf.no_op)]

    def _active(self, handlers: Sequence[Any], predictions: Mapping[str, Any]) -> list[Any]:
        """Of each handler whether it may split this layer and the next, bool [2]; None if it always may."""
        count, config = len(handlers), self._learner_config
        kind = config.WhichOneof("feature_fraction")
        layers = predictions[NUM_LAYERS_ATTEMPTED]
        trees = predictions[NUM_TREES_ATTEMPTED]
        mask = None
        if kind == "feature_fraction_per_level":
            draws = [
                tf.contrib.stateless.stateless_random_uniform([count], [at, 1]) for at in (layers, layers + 1)
            ]
            mask = tf.stack(draws, axis=1) < config.feature_fraction_per_level
        elif kind == "feature_fraction_per_tree":
            draw = tf.contrib.stateless.stateless_random_uniform([count], [trees, 2])
            mask = tf.stack([draw < config.feature_fraction_per_tree] * 2, axis=1)
        most = config.constraints.max_number_of_unique_feature_columns
        if most:
            if most >= count:
                most = 0
            else:
                used = predictions[USED_HANDLERS_MASK]
                is_full = predictions[NUM_USED_HANDLERS] >= most
                may = tf.logical_or(tf.logical_not(is_full), used)
                both = tf.stack([may, may], axis=1)
                mask = both if mask is None else tf.logical_and(mask, both)
        return [None] * count if mask is None else [mask[at] for at in range(count)]

    def _update_handlers(
        self,
        stamp: Any,
        derivatives: LossDerivatives,
        handlers: Sequence[Any],
        predictions: Mapping[str, Any],
    ) -> list[Any]:
        run = batch_ops_utils.run_handler_scheduled_ops
        reads = run({handler: handler.scheduled_reads() for handler in handlers}, stamp, None)
        active = self._active(handlers, predictions)
        empty = [tf.zeros([0, *shape]) for shape in (derivatives.gradient_shape, derivatives.hessian_shape)]
        scheduled = {}
        for handler, is_active in zip(handlers, active, strict=True):
            with tf.name_scope(handler._name):
                _, scheduled[handler] = handler.update_stats(
                    stamp, predictions[PARTITION_IDS], derivatives.gradients, derivatives.hessians, *empty,
                    derivatives.weights, is_active, reads[handler],
                )  # fmt: skip
        done = run(scheduled, stamp, None)
        return list(dict.fromkeys(each for results in done.values() for each in results))

    def _update_ensemble(
        self, stamp: Any, handlers: Sequence[Any], bias: Any, steps: Any, centering: Any, class_id: Any,
        predictions: Mapping[str, Any], progress: _Progress,
    ) -> Any:  # fmt: skip
        following = stamp + 1
        bias_sums = bias.flush(stamp, following)
        found = [handler.make_splits(stamp, following, class_id) for handler in handlers]
        ready = tf.reduce_all(tf.stack([each[0] for each in found], name="stack_handler_readiness"))

        parts = [part for each in found for part in each[1:]]

        def grow() -> Any:
            # Splits of features whose buckets are not there yet are none.
            begin, stride = tf.constant([0]), tf.constant([1])
            end = tf.reshape(tf.where(ready, tf.int32.max, 0), [1])
            may = [tf.strided_slice(part, begin, end, stride) for part in parts]
            return self._grow(stamp, following, predictions[NUM_TREES_ATTEMPTED], may)

        if self._center_bias:
            gradients, hessians = bias_sums[3], bias_sums[4]

            def center() -> Any:
                zero = tf.zeros_like(gradients)
                delta = tf.where(hessians > 0.0, -gradients / hessians, zero)
                more = training_ops.center_tree_ensemble_bias(
                    self._ensemble_handle, stamp, following, delta,
                    learner_config=self._learner_config_serialized,
                )  # fmt: skip
                return tf.assign(centering, more).op

            grown = tf.cond(centering, center, grow)
        else:
            grown = grow()
        with tf.control_dependencies([grown]):
            noted = progress.note_ensemble(model_ops.tree_ensemble_stats(self._ensemble_handle, following))
        flush = steps.flush(stamp, following)
        return tf.group(ready, grown, bias_sums[0], flush[0], *noted, name="update_ensemble")

    def _grow(self, stamp: Any, following: Any, seed: Any, parts: Sequence[Any]) -> Any:
        tuner = self._learner_config.learning_rate_tuner
        rate = getattr(tuner, tuner.WhichOneof("tuner")).learning_rate
        return training_ops.grow_tree_ensemble(
            self._ensemble_handle,
            stamp,
            following,
            tf.constant(rate),
            seed,
            self.get_max_tree_depth(),
            self._learner_config.weak_learner_type,
            list(parts[0::3]),
            list(parts[1::3]),
            list(parts[2::3]),
            learner_config=self._learner_config_serialized,
            center_bias=self._center_bias,
        )


class _Progress:
    """The variables that say how far training is."""

    def __init__(self, attempted_trees: Any, finalized_trees: Any) -> None:
        self._attempted_trees, self._finalized_trees = attempted_trees, finalized_trees
        names = ("num_layer_examples", "num_layer_steps", "num_layers", "active_tree", "active_layer")
        self._examples, self._steps, self._layers, self._tree, self.active_layer = map(_counter, names)
        tf.summary.scalar("layer_stats/num_examples", self._examples)
        tf.summary.scalar("layer_stats/num_steps", self._steps)
        tf.summary.scalar("ensemble_stats/active_tree", self._tree)
        tf.summary.scalar("ensemble_stats/active_layer", self.active_layer)

    def note_layer(self, examples: Any, steps: Any) -> list[Any]:
        """The operations that note how many examples and steps a layer has had."""
        return [tf.assign(self._examples, examples).op, tf.assign(self._steps, steps).op]

    def note_ensemble(self, stats: Any) -> list[Any]:
        """The operations that note what the ensemble has become."""
        pairs = (
            (self._finalized_trees, stats.num_trees),
            (self._attempted_trees, stats.attempted_trees),
            (self._layers, stats.num_layers),
            (self._tree, stats.active_tree),
            (self.active_layer, stats.active_layer),
        )
        return [tf.assign(variable, value).op for variable, value in pairs]
