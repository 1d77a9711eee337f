"""Members of graphs and operations that were never public, and that libraries of TensorFlow 1 use.

Edward and others copy a part of a graph by making operations of NodeDefs, which get their inputs one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from flowstone.framework.declarations.attributes import REQUIRED
from flowstone.framework.declarations.registry import registry
from flowstone.framework.errors import NotFoundError
from flowstone.framework.graphs.device_name import canonical_name
from flowstone.framework.graphs.graph_def import attribute_from_proto
from flowstone.framework.tensors.node import Node

if TYPE_CHECKING:
    from flowstone.framework.declarations.operation import OpDeclaration
    from flowstone.framework.graphs.graph import Graph
    from flowstone.framework.graphs.graph_operation import Operation


class OperationMembers:
    """What an operation has besides its public members."""

    __slots__ = ()

    _original_op: Any = None  # an operation that this one was made for; errors name it, too

    @property
    def _output_types(self: Any) -> list[int]:
        """The outputs' types, as numbers of DataType."""
        return [tensor.dtype.as_datatype_enum for tensor in self.outputs]

    @property
    def _input_types(self: Any) -> list[Any]:
        return [tensor.dtype.base_dtype for tensor in self.inputs]

    @property
    def _input_dtypes(self: Any) -> list[Any]:
        return [tensor.dtype for tensor in self.inputs]

    @property
    def _inputs(self: Any) -> list[Any]:
        return self.inputs  # type: ignore[no-any-return]

    @property
    def _outputs(self: Any) -> list[Any]:
        return self.outputs  # type: ignore[no-any-return]

    @property
    def _control_inputs(self: Any) -> list[Any]:
        return self.control_inputs  # type: ignore[no-any-return]

    @property
    def _control_outputs(self: Any) -> list[Any]:
        """The operations that run after this one, by control inputs."""
        return [op for op in self.graph.get_operations() if self in op.control_inputs]

    @property
    def _graph(self: Any) -> Graph:
        return self.graph  # type: ignore[no-any-return]

    @property
    def _id_value(self: Any) -> int:
        return self._id  # type: ignore[no-any-return]

    @property
    def _node_def(self: Any) -> Any:
        return self.node_def

    @property
    def _op_def(self: Any) -> Any:
        return self.op_def

    @property
    def _is_stateful(self: Any) -> bool:
        return bool(self.declaration.stateful)

    def _remove_all_control_inputs(self: Any) -> None:
        self.control_inputs.clear()

    def _add_input(self: Any, tensor: Any, dtype: Any = None) -> None:
        """Adds the next input; with the last one the outputs get their shapes.

        ValueError for a tensor of another graph, TypeError for one input too many.
        """
        if tensor.graph is not self.graph:
            raise ValueError(f"{tensor!r} must be from the same graph as {self!r}.")
        if len(self.inputs) == sum(self.group_sizes):
            raise TypeError(f"{self!r} takes no more than {len(self.inputs)} inputs.")
        self.inputs.append(tensor)
        tensor._consumers.append(self)
        if len(self.inputs) == sum(self.group_sizes):
            infer_shapes(self)


class GraphMembers:
    """What a graph has besides its public members."""

    @property
    def _c_graph(self: Any) -> Any:
        """The graph itself, which has no other one below it."""
        return self

    @property
    def _nodes_by_name(self: Any) -> dict[str, Operation]:
        return {op.name: op for op in self.get_operations()}

    @property
    def _nodes_by_id(self: Any) -> dict[int, Operation]:
        return {op._id: op for op in self.get_operations()}

    @property
    def _version(self: Any) -> int:
        return self.version  # type: ignore[no-any-return]

    @property
    def _colocation_stack(self: Any) -> Iterator[Operation]:
        """The operations that new ones are placed with, of the innermost scope first."""
        return iter(self._scopes.colocation[::-1])

    @property
    def _registered_ops(self: Any) -> dict[str, Any]:
        """The declarations of the operations in the graph, by their types."""
        return {op.type: op.op_def for op in self.get_operations()}

    def _get_control_flow_context(self: Any) -> Any:
        return self._scopes.control_flow_context

    def _next_id(self: Any) -> int:
        return self._last_id + 1  # type: ignore[no-any-return]

    def _add_op(self: Any, op: Any, op_name: str | None = None) -> None:
        """Does nothing: an operation is in its graph from its beginning."""

    def _record_op_seen_by_control_dependencies(self: Any, op: Any) -> None:
        """Does nothing: what a scope of control dependencies adds is decided when an operation is made."""


def begin_operation(
    operation: Operation, message: Any, graph: Any, inputs: Iterable[Any], control_inputs: Iterable[Any]
) -> None:
    """Makes a new object the operation of a NodeDef in a graph; `_add_input` gives it the missing inputs.

    Scopes say nothing about it. Raises NotFoundError for an unknown type, ValueError for a taken name.
    """
    declaration = registry.get(message.op)
    if declaration is None:
        raise NotFoundError(None, None, f"Op type not registered '{message.op}'")
    attributes = {
        key: attribute_from_proto(declaration, key, value) for key, value in dict(message.attr).items()
    }
    for key, spec in declaration.attributes.items():
        if key not in attributes and spec.default is not REQUIRED:
            attributes[key] = spec.default
    with graph._lock:
        if message.name in graph._by_name:
            raise ValueError(f"The name '{message.name}' is taken by an operation of the graph.")
        sizes, order = _group_sizes(declaration, attributes), graph._last_id + 1
        device = canonical_name(message.device) if message.device else ""
        Node.__init__(operation, declaration, message.name, [], attributes, sizes, [], device, order)
        operation.graph, operation._id = graph, order
        operation._control_flow_context = graph._get_control_flow_context()
        graph._names_in_use.setdefault(message.name.lower(), 1)
        graph._make_outputs(operation, infer=not sum(sizes))
        graph._register(operation)
    operation._add_control_inputs(control_inputs)
    for tensor in inputs:
        operation._add_input(tensor)


def _group_sizes(declaration: OpDeclaration, attributes: dict[str, Any]) -> tuple[int, ...]:
    """How many tensors each declared input takes, by the attributes."""
    sizes = []
    for argument in declaration.inputs:
        if argument.type_list_attr is not None:
            sizes.append(len(attributes[argument.type_list_attr]))
        else:
            sizes.append(attributes[argument.number_attr] if argument.number_attr else 1)
    return tuple(sizes)


def infer_shapes(operation: Operation) -> None:
    """Gives the outputs the shapes that follow from the inputs. ValueError for shapes that do not fit."""
    outputs, infer_function = operation.outputs, operation.declaration.infer_function
    if infer_function is None:
        return
    try:
        dims = infer_function(operation)
    except ValueError as error:
        raise _shape_error(operation, error) from None
    except (TypeError, IndexError) as error:  # a known value is a vector where a number is wanted, or so
        raise _shape_error(operation, ValueError(f"An input has a wrong rank or value: {error}")) from None
    if isinstance(dims, list):
        for output, shape in zip(outputs, dims):
            output.dims = shape
    elif outputs:
        outputs[0].dims = dims


def _shape_error(operation: Operation, error: ValueError) -> ValueError:
    if " for '" in str(error) and "(op: '" in str(error):
        return error
    shapes = ", ".join(
        "?" if t.dims is None else "[" + ",".join("?" if n is None else str(n) for n in t.dims) + "]"
        for t in operation.inputs
    )
    return ValueError(f"{error} for '{operation.name}' (op: '{operation.type}') with input shapes: {shapes}.")
