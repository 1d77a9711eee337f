"""What stands in converted code for Python's operators and functions: Python's meaning, unless an operand is
a tensor.

`call(f)` is what is called in place of ``f``: a converted `f`, or what a function of Python's means for
tensors.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from flowstone.conversion.control_flow import Enumerated, for_stmt, if_exp, if_stmt, loop_options, while_stmt
from flowstone.conversion.state import is_dataset, is_tensor, no_value
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import range as tensor_range
from flowstone.ops.control.conditionals import Assert, cond
from flowstone.ops.numbers.arithmetic import abs as tensor_abs
from flowstone.ops.numbers.casts import cast
from flowstone.ops.strings.number_texts import string_to_number

__all__ = [
    "OVERLOADS", "and_", "assert_", "eq", "for_stmt", "if_exp", "if_stmt", "loop_options", "no_value", "not_",
    "not_eq", "or_", "returned", "set_attribute", "set_item", "while_stmt",
]  # fmt: skip

set_attribute, set_item = setattr, operator.setitem


def returned(value: Any) -> Any:
    """What a function returns whose returns were lowered."""
    return None if value is no_value else value


# ---- logic


def and_(*operands: Callable[[], Any]) -> Any:
    """``a and b and …`` of functions that give the operands."""
    value = operands[0]()
    for i, operand in enumerate(operands[1:], 1):
        if is_tensor(value):
            rest, first = operands[i:], convert_to_tensor(value)
            return cond(first, functools.partial(_as_bool, and_, rest), lambda: _bool(False), strict=True)
        value = value and operand()
        if not is_tensor(value) and not value:
            return value
    return value


def or_(*operands: Callable[[], Any]) -> Any:
    """``a or b or …`` of functions that give the operands."""
    value = operands[0]()
    for i, operand in enumerate(operands[1:], 1):
        if is_tensor(value):
            rest, first = operands[i:], convert_to_tensor(value)
            return cond(first, lambda: _bool(True), functools.partial(_as_bool, or_, rest), strict=True)
        if value:
            return value
        value = operand()
    return value


def _as_bool(combine: Callable[..., Any], operands: Any) -> Tensor:
    return _bool(combine(*operands))


def _bool(value: Any) -> Tensor:
    return convert_to_tensor(value, dtypes.bool)


def not_(value: Any) -> Any:
    """``not value``."""
    return F.LogicalNot(convert_to_tensor(value)) if is_tensor(value) else not value


def eq(x: Any, y: Any) -> Any:
    """``x == y``, of tensors element by element."""
    return _compared(x, y, "Equal") if is_tensor(x) or is_tensor(y) else x == y


def not_eq(x: Any, y: Any) -> Any:
    """``x != y``, of tensors element by element."""
    return _compared(x, y, "NotEqual") if is_tensor(x) or is_tensor(y) else x != y


def _compared(x: Any, y: Any, name: str) -> Any:
    if x is None or y is None:
        return (x is y) == (name == "Equal")
    if is_tensor(x):
        x = convert_to_tensor(x)
        return getattr(F, name)(x, convert_to_tensor(y, None if is_tensor(y) else x.dtype.base_dtype))
    y = convert_to_tensor(y)
    return getattr(F, name)(convert_to_tensor(x, y.dtype.base_dtype), y)


def assert_(test: Any, message: Callable[[], Any]) -> None:
    """``assert test, message()``; of a tensor an operation that fails the step."""
    if not is_tensor(test):
        assert test, message()
        return
    shown = message()
    data = list(shown) if isinstance(shown, (list, tuple)) else [shown or "assertion failed"]
    Assert(convert_to_tensor(test), data)


# ---- functions of Python's


def _length(value: Any) -> Any:
    if not is_tensor(value):
        return len(value)
    tensor = convert_to_tensor(value)
    if tensor.dims is not None and not tensor.dims:
        raise ValueError("len requires a non-scalar tensor, got one of shape ()")
    if tensor.dims is not None and tensor.dims[0] is not None:
        return tensor.dims[0]
    return F.Shape(tensor)[0]


def _int(value: Any = 0, *base: Any) -> Any:
    return _number(value, dtypes.int32) if is_tensor(value) else int(value, *base)


def _float(value: Any = 0.0) -> Any:
    return _number(value, dtypes.float32) if is_tensor(value) else float(value)


def _number(value: Any, dtype: dtypes.DType) -> Tensor:
    tensor = convert_to_tensor(value)
    if tensor.dtype.base_dtype is dtypes.string:
        return string_to_number(tensor, dtype)
    return cast(tensor, dtype)  # type: ignore[no-any-return]


def _abs(value: Any) -> Any:
    return tensor_abs(value) if is_tensor(value) else abs(value)


def _range(*bounds: Any) -> Any:
    return tensor_range(*bounds) if any(is_tensor(bound) for bound in bounds) else range(*bounds)


def _enumerate(iterated: Any, start: Any = 0) -> Any:
    is_known = not is_tensor(iterated) and not is_dataset(iterated)
    return enumerate(iterated, start) if is_known else Enumerated(iterated, start)


OVERLOADS: dict[Any, Any] = {
    abs: _abs, enumerate: _enumerate, float: _float, int: _int, len: _length, range: _range,
}  # fmt: skip
"""By function of Python's what means it for tensors too."""
