"""What string operations share: arrays of strings as lists and back, and ops that work string by string.

>>> as_array([b"a", b"b"], (2, 1)).tolist()
[[b'a'], [b'b']]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import Dims

Strings = np.ndarray[Any, Any]
# Of a node: what makes the results (strings, or an array of one element a string) of all its strings.
MakeFunction = Callable[[Node], Callable[[list[bytes]], Any]]


def as_list(strings: Any) -> list[bytes]:
    """The strings of an array, row by row."""
    found: list[bytes] = np.asarray(strings, dtype=object).reshape(-1).tolist()
    return found


def flat(strings: Any) -> Strings:
    """The strings of an array, row by row, as neighbours in one dimension: for machine code, which reads them
    where they are."""
    return np.ascontiguousarray(strings, dtype=object).reshape(-1)


def as_array(strings: Sequence[bytes] | Strings, shape: Sequence[int]) -> Strings:
    """These strings as an array of this shape."""
    if isinstance(strings, np.ndarray) and strings.dtype == object:
        return strings.reshape(shape)
    result = np.empty(len(strings), object)
    result[:] = strings
    return result.reshape(shape)


def attribute_bytes(node: Node, name: str) -> bytes:
    """A string attribute as bytes."""
    value: str | bytes = node.attributes[name]
    return value.encode() if isinstance(value, str) else value


def same_shape(node: Node) -> Dims:
    """Static shape: that of the first input."""
    return node.dims(0)


def declare_each(name: str, signature: str, attributes: str, make: MakeFunction) -> OpDeclaration:
    """Declares an op whose one input is strings and whose output has a string for each of them.

    `make(node)` checks the attributes when a plan is made, and gives what maps a list of strings to a list.
    """
    declaration = op(name, signature, attributes, by_element=True)
    declaration.infer(same_shape)

    @declaration.kernel(CPU)  # strings are in host memory
    def _(node: Node, env: Environment) -> Callable[[Strings], Strings]:
        function = make(node)
        return lambda strings: as_array(function(as_list(strings)), np.shape(strings))

    return declaration
