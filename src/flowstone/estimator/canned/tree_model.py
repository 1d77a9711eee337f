"""The model of boosted trees: the graph of one batch, which predicts, or grows the ensemble.

Training first finds the boundaries of numeric features' buckets, if there are any, then the bias, if it is
wanted, then grows trees layer by layer. A batch does one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.estimator.canned.tree_features import bucket_groups, count_features, float_columns, transformed
from flowstone.estimator.canned.tree_growers import AccumulatingGrower, Grower, choose, most_splits
from flowstone.estimator.canned.tree_resources import (
    QuantileAccumulator,
    TreeEnsemble,
    example_debug_outputs,
    make_stats_summary,
    predict,
    training_predict,
)
from flowstone.estimator.head.base_head import Head
from flowstone.estimator.mode_keys import ModeKeys
from flowstone.training.hooks.session_run_hook import SessionRunArgs, SessionRunHook

__all__ = ["DEBUG_KEY", "explained_spec", "tree_spec"]

DEBUG_KEY = "_serialized_debug_outputs_proto"
_NO_NODE = -1


class _StopAtAttempts(SessionRunHook):
    """Stops once the ensemble has its trees, or twice the layers that these have were tried."""

    def __init__(self, finished: Any, attempted: Any, trees: int, depth: int) -> None:
        self._tensors, self._trees, self._layers = [finished, attempted], trees, 2 * trees * depth

    def before_run(self, run_context: Any) -> Any:
        """Asks how far the ensemble is, before the step grows it."""
        return SessionRunArgs(self._tensors)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Asks again when the end is near."""
        finished, attempted = run_values.results
        if finished >= self._trees - 1 or attempted > self._layers - 1:
            finished, attempted = run_context.session.run(self._tensors)
        if finished >= self._trees or attempted > self._layers:
            run_context.request_stop()


class _InitializeGrower(SessionRunHook):
    """Runs an operation when a session is made."""

    def __init__(self, initializer: Any) -> None:
        self._initializer = initializer

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs it."""
        session.run(self._initializer)


def _variable(value: Any, name: str) -> Any:
    kind: Any = tf.Variable
    return kind(value, trainable=False, validate_shape=False, name=name, use_resource=True)


def _resources(columns: Sequence[Any], epsilon: float, name: str) -> tuple[TreeEnsemble, Any]:
    """The ensemble, and the streams of the numeric columns' features; None if there are none."""
    ensemble = TreeEnsemble(name=name)
    numeric = float_columns(columns)
    if not numeric:
        return ensemble, None
    count = count_features(numeric)
    return ensemble, QuantileAccumulator(epsilon, count, int(1.0 / epsilon), name="QuantileAccumulator")


def _buckets(features: Any, columns: Sequence[Any], quantiles: Any) -> list[Any]:
    return transformed(features, columns, quantiles.get_bucket_boundaries() if quantiles else ())


def _predicted(ensemble: TreeEnsemble, buckets: list[Any], head: Head) -> Any:
    return predict(ensemble.resource_handle, buckets, logits_dimension=head.logits_dimension)


class _NoCache:
    """Examples are not known again: every batch begins at the first tree."""

    def __init__(self, labels: Any, size: int) -> None:
        batch = tf.shape(labels)[0]
        self.trees = tf.zeros([batch], tf.int32)
        self.nodes = _NO_NODE * tf.ones([batch], tf.int32)
        self.logits = tf.zeros([batch, size])

    def keep(self, trees: Any, nodes: Any, logits: Any) -> Any:
        return tf.no_op()


class _Cache:
    """Where the examples of the one batch were, in variables."""

    def __init__(self, labels: Any, size: int) -> None:
        batch = tf.shape(labels)[0]
        self._variables = [
            _variable(tf.zeros([batch], tf.int32), "tree_ids_cache"),
            _variable(_NO_NODE * tf.ones([batch], tf.int32), "node_ids_cache"),
            _variable(tf.zeros([batch, size]), "logits_cache"),
        ]
        self.trees, self.nodes, self.logits = (tf.identity(each) for each in self._variables)

    def keep(self, *values: Any) -> Any:
        pairs = zip(self._variables, values, strict=True)
        return tf.group(*[variable.assign(value).op for variable, value in pairs], name="cache_insert")


