"""Masks on weights, and the schedule by which they grow (Zhu and Gupta, "To prune, or not to prune", 2017).

The variables of a masked weight are `mask` and `threshold`; the collections `kernel`, `masks`, `thresholds`
and `masked_weights` list the weights, these variables and the products of weights and masks.
"""

from __future__ import annotations

import re
from typing import Any

import flowstone as tf

__all__ = [
    "Pruning",
    "apply_mask",
    "get_masked_weights",
    "get_masks",
    "get_pruning_hparams",
    "get_thresholds",
    "get_weight_sparsity",
    "get_weights",
]

_MASKS, _THRESHOLDS, _MASKED_WEIGHTS, _WEIGHTS = "masks", "thresholds", "masked_weights", "kernel"


def mask_weight(weights: Any, mask: Any, threshold: Any) -> Any:
    """The product of weights and mask; lists the four in the collections."""
    masked = tf.multiply(mask, weights, name="weights/masked_weight")
    if mask not in tf.get_collection(_MASKS):
        pairs = {_THRESHOLDS: threshold, _MASKS: mask, _MASKED_WEIGHTS: masked, _WEIGHTS: weights}
        for collection, value in pairs.items():
            tf.add_to_collection(collection, value)
    return masked


def apply_mask(x: Any, scope: str = "") -> Any:
    """The weights `x` times a mask of ones, a new variable `mask` that training sets; another is `threshold`.

    Args:
        x: the weights, a variable or tensor of static shape.
        scope: the scope of the two variables.
    """
    with tf.variable_scope(scope, auxiliary_name_scope=False):
        mask = tf.get_variable(
            "mask", x.shape, initializer=tf.ones_initializer(), trainable=False, dtype=x.dtype.base_dtype
        )
        threshold = tf.get_variable(
            "threshold", [], initializer=tf.zeros_initializer(), trainable=False, dtype=x.dtype.base_dtype
        )
    return mask_weight(x, mask, threshold)


def get_masked_weights() -> list[Any]:
    """The products of weights and masks."""
    return tf.get_collection(_MASKED_WEIGHTS)


def get_masks() -> list[Any]:
    """The masks' variables."""
    return tf.get_collection(_MASKS)


def get_thresholds() -> list[Any]:
    """The thresholds' variables."""
    return tf.get_collection(_THRESHOLDS)


def get_weights() -> list[Any]:
    """The weights that have masks."""
    return tf.get_collection(_WEIGHTS)


def get_weight_sparsity() -> list[Any]:
    """For each mask the fraction of zeros in it."""
    return [tf.nn.zero_fraction(mask) for mask in get_masks()]


def get_pruning_hparams() -> Any:
    """The default `HParams` of a pruning.

    name: the name scope. begin_pruning_step, end_pruning_step: when masks are updated, -1 for no end.
    weight_sparsity_map: items ``"REGEX:SPARSITY"``, target sparsities of the weights whose names match.
    block_dims_map: items ``"REGEX:HEIGHTxWIDTH"``, likewise the blocks. threshold_decay: of the thresholds'
    moving averages. pruning_frequency: the steps between updates. block_height, block_width: blocks of a
    matrix that live or die together. block_pooling_function: "AVG" or "MAX" of a block's magnitudes.
    initial_sparsity, target_sparsity, sparsity_function_begin_step, sparsity_function_end_step,
    sparsity_function_exponent: the schedule ``target + (initial - target) (1 - progress) ** exponent``.
    nbins and use_tpu have no effect: thresholds are exact.
    """
    return tf.contrib.training.HParams(
        name="model_pruning",
        begin_pruning_step=0,
        end_pruning_step=-1,
        weight_sparsity_map=[""],
        block_dims_map=[""],
        threshold_decay=0.0,
        pruning_frequency=10,
        nbins=256,
        block_height=1,
        block_width=1,
        block_pooling_function="AVG",
        initial_sparsity=0.0,
        target_sparsity=0.5,
        sparsity_function_begin_step=0,
        sparsity_function_end_step=100,
        sparsity_function_exponent=3.0,
        use_tpu=False,
    )


