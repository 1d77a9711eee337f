"""`Policy`: in which type a layer computes, and of which type its variables are.

    tf.keras.layers.Dense(3, dtype=Policy("mixed_float16"))    # float32 variables, products in float16

In graphs TensorFlow 1.15 takes such policies of a layer, but none of these for all layers: `set_policy` takes
those that follow the inputs alone.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.mixed_precision.loss_scaling import loss_scale_of

__all__ = ["Policy", "global_policy", "policy_of", "set_policy"]

_DEFAULT = "USE_DEFAULT"
_MIXED = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}
_FLOAT32_VARIABLES = "_with_float32_vars"


class Policy:
    """The types of a layer.

    Args:
        name: a type's name, for variables and computation; "mixed_float16" or "mixed_bfloat16", which compute
            in that type with float32 variables; "infer", the type of the first inputs; any type, or "infer",
            followed by "_with_float32_vars".
        loss_scale: what the loss is scaled by: None, a number, "dynamic" or a LossScale; by default "dynamic"
            for "mixed_float16", else None.

    Raises TypeError for a name that is none, ValueError for another name or scale.
    """

    def __init__(self, name: str, loss_scale: Any = _DEFAULT) -> None:
        if isinstance(name, tf.DType):
            raise TypeError(
                f"'name' must be a string, not a DType. Instead, pass DType.name. Got: {name.name}"
            )
        if not isinstance(name, str):
            raise TypeError(f"'name' must be a string, but got: {name}")
        compute, variable = _types(name)
        self._compute_dtype, self._variable_dtype = compute, variable
        self._name = "float32" if name == f"float32{_FLOAT32_VARIABLES}" else name
        if isinstance(loss_scale, str) and loss_scale == _DEFAULT:
            loss_scale = "dynamic" if name == "mixed_float16" else None
        self._loss_scale = None if loss_scale is None else loss_scale_of(loss_scale)

    name = property(lambda self: self._name, doc="Its name.")
    compute_dtype = property(
        lambda self: self._compute_dtype, doc="The type of computation; None: that of the inputs."
    )
    variable_dtype = property(
        lambda self: self._variable_dtype, doc="The type of variables; None: that of the inputs."
    )
    loss_scale = property(lambda self: self._loss_scale, doc="The LossScale, or None.")

    @property
    def should_cast_variables(self) -> bool:
        """Whether variables are read in another type than they have."""
        return self._variable_dtype is not None and self._variable_dtype != self._compute_dtype

    def __repr__(self) -> str:
        return f'<Policy "{self._name}", loss_scale={self._loss_scale}>'


def _types(name: str) -> tuple[str | None, str | None]:
    """The types of computation and of variables."""
    if name in _MIXED:
        return _MIXED[name], "float32"
    if name == "infer":
        return None, None
    has_float32 = name.endswith(_FLOAT32_VARIABLES)
    base = name.removesuffix(_FLOAT32_VARIABLES)
    if has_float32 and base == "infer":
        return None, "float32"
    try:
        kind = tf.as_dtype(base).name
    except TypeError:
        raise ValueError(
            f"Cannot convert value {name} to a mixed precision Policy. Valid policies include include those "
            'in the form "<dtype>" and "<dtype>_with_float32_vars", where <dtype> is the name of a dtype.'
        ) from None
    return kind, "float32" if has_float32 else kind


_global = Policy("infer")


def global_policy() -> Policy:
    """The policy of layers that are given none."""
    return _global


def set_policy(policy: Any) -> None:
    """Sets the policy of layers that are given none: a Policy that follows inputs, or its name.

    Raises ValueError for a policy that names the type of computation: in graphs only a layer's may.
    """
    global _global
    policy = policy if isinstance(policy, Policy) else Policy(policy)
    if policy.compute_dtype is not None:
        raise ValueError(
            "The global policy can only be set to a non-infer policy in TensorFlow 2. In graphs a layer "
            f"takes such a policy: Dense(3, dtype=Policy({policy.name!r}))."
        )
    _global = policy


def policy_of(dtype: Any) -> Policy:
    """The policy of a layer that is given `dtype`: a policy, a type, or None for the global policy."""
    if isinstance(dtype, Policy):
        return dtype
    return _global if dtype is None else Policy(tf.as_dtype(dtype).name)
