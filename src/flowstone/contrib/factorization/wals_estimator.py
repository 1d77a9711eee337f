"""`WALSMatrixFactorization`: `WALSModel` as an Estimator of `tf.contrib.learn`.

Training goes in sweeps, over rows and over columns in turn. A sweep solves for the factors of one axis, batch
by batch, and ends when each row (or column) has been in a batch. Which sweep it is and what has been done
stands in variables, so that training goes on from a checkpoint where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.factorization.wals_model import WALSModel
from flowstone.contrib.learn.constants import ModeKeys
from flowstone.contrib.learn.estimators.estimator import Estimator
from flowstone.contrib.learn.estimators.model_fn import ModelFnOps
from flowstone.training.hooks.session_run_hook import SessionRunHook

__all__ = ["WALSMatrixFactorization"]


class WALSMatrixFactorization(Estimator):
    """A sparse matrix as a product of two thin ones, by weighted alternating least squares.

    Args:
        num_rows, num_cols: the sizes of the matrix.
        embedding_dimension: the number of columns of the factors.
        unobserved_weight, regularization_coeff, row_init, col_init, num_row_shards, num_col_shards,
            row_weights, col_weights: see `WALSModel`.
        use_factors_weights_cache_for_training, use_gramian_cache_for_training: whether training copies what
            its updates read.
        max_sweeps: after how many sweeps training ends; None: `fit` says it.
        model_dir: the folder of checkpoints and logs; config: a RunConfig.

    Features are a dict, and there are no labels. INPUT_ROWS is a SparseTensor with rows of the matrix,
    INPUT_COLS one with rows of its transpose, both with the matrix' indices. To predict and to evaluate,
    PROJECT_ROW, a bool, says which of them is meant; PROJECTION_WEIGHTS may be weights for `predict`.

    Raises ValueError for several workers.
    """

    INPUT_ROWS = "input_rows"
    INPUT_COLS = "input_cols"
    PROJECT_ROW = "project_row"
    PROJECTION_WEIGHTS = "projection_weights"
    PROJECTION_RESULT = "projection"
    COMPLETED_SWEEPS = "completed_sweeps"
    LOSS = "WALS_loss"
    RWSE = "WALS_RWSE"

    def __init__(
        self,
        num_rows: int,
        num_cols: int,
        embedding_dimension: int,
        unobserved_weight: float = 0.1,
        regularization_coeff: float | None = None,
        row_init: Any = "random",
        col_init: Any = "random",
        num_row_shards: int = 1,
        num_col_shards: int = 1,
        row_weights: Any = 1,
        col_weights: Any = 1,
        use_factors_weights_cache_for_training: bool = True,
        use_gramian_cache_for_training: bool = True,
        max_sweeps: int | None = None,
        model_dir: Any = None,
        config: Any = None,
    ) -> None:
        params = {
            "num_rows": num_rows,
            "num_cols": num_cols,
            "max_sweeps": max_sweeps,
            "caches": (use_factors_weights_cache_for_training, use_gramian_cache_for_training),
            "model": {
                "n_components": embedding_dimension,
                "unobserved_weight": unobserved_weight,
                "regularization": regularization_coeff,
                "row_init": row_init,
                "col_init": col_init,
                "num_row_shards": num_row_shards,
                "num_col_shards": num_col_shards,
                "row_weights": row_weights,
                "col_weights": col_weights,
            },
        }
        super().__init__(model_fn=_model_fn, params=params, model_dir=model_dir, config=config)
        if self.config is not None and self.config.num_worker_replicas > 1:
            raise ValueError("WALSMatrixFactorization must be run on a single worker replica.")

    def get_row_factors(self) -> list[Any]:
        """The factors of the rows, an array a shard, of the last checkpoint."""
        return self._factors("row")

    def get_col_factors(self) -> list[Any]:
        """The factors of the columns, an array a shard, of the last checkpoint."""
        return self._factors("col")

    def _factors(self, axis: str) -> list[Any]:
        count = self.params["model"][f"num_{axis}_shards"]  # type: ignore[index]
        return [self.get_variable_value(f"{axis}_factors_shard_{i}") for i in range(count)]

    def get_projections(self, input_fn: Callable[[], Any]) -> Iterator[Any]:
        """The factors that the rows or columns of `input_fn` would have, one after another."""
        return (result[self.PROJECTION_RESULT] for result in self.predict(input_fn=input_fn))


_Keys = WALSMatrixFactorization


def _model_fn(features: Mapping[str, Any], labels: Any, mode: str, params: dict[str, Any]) -> ModelFnOps:
    assert labels is None
    is_training = mode == ModeKeys.TRAIN
    keeps_factors, keeps_gramian = (keeps and is_training for keeps in params["caches"])
    model = WALSModel(
        params["num_rows"],
        params["num_cols"],
        use_factors_weights_cache=keeps_factors,
        use_gramian_cache=keeps_gramian,
        **params["model"],
    )
    if is_training:
        return _training(model, features, params)
    rows, cols = features[_Keys.INPUT_ROWS], features[_Keys.INPUT_COLS]
    is_of_rows = features[_Keys.PROJECT_ROW]
    if mode == ModeKeys.EVAL:
        loss = tf.cond(
            is_of_rows,
            lambda: tf.add(*model.update_row_factors(rows)[2:4]),
            lambda: tf.add(*model.update_col_factors(cols, transpose_input=True)[2:4]),
        )
        return ModelFnOps(mode, predictions={}, loss=loss, eval_metric_ops={}, train_op=tf.no_op())
    weights = features.get(_Keys.PROJECTION_WEIGHTS)
    projection = tf.cond(
        is_of_rows,
        lambda: model.project_row_factors(rows, projection_weights=weights),
        lambda: model.project_col_factors(cols, projection_weights=weights, transpose_input=True),
    )
    return ModelFnOps(mode, predictions={_Keys.PROJECTION_RESULT: projection}, train_op=tf.no_op())


class _Sweeps:
    """The variables that say where training is, and the operations that change them."""

    def __init__(self) -> None:
        self.is_of_rows = tf.Variable(True, trainable=False, name="is_row_sweep")
        self.is_done = tf.Variable(False, trainable=False, name="is_sweep_done")
        self.completed = tf.Variable(0, trainable=False, name=_Keys.COMPLETED_SWEEPS)
        self._loss = tf.Variable(0.0, trainable=False, name=_Keys.LOSS)
        self._error = tf.Variable(0.0, trainable=False, name=_Keys.RWSE)
        self._resets: list[Any] = []
        tf.summary.scalar("loss", self._loss)
        tf.summary.scalar("root_weighted_squared_error", self._error)
        tf.summary.scalar("completed_sweeps", self.completed)

    @property
    def loss(self) -> Any:
        """The loss of the last batch, as for all rows or columns, with regularization."""
        return self._loss

    def step(self, part: Any, size: int, update: tuple[Any, ...], name: str) -> Any:
        """The operation of a batch: `part` has items of `size`; `update` is what WALSModel gives for it."""
        processed = tf.Variable(tf.fill([size], False), trainable=False, name=f"processed_{name}")
        self._resets.append(processed.initializer)
        _, update_op, loss, penalty, weights = update
        items = part.indices[:, 0]
        done = [
            update_op,
            tf.assign(self._loss, loss + penalty),
            tf.assign(self._error, tf.sqrt(loss / weights)),
            tf.assign_add(tf.train.get_global_step(), 1),
        ]
        with tf.control_dependencies(done):
            marked = tf.scatter_update(processed, items, tf.ones_like(items, dtype=tf.bool))
        are_all = tf.reduce_all(marked)
        return tf.group(
            tf.assign(self.is_done, are_all),
            tf.assign_add(self.completed, tf.cast(are_all, tf.int32)),
            name=f"{name}_sweep_train_op",
        )

    def switch(self) -> Any:
        """The operation that goes on to the other axis; after `step` of both."""
        other = tf.assign(self.is_of_rows, tf.logical_not(self.is_of_rows))
        return tf.group(other, *self._resets, name="sweep_switch_op")


def _training(model: WALSModel, features: Mapping[str, Any], params: dict[str, Any]) -> ModelFnOps:
    rows, cols = features[_Keys.INPUT_ROWS], features[_Keys.INPUT_COLS]
    sweeps = _Sweeps()
    by_rows = sweeps.step(rows, params["num_rows"], model.update_row_factors(rows), "rows")
    update = model.update_col_factors(cols, transpose_input=True)
    by_cols = sweeps.step(cols, params["num_cols"], update, "cols")
    of_rows = ([model.row_update_prep_gramian_op, model.initialize_row_update_op], by_rows)
    of_cols = ([model.col_update_prep_gramian_op, model.initialize_col_update_op], by_cols)
    return ModelFnOps(
        ModeKeys.TRAIN,
        predictions={},
        loss=sweeps.loss,
        eval_metric_ops={},
        train_op=tf.no_op(),
        training_hooks=[_SweepHook(sweeps, model.worker_init, of_rows, of_cols, params["max_sweeps"])],
    )


class _SweepHook(SessionRunHook):
    """Has each step train the axis whose turn it is, after what that needs; ends after the last sweep.

    `of_rows`, `of_cols`: the operations before such a sweep, in order, and that of a step.
    """

    def __init__(
        self,
        sweeps: _Sweeps,
        worker_init: Any,
        of_rows: tuple[list[Any], Any],
        of_cols: tuple[list[Any], Any],
        last: int | None,
    ) -> None:
        self._sweeps, self._worker_init, self._last = sweeps, worker_init, last
        self._of_rows, self._of_cols, self._switch = of_rows, of_cols, sweeps.switch()
        self._is_initialized = False

    def before_run(self, run_context: Any) -> Any:
        session, sweeps = run_context.session, self._sweeps
        is_done, is_of_rows = session.run([sweeps.is_done, sweeps.is_of_rows])
        if is_done:
            session.run(self._switch)
            is_of_rows = not is_of_rows
        prepare, step = self._of_rows if is_of_rows else self._of_cols
        if not self._is_initialized:
            session.run(self._worker_init)
        if is_done or not self._is_initialized:
            for operation in prepare:
                session.run(operation)
        self._is_initialized = True
        return tf.train.SessionRunArgs(step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        if self._last is not None and run_context.session.run(self._sweeps.completed) >= self._last:
            run_context.request_stop()
