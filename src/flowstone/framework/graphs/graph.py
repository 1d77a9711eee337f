"""`Graph`: the user's graph, which only grows.

A `Graph` holds operations in creation order and by name, collections, seeds, scopes (one `Scopes` record a
thread, see `scope.py`) and a version that grows with each operation, so that a session knows what is new.
Building is safe from many
threads: adding a node takes the graph's lock.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

from flowstone.framework.declarations.building import add_by_type
from flowstone.framework.declarations.operation import OpDeclaration, registry
from flowstone.framework.errors import NotFoundError
from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.graphs.device_name import DeviceSpec, canonical_name, merge_names
from flowstone.framework.graphs.function_library import FunctionLibrary
from flowstone.framework.graphs.graph_def import attribute_from_proto, graph_def, messages
from flowstone.framework.graphs.graph_elements import GraphElements
from flowstone.framework.graphs.graph_operation import Operation, current_frames
from flowstone.framework.graphs.library_members import infer_shapes
from flowstone.framework.process.versions import GRAPH_DEF_VERSION
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor

__all__ = ["Graph", "GraphKeys", "Operation"]

_VALID_OP_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")
_VALID_SCOPE_NAME = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")
_BETWEEN_CONTEXTS = frozenset({"enter", "exit", "switch"})  # roles


class _Controller:
    """One ``control_dependencies`` scope: the operations to wait for, and those created inside."""

    __slots__ = ("inputs", "inside")

    def __init__(self, inputs: list[Operation]) -> None:
        self.inputs, self.inside = inputs, set[Operation]()


class Graph(GraphElements):
    """A dataflow graph under construction; see the module.

    `version`: grows with each operation. `finalized`.
    `producer`: the oldest version of the GraphDefs that nodes are from; it decides which deprecated ops are
    there.
    """

    computes_at_once = False  # whether operations are computed as they are added: `EagerGraph`

    def __init__(self) -> None:
        super().__init__()
        self._names_in_use: dict[str, int] = {}
        self._scopes = scope.Scopes()
        self._functions = FunctionLibrary()
        self._device_cache: dict[tuple[Any, ...], str] = {}
        self._last_id = 0
        self._seed: int | None = None
        self.last_loss_reduction: str | None = None  # of `tf.losses`, for strategies that scale gradients
        self.scales_losses = False  # whether optimisers take gradients of a replica's part of the mean loss
        self.producer = GRAPH_DEF_VERSION
        self.traces: dict[Any, Any] = {}  # by function, what it was traced to here
        self.shapes_asked: set[Any] = set()  # by gradients: TensorFlow asks by nodes, but once a graph
        self.variable_store: Any = None  # set by the room of variable scopes

    # ---- operations

    @property
    def seed(self) -> int | None:
        """The graph-level random seed, or None."""
        return self._seed

    @seed.setter
    def seed(self, seed: int | None) -> None:
        self._seed = seed

    @property
    def version(self) -> int:
        """How many operations were ever added."""
        return self._last_id

    @property
    def graph_def_versions(self) -> Any:
        """The VersionDef of exported graphs."""
        return messages("versions_pb2").VersionDef(producer=self.producer)

    @property
    def finalized(self) -> bool:
        """Whether the graph is closed to new operations."""
        return self._finalized

    @property
    def building_function(self) -> bool:
        """Whether this graph is a function's body; a plain graph is none."""
        return False

    def finalize(self) -> None:
        """Closes the graph: adding an operation becomes a RuntimeError."""
        self._finalized = True

    def _unsafe_unfinalize(self) -> None:
        self._finalized = False

    def create(
        self,
        declaration: OpDeclaration,
        inputs: list[Tensor],
        attributes: dict[str, Any],
        group_sizes: tuple[int, ...],
        name: str,
        *,
        control_inputs: Iterable[Operation] | None = None,
        device: str | None = None,
        infer: bool = True,
    ) -> Operation:
        """Adds a node with complete, canonical attributes; `building.add_operation` is the friendly way.

        A name that ends in '/' is taken as it is (a scope's own name), any other is made unique inside the
        current scope. `control_inputs` and `device` replace what the scopes say. Raises RuntimeError if the
        graph is finalized, ValueError for a bad name, an input of another graph or contradicting shapes.
        """
        with self._lock:
            self._check_not_finalized()
            scopes = self._scopes
            full_name = name[:-1] if name.endswith("/") else self._checked_unique_name(name)
            context = scopes.control_flow_context
            if context is None:
                for tensor in inputs:
                    if tensor.op._control_flow_context is not None:
                        _check_outside(tensor, declaration.role, full_name)
            else:
                context = context.context_for(declaration, inputs)
                with self.name_scope(full_name + "/"):
                    inputs = [context.add_value(tensor) for tensor in inputs]
            order, operation = self._last_id + 1, Operation.__new__(Operation)
            Node.__init__(
                operation, declaration, full_name, inputs, attributes, group_sizes, [], device or "", order
            )
            operation.graph = self
            operation._id = operation.order
            operation._frames = current_frames()
            operation._control_flow_context = context
            if control_inputs is not None:
                operation.control_inputs.extend(control_inputs)
            elif scopes.control_dependencies:
                self._add_control_dependencies(operation, scopes.control_dependencies)
            if scopes.container and declaration.stateful and attributes.get("container") == "":
                attributes["container"] = scopes.container
            if scopes.attributes or scopes.gradient_overrides:
                self._apply_attribute_scopes(operation, scopes)
            self._make_outputs(operation, infer)
            if device is None and (scopes.devices or scopes.colocation):
                self._apply_device_scopes(operation, scopes)  # functions see the outputs
            self._register(operation)
            if context is not None:
                context.add_op(operation)
            return operation

    def create_op(
        self,
        op_type: str,
        inputs: Iterable[Any],
        dtypes: Any = None,
        input_types: Any = None,
        name: str | None = None,
        attrs: dict[str, Any] | None = None,
        op_def: Any = None,
        compute_shapes: bool = True,
        compute_device: bool = True,
    ) -> Operation:
        """Adds an operation of a type, of tensors one after another, with attributes as AttrValue messages.

        Types and shapes of the outputs follow from inputs and attributes; `dtypes`, `input_types`, `op_def`
        and `compute_shapes` are accepted and say nothing more. With `compute_device` False, device scopes do
        not count. Raises NotFoundError for an unknown type, TypeError for an input that is no tensor.
        """
        declaration = registry.get(op_type)
        if declaration is None:
            raise NotFoundError(None, None, f"Op type not registered '{op_type}'")
        given = {key: attribute_from_proto(declaration, key, value) for key, value in (attrs or {}).items()}
        own = {key: value for key, value in given.items() if key in declaration.attributes}
        outside = {} if compute_device else {"devices": ()}
        with self._scopes.having(**outside):
            operation = add_by_type(self, declaration, list(inputs), own, name or op_type)
        operation.attributes.update(given)
        return operation

    def _make_outputs(self, operation: Operation, infer: bool) -> None:
        outputs = operation.outputs
        attributes = operation.attributes
        for argument in operation.declaration.outputs:
            for dtype in argument.types(attributes):
                outputs.append(Tensor(operation, len(outputs), dtype))
        if infer:
            infer_shapes(operation)

    def _register(self, operation: Operation) -> None:
        for tensor in operation.inputs:
            if tensor.op.graph is not self:
                raise ValueError(f"{tensor!r} must be from the same graph as {operation!r}.")
        self._last_id += 1
        self._operations.append(operation)
        self._by_name[operation.name] = operation
        for tensor in operation.inputs:
            tensor._consumers.append(operation)
        for recording in scope.recordings.items:
            recording.operations.append(operation)

    def as_default(self) -> contextlib.AbstractContextManager[Graph]:
        """Within the context, new operations of this thread go to this graph."""
        return scope.graphs.entered(self)

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any:
        """The graph as a GraphDef message; only operations added after `from_version` if it is given."""
        return graph_def(self, from_version, add_shapes)

    # ---- names

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` inside the current scope, with ``_1``, ``_2`` … where it is taken (case does not
        distinguish).
        """
        with self._lock:
            return self._unique_name(name, mark_as_used)

    def _checked_unique_name(self, name: str) -> str:
        if not _VALID_OP_NAME.match(name if not self._scopes.name else "a" + name):
            raise ValueError(f"'{name}' is not a valid node name")
        return self._unique_name(name)

    def _unique_name(self, name: str, mark_as_used: bool = True) -> str:
        prefix = self._scopes.name
        full = f"{prefix}/{name}" if prefix else name
        used = self._names_in_use
        key = full.lower()
        count = used.get(key, 0)
        if mark_as_used:
            used[key] = count + 1
        if count:
            base, base_key = full, key
            while key in used:
                full, key = f"{base}_{count}", f"{base_key}_{count}"
                count += 1
            if mark_as_used:
                used[base_key] = count
                used[key] = 1
        return full

    @contextlib.contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Operations created inside get names that begin with the scope's; yields that prefix, with its
        slash.

        A name that ends in '/' re-enters that scope; None or '' goes back to the root. ValueError for a bad
        name.
        """
        if name and not _VALID_SCOPE_NAME.match(name):
            raise ValueError(f"'{name}' is not a valid scope name")
        if name and not self._scopes.name and not _VALID_OP_NAME.match(name):
            raise ValueError(f"'{name}' is not a valid root scope name")
        if not name:
            full = ""
        elif name[-1] == "/":
            full = name[:-1]
        else:
            full = self.unique_name(name)
        scopes = self._scopes
        before, scopes.name = scopes.name, full
        try:
            yield full + "/" if full else ""
        finally:
            scopes.name = before

    def get_name_scope(self) -> str:
        """The current name scope, without the final slash."""
        return self._scopes.name

    # ---- control dependencies

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs: Any) -> Iterator[None]:
        """Operations created inside run after `control_inputs`; None clears the enclosing scopes'
        dependencies.
        """
        scopes = self._scopes
        if control_inputs is None:
            with scopes.having(control_dependencies=(), control_flow_context=None):
                yield
            return
        if not isinstance(control_inputs, (list, tuple, set)) and not hasattr(control_inputs, "__iter__"):
            raise TypeError(
                f"control_inputs must be a list of operations and tensors, not {control_inputs!r}"
            )
        inputs: list[Operation] = []
        for item in control_inputs:
            composite = getattr(item, "values", None)
            if composite is not None and not callable(composite):  # IndexedSlices, SparseTensor
                item = item.op
            element = self.as_graph_element(item)
            op = element.op if isinstance(element, Tensor) else element
            if op not in inputs:
                inputs.append(op)
        with scopes.having(control_dependencies=(*scopes.control_dependencies, _Controller(inputs))):
            yield

    def _add_control_dependencies(self, operation: Operation, controllers: tuple[_Controller, ...]) -> None:
        input_ops = {tensor.op for tensor in operation.inputs}
        for controller in controllers:
            if controller.inside.isdisjoint(input_ops):
                for op in controller.inputs:
                    if op not in input_ops and op not in operation.control_inputs:
                        operation.control_inputs.append(op)
            controller.inside.add(operation)

    # ---- devices, colocation, attributes

    @contextlib.contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Operations created inside ask for this device: a (partial) name, a DeviceSpec, a function of the
        operation, or None to forget the enclosing scopes'. What a function returns stays as it is, where no
        other scope adds to it. ValueError for a malformed name."""
        item = device_name_or_function
        if item is not None and not callable(item):
            item = canonical_name(item)
        with self._scopes.having(devices=(*self._scopes.devices, item)):
            yield

    def _apply_device_scopes(self, operation: Any, scopes: scope.Scopes) -> None:
        if scopes.colocation:
            self._colocate(operation, scopes.colocation)
        devices = scopes.devices
        if not devices:
            return
        if operation.device == "" and not any(callable(item) for item in devices):
            name = self._device_cache.get(devices)
            if name is None:
                name = ""
                for item in devices:
                    name = "" if item is None else merge_names(name, item)
                self._device_cache[devices] = name
            operation.device = name
            return
        for item in reversed(devices):  # innermost first: what it says wins over the outer ones
            if item is None:
                break
            if callable(item):
                wanted = item(operation)
                operation.device = wanted if isinstance(wanted, str) else canonical_name(wanted)
            else:
                operation.device = merge_names(item, operation.device)

    def _apply_device_functions(self, op: Any) -> None:
        """Gives `op`, anything with `_set_device`, the device that a new operation gets."""
        self._apply_device_scopes(new := SimpleNamespace(device="", name="", type=""), self._scopes)
        if new.device:
            by_name = getattr(op, "_set_device_from_string", None)
            by_name(new.device) if by_name else op._set_device(DeviceSpec.from_string(new.device))

    def _colocate(self, operation: Operation, others: tuple[Operation, ...]) -> None:
        classes = list(operation.attributes.get("_class", ()))
        for other in others:
            classes += [group.decode() for group in other.colocation_groups()]
            operation.device = other.device or operation.device
        operation.attributes["_class"] = tuple(sorted(set(classes)))

    @contextlib.contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Operations created inside are placed with `op`, a resource variable's with its handle (None with
        `ignore_existing`: no colocation)."""
        if op is None and not ignore_existing:
            raise ValueError("Trying to reset colocation (op is None) but ignore_existing is not True")
        element = None if op is None else self.as_graph_element(getattr(op, "handle", op))
        if isinstance(element, Tensor):
            element = element.op
        before = () if ignore_existing else self._scopes.colocation
        colocation = before if element is None else (*before, element)
        with self._scopes.having(colocation=colocation, devices=()):
            yield

    @contextlib.contextmanager
    def _attr_scope(self, attributes: dict[str, Any]) -> Iterator[None]:
        """Operations created inside get these attributes (AttrValue messages, None, or functions of the
        NodeDef).
        """
        if not isinstance(attributes, dict):
            raise TypeError("attr_map must be a dictionary mapping strings to AttrValue protocol buffers")
        with self._scopes.having(attributes={**self._scopes.attributes, **attributes}):
            yield

    @contextlib.contextmanager
    def gradient_override_map(self, op_type_map: dict[str, str]) -> Iterator[None]:
        """Operations created inside of these types take their gradients from the functions registered under
        the given names. TypeError unless it maps strings to strings."""
        if not isinstance(op_type_map, dict):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        for key, value in op_type_map.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        with self._scopes.having(gradient_overrides={**self._scopes.gradient_overrides, **op_type_map}):
            yield

    def _apply_attribute_scopes(self, operation: Operation, scopes: scope.Scopes) -> None:
        override = scopes.gradient_overrides.get(operation.type)
        if override is not None:
            operation.attributes["_gradient_op_type"] = override
        for name, value in scopes.attributes.items():
            if name in operation.attributes:
                continue  # its own, of an imported node for one
            if callable(value):
                value = value(operation.node_def)
            if value is not None:
                operation._set_attr(name, value)

    @contextlib.contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """Stateful operations created inside keep their state in this container (white paper 4.7)."""
        with self._scopes.having(container=container_name):
            yield container_name

    @property
    def _container(self) -> str:
        return self._scopes.container


scope.graph_class.append(Graph)


def _check_outside(tensor: Tensor, role: str, name: str) -> None:
    """ValueError if `tensor` belongs to a loop. (What leads into contexts and out of loops may take it.)"""
    if tensor.op._control_flow_context.loop is not None and role not in _BETWEEN_CONTEXTS:
        raise ValueError(
            f"Cannot use '{tensor.op.name}' as input to '{name}' because '{tensor.op.name}' is in a while "
            "loop. See info log for more details."
        )
