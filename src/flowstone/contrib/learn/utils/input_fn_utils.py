"""The inputs of an exported model: functions that return placeholders and the features made from them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf

__all__ = ["InputFnOps", "build_default_serving_input_fn", "build_parsing_serving_input_fn"]


class InputFnOps(namedtuple("InputFnOps", ["features", "labels", "default_inputs"])):
    """What an input function for serving returns.

    Attributes:
        features: a dict of tensors for the model function.
        labels: a tensor or dict of them; None to infer.
        default_inputs: the placeholders by the names in the exported signature.
    """

    __slots__ = ()


def build_parsing_serving_input_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """A function whose model parses serialised Examples, a string placeholder [batch].

    `feature_spec`: how each feature is parsed (`tf.parse_example`); `default_batch_size`: how many Examples a
    request has; None: any number.
    """

    def input_fn() -> InputFnOps:
        examples = tf.placeholder(tf.string, [default_batch_size], name="input_example_tensor")
        return InputFnOps(tf.parse_example(examples, feature_spec), None, {"examples": examples})

    return input_fn


def build_default_serving_input_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """A function whose model takes the features themselves, placeholders of the types and shapes of
    `features`.

    `default_batch_size`: the first size; None: any.
    """

    def input_fn() -> InputFnOps:
        placeholders = {}
        for name, tensor in features.items():
            shape = tensor.get_shape().as_list()
            placeholders[name] = tf.placeholder(
                tensor.dtype, [default_batch_size, *shape[1:]], name=tensor.op.name
            )
        return InputFnOps(placeholders, None, placeholders)

    return input_fn
