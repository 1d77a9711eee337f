"""What an exported model is asked with: arrays, or serialized examples for a one-shot prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.framework import nest
from flowstone.contrib.timeseries.feature_keys import TrainEvalFeatures
from flowstone.contrib.timeseries.head import state_to_dictionary

__all__ = ["one_shot_receiver_fn", "raw_receiver_fn"]

TIMES, VALUES = TrainEvalFeatures.TIMES, TrainEvalFeatures.VALUES


def raw_receiver_fn(model: Any, batch_size: int | None, length: int | None) -> Callable[[], Any]:
    """Placeholders of times, values, exogenous features and the state; values and state may be left out."""

    def receiver_fn() -> Any:
        times = tf.placeholder(tf.int64, [batch_size, length], name=TIMES)
        shape = [batch_size, length, model.num_features]
        none = tf.zeros([size or 0 for size in shape], dtype=model.dtype)
        fed = {TIMES: times, VALUES: tf.placeholder_with_default(none, shape, name=VALUES)}
        for name, (row, dtype) in _exogenous_shapes(model).items():
            fed[name] = tf.placeholder(dtype, [batch_size, length, *row], name=name)
        fed.update(_state_placeholders(model, tf.shape(times)[0], batch_size))
        return tf.estimator.export.ServingInputReceiver(fed, fed)

    return receiver_fn


def one_shot_receiver_fn(
    model: Any, filtered: int, predicted: int, batch_size: int | None, values_dtype: Any, truncates: bool
) -> Callable[[], Any]:
    """Serialized examples of `filtered` values, or as many as times if they are cut, and of all times."""

    def receiver_fn() -> Any:
        column = tf.feature_column.numeric_column
        columns = [
            *model.exogenous_feature_columns,
            column(TIMES, dtype=tf.int64),
            column(VALUES, dtype=values_dtype or tf.float32, shape=(model.num_features,)),
        ]
        count = filtered + predicted
        spec = {}
        for name, feature in tf.feature_column.make_parse_example_spec(columns).items():
            if isinstance(feature, tf.FixedLenFeature):
                own = filtered if name == VALUES and not truncates else count
                spec[name] = feature._replace(shape=(own, *feature.shape))
            elif feature.dtype == tf.string:
                spec[name] = tf.FixedLenFeature((count,), tf.string)
            else:
                raise ValueError(f"a feature of any length is not served: {feature} of {name!r}")
        examples = tf.placeholder(tf.string, [batch_size], name="input")
        features = tf.parse_example(examples, spec)
        features[TIMES] = tf.squeeze(features[TIMES], axis=-1)
        features[VALUES] = tf.cast(features[VALUES], model.dtype)[:, :filtered]
        features.update(_state_placeholders(model, tf.shape(features[TIMES])[0], batch_size))
        return tf.estimator.export.ServingInputReceiver(features, {"examples": examples})

    return receiver_fn


def _exogenous_shapes(model: Any) -> dict[str, tuple[list[int | None], Any]]:
    """For each exogenous feature the shape of one time's value, and its type."""
    if not model.exogenous_feature_columns:
        return {}
    with tf.Graph().as_default():
        spec = tf.feature_column.make_parse_example_spec(model.exogenous_feature_columns)
        parsed = tf.parse_example(tf.placeholder(tf.string, [None]), spec)
        return {
            name: (tensor.get_shape().with_rank_at_least(1).as_list()[1:], tensor.dtype)
            for name, tensor in parsed.items()
        }


def _state_placeholders(model: Any, batch: Any, batch_size: int | None) -> dict[str, Any]:
    """Placeholders of the parts of the state, of zeros if they are not fed."""
    with tf.Graph().as_default():
        model.initialize_graph()
        zeros = nest.map_structure(
            lambda part: tf.contrib.util.constant_value(tf.zeros_like(part)), model.get_start_state()
        )
    found = {}
    for name, zero in state_to_dictionary(zeros).items():
        repeated = tf.tile(zero[None, ...], tf.concat([batch[tf.newaxis], [1] * zero.ndim], axis=0))
        found[name] = tf.placeholder_with_default(repeated, [batch_size, *zero.shape], name=name)
    return found
