"""Receivers: where the inputs of a served model enter the graph."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf

__all__ = [
    "ServingInputReceiver",
    "SupervisedInputReceiver",
    "TensorServingInputReceiver",
    "UnsupervisedInputReceiver",
    "build_parsing_serving_input_receiver_fn",
    "build_raw_serving_input_receiver_fn",
    "build_raw_supervised_input_receiver_fn",
    "build_supervised_input_receiver_fn_from_input_fn",
]

_SINGLE_FEATURE, _SINGLE_RECEIVER, _SINGLE_LABEL = "feature", "input", "label"
_Serving = namedtuple("_Serving", ["features", "receiver_tensors", "receiver_tensors_alternatives"])
_TensorServing = namedtuple(
    "_TensorServing", ["features", "receiver_tensors", "receiver_tensors_alternatives"]
)
_Supervised = namedtuple("_Supervised", ["features", "labels", "receiver_tensors"])
_Unsupervised = namedtuple("_Unsupervised", ["features", "receiver_tensors"])


class ServingInputReceiver(_Serving):
    """The features that a served model gets, and the tensors that are fed.

    Args:
        features: what the model function gets: a dict of tensors, or a tensor, which is named "feature".
        receiver_tensors: what is fed: a dict of tensors, or a tensor, which is named "input".
        receiver_tensors_alternatives: further sets of receivers by name, for signatures of their own.

    Raises ValueError for None and for what is no tensor.
    """

    __slots__ = ()

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> ServingInputReceiver:
        return super().__new__(
            cls,
            _wrapped_features(features),
            _wrapped_receivers(receiver_tensors),
            _checked_alternatives(receiver_tensors_alternatives),
        )


class TensorServingInputReceiver(_TensorServing):
    """A ServingInputReceiver whose features are one tensor, which the model function gets as it is.

    Raises ValueError if the features are a dict or None.
    """

    __slots__ = ()

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> TensorServingInputReceiver:
        if features is None:
            raise ValueError("features must be defined.")
        if not isinstance(features, (tf.Tensor, tf.SparseTensor)):
            raise ValueError("feature must be a Tensor or SparseTensor.")
        return super().__new__(
            cls,
            features,
            _wrapped_receivers(receiver_tensors),
            _checked_alternatives(receiver_tensors_alternatives),
        )


class SupervisedInputReceiver(_Supervised):
    """Features and labels of a model that is exported for training or evaluation, and what is fed.

    Raises ValueError for None and for what is no tensor.
    """

    __slots__ = ()

    def __new__(cls, features: Any, labels: Any, receiver_tensors: Any) -> SupervisedInputReceiver:
        for value, name in ((features, "feature"), (labels, "label")):
            _check_tensors(value, name, name)
        return super().__new__(cls, features, labels, _wrapped_receivers(receiver_tensors))


class UnsupervisedInputReceiver(_Unsupervised):
    """Features without labels of a model that is exported for training or evaluation, and what is fed."""

    __slots__ = ()

    def __new__(cls, features: Any, receiver_tensors: Any) -> UnsupervisedInputReceiver:
        _check_tensors(features, "feature", "feature")
        return super().__new__(cls, features, _wrapped_receivers(receiver_tensors))


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes the receiver of serialised Examples, a string tensor "examples".

    Args:
        feature_spec: FixedLenFeatures, VarLenFeatures … by feature.
        default_batch_size: the number of examples, if it is always the same.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        serialized = tf.placeholder(tf.string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(tf.parse_example(serialized, feature_spec), {"examples": serialized})

    return serving_input_receiver_fn


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes the receiver of the features themselves, a placeholder each.

    Args:
        features: tensors by name, whose types and shapes count.
        default_batch_size: the size of the first axis, if it is always the same.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        placeholders = _placeholders(features, default_batch_size)
        return ServingInputReceiver(placeholders, placeholders)

    return serving_input_receiver_fn


def build_raw_supervised_input_receiver_fn(
    features: Any, labels: Any, default_batch_size: int | None = None
) -> Callable[[], SupervisedInputReceiver]:
    """A function that makes the receiver of features and labels themselves, a placeholder each.

    Args:
        features, labels: tensors, or dicts of tensors by name.
        default_batch_size: the size of the first axis, if it is always the same.

    Raises ValueError if a feature and a label have one name.
    """
    both = set(features) & set(labels) if isinstance(features, dict) and isinstance(labels, dict) else None
    if both:
        raise ValueError(
            f"Features and labels must have distinct keys. Found overlapping keys: {sorted(both)}"
        )

    def supervised_input_receiver_fn() -> SupervisedInputReceiver:
        feature_places = _placeholders(features, default_batch_size)
        label_places = _placeholders(labels, default_batch_size)
        receivers: dict[str, Any] = {}
        for places, name in ((feature_places, _SINGLE_RECEIVER), (label_places, _SINGLE_LABEL)):
            receivers.update(places if isinstance(places, dict) else {name: places})
        return SupervisedInputReceiver(feature_places, label_places, receivers)

    return supervised_input_receiver_fn


def build_supervised_input_receiver_fn_from_input_fn(
    input_fn: Callable[..., Any], **input_fn_args: Any
) -> Callable[[], SupervisedInputReceiver]:
    """`build_raw_supervised_input_receiver_fn` of what an input function returns.

    The function is called once, in a graph of its own, for types and shapes.
    """
    with tf.Graph().as_default() as graph:
        result = input_fn(**input_fn_args)
        if isinstance(result, tf.data.Dataset):
            result = tf.data.make_one_shot_iterator(result).get_next()
        features, labels = result
        described = [_described(each) for each in (features, labels)]
    del graph

    def supervised_input_receiver_fn() -> SupervisedInputReceiver:
        with tf.Graph().as_default():
            again = [_empty_tensors(each) for each in described]
            build = build_raw_supervised_input_receiver_fn(*again)
        return build()

    return supervised_input_receiver_fn


def _described(tensors: Any) -> Any:
    if isinstance(tensors, Mapping):
        return {name: _described(tensor) for name, tensor in tensors.items()}
    return tensors.dtype, tensors.shape, tensors.op.name


def _empty_tensors(described: Any) -> Any:
    if isinstance(described, dict):
        return {name: _empty_tensors(each) for name, each in described.items()}
    dtype, shape, name = described
    return tf.placeholder(dtype, shape, name=name)


def _placeholders(tensors: Any, batch_size: int | None) -> Any:
    if isinstance(tensors, Mapping):
        return {name: _placeholder(tensor, batch_size) for name, tensor in tensors.items()}
    return _placeholder(tensors, batch_size)


def _placeholder(tensor: Any, batch_size: int | None) -> Any:
    sizes = tensor.get_shape()
    sizes = None if sizes.ndims is None else sizes.as_list()
    if sizes:
        sizes[0] = batch_size
    return tf.placeholder(tensor.dtype, sizes, name=tensor.op.name)


def _wrapped_features(features: Any) -> Any:
    if features is not None and not isinstance(features, dict):
        features = {_SINGLE_FEATURE: features}
    _check_tensors(features, "feature", "features")
    return features


def _wrapped_receivers(receivers: Any) -> Any:
    if receivers is not None and not isinstance(receivers, dict):
        receivers = {_SINGLE_RECEIVER: receivers}
    _check_tensors(receivers, "receiver_tensor", "receiver_tensors")
    return receivers


def _checked_alternatives(alternatives: Any) -> Any:
    if alternatives is None:
        return None
    if not isinstance(alternatives, dict):
        raise ValueError(f"receiver_tensors_alternatives must be a dict: {alternatives}.")
    return {name: _wrapped_receivers(tensors) for name, tensors in alternatives.items()}


def _check_tensors(tensors: Any, one: str, name: str) -> None:
    if tensors is None:
        raise ValueError(f"{name} must be defined.")
    for key, tensor in (tensors if isinstance(tensors, dict) else {one: tensors}).items():
        if not isinstance(key, (str, int, tuple)):
            raise ValueError(f"{one} keys must be strings: {key}.")
        if not isinstance(tensor, (tf.Tensor, tf.SparseTensor)):
            raise ValueError(f"{one} {key} must be a Tensor or SparseTensor.")
