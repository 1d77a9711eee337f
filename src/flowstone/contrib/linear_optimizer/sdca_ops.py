"""`SdcaModel`: stochastic dual coordinate ascent (Shalev-Shwartz and Zhang, 2013) of a linear model.

The model keeps, beside its variables, what they are before they are shrunk
(``NAME_unshrinked/SDCAOptimizer``), and of every example that it has seen, by its identifier, the dual
variable and the losses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.linear_optimizer.sharded_tables import ShardedStates
from flowstone.contrib.linear_optimizer.sparse_feature_column import SparseFeatureColumn
from flowstone.ops.variables.partitioned_variables import PartitionedVariable

__all__ = ["SdcaModel", "SparseFeatureColumn"]

_LOSSES = ("logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss")


class SdcaModel:
    """A linear model trained by stochastic dual coordinate ascent.

    Args:
        examples: a dict of ``sparse_features`` (a list of SparseFeatureColumns), ``dense_features`` (a list
            of matrices [n, columns]), ``example_labels`` [n], ``example_weights`` [n] and ``example_ids``,
            strings [n].
        variables: a dict of ``sparse_features_weights`` and ``dense_features_weights``: for each group of
            features its variable, or a list of the parts of it, by rows.
        options: a dict of ``loss_type`` ("logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss"
            or "poisson_loss"), ``symmetric_l1_regularization``, ``symmetric_l2_regularization`` (at least 1
            is used) and, if not 1, None and True, ``num_loss_partitions``, ``num_table_shards`` and
            ``adaptive``.

    Raises ValueError for what is missing, negative or unknown.
    """

    _slot_suffix = "_unshrinked/SDCAOptimizer"
    _least_l2 = 1.0  # with less, the algorithm of contrib does not train

    def __init__(
        self, examples: Mapping[str, Any], variables: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        if not examples or not variables or not options:
            raise ValueError("examples, variables and options must all be specified.")
        _check_has(
            examples,
            ["example_labels", "example_weights", "example_ids", "sparse_features", "dense_features"],
        )
        _check_has(variables, ["sparse_features_weights", "dense_features_weights"])
        _check_has(options, ["loss_type", "symmetric_l2_regularization", "symmetric_l1_regularization"])
        if options["loss_type"] not in _LOSSES:
            raise ValueError(f"Unsupported loss_type: {options['loss_type']}")
        for name in ("symmetric_l1_regularization", "symmetric_l2_regularization"):
            if options[name] < 0.0:
                raise ValueError(f"{name} should be non-negative. Found ({options[name]})")
        self._examples, self._options = examples, options
        self._sparse = [_parts(each) for each in variables["sparse_features_weights"]]
        self._dense = [_parts(each) for each in variables["dense_features_weights"]]
        self._states = ShardedStates(options.get("num_table_shards") or 1)
        self._sparse_slots = [[self._slot(part) for part in parts] for parts in self._sparse]
        self._dense_slots = [[self._slot(part) for part in parts] for parts in self._dense]

    # ---- options

    @property
    def _l1(self) -> float:
        return float(self._options["symmetric_l1_regularization"])

    @property
    def _l2(self) -> float:
        return max(float(self._options["symmetric_l2_regularization"]), self._least_l2)

    def _slot(self, variable: Any) -> Any:
        """The variable with the values that are not shrunk."""
        return tf.Variable(
            tf.zeros_like(variable.initialized_value(), tf.float32),
            trainable=False,
            name=f"{variable.op.name}{self._slot_suffix}",
        )

    def _all_variables(self) -> list[Any]:
        return [part for parts in [*self._sparse, *self._dense] for part in parts]

    def _all_slots(self) -> list[Any]:
        return [part for parts in [*self._sparse_slots, *self._dense_slots] for part in parts]

    # ---- training

    def minimize(self, global_step: Any = None, name: str | None = None) -> Any:
        """The operation of a pass over the examples; `global_step`: a variable that it adds 1 to.

        `update_weights` is to follow it.
        """
        with tf.name_scope(name, "sdca/minimize"):
            columns = self._examples["sparse_features"]
            unique = [tf.unique(column.feature_indices)[0] for column in columns]
            with_values = [column for column in columns if column.feature_values is not None]
            if with_values and len(with_values) != len(columns):
                raise ValueError("either all groups of sparse features have values, or none has")
            keys = tf.train.sdca_fprint(tf.convert_to_tensor(self._examples["example_ids"]))
            result = tf.train.sdca_optimizer(
                [column.example_indices for column in columns],
                [column.feature_indices for column in columns],
                [column.feature_values for column in with_values],
                [tf.convert_to_tensor(each) for each in self._examples["dense_features"]],
                tf.to_float(self._examples["example_weights"]),
                tf.to_float(self._examples["example_labels"]),
                unique,
                [
                    tf.reshape(tf.gather(_whole(slots), features), [-1])
                    for slots, features in zip(self._sparse_slots, unique, strict=True)
                ],
                [tf.reshape(_whole(slots), [1, -1]) for slots in self._dense_slots],
                self._states.lookup(keys),
                loss_type=self._options["loss_type"],
                l1=self._l1,
                l2=self._l2,
                num_loss_partitions=self._options.get("num_loss_partitions", 1),
                num_inner_iterations=1,
                adaptative=self._options.get("adaptive", True),
            )
            train_op = self._updates(keys, unique, result)
            if global_step is None:
                return train_op
            with tf.control_dependencies([train_op]):
                return tf.assign_add(global_step, 1).op

    def _updates(self, keys: Any, features: Sequence[Any], result: Any) -> Any:
        """The operation that keeps the result of a pass."""
        states, sparse_deltas, dense_deltas = result
        updates = [self._states.insert(keys, states)]
        for slots, rows, delta in zip(self._sparse_slots, features, sparse_deltas, strict=True):
            updates += _added_rows(slots, rows, delta)
        for slots, delta in zip(self._dense_slots, dense_deltas, strict=True):
            updates += _added_parts(slots, delta)
        return tf.group(*updates)

    def update_weights(self, train_op: Any) -> Any:
        """The operation that, after `train_op`, gives the model's variables the shrunken new values."""
        pairs = zip(self._all_variables(), self._all_slots(), strict=True)
        with tf.control_dependencies([train_op]):
            assigned = [tf.assign(variable, slot.read_value()) for variable, slot in pairs]
        if not self._l1:
            return tf.group(*assigned)
        with tf.control_dependencies(assigned):
            return tf.group(
                *(tf.assign(each, self._shrunk(each.read_value())) for each in self._all_variables())
            )

    def _shrunk(self, weights: Any) -> Any:
        return tf.sign(weights) * tf.maximum(tf.abs(weights) - self._l1 / self._l2, 0.0)

    # ---- predictions and losses

    def _linear_predictions(self, examples: Mapping[str, Any]) -> Any:
        """The weighted sums of the features [n]."""
        with tf.name_scope("sdca/prediction"):
            count = tf.shape(examples["example_ids"])[0]
            result = tf.zeros([count], tf.float32)
            for column, parts in zip(examples["sparse_features"], self._sparse, strict=True):
                weights = tf.reshape(tf.gather(_whole(parts), column.feature_indices), [-1])
                if column.feature_values is not None:
                    weights = weights * column.feature_values
                result += tf.unsorted_segment_sum(weights, column.example_indices, count)
            for features, parts in zip(examples["dense_features"], self._dense, strict=True):
                weights = tf.reshape(_whole(parts), [-1, 1])
                result += tf.reshape(tf.matmul(tf.to_float(features), weights), [-1])
            return result

    def predictions(self, examples: Mapping[str, Any]) -> Any:
        """The predictions [n]: probabilities for "logistic_loss", expected counts for "poisson_loss", else
        weighted sums of the features."""
        with tf.name_scope("sdca/prediction"):
            result = self._linear_predictions(examples)
            if self._options["loss_type"] == "logistic_loss":
                return tf.sigmoid(result)
            return tf.exp(result) if self._options["loss_type"] == "poisson_loss" else result

    def approximate_duality_gap(self) -> Any:
        """How far the model is from its optimum, by the losses that the last passes found: not 0 or less
        before it is reached, and NaN before the first pass."""
        with tf.name_scope("sdca/approximate_duality_gap"):
            _, primal, dual, weight = tf.unstack(tf.to_double(self._states.sums()), num=4)
            return (primal + dual + self._l1_loss() + 2.0 * self._l2_loss(self._l2)) / weight

    def examples_seen(self) -> Any:
        """How many examples have been seen, int64."""
        return self._states.size()

    def _l1_loss(self) -> Any:
        with tf.name_scope("sdca/l1_loss"):
            sums = [tf.to_double(tf.reduce_sum(tf.abs(each.read_value()))) for each in self._all_variables()]
            return self._l1 * tf.add_n(sums)

    def _l2_loss(self, l2: float) -> Any:
        with tf.name_scope("sdca/l2_loss"):
            sums = [
                tf.to_double(tf.reduce_sum(tf.square(each.read_value()))) for each in self._all_variables()
            ]
            return l2 * tf.add_n(sums) / 2.0

    def unregularized_loss(self, examples: Mapping[str, Any]) -> Any:
        """The mean loss of the examples by their weights, a scalar, float64."""
        _check_has(examples, ["example_labels", "example_weights", "sparse_features", "dense_features"])
        with tf.name_scope("sdca/unregularized_loss"):
            scores = tf.to_double(self._linear_predictions(examples))
            labels = tf.reshape(tf.to_double(examples["example_labels"]), [-1])
            weights = tf.reshape(tf.to_double(examples["example_weights"]), [-1])
            loss = _loss(self._options["loss_type"], scores, labels)
            return tf.reduce_sum(loss * weights) / tf.reduce_sum(weights)

    def regularized_loss(self, examples: Mapping[str, Any]) -> Any:
        """`unregularized_loss`, and the regularization over the sum of weights."""
        _check_has(examples, ["example_labels", "example_weights", "sparse_features", "dense_features"])
        with tf.name_scope("sdca/regularized_loss"):
            weights = tf.to_double(examples["example_weights"])
            l2 = float(self._options["symmetric_l2_regularization"])
            terms = self._l1_loss() + self._l2_loss(l2)
            return terms / tf.reduce_sum(weights) + self.unregularized_loss(examples)


