"""`tf.contrib.compiler.xla`: functions and models that asked to be compiled, run as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf

__all__ = ["compile", "estimator_model_fn"]


def compile(computation: Callable[..., Any], inputs: Sequence[Any] | None = None) -> Any:
    """The results of ``computation(*inputs)``, inputs as tensors.

    A single tensor is a list of one, a flat sequence of tensors a list; operations among them run with the
    tensors, and stand alone as one operation; another structure stays as it is. TypeError for inputs that are
    no list.
    """
    if inputs is not None and not isinstance(inputs, (list, tuple)):
        raise TypeError("inputs must be a list")
    results = computation(*[tf.convert_to_tensor(x) for x in inputs or ()])
    if isinstance(results, dict):
        return results
    flat = list(results) if isinstance(results, (list, tuple)) else [results]
    flat = [each for each in flat if each is not None]
    operations = [each for each in flat if isinstance(each, tf.Operation)]
    tensors = [each for each in flat if not isinstance(each, tf.Operation)]
    if any(isinstance(each, (list, tuple, dict)) for each in tensors):
        return results
    if not tensors:
        return tf.group(*operations)
    with tf.control_dependencies(operations):
        return [tf.identity(tf.convert_to_tensor(each)) for each in tensors]


def estimator_model_fn(target_model_fn: Callable[..., Any] | None = None) -> Any:
    """The model function as it is; a decorator without one."""
    return target_model_fn if target_model_fn is not None else (lambda model_fn: model_fn)
