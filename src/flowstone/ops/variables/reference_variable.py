"""Reference variables: the kind of TensorFlow 1, whose buffer itself flows along edges of type ``Ref(T)``.

A variable ``w`` is the nodes ``w`` (VariableV2), ``w/Assign`` and ``w/read``, an Identity that every
ordinary use shares. An update returns the reference, so that reading it sees the update.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.recording import note_read
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.identities import identity
from flowstone.ops.variables.initial_tensors import (
    check_outside_control_flow,
    colocated_with_name,
    initial_tensor,
)
from flowstone.ops.variables.initial_values import replace_variables
from flowstone.ops.variables.variable_creation import kinds
from flowstone.ops.variables.variables import Variable


class ReferenceVariable(Variable):
    """A variable whose reads alias its buffer; see the module, and `Variable` for the arguments."""

    def _add_nodes(
        self,
        name: str,
        initial_value: Any,
        validate_shape: bool,
        dtype: DType | None,
        shape: TensorShape | None,
    ) -> None:
        graph, node_name = self._graph, name[:-1]
        if callable(initial_value):
            value = initial_tensor(graph, node_name, initial_value, dtype)
            with colocated_with_name(graph, node_name):
                self._handle = self._make_node(name, value, validate_shape, shape)
        else:
            value = convert_to_tensor(initial_value, dtype, name="initial_value")
            check_outside_control_flow(name, value)
            self._handle = self._make_node(name, value, validate_shape, shape)
        self._initial_value, self._dtype = value, self._handle.dtype
        if validate_shape and not value.shape.is_fully_defined():
            raise ValueError(f"initial_value must have a shape specified: {value}")
        first = initialised_first(graph, node_name, value)
        self._initializer = F.Assign(self._handle, first, validate_shape=validate_shape, name="Assign").op
        self._snapshot = self._make_snapshot()

    @staticmethod
    def _make_node(name: str, value: Tensor, validate_shape: bool, shape: TensorShape | None) -> Tensor:
        dims = (value.dims if validate_shape else None) if shape is None else shape.dims_tuple
        return F.VariableV2(shape=dims, dtype=value.dtype.base_dtype, name=name)

    def _make_snapshot(self) -> Tensor:
        graph, cache = self._graph, self._caching_device
        if cache is None:
            with graph.colocate_with(self._handle.op):
                return identity(self._handle, name="read")
        with graph.device(cache(self._handle.op) if callable(cache) else cache):
            return identity(self._handle, name="read")

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._handle.shape

    def _set_shape(self, shape: Any) -> None:
        self._handle.set_shape(shape)
        self.value().set_shape(shape)

    def _ref(self) -> Tensor:
        return self._handle

    def value(self) -> Tensor:
        """The shared read of the variable."""
        note_read(self)
        return self._snapshot  # type: ignore[return-value]

    @property
    def _shared_read(self) -> Tensor | None:
        return self._snapshot

    def read_value(self) -> Tensor:
        """The value, read where the control dependencies in force say."""
        note_read(self)
        return identity(self._handle, name="read")

    def _as_graph_element(self) -> Tensor:
        return self._handle

    def _as_tensor(self, dtype: Any, name: str | None, as_ref: bool) -> Tensor:
        if dtype is not None and not dtype.is_compatible_with(self.dtype):
            raise ValueError(
                f"Incompatible type conversion requested to type '{dtype.name}' for variable of "
                f"type '{self.dtype.name}'"
            )
        return self._handle if as_ref else self.value()

    # ---- updates: each returns the reference, or the operation if `read_value` is False

    def _assigned(self, kind: str, value: Any, use_locking: bool, name: str | None, read_value: bool) -> Any:
        reference = getattr(F, kind)(self._handle, value, use_locking=use_locking, name=name)
        return reference if read_value else reference.op

    def _counted_up_to(self, limit: int) -> Tensor:
        return F.CountUpTo(self._handle, limit=limit)

    def _scattered(self, kind: str, delta: IndexedSlices, use_locking: bool, name: str | None) -> Any:
        declaration = getattr(F, f"Scatter{kind}")
        return declaration(self._handle, delta.indices, delta.values, use_locking=use_locking, name=name)

    def _scattered_nd(self, kind: str, indices: Any, updates: Any, name: str | None) -> Any:
        return getattr(F, f"ScatterNd{kind}")(self._handle, indices, updates, use_locking=True, name=name)

    def _strided_slice_assign(
        self, begin: Any, end: Any, strides: Any, value: Any, name: str | None, **masks: int
    ) -> Tensor:
        return F.StridedSliceAssign(self._handle, begin, end, strides, value, name=name, **masks)


kinds[False] = ReferenceVariable


def initialised_first(graph: Any, node_name: str, value: Tensor) -> Tensor:
    """`value` with every variable that it reads replaced by that variable's `initialized_value`.

    So variables may be initialised in any order, and one ``global_variables_initializer`` serves all. Nodes
    on the way are copied, named after the variable `node_name`.
    """
    return replace_variables(graph, node_name, value)