def tree_spec(
    features: Any,
    labels: Any,
    mode: str,
    config: Any,
    *,
    head: Head,
    columns: Sequence[Any],
    hparams: Any,
    n_batches_per_layer: Any,
    derivatives: Callable[[Any, Any], tuple[Any, Any]] | None = None,
    weight_column: Any = None,
    train_in_memory: bool = False,
    name: str = "boosted_trees",
) -> Any:
    """The EstimatorSpec of a batch.

    Args:
        features: the batch, by key; `labels`: None to predict.
        mode: a ModeKeys name; `config`: the RunConfig.
        head: the Head; `columns`: the feature columns.
        hparams: TreeHParams.
        n_batches_per_layer: how many batches a layer needs.
        derivatives: gives the loss's first and second derivatives of logits and labels; None: by the graph.
        weight_column: the feature with examples' weights in quantiles.
        train_in_memory: whether a batch is all data.
        name: of the resources and variables.

    Raises ValueError for data in memory with several batches a layer, or on a cluster.
    """
    columns = sorted(columns, key=lambda column: column.name)
    with tf.name_scope(name) as scope:
        step = tf.train.get_or_create_global_step()
        ensemble, quantiles = _resources(columns, hparams.quantile_sketch_epsilon, scope)
        if mode != ModeKeys.TRAIN:
            logits = _predicted(ensemble, _buckets(features, columns, quantiles), head)
            return head.create_estimator_spec(
                features=features,
                mode=mode,
                labels=labels,
                train_op_fn=lambda loss: tf.no_op(),
                logits=logits,
            )
        _check_memory(train_in_memory, n_batches_per_layer, config)
        weights = tf.constant([1.0])
        if weight_column is not None:
            is_key = isinstance(weight_column, str)
            column = tf.feature_column.numeric_column(weight_column, (1,)) if is_key else weight_column
            weights = transformed(features, [column])[0]
        training = _Training(features, labels, config, head, columns, hparams, ensemble, quantiles, scope)
        training.build(n_batches_per_layer, train_in_memory)
        spec = head.create_estimator_spec(
            features=features,
            mode=mode,
            labels=labels,
            train_op_fn=lambda loss: training.train_op(loss, step, weights, derivatives),
            logits=training.logits,
        )
    return training.with_hooks(spec)


def _check_memory(train_in_memory: bool, batches: Any, config: Any) -> None:
    if not train_in_memory:
        return
    if batches != 1:
        raise ValueError(
            "When train_in_memory is enabled, input_fn should return the entire dataset as a single batch,"
            " and n_batches_per_layer should be set as 1."
        )
    if not config.is_chief or config.num_worker_replicas > 1 or config.num_ps_replicas > 0:
        raise ValueError("train_in_memory is supported only for non-distributed training.")


