"""Declared inputs and outputs of operations, read from the text of a signature such as ``x: T``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.declarations.attributes import AttributeSpec
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType

__all__ = ["Argument", "after_scalars"]

_ARGUMENT = re.compile(
    r"(?P<name>\w+):\s*(?P<ref>Ref\()?(?:(?P<number>\w+)\*|(?P<list>\*))?(?P<type>\w+)\)?(?P<scalar>\[\??\])?\s*$"
)


class Argument:
    """One declared input or output.

    `dtype` is fixed, or None and `type_attr` names the attribute that holds it; `number_attr` names the
    length of an ``N*T`` list, `type_list_attr` the types of a ``*Ts`` list; `is_ref` says that it is a
    variable's buffer, `is_scalar` that a step fails if it is no scalar, `is_known` that the node is not even
    built where it is known to be none.
    """

    __slots__ = (
        "dtype", "is_known", "is_list", "is_ref", "is_scalar", "name", "number_attr", "type_attr",
        "type_list_attr",
    )  # fmt: skip

    def __init__(self, text: str, attributes: dict[str, AttributeSpec]) -> None:
        match = _ARGUMENT.match(text.strip())
        if match is None:
            raise ValueError(f"malformed argument {text!r}")
        self.name, self.is_ref = match["name"], match["ref"] is not None
        self.is_scalar, self.is_known = match["scalar"] is not None, match["scalar"] == "[]"
        self.dtype: DType | None = None
        self.type_attr = self.type_list_attr = None
        self.number_attr = match["number"]
        if match["list"]:
            self.type_list_attr = match["type"]
        elif match["type"] in attributes or not _is_type_name(match["type"]):
            self.type_attr = match["type"]
        else:
            self.dtype = dtypes.as_dtype(match["type"])
        self.is_list = self.number_attr is not None or self.type_list_attr is not None
        if self.type_list_attr:
            attributes.setdefault(
                self.type_list_attr, AttributeSpec(self.type_list_attr, "type", True, minimum=1)
            )
        if self.number_attr:
            attributes.setdefault(self.number_attr, AttributeSpec(self.number_attr, "int", minimum=1))
        if self.type_attr:
            attributes.setdefault(self.type_attr, AttributeSpec(self.type_attr, "type"))

    def types(self, attributes: dict[str, Any]) -> list[DType]:
        """The element types of this argument's tensors, given a node's attributes."""
        if self.type_list_attr is not None:
            return list(attributes[self.type_list_attr])
        dtype: DType = self.dtype if self.dtype is not None else attributes[self.type_attr or ""]
        if self.is_ref:
            dtype = dtype.as_ref
        return [dtype] if self.number_attr is None else [dtype] * attributes[self.number_attr]


def _is_type_name(word: str) -> bool:
    try:
        dtypes.as_dtype(word)
    except TypeError:
        return False
    return True


def after_scalars(arguments: Sequence[Argument], function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A shape inference that looks at a node's declared scalars before, if there are any."""
    if not any(argument.is_known for argument in arguments):
        return function

    def infer(node: Any) -> Any:
        node.expect_scalars()
        return function(node)

    return infer
