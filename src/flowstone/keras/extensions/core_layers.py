"""`tf.keras.layers.Flatten` for inputs of any rank, `Dense` for those of other types than its own, `Masking`
with one mask a call.

Configurations of `Lambda` name the modules of its functions, whose names these find again when a model is
loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import prod
from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.keras.extensions.calls import compute_dtype
from flowstone.keras.extensions.shapes import as_tuples, of_program
from flowstone.keras.published import own

__all__ = ["extend"]


def _flatten_init(self: Any, data_format: str | None = None, **kwargs: Any) -> None:
    """Inputs of [batch, …] as [batch, product of the others]; of rank 1 as [batch, 1]."""
    own("engine.base_layer").Layer.__init__(self, **kwargs)
    self.input_spec = own("engine.base_layer").InputSpec(min_ndim=1)
    self.data_format = own("backend").normalize_data_format(data_format)


def _flatten_call(self: Any, inputs: Any) -> Any:
    rank = inputs.shape.ndims
    if self.data_format == "channels_first" and rank is not None and rank > 1:
        inputs = tf.transpose(inputs, [0, *range(2, rank), 1])
    outputs = tf.reshape(inputs, (inputs.shape[0].value or tf.shape(inputs)[0], -1))
    if rank is not None:
        outputs.set_shape(_flat_shape(inputs.shape.as_list()))
    return outputs


def _flat_shape(sizes: Any) -> tuple[Any, Any]:
    inner = sizes[1:]
    return (sizes[0], None if None in inner else prod(inner))


def _flatten_shape(self: Any, input_shape: Any) -> Any:
    return _flat_shape(as_tuples(input_shape))


def _changed_call(published: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, inputs: Any) -> Any:
        """The outputs, computed in the type of the weights, or in that of a policy that casts these."""
        policy = getattr(self, "_policy", None)
        casts = policy is not None and policy.should_cast_variables
        kind = compute_dtype(self, inputs) if casts else self.kernel.dtype.base_dtype
        inputs = tf.cast(inputs, kind)
        rank = inputs.shape.ndims
        if isinstance(inputs, tf.SparseTensor) or rank is None or rank < 3:
            return published(self, inputs)
        outputs = tf.tensordot(inputs, self.kernel, [[rank - 1], [0]])
        outputs.set_shape([*inputs.shape.as_list()[:-1], self.units])
        outputs = tf.nn.bias_add(outputs, self.bias) if self.use_bias else outputs
        return outputs if self.activation is None else self.activation(outputs)

    return call


def _lambda_config(published: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def get_config(self: Any) -> dict[str, Any]:
        """What it is made of, with the modules of its functions."""
        config = {}
        for name, value in published(self).items():
            config[name] = value
            if name == "function_type":
                config["module"] = self.function.__module__
            elif name == "output_shape_type":
                config["output_shape_module"] = getattr(self._output_shape, "__module__", None)
        return config

    return get_config


def _lambda_from_config(published: Callable[..., Any]) -> Callable[..., Any]:
    def from_config(cls: Any, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
        """The layer of a configuration; its functions see the names of their modules and `custom_objects`."""
        config, names = dict(config), {}
        for key in ("module", "output_shape_module"):
            module = sys.modules.get(config.pop(key, None) or "")
            names.update(vars(module) if module else {})
        return published(cls, config, {**names, **(custom_objects or {})})

    return from_config


def _changed_build(published: Callable[..., None]) -> Callable[..., None]:
    def build(self: Any, input_shape: Any) -> None:
        """Makes the kernel [size of the last dimension, units] and the bias [units]."""
        if as_tuples(input_shape)[-1] is None:
            raise ValueError("The last dimension of the inputs to `Dense` should be defined. Found `None`.")
        published(self, input_shape)

    return build


def _call_masking(self: Any, inputs: Any) -> Any:
    """The inputs, and zeros for the times where all of a sample's are `mask_value`."""
    kept = tf.reduce_any(tf.not_equal(inputs, self.mask_value), -1, keepdims=True)
    outputs = inputs * tf.cast(kept, inputs.dtype)
    vars(self)["_last_mask"] = inputs, tf.squeeze(kept, [-1])
    return outputs


def _masking_mask(published: Callable[..., Any]) -> Callable[..., Any]:
    def compute_mask(self: Any, inputs: Any, mask: Any = None) -> Any:
        """[batch, time]: where the inputs are others than `mask_value`; that of a call is made in it."""
        last, made = vars(self).pop("_last_mask", (None, None))
        return made if last is inputs else published(self, inputs, mask)

    return compute_mask


def extend(module: ModuleType) -> None:
    """Gives the classes of `keras.layers.core` what TensorFlow's have."""
    dense: Any = vars(module)["Dense"]
    dense.build, dense.call = _changed_build(dense.build), _changed_call(dense.call)
    masking: Any = vars(module)["Masking"]
    masking.call, masking.compute_mask = _call_masking, _masking_mask(masking.compute_mask)
    function: Any = vars(module)["Lambda"]
    function.get_config = _lambda_config(function.get_config)
    function.from_config = classmethod(_lambda_from_config(function.from_config.__func__))
    flatten: Any = vars(module)["Flatten"]
    flatten.__init__ = _flatten_init
    flatten.call = _flatten_call
    flatten.compute_output_shape = of_program(_flatten_shape)
