"""The errors of running a graph, with TensorFlow's classes, codes and texts.

An `OpError` says which node failed: `node_def` (the node as a NodeDef), `op` (the user's Operation, None
where the node was made by a rewriting), `message` and `error_code` (the numbers of `error_codes.proto`).
Errors of building a graph, of feeding and of fetching are Python's own ValueError, TypeError, RuntimeError;
the truth and the elements of a tensor have a TypeError of their own.

    >>> error = InvalidArgumentError(None, None, "Incompatible shapes: [2] vs. [3]")
    >>> error.error_code == INVALID_ARGUMENT, str(error)
    (True, 'Incompatible shapes: [2] vs. [3]')

Making an error builds no NodeDef: pass a function without arguments as `node_def` and it is called when
somebody asks.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class OpError(Exception):
    """The failure of a node of a running graph.

    Args:
        node_def: the NodeDef of the node, None, or a function without arguments that returns either.
        op: the Operation of the user's graph, or None. Its `traceback` (what `traceback.extract_stack` gives)
            is printed after the message, and that of its `_original_op`, if it has one.
        message: what went wrong.
        error_code: a code of this module.
    """

    node_name = ""  # of an error of another process that names its node

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int) -> None:
        super().__init__()
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = error_code

    def __reduce__(self) -> tuple[Any, ...]:
        # An Operation belongs to its process; the node says the same to another one.
        return _rebuild, (type(self), self.node_def, self._message, self._error_code)

    @property
    def message(self) -> str:
        """What went wrong, without the origin of the node."""
        return self._message

    @property
    def op(self) -> Any:
        """The Operation that failed, or None where the user's graph has none."""
        return self._op

    @property
    def error_code(self) -> int:
        """The code of `error_codes.proto`."""
        return self._error_code

    @property
    def node_def(self) -> Any:
        """The NodeDef of the node that failed, or None."""
        if callable(self._node_def):
            self._node_def = self._node_def()
        return self._node_def

    def __str__(self) -> str:
        parts = [str(self._message)]
        op, seen = self._op, set()
        while op is not None and id(op) not in seen:
            seen.add(id(op))
            stack = getattr(op, "traceback", None)
            if stack:
                relation = "Original stack trace for" if op is self._op else "...which was created as"
                lines = "".join(traceback.format_list(list(stack)))
                parts.append(f"{relation} '{op.name}':\n{lines}")
            op = getattr(op, "_original_op", None)
        return "\n\n".join(parts)


def _rebuild(cls: type[OpError], node_def: Any, message: str, error_code: int) -> OpError:
    if _CODE_OF_CLASS.get(cls) == error_code:
        return cls(node_def, None, message)  # type: ignore[call-arg]
    return cls(node_def, None, message, error_code)


class CancelledError(OpError):
    """The operation was cancelled: its session or queue was closed, or the step failed elsewhere."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, CANCELLED)


class UnknownError(OpError):
    """A failure that has no class of its own."""

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int = UNKNOWN) -> None:
        super().__init__(node_def, op, message, error_code)


class InvalidArgumentError(OpError):
    """An input or attribute has an invalid value or shape."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, INVALID_ARGUMENT)


class DeadlineExceededError(OpError):
    """The time limit of the step passed."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, DEADLINE_EXCEEDED)


class NotFoundError(OpError):
    """A file, variable, table or other named thing does not exist."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, NOT_FOUND)


class AlreadyExistsError(OpError):
    """The thing to be made exists already."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, ALREADY_EXISTS)


class PermissionDeniedError(OpError):
    """The caller may not do this, for example read a file."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, PERMISSION_DENIED)


class UnauthenticatedError(OpError):
    """The caller did not say who it is."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, UNAUTHENTICATED)


class ResourceExhaustedError(OpError):
    """Memory, disk or another resource is used up."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, RESOURCE_EXHAUSTED)


class FailedPreconditionError(OpError):
    """The state does not allow the operation: an uninitialised variable, for example."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, FAILED_PRECONDITION)


class AbortedError(OpError):
    """The operation was given up because of a concurrent one; it may be tried again."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, ABORTED)


class OutOfRangeError(OpError):
    """The end of the input: a closed queue is empty, a reader or iterator has no more elements."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, OUT_OF_RANGE)


class UnimplementedError(OpError):
    """The operation does not exist for these types, shapes or this device."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, UNIMPLEMENTED)


class InternalError(OpError):
    """The system broke one of its own invariants."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, INTERNAL)


class UnavailableError(OpError):
    """A task or service cannot be reached at present."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, UNAVAILABLE)


class DataLossError(OpError):
    """Data is lost or corrupt: a truncated record, a wrong checksum."""

    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, DATA_LOSS)


class InaccessibleTensorError(ValueError):
    """A fetch of a tensor that is within a loop or a branch, of which a step has no one value."""


class OperatorNotAllowedInGraphError(TypeError):
    """Python asked a tensor for what only its value says, before a step has computed it."""


_CLASS_OF_CODE: dict[int, Callable[[Any, Any, str], OpError]] = {
    CANCELLED: CancelledError,
    UNKNOWN: UnknownError,
    INVALID_ARGUMENT: InvalidArgumentError,
    DEADLINE_EXCEEDED: DeadlineExceededError,
    NOT_FOUND: NotFoundError,
    ALREADY_EXISTS: AlreadyExistsError,
    PERMISSION_DENIED: PermissionDeniedError,
    RESOURCE_EXHAUSTED: ResourceExhaustedError,
    FAILED_PRECONDITION: FailedPreconditionError,
    ABORTED: AbortedError,
    OUT_OF_RANGE: OutOfRangeError,
    UNIMPLEMENTED: UnimplementedError,
    INTERNAL: InternalError,
    UNAVAILABLE: UnavailableError,
    DATA_LOSS: DataLossError,
    UNAUTHENTICATED: UnauthenticatedError,
}
_CODE_OF_CLASS: dict[Any, int] = {cls: code for code, cls in _CLASS_OF_CODE.items()}


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """The class of an error code. KeyError for OK and for numbers that are no code."""
    return _CLASS_OF_CODE[error_code]  # type: ignore[return-value]


def error_code_from_exception_type(cls: type[BaseException]) -> int | UnknownError:
    """The code of an error class. For any other class TensorFlow warns and gives an UnknownError object."""
    try:
        return _CODE_OF_CLASS[cls]
    except KeyError:
        warnings.warn(f"Unknown class exception {cls}", stacklevel=2)
        return UnknownError(None, None, f"Unknown class exception {cls}")


def error_from_code(node_def: Any, op: Any, message: str, error_code: int) -> OpError:
    """The error of a code that came from elsewhere; UnknownError takes the codes without a class."""
    cls = _CLASS_OF_CODE.get(error_code)
    return UnknownError(node_def, op, message, error_code) if cls is None else cls(node_def, op, message)


class Status:
    """What an operation outside Python's exceptions reports: a code and a message."""

    __slots__ = ("code", "message")

    def __init__(self, code: int = OK, message: str = "") -> None:
        self.code = code
        self.message = message


class raise_exception_on_not_ok_status:
    """A context that hands out a `Status` and raises its error at the end, if it is not OK by then."""

    def __enter__(self) -> Status:
        self.status = Status()
        return self.status

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if exception is None and self.status.code != OK:
            raise error_from_code(None, None, self.status.message, self.status.code)
