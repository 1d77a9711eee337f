"""`Operation`: a node of the user's graph, with Python manners and the line that created it."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from flowstone.framework.graphs.device_name import canonical_name
from flowstone.framework.graphs.graph_def import attribute_for_user, attribute_from_proto, node_def, op_def
from flowstone.framework.graphs.library_members import OperationMembers, begin_operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, evaluating_session

if TYPE_CHECKING:
    from flowstone.framework.graphs.graph import Graph

_PACKAGE = str(Path(__file__).resolve().parents[2]) + "/"
_DEEPEST_TRACEBACK = 64  # frames kept an operation


class Operation(OperationMembers, Node):
    """A node of the user's graph. Made by calling an op's declaration.

    Called, the class makes an operation of a NodeDef, for libraries that copy a part of a graph.

    Args:
        node_def: its name, type, attributes and device; scopes say nothing about it.
        g: the graph.
        inputs: tensors; the others follow by `_add_input`.
        output_types: accepted, and follow from the attributes, as the others do.
        control_inputs: the operations that run before.
        original_op: an operation that this one was made for, which errors name, too.

    Raises NotFoundError for an unknown type, ValueError for a name that is taken.
    """

    __slots__ = ("__dict__", "__weakref__", "_control_flow_context", "_frames", "_id", "graph")

    inputs: list[Tensor]
    control_inputs: list[Operation]
    outputs: list[Tensor]
    graph: Graph
    _id: int
    _frames: tuple[tuple[CodeType, int], ...]
    _control_flow_context: Any

    def __init__(
        self,
        node_def: Any,
        g: Graph,
        inputs: Sequence[Tensor] | None = None,
        output_types: Any = None,
        control_inputs: Sequence[Any] | None = None,
        input_types: Any = None,
        original_op: Operation | None = None,
        op_def: Any = None,
    ) -> None:
        self._frames = current_frames()
        if original_op is not None:
            self._original_op = original_op
        befores = [getattr(each, "op", each) for each in control_inputs or ()]
        begin_operation(self, node_def, g, inputs or (), befores)

    @property
    def origin(self) -> Operation:
        """Itself, as a plan's nodes have the operation that they are made of."""
        return self

    @property
    def op_def(self) -> Any:
        """The declaration as an OpDef message."""
        return op_def(self.declaration)

    @property
    def node_def(self) -> Any:
        """This node as a NodeDef message."""
        return node_def(self)

    @property
    def traceback(self) -> list[tuple[str, int, str, str | None]]:
        """Where it was created: (file, line, function, source text) a frame, outermost first."""
        frames = self.__dict__.get("_chosen_frames")
        if frames is not None:
            return list(frames)
        frames = []
        for code, instruction in reversed(self._frames):
            line = _line_number(code, instruction)
            text = linecache.getline(code.co_filename, line).strip() or None
            frames.append((code.co_filename, line, code.co_name, text))
        return frames

    @property
    def _traceback(self) -> list[tuple[str, int, str, str | None]]:
        """`traceback`, which libraries shorten to the frames that concern their users."""
        return self.traceback

    @_traceback.setter
    def _traceback(self, frames: Sequence[tuple[str, int, str, str | None]]) -> None:
        self.__dict__["_chosen_frames"] = list(frames)

    @property
    def traceback_with_start_lines(self) -> list[tuple[str, int, str, str | None, int]]:
        """As `traceback`, each frame with the first line of its function besides."""
        starts = [code.co_firstlineno for code, _ in reversed(self._frames)]
        return [(*frame, start) for frame, start in zip(self.traceback, starts)]

    @property
    def user_line(self) -> tuple[str, int, str] | None:
        """The innermost line outside Flowstone that created it: (file, line, function)."""
        for code, instruction in self._frames:
            if not code.co_filename.startswith(_PACKAGE):
                return code.co_filename, _line_number(code, instruction), code.co_name
        return None

    def values(self) -> tuple[Tensor, ...]:
        """The outputs as a tuple."""
        return tuple(self.outputs)

    def get_attr(self, name: str) -> Any:
        """The value of an attribute: strings as bytes, shapes as TensorShapeProto. ValueError if there is
        none.
        """
        if name not in self.attributes:
            raise ValueError(f"Operation '{self.name}' has no attr named '{name}'.")
        return attribute_for_user(self, name)

    def _set_attr(self, name: str, value: Any) -> None:
        self.attributes[name] = attribute_from_proto(self.declaration, name, value)

    def _set_device(self, device: Any) -> None:
        self.device = device if isinstance(device, str) else canonical_name(device)

    def _set_control_flow_context(self, context: Any) -> None:
        self._control_flow_context = context

    def _get_control_flow_context(self) -> Any:
        return self._control_flow_context

    def _add_control_input(self, op: Operation) -> None:
        self._add_control_inputs([op])

    def _add_control_inputs(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            if op.graph is not self.graph:
                raise ValueError(f"{op!r} must be from the same graph as {self!r}.")
            if op not in self.control_inputs:
                self.control_inputs.append(op)

    def _update_input(self, index: int, tensor: Tensor) -> None:
        self.inputs[index]._consumers.remove(self)
        self.inputs[index] = tensor
        tensor._consumers.append(self)

    def colocation_groups(self) -> list[bytes]:
        """The colocation classes, ``loc:@name``; its own if it has none."""
        classes = self.attributes.get("_class")
        if not classes:
            return [b"loc:@" + self.name.encode()]
        return [text.encode() for text in classes if text.startswith("loc:@")]

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Runs the operation in `session` (default: the default session). ValueError if there is none."""
        evaluating_session(session, self.graph, "run").run(self, feed_dict)

    def _as_graph_element(self) -> Operation:
        return self

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"

    def __str__(self) -> str:
        return str(self.node_def)


def _line_number(code: CodeType, instruction: int) -> int:
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


def current_frames() -> tuple[tuple[CodeType, int], ...]:
    """The frames above the caller's caller, innermost first: (code, instruction), of which lines are made
    later.
    """
    frames: list[tuple[CodeType, int]] = []
    frame: Any = sys._getframe(3)
    while frame is not None and len(frames) < _DEEPEST_TRACEBACK:
        frames.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(frames)
