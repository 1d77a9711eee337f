"""Turns failures of a step into TensorFlow's errors.

`explain` turns an exception that left a segment into the error that TensorFlow raises there, with the node,
its op, the shapes and types of its inputs (read from the failed frame, so a successful step pays nothing) and
the user's line that created the node.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.framework.types.dtypes import from_torch

GENERATED_FILE = "<flowstone segment "  # how the file names of generated code begin


class Lines(Protocol):
    """Generated code whose lines are known: a segment, or a program of segments."""

    def node_at(self, line: int) -> PlanNode | None:
        """The node of a line."""

    def arguments_at(self, line: int) -> Sequence[str]:
        """The names of the values that the line's node takes."""


def explain(error: BaseException, code: Lines) -> BaseException:
    """The error to raise instead of `error`, which left `code`; `error` itself if it does not come from a
    kernel (KeyboardInterrupt …).
    """
    if not isinstance(error, Exception):
        return error
    frame, line = _failed_line(error)
    node = code.node_at(line) if frame is not None else None
    if node is None:
        return error
    return located(error, node, [_evaluated(name, frame) for name in code.arguments_at(line)])


def not_fetched(error: Exception, fetches: Sequence[Any]) -> Exception:
    """The error to raise where the results cannot be given to the user: one that names the fetched tensors if
    there is no memory for them, such as that of a broadcast."""
    if _class_of(error) is not errors.ResourceExhaustedError:
        return error
    message = _first_line(str(error))
    if len(fetches) > 1:
        names = ", ".join(each.name for each in fetches)
        return errors.ResourceExhaustedError(None, None, f"{message} (fetching {names})")
    origin = fetches[0].op
    text = f"{message}\n\t [[fetched {origin.name} (op {origin.type}){_location(origin)}]]"
    return errors.ResourceExhaustedError(lambda: origin.node_def, origin, text)


def located(error: Exception, node: PlanNode, inputs: Sequence[Any] = ()) -> Exception:
    """`error` as the class that TensorFlow raises, with the node, its op, the shapes and types of the values
    `inputs` and the user's line.

    An error that already names an operation is returned as it is. Of nodes that were joined to `node`, the
    one that the error holds as its `failed_node` (`lowering/clusters/cluster_kernel.py`) is named. Ends of
    data say nothing of inputs.
    """
    node, inputs = getattr(error, "failed_node", (node, inputs))
    origin = node.origin
    if isinstance(error, errors.OpError):
        if error.op is not None:
            return error
        kind: Any = type(error)
        message = error.message
    else:
        kind, message = _class_of(error), _message_of(error, node, inputs)
        if _has_no_value(error) and origin.declaration.role == "element_access":
            kind = errors.NotFoundError  # of the resource, as in TensorFlow
    described = "" if _says_nothing_of_inputs(error) else _in_words(inputs)
    text = f"{message}{described}\n\t [[node {node.name} (op {_type_of(node)}){_location(origin)}]]"
    result: Exception = kind(lambda: origin.node_def, origin, text)
    return result


def _says_nothing_of_inputs(error: Exception) -> bool:
    """Whether a variable has no value, data has come to its end, or the step was ended."""
    return _has_no_value(error) or isinstance(error, (errors.OutOfRangeError, errors.CancelledError))


def _failed_line(error: BaseException) -> tuple[Any, int]:
    """The innermost frame of generated code in the traceback, and its line."""
    found, line = None, 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(GENERATED_FILE):
            found, line = trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
    return found, line


def _type_of(node: PlanNode) -> str:
    """The op of the user's operation, where the node's own is a word of plans: of a feed, of joined nodes."""
    return node.origin.type if node.is_feed or node.type.startswith("_") else node.type


def _location(origin: Any) -> str:
    user_line = origin.user_line
    return f" defined at {user_line[0]}:{user_line[1]}" if user_line else ""


_NO_MEMORY = ("not enough memory", "can't allocate memory")  # ATen's words, by platform


def _has_no_value(error: Exception) -> bool:
    """Whether a variable has no value."""
    return isinstance(error, AttributeError) and "tensor" in str(error)


def _class_of(error: Exception) -> Any:
    if _has_no_value(error):
        return errors.FailedPreconditionError
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return errors.ResourceExhaustedError
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:  # of a map of memory
        return errors.ResourceExhaustedError
    if isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY):
        return errors.ResourceExhaustedError
    if isinstance(error, NotImplementedError):
        return errors.UnimplementedError
    if isinstance(error, (RuntimeError, ValueError, IndexError, ZeroDivisionError, OverflowError, TypeError)):
        return errors.InvalidArgumentError
    return errors.UnknownError


