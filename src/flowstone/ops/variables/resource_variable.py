"""Resource variables: a handle flows along the edges, and a read gives the value at the time of the read.

A variable ``w`` is the nodes ``w`` (VarHandleOp), ``w/IsInitialized/VarIsInitializedOp``, ``w/Assign`` and
``w/Read/ReadVariableOp``. Every use adds a read of its own; an update returns an `UpdatedVariable`, whose
reads come after the update.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.recording import note_read
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.identities import identity
from flowstone.ops.variables.initial_tensors import (
    check_outside_control_flow,
    colocated_with_name,
    initial_tensor,
)
from flowstone.ops.variables.variable_creation import kinds
from flowstone.ops.variables.variables import Variable


class ResourceVariable(Variable):
    """A variable that is read explicitly; see the module, and `Variable` for the arguments."""

    _is_initialized_op: Any
    _cached_value: Tensor | None = None

    def _add_nodes(
        self,
        name: str,
        initial_value: Any,
        validate_shape: bool,
        dtype: DType | None,
        shape: TensorShape | None,
    ) -> None:
        graph, node_name = self._graph, name[:-1]
        is_function = callable(initial_value)
        value = initial_tensor(graph, node_name, initial_value, dtype)
        if not is_function:
            check_outside_control_flow(name, value)
        dims = value.dims if shape is None else shape.dims_tuple
        self._initial_value, self._dtype, self._dims = value, value.dtype.base_dtype, dims
        with colocated_with_name(graph, node_name):
            self._handle = F.VarHandleOp(
                shape=dims, dtype=self._dtype, shared_name=node_name, container=graph._container, name=name
            )
        with graph.name_scope("IsInitialized"), self._beside():
            self._is_initialized_op = F.VarIsInitializedOp(self._handle)
        with self._beside():
            self._initializer = F.AssignVariableOp(self._handle, value, name="Assign")
        with graph.name_scope("Read"):
            with self._beside():
                self._snapshot = read = self._read()
            if self._caching_device is not None:
                cache = self._caching_device
                with graph.device(cache(self._handle.op) if callable(cache) else cache):
                    self._snapshot_value = self._cached_value = identity(read)

    def _take_from_graph(self, variable_def: Any, import_scope: str | None) -> None:
        super()._take_from_graph(variable_def, import_scope)
        self._dtype = self._handle.op.attributes["dtype"]
        self._dims = self._handle.op.attributes["shape"]
        if self._snapshot is not None and self._snapshot.op.type != "ReadVariableOp":
            self._cached_value = self._snapshot

    @contextlib.contextmanager
    def _beside(self) -> Iterator[None]:
        """Within the context operations are placed where the handle is, without being colocated."""
        device, scopes = self._handle.device, self._place._scopes
        devices = (device,) if device else scopes.devices
        with scopes.having(colocation=(), devices=devices):
            yield

    @property
    def _place(self) -> Graph:
        """The graph that reads go to: the variable's, or the function that is being built."""
        graph = get_default_graph()
        return graph if graph.building_function else self._graph

    def _read(self) -> Tensor:
        read = F.ReadVariableOp(self._handle, dtype=self._dtype)
        if self._save_shape is not None:
            read.set_shape(self._save_shape)
        elif read.dims is None:  # in a function, which knows nothing of the handle
            read.dims = self._dims
        return read

    _save_shape: Any = None

    @property
    def handle(self) -> Tensor:
        """The resource."""
        return self._handle

    @property
    def create(self) -> Any:
        """The operation that assigns the initial value."""
        return self._initializer

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return TensorShape.from_dims(self._dims)

    def _set_shape(self, shape: Any) -> None:
        self._dims = self.shape.merge_with(shape).dims_tuple
        self._save_shape = self._dims

    def is_initialized(self, name: str | None = None) -> Tensor:
        """A bool scalar: whether a value has been assigned."""
        return F.VarIsInitializedOp(self._handle, name=name)

    def value(self) -> Tensor:
        """The value: a new read, or the cached one."""
        note_read(self)
        if self._cached_value is not None:
            return self._cached_value
        with self._place.as_default(), self._beside():
            return self._read()

    def __bool__(self) -> bool:
        return bool(self.value())  # refused, as any tensor does

    @property
    def _shared_read(self) -> Tensor | None:
        return self._cached_value

    def read_value(self) -> Tensor:
        """The value, read where the control dependencies in force say."""
        note_read(self)
        with self._place.as_default() as graph:
            with graph.name_scope("Read"), self._beside():
                read = self._read()
            return identity(read)

    def _as_graph_element(self) -> Tensor:
        return self._cached_value if self._cached_value is not None else self._snapshot  # type: ignore[return-value]

    def _as_tensor(self, dtype: Any, name: str | None, as_ref: bool) -> Any:
        if dtype is not None and not dtype.is_compatible_with(self._dtype):
            raise ValueError(
                f"Incompatible type conversion requested to type '{dtype.name}' for variable of type "
                f"'{self._dtype.name}'"
            )
        if as_ref and self._handle.dtype is not dtypes.resource:
            return NotImplemented
        return self.value()

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Rows of the value, read from the variable itself."""
        note_read(self)
        name = "Gather" if name is None else name
        return F.Identity(F.ResourceGather(self._handle, indices, dtype=self._dtype, name=name))

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """Elements of the value by index tuples, read from the variable itself."""
        note_read(self)
        return F.ResourceGatherNd(self._handle, indices, dtype=self._dtype, name=name)

    # ---- updates: each returns an `UpdatedVariable`, or the operation if `read_value` is False

    def _updated(self, operation: Any, read_value: bool = True) -> Any:
        return UpdatedVariable(self, operation) if read_value else operation

    def _convert(self, value: Any) -> Tensor:
        return convert_to_tensor(value, self._dtype)

    def _assigned(self, kind: str, value: Any, use_locking: bool, name: str | None, read_value: bool) -> Any:
        tensor = self._convert(value)
        if kind == "Assign" and not self.shape.is_compatible_with(tensor.shape):
            raise ValueError(
                f"Cannot assign value to variable '{self.name}': Shape mismatch.The variable "
                f"shape {self.shape}, and the "
                f"assigned value shape {tensor.shape} are incompatible."
            )
        with self._beside():
            return self._updated(getattr(F, f"{kind}VariableOp")(self._handle, tensor, name=name), read_value)

    def _counted_up_to(self, limit: int) -> Tensor:
        return F.ResourceCountUpTo(self._handle, limit=limit, T=self._dtype)

    def _scattered(self, kind: str, delta: IndexedSlices, use_locking: bool, name: str | None) -> Any:
        declaration = getattr(F, f"ResourceScatter{kind}")
        return self._updated(declaration(self._handle, delta.indices, self._convert(delta.values), name=name))

    def _scattered_nd(self, kind: str, indices: Any, updates: Any, name: str | None) -> Any:
        declaration = getattr(F, f"ResourceScatterNd{kind}")
        return self._updated(declaration(self._handle, indices, self._convert(updates), name=name))

    def _strided_slice_assign(
        self, begin: Any, end: Any, strides: Any, value: Any, name: str | None, **masks: int
    ) -> Any:
        tensor = self._convert(value)
        operation = F.ResourceStridedSliceAssign(
            self._handle, begin, end, strides, tensor, name=name, **masks
        )
        return self._updated(operation)


kinds[True] = ResourceVariable


class UpdatedVariable(ResourceVariable):
    """A resource variable after an update: the same variable, whose reads wait for the update."""

    def __init__(self, variable: ResourceVariable, update: Any) -> None:
        self.__dict__.update(variable.__dict__)
        self._updated_variable = getattr(variable, "_updated_variable", variable)
        self._update, self._cached_value = update, None
        with self._place.control_dependencies([update]), self._beside():
            self._snapshot = super()._read()

    @property
    def name(self) -> str:
        """The name of the update."""
        return self._update.name  # type: ignore[no-any-return]

    @property
    def op(self) -> Any:
        """The update."""
        return self._update

    def _read(self) -> Tensor:
        with self._place.control_dependencies([self._update]):
            return super()._read()

    def value(self) -> Tensor:
        """The value after the update."""
        note_read(self._updated_variable)
        with self._place.as_default(), self._beside():
            return self._read()

    def _as_graph_element(self) -> Tensor:
        return self._snapshot  # type: ignore[return-value]
