"""`tensorflow.python.util.protobuf.compare`: whether two messages are equal, and where they differ."""

from __future__ import annotations

import difflib
from typing import Any

from google.protobuf import text_format

__all__ = ["NormalizeNumberFields", "ProtoAssertions", "ProtoEq", "assertProtoEqual"]


def _message_like(message: Any, text_or_message: Any) -> Any:
    """The message itself, or the one that a text describes."""
    if not isinstance(text_or_message, str):
        return text_or_message
    return text_format.Parse(text_or_message, type(message)())


def NormalizeNumberFields(pb: Any) -> Any:
    """Rounds the floats of a message to seven digits, in place; returns it."""
    for field, value in pb.ListFields():
        repeated = not isinstance(value, (int, float, str, bytes)) and not hasattr(value, "ListFields")
        if field.message_type is not None:
            items = (value.values() if hasattr(value, "values") else value) if repeated else [value]
            for each in items:
                if hasattr(each, "ListFields"):
                    NormalizeNumberFields(each)
        elif field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
            if repeated:
                value[:] = [float(f"{each:.7g}") for each in value]
            else:
                setattr(pb, field.name, float(f"{value:.7g}"))
    return pb


def ProtoEq(a: Any, b: Any) -> bool:
    """Whether two messages, or two values of fields, are equal."""
    return bool(a == b)


def assertProtoEqual(
    self: Any, a: Any, b: Any, check_initialized: bool = True, normalize_numbers: bool = True, msg: Any = None
) -> None:
    """Has a test case fail, with the lines that differ, unless two messages are equal.

    `a` may be the text of a message.
    """
    a = _message_like(b, a)
    for message in (a, b):
        if check_initialized and not message.IsInitialized():
            self.fail(f"Initialization errors: {message.FindInitializationErrors()}")
    if normalize_numbers:
        a, b = (
            NormalizeNumberFields(type(each).FromString(each.SerializePartialToString())) for each in (a, b)
        )
    if a != b:
        lines = difflib.unified_diff(str(a).splitlines(), str(b).splitlines(), "a", "b", lineterm="")
        self.fail("\n".join([*([str(msg)] if msg else []), *lines]))


class ProtoAssertions:
    """Test cases derived from this have `assertProtoEqual`."""

    def assertProtoEqual(self, *args: Any, **kwargs: Any) -> None:
        """Fails unless two messages are equal."""
        assertProtoEqual(self, *args, **kwargs)