def _message_of(error: Exception, node: PlanNode, inputs: Sequence[Any]) -> str:
    """The message, in TensorFlow's words where its users would not understand ATen's."""
    if isinstance(error, AttributeError) and _has_no_value(error):
        name = getattr(error.obj, "name", node.name) if hasattr(error, "obj") else node.name
        return f"Attempting to use uninitialized value {name}"
    text = str(error).strip()
    for words, tell in _TOLD_BETTER:
        if words in text and (better := tell(inputs)):
            return better
    return _first_line(text) if isinstance(error, RuntimeError) and text else text or type(error).__name__


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""


def _shapes(values: Sequence[Any]) -> list[str]:
    return [str(list(value.shape)).replace(" ", "") for value in values if isinstance(value, torch.Tensor)]


def _different_shapes(values: Sequence[Any]) -> str:
    shapes = _shapes(values)
    return f"Incompatible shapes: {shapes[0]} vs. {shapes[1]}" if len(shapes) == 2 else ""


def _different_sizes(values: Sequence[Any]) -> str:
    shapes = _shapes(values)
    return f"Matrix size-incompatible: In[0]: {shapes[0]}, In[1]: {shapes[1]}" if len(shapes) >= 2 else ""


def _not_reshaped(values: Sequence[Any]) -> str:
    if len(values) != 2 or not _are_tensors(values):
        return ""
    count, sizes = values[0].numel(), values[1].reshape(-1).tolist()
    size = math.prod(n for n in sizes if n != -1)
    wanted = f"requires a multiple of {size}" if -1 in sizes else f"has {size}"
    return f"Input to reshape is a tensor with {count} values, but the requested shape {wanted}"


def _not_broadcast(values: Sequence[Any]) -> str:
    if len(values) != 2 or not _are_tensors(values):
        return ""
    wanted = str(values[1].reshape(-1).tolist()).replace(" ", "")
    return f"Incompatible shapes: {_shapes(values)[0]} vs. {wanted}"


def _not_joined(values: Sequence[Any]) -> str:
    """Which of the tensors to concatenate does not fit the first along the axes that stay."""
    *parts, axis = values
    if not (_are_tensors(values) and parts and _is_index(axis) and all(x.dim() for x in parts)):
        return ""
    at = int(axis) % parts[0].dim()
    for i, part in enumerate(parts):
        if part.shape[:at] != parts[0].shape[:at] or part.shape[at + 1 :] != parts[0].shape[at + 1 :]:
            first, other = _shapes([parts[0], part])
            return f"Dimensions of inputs should match: shape[0] = {first} vs. shape[{i}] = {other}"
    return ""


def _not_stacked(values: Sequence[Any]) -> str:
    """Which of the tensors to stack has another shape than the first."""
    first, *others = _shapes(values) or [""]
    i = next((i for i, other in enumerate(others, 1) if other != first), None)
    if i is None:
        return ""
    return (
        f"Shapes of all inputs must match: values[0].shape = {first} != values[{i}].shape = {others[i - 1]}"
    )


def _are_tensors(values: Sequence[Any]) -> bool:
    return all(isinstance(value, torch.Tensor) for value in values)


def _is_index(value: torch.Tensor) -> bool:
    return value.dim() == 0 and value.dtype in (torch.int32, torch.int64)


def _outside(values: Sequence[Any]) -> str:
    """Which of a gather's indices is out of range; "" for other operations."""
    if len(values) not in (2, 3) or not _are_tensors(values):
        return ""
    params, indices, *axis = values
    at = int(axis[0]) if axis and axis[0].dim() == 0 else 0
    if indices.dtype not in (torch.int32, torch.int64) or not -params.dim() <= at < params.dim():
        return ""
    bad = ((indices < 0) | (indices >= params.shape[at])).nonzero()
    if not len(bad):
        return ""
    place = bad[0].tolist()
    name = f"indices[{','.join(map(str, place))}]" if place else "index"
    return f"{name} = {int(indices[tuple(place)])} is not in [0, {params.shape[at]})"


# ATen's words, and the function that makes TensorFlow's text from the inputs' values ("" if it does not
# apply).
_TOLD_BETTER: tuple[tuple[str, Callable[[Sequence[Any]], str]], ...] = (
    ("must match the size of tensor b", _different_shapes),
    ("shapes cannot be multiplied", _different_sizes),
    ("is invalid for input of size", _not_reshaped),
    ("expanded size of the tensor", _not_broadcast),
    ("Sizes of tensors must match", _not_joined),
    ("stack expects each tensor to be equal size", _not_stacked),
    ("index out of range in self", _outside),
    ("INDICES element is out of DATA bounds", _outside),
    ("Given transposed=1", lambda values: "filter and out_backprop must have the same out_depth"),
    (" by zero", lambda values: "Integer division by zero"),
    ("ZeroDivisionError", lambda values: "Integer division by zero"),
    ("Boolean value of Tensor with more than one value", lambda values: "The predicate must be a scalar"),
)


def _in_words(inputs: Sequence[Any]) -> str:
    return f" (inputs: {', '.join(map(_describe, inputs))})" if inputs else ""


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
