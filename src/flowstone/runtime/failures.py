"""Failures of a step, in the user's language.

`explain` turns an exception that left a segment into the error that TensorFlow raises there, with the node,
its op, the shapes and types of its inputs (read from the failed frame, so a successful step pays nothing) and
the user's line that created the node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.dtypes import from_torch
from flowstone.framework.subgraph import PlanNode

if TYPE_CHECKING:
    from flowstone.runtime.segments import Segment

GENERATED_FILE = "<flowstone segment "  # how the file names of generated code begin


def explain(error: BaseException, segment: Segment) -> BaseException:
    """The error to raise instead of `error`; `error` itself where it is not the kernel's (KeyboardInterrupt
    …).
    """
    if not isinstance(error, Exception):
        return error
    frame, line = _failed_line(error)
    node = segment.node_at(line) if frame is not None else None
    if node is None:
        return error
    inputs = "" if _is_uninitialised(error) else _inputs(frame, segment.arguments[line - 1])
    return located(error, node, inputs)


def located(error: Exception, node: PlanNode, inputs: str = "") -> Exception:
    """`error` as the class that TensorFlow raises, with the node, its op, `inputs` in words and the user's
    line.

    An error that already names an operation is returned as it is.
    """
    if isinstance(error, errors.OpError):
        if error.op is not None:
            return error
        kind: Any = type(error)
        message = error.message
    else:
        kind, message = _class_of(error), _message_of(error, node)
    origin = node.origin
    text = f"{message}{inputs}\n\t [[node {node.name} (op {node.type}){_location(node)}]]"
    result: Exception = kind(lambda: origin.node_def, origin, text)
    return result


def _is_uninitialised(error: Exception) -> bool:
    return isinstance(error, AttributeError) and "tensor" in str(error)


def _failed_line(error: BaseException) -> tuple[Any, int]:
    """The innermost frame of generated code in the traceback, and its line."""
    found, line = None, 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(GENERATED_FILE):
            found, line = trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
    return found, line


def _location(node: PlanNode) -> str:
    user_line = node.origin.user_line
    return f" defined at {user_line[0]}:{user_line[1]}" if user_line else ""


def _class_of(error: Exception) -> Any:
    if _is_uninitialised(error):
        return errors.FailedPreconditionError
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return errors.ResourceExhaustedError
    if isinstance(error, RuntimeError) and "not enough memory" in str(error):
        return errors.ResourceExhaustedError
    if isinstance(error, NotImplementedError):
        return errors.UnimplementedError
    if isinstance(error, (RuntimeError, ValueError, IndexError, ZeroDivisionError, OverflowError, TypeError)):
        return errors.InvalidArgumentError
    return errors.UnknownError


def _message_of(error: Exception, node: PlanNode) -> str:
    if _is_uninitialised(error):
        name = getattr(error.obj, "name", node.name) if hasattr(error, "obj") else node.name
        return f"Attempting to use uninitialized value {name}"
    text = str(error).strip()
    return text.splitlines()[0] if isinstance(error, RuntimeError) and text else text or type(error).__name__


def _inputs(frame: Any, arguments: list[str]) -> str:
    described = [_describe(_evaluated(name, frame)) for name in arguments]
    return f" (inputs: {', '.join(described)})" if described else ""


def _evaluated(expression: str, frame: Any) -> Any:
    name, _, attribute = expression.partition(".")
    value = frame.f_locals.get(name, frame.f_globals.get(name))
    return getattr(value, "tensor", None) if attribute == "tensor" else value


def _describe(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{from_torch(value.dtype).name}{list(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"string{list(value.shape)}"
    return "?" if value is None else type(value).__name__
