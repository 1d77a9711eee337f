"""Parameters that distributions share: floating tensors, probabilities with logits, counts; their checks."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.broadcasting import broadcast_dynamic_shape, broadcast_static_shape
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.control.checks import (
    assert_equal,
    assert_less_equal,
    assert_near,
    assert_non_negative,
    assert_positive,
)
from flowstone.ops.control.control_flow import with_dependencies
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.reductions import reduce_sum


def checked_identities(checks: list[Operation], **values: Any) -> list[Tensor]:
    """The values as tensors of these names, available after the checks."""
    with get_default_graph().control_dependencies(checks):
        return [identity(value, name=name) for name, value in values.items()]


def static_batch(*parameters: Tensor) -> Any:
    """The TensorShape that the parameters broadcast to. ValueError if they do not."""
    result = parameters[0].shape
    for each in parameters[1:]:
        result = broadcast_static_shape(result, each.shape)
    return result


def batch_tensor(*parameters: Tensor) -> Tensor:
    """The shape that the parameters broadcast to, an int32 vector."""
    if len(parameters) == 1:
        return shape(parameters[0])
    if len(parameters) > 2:
        return broadcast_dynamic_shape(shape(parameters[0]), batch_tensor(*parameters[1:]))
    return broadcast_dynamic_shape(*(shape(each) for each in parameters))


def logits_and_probs(
    logits: Any, probs: Any, multidimensional: bool, validate_args: bool
) -> tuple[Tensor, Tensor]:
    """Both, of which one is given: log odds, or unnormalised log probabilities over the last dimension.

    ValueError unless exactly one is given; TypeError unless it is floating.
    """
    if (probs is None) == (logits is None):
        raise ValueError("Must pass probs or logits, but not both.")
    graph = get_default_graph()
    if probs is None:
        logits = convert_to_tensor(logits, name="logits")
        _require_floating(logits, "logits")
        return logits, (F.Softmax if multidimensional else F.Sigmoid)(logits, name="probs")
    probs = convert_to_tensor(probs, name="probs")
    _require_floating(probs, "probs")
    if validate_args:
        with graph.name_scope("validate_probs"):
            probs = _with_valid_probs(probs, multidimensional)
    with graph.name_scope("logits"):
        log = F.Log(probs)
        return log if multidimensional else log - F.Log1p(-1.0 * probs), probs


def _require_floating(tensor: Tensor, name: str) -> None:
    if not tensor.dtype.is_floating:
        raise TypeError(f"{name} must have a floating type, but has {tensor.dtype.name}.")


def _with_valid_probs(probs: Tensor, multidimensional: bool) -> Tensor:
    one = constant(1.0, probs.dtype)
    checks = [assert_non_negative(probs)]
    if multidimensional:
        checks.append(assert_near(reduce_sum(probs, -1), one, message="probs does not sum to 1."))
    else:
        checks.append(assert_less_equal(probs, one, message="probs has components greater than 1."))
    return with_dependencies(checks, probs)  # type: ignore[no-any-return]


def with_positive(value: Tensor, validate_args: bool, message: str | None = None) -> Tensor:
    """The value, checked to be positive if `validate_args`."""
    if not validate_args:
        return value
    return with_dependencies([assert_positive(value, message=message)], value)  # type: ignore[no-any-return]


def with_counts(value: Any) -> Tensor:
    """The value, checked to have no negative and no fractional elements."""
    with get_default_graph().name_scope("embed_check_nonnegative_integer_form"):
        value = convert_to_tensor(value, name="x")
        checks = [assert_non_negative(value, message=f"{value} must be non-negative.")]
        if not value.dtype.is_integer:
            with get_default_graph().name_scope("assert_integer_form"):
                whole = cast(cast(value, _INTEGER[value.dtype.base_dtype]), value.dtype)
                words = f"{value} cannot contain fractional components."
                checks.append(assert_equal(value, whole, message=words, name="assert_integer_form"))
        return with_dependencies(checks, value)  # type: ignore[no-any-return]


def with_classes(value: Tensor, largest: int | None = None) -> Tensor:
    """The value, checked to be whole, not negative, and not above `largest` if that is given."""
    with get_default_graph().name_scope("embed_check_casting_closed"):
        value = convert_to_tensor(value, name="x")
        checks = [assert_non_negative(value, message="Elements must be non-negative.")]
        if largest is not None:
            checks.append(assert_less_equal(value, largest, message=f"Elements cannot exceed {largest}."))
        if not value.dtype.is_integer:
            whole = cast(cast(value, _INTEGER[value.dtype.base_dtype]), value.dtype)
            checks.append(assert_equal(value, whole, message="Elements must be int32-equivalent."))
        return with_dependencies(checks, value)  # type: ignore[no-any-return]


_INTEGER = {
    dtypes.float16: dtypes.int16,
    dtypes.bfloat16: dtypes.int16,
    dtypes.float32: dtypes.int32,
    dtypes.float64: dtypes.int64,
}


def log_combinations(n: Tensor, counts: Tensor) -> Tensor:
    """The logarithm of the multinomial coefficients: n! over the product of counts! along the last axis."""
    with get_default_graph().name_scope("log_combinations"):
        return F.Lgamma(n + 1) - reduce_sum(F.Lgamma(counts + 1), [-1])