def _by_pattern(items: list[str]) -> dict[str, str]:
    found = {}
    for item in items:
        pattern, colon, value = item.rpartition(":")
        if colon:
            found[pattern] = value
    return found


class Pruning:
    """The pruning of all masked weights of the current graph.

    Args:
        spec: `HParams` as of `get_pruning_hparams`, which is the default.
        global_step: the step's tensor; default: the graph's own.
        sparsity: a number or tensor in place of the schedule.

    Raises ValueError for a spec with sparsities outside 0…1 or steps out of order.
    """

    def __init__(self, spec: Any = None, global_step: Any = None, sparsity: Any = None) -> None:
        self._spec = get_pruning_hparams() if spec is None else spec
        self._check()
        step = tf.train.get_global_step() if global_step is None else global_step
        if step is None:
            raise ValueError("A pruning needs a global step")
        self._global_step = tf.cast(step, tf.int32)
        self._sparsity = self._scheduled() if sparsity is None else sparsity
        self._last_update_step = self._make_last_update_step()
        self._weight_sparsity_map = _by_pattern(self._spec.weight_sparsity_map)
        self._block_dims_map = _by_pattern(self._spec.block_dims_map)
        self._assign_ops: list[Any] = []

    def _check(self) -> None:
        spec = self._spec
        for name in ("initial_sparsity", "target_sparsity"):
            if not 0.0 <= getattr(spec, name) <= 1.0:
                raise ValueError(f"{name} must be in range [0,1], not {getattr(spec, name)}")
        if -1 < spec.end_pruning_step < spec.begin_pruning_step:
            raise ValueError("end_pruning_step must be -1 or at least begin_pruning_step")
        if spec.sparsity_function_begin_step >= spec.sparsity_function_end_step:
            raise ValueError("sparsity_function_end_step must be after sparsity_function_begin_step")

    def _scheduled(self) -> Any:
        spec = self._spec
        begin, end = spec.sparsity_function_begin_step, spec.sparsity_function_end_step
        with tf.name_scope(spec.name):
            done = tf.div(tf.cast(self._global_step - begin, tf.float32), float(end - begin))
            progress = tf.minimum(1.0, tf.maximum(0.0, done))
            left = tf.pow(1.0 - progress, spec.sparsity_function_exponent)
            return tf.add(
                tf.multiply(spec.initial_sparsity - spec.target_sparsity, left),
                spec.target_sparsity,
                "sparsity",
            )

    def _make_last_update_step(self) -> Any:
        with tf.variable_scope(self._spec.name):
            return tf.get_variable(
                "last_mask_update_step",
                [],
                initializer=tf.zeros_initializer(),
                trainable=False,
                dtype=tf.int32,
            )

    def _sparsity_of(self, name: str) -> Any:
        for pattern, target in self._weight_sparsity_map.items():
            if re.search(pattern, name):
                return tf.multiply(self._sparsity, float(target) / self._spec.target_sparsity)
        return self._sparsity

    def _block_of(self, name: str) -> tuple[int, int]:
        for pattern, dims in self._block_dims_map.items():
            if re.search(pattern, name):
                height, width = dims.split("x")
                return int(height), int(width)
        return self._spec.block_height, self._spec.block_width

    def _update_mask(self, magnitudes: Any, threshold: Any, sparsity: Any) -> tuple[Any, Any]:
        """The threshold that leaves a part of `1 - sparsity`, averaged, and the mask by it."""
        size = tf.cast(tf.size(magnitudes), tf.float32)
        left = tf.cast(tf.round(size * (1 - sparsity)), tf.int32)
        ordered, _ = tf.nn.top_k(tf.reshape(magnitudes, [-1]), k=tf.size(magnitudes))
        current = tf.gather(ordered, left - 1)
        decay = self._spec.threshold_decay
        smoothed = tf.add_n([tf.multiply(current, 1 - decay), tf.multiply(threshold, decay)])
        return smoothed, tf.cast(tf.greater_equal(magnitudes, smoothed), threshold.dtype.base_dtype)

    def _update_block_mask(self, weights: Any, threshold: Any) -> tuple[Any, Any]:
        height, width = self._block_of(weights.op.name)
        sparsity = self._sparsity_of(weights.op.name)
        squeezed = tf.squeeze(weights)
        if squeezed.shape.ndims != 2 or (height, width) == (1, 1):
            with tf.name_scope(f"{weights.op.name}_pruning_ops"):
                return self._update_mask(tf.abs(weights), threshold, sparsity)
        rows, columns = squeezed.shape.as_list()
        pooled = tf.squeeze(
            tf.nn.pool(
                tf.reshape(tf.abs(squeezed), [1, rows, columns, 1]),
                window_shape=[height, width],
                pooling_type=self._spec.block_pooling_function,
                strides=[height, width],
                padding="SAME",
            ),
            [0, 3],
        )
        smoothed, mask = self._update_mask(pooled, threshold, sparsity)
        blocks = tf.shape(mask)
        spread = tf.tile(mask[:, None, :, None], [1, height, 1, width])
        spread = tf.reshape(spread, [blocks[0] * height, blocks[1] * width])
        return smoothed, tf.reshape(spread[:rows, :columns], tf.shape(weights))

    def _make_assignments(self) -> None:
        if self._assign_ops:
            return
        for mask, threshold, weights in zip(get_masks(), get_thresholds(), get_weights(), strict=True):
            smoothed, new_mask = self._update_block_mask(weights, threshold)
            for variable, value in ((threshold, smoothed), (mask, new_mask)):
                self._assign_ops.append(tf.assign(variable, value, name=f"{variable.op.name}_assign"))

    def mask_update_op(self) -> Any:
        """The operation that sets all masks for the current sparsity."""
        with tf.name_scope(self._spec.name):
            self._make_assignments()
            with (
                tf.control_dependencies(
                    [
                        tf.assign(
                            self._last_update_step, self._global_step, name="last_mask_update_step_assign"
                        )
                    ]
                ),
                tf.control_dependencies(self._assign_ops),
            ):
                return tf.no_op("mask_update")

    def conditional_mask_update_op(self) -> Any:
        """The same, which does nothing before and after the pruning's steps and between its updates."""
        spec = self._spec
        with tf.name_scope(spec.name):
            begun = tf.greater_equal(self._global_step, spec.begin_pruning_step)
            within = tf.less_equal(self._global_step, spec.end_pruning_step)
            not_ended = tf.logical_or(within, tf.less(spec.end_pruning_step, 0))
            wanted = tf.logical_and(begun, not_ended)
            due = tf.less_equal(tf.add(self._last_update_step, spec.pruning_frequency), self._global_step)
            wanted = tf.logical_and(wanted, due)
        return tf.cond(wanted, self.mask_update_op, tf.no_op)

    def add_pruning_summaries(self) -> None:
        """Adds scalar summaries of the sparsity, the last update and of every mask and threshold."""
        with tf.name_scope(f"{self._spec.name}_summaries"):
            tf.summary.scalar("sparsity", self._sparsity)
            tf.summary.scalar("last_mask_update_step", self._last_update_step)
            for mask, threshold in zip(get_masks(), get_thresholds(), strict=True):
                tf.summary.scalar(f"{mask.op.name}/sparsity", tf.nn.zero_fraction(mask))
                tf.summary.scalar(f"{threshold.op.name}/threshold", threshold)

    def print_hparams(self) -> None:
        """Logs the spec."""
        tf.logging.info(self._spec.to_json())
