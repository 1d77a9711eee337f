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

from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, fully_known

if TYPE_CHECKING:
    from flowstone.framework.declarations.operation import OpDeclaration

UNKNOWN: Any = type("Unknown", (), {"__repr__": lambda self: "UNKNOWN"})()


class Output:
    """One output of a node.

    Fields: `op`, the node that computes it; `value_index`, which of its node's outputs it is; `dtype`, a
    reference type where the value is a variable's buffer; `dims`, the static shape.
    """

    __slots__ = ("_static_value", "dims", "dtype", "op", "value_index")

    def __init__(self, op: Node, index: int, dtype: DType, dims: Dims) -> None:
        self.op, self.value_index, self.dtype, self.dims = op, index, dtype, dims
        self._static_value: Any = UNKNOWN

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The static shape if every dimension is known, else None."""
        return fully_known(self.dims)

    @property
    def known_dims(self) -> tuple[int | None, ...]:
        """The static shape where its rank is certain; AssertionError if it is not."""
        assert self.dims is not None
        return self.dims

    @property
    def name(self) -> str:
        """``node:index``."""
        return f"{self.op.name}:{self.value_index}"


class PlanData:
    """An attribute of a plan's node that only this process understands; messages leave it out."""

    __slots__ = ()


class Node:
    """One use of a declared operation.

    Fields: `name`; `declaration`; `type` (the declaration's name on the wire, such as ``"MatMul"``);
    `attributes` (canonical values, see `attributes.py`); `inputs`; `control_inputs` (nodes to run before);
    `outputs`; `device` (requested, '' for none); `order` (creation order, which breaks ties); `group_sizes`
    (how many inputs each declared input argument holds).
    """

    __slots__ = (
        "attributes",
        "control_inputs",
        "declaration",
        "device",
        "group_sizes",
        "inputs",
        "name",
        "order",
        "outputs",
        "type",
    )

    inputs: Sequence[Output]
    control_inputs: Sequence[Node]
    outputs: Sequence[Output]

    def __init__(
        self,
        declaration: OpDeclaration,
        name: str,
        inputs: Sequence[Output],
        attributes: dict[str, Any],
        group_sizes: tuple[int, ...],
        control_inputs: Sequence[Node],
        device: str,
        order: int,
    ) -> None:
        self.declaration, self.type = declaration, declaration.name
        self.name, self.attributes = name, attributes
        self.inputs, self.group_sizes, self.control_inputs = inputs, group_sizes, control_inputs
        self.device, self.order = device, order
        self.outputs = []

    @property
    def is_constant(self) -> bool:
        """Whether its value is its attribute ``value``."""
        return self.declaration.role == "constant"

    @property
    def is_feed(self) -> bool:
        """Whether it stands, in a plan, for a value that is fed."""
        return self.declaration.role == "feed"

    @property
    def commutes(self) -> bool:
        """Whether its inputs may change places, as those of a sum unless it joins text."""
        declaration = self.declaration
        return declaration.commutative or (declaration.adds and self.dtype(0) is not dtypes.string)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}' type={self.declaration.name}>"

    def sources(self) -> Sequence[Node]:
        """The nodes to run before this one: those of its inputs, then of its control inputs."""
        return [*[x.op for x in self.inputs], *self.control_inputs]

    # ---- what inference, kernels and identities ask of a node

    def dims(self, i: int) -> Dims:
        """Static shape of input `i`."""
        return self.inputs[i].dims

    def known_dims(self, i: int) -> tuple[int | None, ...]:
        """Static shape of input `i` where its rank is certain; AssertionError if it is not."""
        dims = self.inputs[i].dims
        assert dims is not None
        return dims

    def dtype(self, i: int) -> DType:
        """Element type of input `i`, without reference-ness."""
        return self.inputs[i].dtype.base_dtype

    def static_shape(self, i: int) -> tuple[int, ...] | None:
        """Shape of input `i` if every dimension is known, else None."""
        return self.inputs[i].static_shape

    def constant(self, i: int) -> np.ndarray[Any, Any] | None:
        """Value of input `i` as a NumPy array if it is known before the step, else None."""
        value = value_where_alive(self.inputs[i])
        if value is None or isinstance(value, np.ndarray):
            return value
        return None

    def constant_dims(self, i: int) -> Dims:
        """Input `i`, a vector of sizes, as a static shape with None for what is not known; -1 counts as
        unknown.

        None if not even its length is known. ValueError for a value that is no vector.
        """
        value = value_where_alive(self.inputs[i])
        if value is not None:
            if isinstance(value, np.ndarray) and value.ndim != 1:
                raise ValueError(f"Shape must be rank 1 but is rank {value.ndim}")
            return tuple([None if n is None or n < 0 else int(n) for n in value])
        dims = self.inputs[i].dims
        if dims is not None and len(dims) != 1:
            raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}")
        if dims is None or dims[0] is None:
            return None
        unknown: tuple[int | None, ...] = (None,) * dims[0]
        return unknown

    def expect_scalar(self, i: int) -> None:
        """ValueError if input `i` is known to be no scalar."""
        if dims := self.inputs[i].dims:
            raise ValueError(f"Shape must be rank 0 but is rank {len(dims)}")

    def expect_scalars(self) -> None:
        """ValueError if an input that is declared as a scalar is known to be none."""
        declaration = self.declaration
        for i in range(len(self.inputs)) if declaration.has_lists else declaration.scalars:
            if self.input_argument(i).is_known:
                self.expect_scalar(i)

    def input_argument(self, i: int) -> Any:
        """The declared argument that input `i` belongs to."""
        declaration = self.declaration
        if not declaration.has_lists:
            return declaration.inputs[i]
        for argument, size in zip(declaration.inputs, self.group_sizes):
            if i < size:
                return argument
            i -= size
        raise IndexError(f"{self.name} has no such input")

    def group(self, argument: int) -> Sequence[Output]:
        """The inputs that belong to the declared input argument of this position (for list arguments)."""
        start = sum(self.group_sizes[:argument])
        return self.inputs[start : start + self.group_sizes[argument]]


def value_where_alive(x: Any) -> Any:
    """The static value of an input, or of what a branch gets from outside: a Switch itself has none, since it
    may be dead."""
    value = static_value(x)
    while value is None and x.op.declaration.role == "switch":
        x = x.op.inputs[0]
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
        node = current.op
        declaration = node.declaration
        needed = declaration.static_value_inputs(node)
        if needed is None:
            for each in node.outputs:  # all at once: there may be very many
                if each._static_value is UNKNOWN:
                    each._static_value = None
            current._static_value = None
            pending.pop()
            continue
        missing = [x for x in needed if x._static_value is UNKNOWN]
        if missing:
            pending.extend(missing)
            continue
        current._static_value = declaration.static_value(node, current.value_index)
        pending.pop()
    return output._static_value
