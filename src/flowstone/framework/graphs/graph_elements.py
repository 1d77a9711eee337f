"""The elements of a graph: operations in creation order, operations and tensors by name, and which of them
may be fed and fetched.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.collections import Collections
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.graphs.library_members import GraphMembers
from flowstone.framework.tensors.scope import Scopes
from flowstone.framework.tensors.tensor import Tensor

__all__ = ["GraphElements"]


class GraphElements(GraphMembers, Collections):
    """What a `Graph` holds, apart from how it grows."""

    def __init__(self) -> None:
        super().__init__()
        self._operations: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._unfeedable: set[Any] = set()
        self._unfetchable: set[Any] = set()

    _scopes: Scopes

    @property
    def _name_stack(self) -> str:
        """The current name scope, without a slash at its end; libraries read and set it."""
        return self._scopes.name

    @_name_stack.setter
    def _name_stack(self, name: str) -> None:
        self._scopes.name = name

    def get_operations(self) -> list[Operation]:
        """All operations, in creation order."""
        return list(self._operations)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of this name. TypeError if it is no string, KeyError if absent, ValueError if
        malformed.
        """
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_tensor=False, allow_operation=True)  # type: ignore[no-any-return]

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor ``op:index``. TypeError if it is no string, KeyError if absent, ValueError if
        malformed.
        """
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_tensor=True, allow_operation=False)  # type: ignore[no-any-return]

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """The Tensor or Operation that `obj` (one of them, a variable, or a name) stands for.

        Raises TypeError for what cannot stand for one, ValueError if it is of another graph or a malformed
        name, KeyError if the graph has nothing of that name.
        """
        kinds = " or ".join(["Tensor"] * allow_tensor + ["Operation"] * allow_operation)
        if not kinds:
            raise ValueError("allow_tensor and allow_operation can't both be False.")
        converter = getattr(obj, "_as_graph_element", None)
        if converter is not None:
            obj = converter()
        if isinstance(obj, (bytes, str)):
            return self._element_by_name(
                obj.decode() if isinstance(obj, bytes) else obj, allow_tensor, allow_operation
            )
        if (isinstance(obj, Tensor) and allow_tensor) or (isinstance(obj, Operation) and allow_operation):
            if obj.graph is not self:
                raise ValueError(f"{obj!r} is not an element of this graph.")
            return obj
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {kinds}.")

    def _element_by_name(self, name: str, allow_tensor: bool, allow_operation: bool) -> Any:
        if ":" in name and allow_tensor:
            op_name, _, digits = name.partition(":")
            if not digits.isdecimal():
                raise ValueError(
                    f"The name {name!r} looks a like a Tensor name, but is not a valid one. Tensor names "
                    "must be of "
                    'the form "<op_name>:<output_index>".'
                )
            op = self._by_name.get(op_name)
            if op is None:
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, {op_name!r}, "
                    "does "
                    "not exist in the graph."
                )
            if int(digits) >= len(op.outputs):
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, {op_name!r}, "
                    "exists "
                    f"but only has {len(op.outputs)} outputs."
                )
            return op.outputs[int(digits)]
        if ":" in name:
            raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a Operation.")
        if not allow_operation:
            if name in self._by_name:
                raise ValueError(
                    f"The name {name!r} refers to an Operation, not a Tensor. Tensor names must be of the "
                    "form "
                    '"<op_name>:<output_index>".'
                )
            raise ValueError(
                f"The name {name!r} looks like an (invalid) Operation name, not a Tensor. Tensor names must "
                "be of the "
                'form "<op_name>:<output_index>".'
            )
        if name not in self._by_name:
            raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
        return self._by_name[name]

    # ---- feeding and fetching

    def prevent_feeding(self, tensor: Any) -> None:
        """Makes feeding this tensor an error."""
        self._unfeedable.add(tensor)

    def is_feedable(self, tensor: Any) -> bool:
        """Whether this tensor may be fed."""
        return tensor not in self._unfeedable

    def prevent_fetching(self, op: Any) -> None:
        """Makes fetching this operation an error."""
        self._unfetchable.add(op)

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        """Whether this element may be fetched."""
        op = tensor_or_op.op if isinstance(tensor_or_op, Tensor) else tensor_or_op
        return op not in self._unfetchable
