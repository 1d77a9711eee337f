"""Batches and Examples as TensorFlow 0.x took their arguments.

| then | now |
| --- | --- |
| `train.batch(tensor_list=…)`, `shuffle_batch(tensor_list=…)` | `tensors=…` |
| `train.batch_join(tensor_list_list=…)`, `shuffle_batch_join(…)` | `tensors_list=…` |
| `parse_single_example(serialized, dense_keys=…, dense_types=…, sparse_keys=…)` | `features=…` |
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flowstone

__all__ = ["install"]


def _renamed(function: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if old in kwargs:
            kwargs[new] = kwargs.pop(old)
        return function(*args, **kwargs)

    return called


_OLD = ("dense_keys", "dense_types", "dense_defaults", "dense_shapes", "sparse_keys", "sparse_types", "names")


def _features(old: dict[str, Any]) -> dict[str, Any]:
    """The features that lists of keys, types, shapes and defaults describe."""
    features: dict[str, Any] = {}
    defaults = old.get("dense_defaults") or {}
    keys = old.get("dense_keys") or []
    shapes = old.get("dense_shapes") or [[]] * len(keys)
    for key, dtype, shape in zip(keys, old.get("dense_types") or [], shapes):
        features[key] = flowstone.FixedLenFeature(shape, dtype, defaults.get(key))
    for key, dtype in zip(old.get("sparse_keys") or [], old.get("sparse_types") or []):
        features[key] = flowstone.VarLenFeature(dtype)
    return features


def _with_keys(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(serialized: Any, *args: Any, **kwargs: Any) -> Any:
        if any(key in kwargs for key in ("dense_keys", "sparse_keys")):
            old = {key: kwargs.pop(key) for key in _OLD if key in kwargs}
            return function(serialized, _features(old), *args, **kwargs)
        return function(serialized, *args, **kwargs)

    return called


def install() -> None:
    """Has these functions understand both forms."""
    train, public = flowstone.train, flowstone
    targets: Any = train
    for name in ("batch", "maybe_batch", "shuffle_batch", "maybe_shuffle_batch"):
        setattr(targets, name, _renamed(getattr(train, name), "tensor_list", "tensors"))
    for name in ("batch_join", "maybe_batch_join", "shuffle_batch_join", "maybe_shuffle_batch_join"):
        setattr(targets, name, _renamed(getattr(train, name), "tensor_list_list", "tensors_list"))
    root: Any = public
    for name in ("parse_example", "parse_single_example"):
        setattr(root, name, _with_keys(getattr(public, name)))
