"""`tensorflow.python.ops.control_flow_ops`: the nodes and contexts of loops and conditionals."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.control.conditionals import CondContext, case_by
from flowstone.ops.control.context_questions import ContextQuestions
from flowstone.ops.control.control_flow import zeros_for_gradient
from flowstone.ops.control.loop_context import WhileContext

__all__ = [
    "CondContext",
    "ControlFlowContext",
    "IsLoopExit",
    "IsLoopSwitch",
    "IsSwitch",
    "WhileContext",
    "ZerosLikeOutsideLoop",
    "exit",
    "smart_cond",
]


ControlFlowContext = ContextQuestions


def IsSwitch(op: Any) -> bool:
    """Whether an operation sends its input one of two ways."""
    return op.type in ("Switch", "RefSwitch")


def IsLoopExit(op: Any) -> bool:
    """Whether an operation gives out a value of a loop."""
    return op.type in ("Exit", "RefExit")


def IsLoopSwitch(op: Any) -> bool:
    """Whether an operation is the Switch of a loop variable."""
    return IsSwitch(op) and isinstance(op._get_control_flow_context(), WhileContext)


def ZerosLikeOutsideLoop(op: Any, index: int) -> Any:
    """Zeros like an operation's output, for use in a gradient; the output of a Switch may be dead."""
    return zeros_for_gradient(op, op.outputs[index])


def exit(data: Any, name: str | None = None) -> Any:
    """The value in the frame around the current one."""
    return F.Exit(data, name=name)


def smart_cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: str | None = None) -> Any:
    """`tf.cond`, decided now where the predicate's value is known."""
    known = pred if isinstance(pred, bool) else tf.get_static_value(pred)
    if known is None:
        return tf.cond(pred, true_fn, false_fn, name=name)
    return true_fn() if known else false_fn()


_case_helper = case_by


def _Identity(data: Any, name: str | None = None) -> Any:
    """`tf.identity`, which keeps the composite values."""
    return tf.identity(data, name=name)


def _AsTensorList(x: Any, p: Any) -> list[Any]:
    """Tensors for values and operations; an operation becomes `p`, once it has run."""
    values = x if isinstance(x, (list, tuple)) else [x]
    converted = []
    for value in values:
        if isinstance(value, tf.Operation):
            with tf.control_dependencies([value]):
                converted.append(tf.identity(p))
        else:
            converted.append(tf.convert_to_tensor_or_indexed_slices(value))
    return converted