class _Training:
    """The graph of a training step; `logits` are those of the batch before it."""

    logits: Any

    def __init__(
        self,
        features: Any,
        labels: Any,
        config: Any,
        head: Head,
        columns: Sequence[Any],
        hparams: Any,
        ensemble: TreeEnsemble,
        quantiles: QuantileAccumulator | None,
        scope: str,
    ) -> None:
        self._features, self._labels, self._columns = features, labels, columns
        self._config, self._head, self._hparams = config, head, hparams
        self._ensemble, self._quantiles, self._scope = ensemble, quantiles, scope

    def build(self, n_batches_per_layer: Any, train_in_memory: bool) -> None:
        """Makes everything but the training operation."""
        self._is_ready = _variable(self._quantiles is None, "are_boundaries_ready")
        cache = (_Cache if train_in_memory else _NoCache)(self._labels, self._head.logits_dimension)
        self._cache: Any = cache
        self._buckets = _buckets(self._features, self._columns, self._quantiles)
        with tf.control_dependencies(self._local_ensemble()):
            stamp, trees, finished, attempted, self._layer = self._local.get_states()
            partial, *self._places = training_predict(
                self._local.resource_handle,
                cache.trees,
                cache.nodes,
                self._buckets,
                logits_dimension=self._head.logits_dimension,
            )
        self.logits = cache.logits + partial
        self._counts = finished, attempted
        self._groups: tuple[list[int], list[list[int]]] = bucket_groups(
            self._columns, int(1.0 / self._hparams.quantile_sketch_epsilon)
        )
        sizes, ids = self._groups
        arguments = self._ensemble, self._quantiles, self._hparams, ids
        self._grower = (
            Grower(*arguments)
            if train_in_memory
            else AccumulatingGrower(*arguments, stamp, n_batches_per_layer, sizes, self._config.is_chief)
        )
        with tf.name_scope("ensemble"):
            for name, count in zip(
                ("num_trees", "num_finalized_trees", "num_attempted_layers"),
                (trees, *self._counts),
                strict=True,
            ):
                tf.summary.scalar(name, count)
        self._needs_bias = _variable(self._hparams.center_bias, "center_bias_needed")

    def _local_ensemble(self) -> list[Any]:
        """Has `_local` be the ensemble, or on a cluster this task's copy; what must run before it is read."""
        self._local = self._ensemble
        if self._config.num_worker_replicas <= 1:
            return []
        with tf.device(tf.no_op().device):
            self._local = TreeEnsemble(name=f"{self._scope.rstrip('/')}_local", is_local=True)
        return [self._local.deserialize(*self._ensemble.serialize())]

    def train_op(self, loss: Any, step: Any, weights: Any, derivatives: Any) -> Any:
        """The operation of a step: finds boundaries, or grows the ensemble and counts the step."""
        numeric = float_columns(self._columns)
        if not numeric:
            return self._grow_op(loss, step, derivatives)

        def accumulate() -> Any:
            numbers = transformed(self._features, numeric)
            return self._grower.accumulate_quantiles(numbers, weights, self._is_ready)

        return choose(self._is_ready, lambda: self._grow_op(loss, step, derivatives), accumulate)

    def _grow_op(self, loss: Any, step: Any, derivatives: Any) -> Any:
        keep = choose(self._needs_bias, tf.no_op, lambda: self._cache.keep(*self._places, self.logits))
        if derivatives is None:
            (gradients,) = tf.gradients(loss, self.logits, name="Gradients")
            (hessians,) = tf.gradients(gradients, self.logits, name="Hessians")
        else:
            gradients, hessians = derivatives(self.logits, self._labels)
        summaries = self._summaries(gradients, hessians)

        def grow() -> Any:
            return self._grower.grow_tree(summaries, self._layer)

        def center() -> Any:
            return self._grower.center_bias(self._needs_bias, gradients, hessians)

        update = choose(self._needs_bias, center, grow) if self._hparams.center_bias else grow()
        with tf.control_dependencies([update]):
            counted = tf.assign_add(step, 1)
        return tf.group(keep, update, counted.op, name="grow_op")

    def _summaries(self, gradients: Any, hessians: Any) -> list[list[Any]]:
        """Of each group, of each feature the sums of the batch."""
        nodes = self._places[1]

        def sums(feature: int, size: int) -> Any:
            found = make_stats_summary(
                nodes, gradients, hessians, [self._buckets[feature]], most_splits(self._hparams), size
            )
            return tf.squeeze(found, axis=0)

        return [[sums(feature, size) for feature in group] for size, group in zip(*self._groups, strict=True)]

    def with_hooks(self, spec: Any) -> Any:
        """The EstimatorSpec with the hooks that begin and end training."""
        stop = _StopAtAttempts(*self._counts, self._hparams.n_trees, self._hparams.max_depth)
        begin = _InitializeGrower(self._grower.initializer())
        return spec._replace(
            training_hooks=(*spec.training_hooks, stop),
            training_chief_hooks=(begin, *spec.training_chief_hooks),
        )


def explained_spec(features: Any, *, head: Head, columns: Sequence[Any], epsilon: float) -> Any:
    """The EstimatorSpec that predicts, with the ways of the examples under `DEBUG_KEY`.

    Args:
        features: the batch, by key; `head`: the Head.
        columns: the feature columns, sorted by name; `epsilon`: that of the quantiles.
    """
    with tf.name_scope("boosted_trees") as scope:
        ensemble, quantiles = _resources(columns, epsilon, scope)
        buckets = _buckets(features, columns, quantiles)
        spec = head.create_estimator_spec(
            features=features,
            mode=ModeKeys.PREDICT,
            train_op_fn=lambda loss: tf.no_op(),
            logits=_predicted(ensemble, buckets, head),
        )
        spec.predictions[DEBUG_KEY] = example_debug_outputs(
            ensemble.resource_handle, buckets, logits_dimension=head.logits_dimension
        )
    return spec
