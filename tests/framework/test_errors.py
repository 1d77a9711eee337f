"""Tests of flowstone.framework.errors."""

from __future__ import annotations

import doctest
import pickle
from types import SimpleNamespace

import pytest

from flowstone.framework import errors

# code: (the name of its constant, the name of its class), from error_codes.proto and TensorFlow
CODES = {
    1: ("CANCELLED", "CancelledError"),
    2: ("UNKNOWN", "UnknownError"),
    3: ("INVALID_ARGUMENT", "InvalidArgumentError"),
    4: ("DEADLINE_EXCEEDED", "DeadlineExceededError"),
    5: ("NOT_FOUND", "NotFoundError"),
    6: ("ALREADY_EXISTS", "AlreadyExistsError"),
    7: ("PERMISSION_DENIED", "PermissionDeniedError"),
    8: ("RESOURCE_EXHAUSTED", "ResourceExhaustedError"),
    9: ("FAILED_PRECONDITION", "FailedPreconditionError"),
    10: ("ABORTED", "AbortedError"),
    11: ("OUT_OF_RANGE", "OutOfRangeError"),
    12: ("UNIMPLEMENTED", "UnimplementedError"),
    13: ("INTERNAL", "InternalError"),
    14: ("UNAVAILABLE", "UnavailableError"),
    15: ("DATA_LOSS", "DataLossError"),
    16: ("UNAUTHENTICATED", "UnauthenticatedError"),
}


def test_the_examples_of_the_module() -> None:
    assert doctest.testmod(errors).failed == 0


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_its_class(code: int) -> None:
    constant, class_name = CODES[code]
    cls = getattr(errors, class_name)
    assert getattr(errors, constant) == code
    assert issubclass(cls, errors.OpError)
    assert errors.exception_type_from_error_code(code) is cls
    assert errors.error_code_from_exception_type(cls) == code
    error = cls("the node", None, "the message")
    assert (error.node_def, error.op, error.message, error.error_code) == (
        "the node",
        None,
        "the message",
        code,
    )
    assert str(error) == "the message"


def test_codes_without_a_class() -> None:
    assert errors.OK == 0
    for code in (0, 77):
        with pytest.raises(KeyError):
            errors.exception_type_from_error_code(code)
    error = errors.error_from_code(None, None, "strange", 77)
    assert type(error) is errors.UnknownError
    assert error.error_code == 77


def test_classes_without_a_code() -> None:
    with pytest.warns(UserWarning, match="Unknown class exception"):
        answer = errors.error_code_from_exception_type(ValueError)
    assert isinstance(answer, errors.UnknownError)


def test_the_node_is_made_on_demand_and_once() -> None:
    made = []

    def node_def() -> str:
        made.append("node")
        return "node"

    error = errors.InternalError(node_def, None, "message")
    assert (str(error), error.message, made) == ("message", "message", [])
    assert (error.node_def, error.node_def, made) == ("node", "node", ["node"])


def test_text_tells_where_the_operation_was_made() -> None:
    forward = SimpleNamespace(name="y", traceback=[("model.py", 7, "build", "y = f(x)")], _original_op=None)
    gradient = SimpleNamespace(
        name="gradients/y",
        traceback=[("train.py", 3, "<module>", "g = gradients(y, x)")],
        _original_op=forward,
    )
    error = errors.InvalidArgumentError(None, gradient, "bad shape")
    assert str(error).split("\n") == [
        "bad shape",
        "",
        "Original stack trace for 'gradients/y':",
        '  File "train.py", line 3, in <module>',
        "    g = gradients(y, x)",
        "",
        "",
        "...which was created as 'y':",
        '  File "model.py", line 7, in build',
        "    y = f(x)",
        "",
    ]
    assert error.message == "bad shape"


def test_text_of_an_operation_that_is_its_own_origin_ends() -> None:
    op = SimpleNamespace(name="a", traceback=[("a.py", 1, "f", "a()")])
    op._original_op = op
    assert str(errors.AbortedError(None, op, "m")).count("a.py") == 1


def test_pickling_keeps_the_node_and_leaves_the_operation() -> None:
    for error in (
        errors.OutOfRangeError(lambda: "node", SimpleNamespace(name="op", traceback=None), "end"),
        errors.UnknownError(None, None, "strange", 77),
        errors.OpError(None, None, "any", 3),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert (copy.node_def, copy.op, copy.message) == (error.node_def, None, error.message)
        assert copy.error_code == error.error_code


def test_raise_exception_on_not_ok_status() -> None:
    with errors.raise_exception_on_not_ok_status() as status:
        assert status.code == errors.OK
    not_ok = errors.raise_exception_on_not_ok_status
    with pytest.raises(errors.NotFoundError, match="no such file"), not_ok() as status:
        status.code, status.message = errors.NOT_FOUND, "no such file"
    with pytest.raises(ZeroDivisionError), not_ok() as status:
        status.code = errors.INTERNAL
        raise ZeroDivisionError
