"""Nodes and their outputs: what every stage from the user's graph to the plan has in common.

A `Node` is one use of a declared operation: attributes, inputs, control inputs, outputs. The user's
`Operation` and `Tensor` (`graph.py`, `tensor.py`) are a `Node` and an `Output` with a graph and Python
manners; a plan's nodes (`subgraph.py`) are plain ones. Shape inference, kernels and local identities see only
what is declared here, so each is written once and serves graph building as well as rewriting.

`dims` is always a static shape as a tuple of int|None, or None where even the rank is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowstone.framework.dtypes import DType

if TYPE_CHECKING:
    from flowstone.framework.operation import OpDeclaration

UNKNOWN: Any = type("Unknown", (), {"__repr__": lambda self: "UNKNOWN"})()


class Output:
    """One output of a node: `op` (the node), `index`, `dtype` (with reference-ness), `dims` (static
    shape).
    """

    __slots__ = ("_dims", "_dtype", "_op", "_static_value", "_value_index")

    def __init__(self, op: Node, index: int, dtype: DType, dims: tuple[int | None, ...] | None) -> None:
        self._op, self._value_index, self._dtype, self._dims = op, index, dtype, dims
        self._static_value: Any = UNKNOWN

    @property
    def op(self) -> Any:
        """The node that computes this value."""
        return self._op

    @property
    def value_index(self) -> int:
        """Which of its node's outputs this is."""
        return self._value_index

    @property
    def dtype(self) -> DType:
        """The element type; a reference type where the value is a variable's buffer."""
        return self._dtype

    @property
    def dims(self) -> tuple[int | None, ...] | None:
        """The static shape: a tuple of int or None, or None."""
        return self._dims

    @property
    def name(self) -> str:
        """``node:index``."""
        return f"{self._op.name}:{self._value_index}"


class Node:
    """One use of a declared operation.

    Fields: `name`; `declaration`; `attributes` (canonical values, see `attributes.py`); `control_inputs`
    (nodes to run before); `outputs`; `device` (requested, '' for none); `order` (creation order, which breaks
    ties); `group_sizes` (how many inputs each declared input argument holds).
    """

    __slots__ = (
        "_control_inputs",
        "_device",
        "_inputs",
        "_name",
        "_outputs",
        "attributes",
        "declaration",
        "group_sizes",
        "order",
    )

    def __init__(
        self,
        declaration: OpDeclaration,
        name: str,
        inputs: list[Any],
        attributes: dict[str, Any],
        group_sizes: tuple[int, ...],
        control_inputs: list[Any],
        device: str,
        order: int,
    ) -> None:
        self.declaration, self._name, self.attributes = declaration, name, attributes
        self._inputs, self.group_sizes, self._control_inputs = inputs, group_sizes, control_inputs
        self._device, self.order = device, order
        self._outputs: list[Any] = []

    name = property(lambda self: self._name)
    inputs: Any = property(lambda self: self._inputs)
    control_inputs: Any = property(lambda self: self._control_inputs)
    outputs: Any = property(lambda self: self._outputs)
    device = property(lambda self: self._device)

    @property
    def type(self) -> str:
        """The operation's name on the wire, such as ``"MatMul"``."""
        return self.declaration.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self._name}' type={self.declaration.name}>"

    # ---- what inference, kernels and identities ask of a node

    def dims(self, i: int) -> tuple[int | None, ...] | None:
        """Static shape of input `i`."""
        return self._inputs[i]._dims  # type: ignore[no-any-return]

    def dtype(self, i: int) -> DType:
        """Element type of input `i`, without reference-ness."""
        return self._inputs[i]._dtype.base_dtype  # type: ignore[no-any-return]

    def static_shape(self, i: int) -> tuple[int, ...] | None:
        """Shape of input `i` if every dimension is known, else None."""
        dims = self._inputs[i]._dims
        return None if dims is None or None in dims else dims

    def constant(self, i: int) -> np.ndarray[Any, Any] | None:
        """Value of input `i` as a NumPy array if it is known before the step, else None."""
        value = _known_where_alive(self._inputs[i])
        if value is None or isinstance(value, np.ndarray):
            return value
        return None

    def constant_dims(self, i: int) -> tuple[int | None, ...] | None:
        """Input `i`, a vector of sizes, as a static shape with None for what is not known; -1 counts as
        unknown.

        None if not even its length is known.
        """
        value = _known_where_alive(self._inputs[i])
        if value is not None:
            return tuple([None if n is None or n < 0 else int(n) for n in value])
        dims = self._inputs[i]._dims
        if dims is None or len(dims) != 1 or dims[0] is None:
            return None
        unknown: tuple[int | None, ...] = (None,) * dims[0]
        return unknown

    def input_argument(self, i: int) -> Any:
        """The declared argument that input `i` belongs to."""
        declaration = self.declaration
        if not declaration.has_lists:
            return declaration.inputs[i]
        for argument, size in zip(declaration.inputs, self.group_sizes):
            if i < size:
                return argument
            i -= size
        raise IndexError(f"{self._name} has no such input")

    def group(self, argument: int) -> Sequence[Any]:
        """The inputs that belong to the declared input argument of this position (for list arguments)."""
        start = sum(self.group_sizes[:argument])
        return self._inputs[start : start + self.group_sizes[argument]]


def _known_where_alive(x: Any) -> Any:
    """The static value of an input, or of what a branch gets from outside: a Switch itself has none, since it
    may be dead."""
    value = static_value(x)
    while value is None and x._op.declaration.name == "Switch":
        x = x._op._inputs[0]
        value = static_value(x)
    return value


def static_value(output: Any) -> Any:
    """The value of an output as far as it is known without running a step.

    An `numpy.ndarray` if all of it is known; a tuple of int|None for a vector of sizes known in part; else
    None. The declaration's `value` hook answers first; a pure operation on small known inputs is computed
    with its kernel.
    """
    found = output._static_value
    if found is UNKNOWN:
        found = output._static_value = _compute_static_value(output)
    return found


def _compute_static_value(output: Any) -> Any:
    pending = [output]  # explicit stack: chains of constants may be long
    while pending:
        current = pending[-1]
        if current._static_value is not UNKNOWN:
            pending.pop()
            continue
        node = current._op
        declaration = node.declaration
        needed = declaration.static_value_inputs(node)
        if needed is None:
            current._static_value = None
            pending.pop()
            continue
        missing = [x for x in needed if x._static_value is UNKNOWN]
        if missing:
            pending.extend(missing)
            continue
        current._static_value = declaration.static_value(node, current._value_index)
        pending.pop()
    return output._static_value