def _check_has(values: Mapping[str, Any], names: Sequence[str]) -> None:
    for name in names:
        if values.get(name) is None:
            raise ValueError(f"{name} must be specified.")


def _parts(variable: Any) -> list[Any]:
    """The parts of a variable, itself if it is whole."""
    if isinstance(variable, (list, tuple)) and len(variable) == 1:
        return _parts(variable[0])
    if isinstance(variable, (list, tuple, PartitionedVariable)):
        return list(variable)
    return [variable]


def _whole(parts: Sequence[Any]) -> Any:
    values = [part.read_value() for part in parts]
    return values[0] if len(values) == 1 else tf.concat(values, 0)


def _loss(kind: str, scores: Any, labels: Any) -> Any:
    """The losses [n] of scores and labels."""
    if kind == "logistic_loss":
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=scores)
    if kind == "squared_loss":
        return tf.square(scores - labels) / 2.0
    if kind == "poisson_loss":
        return tf.nn.log_poisson_loss(targets=labels, log_input=scores)
    # TensorFlow reports the hinge loss for the smooth one, too
    return tf.nn.relu(1.0 - (2.0 * labels - 1.0) * scores)


def _added_rows(slots: Sequence[Any], rows: Any, delta: Any) -> list[Any]:
    """The operations that add to rows of a variable in parts."""
    first, updates = 0, []
    for slot in slots:
        size = slot.shape[0].value
        shape = tf.concat([[-1], slot.shape.as_list()[1:]], 0)
        if len(slots) == 1:
            return [tf.scatter_add(slot, rows, tf.reshape(delta, shape))]
        within = tf.logical_and(rows >= first, rows < first + size)
        own = tf.boolean_mask(tf.reshape(delta, [-1]), within)
        updates.append(tf.scatter_add(slot, tf.boolean_mask(rows, within) - first, tf.reshape(own, shape)))
        first += size
    return updates


def _added_parts(slots: Sequence[Any], delta: Any) -> list[Any]:
    """The operations that add to all of a variable in parts."""
    sizes = [slot.shape.num_elements() for slot in slots]
    parts = tf.split(tf.reshape(delta, [-1]), sizes)
    return [
        tf.assign_add(slot, tf.reshape(part, slot.shape)) for slot, part in zip(slots, parts, strict=True)
    ]
