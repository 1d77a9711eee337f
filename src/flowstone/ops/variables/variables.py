"""`Variable`: a tensor that outlives a step and is changed by assignments (white paper 2, 4.7).

``tf.Variable(…)`` makes one of two kinds: a `ReferenceVariable` (the default, as in TensorFlow 1) or, with
``use_resource=True``, a `ResourceVariable`. This file holds what they share: how a variable comes into
being (its name scope, its collections), the conversion to
tensors, the operators, and the message that describes it. The kinds differ in the nodes they add; see
`reference_variable` and `resource_variable`.

A variable must be initialised before a step reads it: by its `initializer`, by `load`, or from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.collection_protos import ProtoFunctions, register_late
from flowstone.framework.graphs.graph import Graph, GraphKeys
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.tensor import Tensor, register_tensor_conversion_function
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.framework.types.tensor_proto import messages
from flowstone.ops.arrays.gathering import gather
from flowstone.ops.arrays.index_tuples import gather_nd
from flowstone.ops.arrays.indexing import sliced
from flowstone.ops.control.conditionals import cond
from flowstone.ops.numbers.operators import install_operators
from flowstone.ops.variables.save_slice_info import SaveSliceInfo, without_scope
from flowstone.ops.variables.variable_collections import is_variable_initialized
from flowstone.ops.variables.variable_creation import (
    KindOfVariable,
    VariableAggregation,
    VariableSynchronization,
    aggregation_of,
    kinds,
    synchronization_of,
)
from flowstone.ops.variables.variable_updates import VariableUpdates

__all__ = ["Variable"]


_SliceInfo: TypeAlias = SaveSliceInfo  # which `Variable.SaveSliceInfo` hides


class Variable(VariableUpdates, metaclass=KindOfVariable):
    """A tensor that outlives steps.

    Args:
        initial_value: what can be converted to a tensor, or a function of no arguments that returns it.
        trainable: whether the collection TRAINABLE_VARIABLES gets it, which optimisers take by default.
        collections: names of the collections that get it; by default [GLOBAL_VARIABLES].
        validate_shape: if False, the initial value's shape may be unknown and assignments may change the
        shape.
        caching_device: device where reads are kept for the other operations.
        name: by default "Variable", made unique.
        variable_def: a VariableDef message to make it from nodes that the graph already has.
        dtype: type to convert the initial value to.
        constraint: function that an optimiser applies to the value after an update.
        use_resource: which kind it is.
        shape: the static shape, where it shall be less specific than the initial value's.

    Raises ValueError if there is no initial value, its shape is unknown though it must be, or it lies
    inside a conditional or loop.
    """

    _stands_for_all_kinds = True
    SaveSliceInfo = SaveSliceInfo
    _dtype: DType
    _graph: Graph
    _handle: Tensor  # the output of the variable's node: the reference or the resource
    _initial_value: Tensor | None
    _initializer: Any

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Callable[..., Any] | None = None,
        synchronization: VariableSynchronization | None = None,
        aggregation: VariableAggregation | None = None,
        shape: Any = None,
    ) -> None:
        self._caching_device, self._constraint = caching_device, constraint
        self._synchronization = synchronization_of(synchronization, name)
        self._aggregation = aggregation_of(aggregation, name)
        self._save_slice_info: SaveSliceInfo | None = None
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually exclusive.")
            self._synchronization = synchronization_of(variable_def.synchronization, name)
            self._aggregation = aggregation_of(variable_def.aggregation, name)
            self._trainable = bool(variable_def.trainable)
            self._take_from_graph(variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        self._trainable = (
            self._synchronization is not VariableSynchronization.ON_READ if trainable is None else trainable
        )
        self._build(
            initial_value, _collection_names(collections, self._trainable), validate_shape, name, dtype, shape
        )

    def _build(
        self,
        initial_value: Any,
        collections: list[Any],
        validate_shape: bool,
        name: str | None,
        dtype: Any,
        shape: Any,
    ) -> None:
        dtype = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
        graph = getattr(initial_value, "graph", None)
        graph = graph if isinstance(graph, Graph) and not scope.graphs.items else scope.get_default_graph()
        self._graph = graph
        with (
            graph.as_default(),
            graph.control_dependencies(None),
            graph.name_scope("Variable" if name is None else name) as full_name,
        ):
            if not full_name:
                raise ValueError("'' is not a valid node name")
            self._add_nodes(
                full_name, initial_value, validate_shape, dtype, None if shape is None else as_shape(shape)
            )
        graph.add_to_collections(collections, self)

    def _add_nodes(
        self,
        name: str,
        initial_value: Any,
        validate_shape: bool,
        dtype: DType | None,
        shape: TensorShape | None,
    ) -> None:
        raise TypeError(f"{type(self).__name__} is no kind of variable")

    def _take_from_graph(self, variable_def: Any, import_scope: str | None) -> None:
        self._graph = graph = scope.get_default_graph()

        def find(name: str) -> Any:
            return graph.as_graph_element(f"{import_scope}/{name}" if import_scope else name)

        self._handle = find(variable_def.variable_name)
        self._initializer = find(variable_def.initializer_name)
        self._initial_value = (
            find(variable_def.initial_value_name) if variable_def.initial_value_name else None
        )
        self._snapshot = find(variable_def.snapshot_name) if variable_def.snapshot_name else None
        self._dtype = self._handle.dtype
        if variable_def.HasField("save_slice_info_def"):
            part = variable_def.save_slice_info_def
            self._save_slice_info = SaveSliceInfo(save_slice_info_def=part, import_scope=import_scope)

    # ---- what it is

    @property
    def name(self) -> str:
        """The name of the tensor that stands for it, such as ``"w:0"``."""
        return self._handle.name

    @property
    def _shared_name(self) -> str:
        return self.name.partition(":")[0]

    @property
    def op(self) -> Any:
        """The operation that makes it."""
        return self._handle.op

    @property
    def graph(self) -> Graph:
        """The graph that holds it."""
        return self._graph

    @property
    def device(self) -> str:
        """The device requested for it."""
        return self._handle.device

    @property
    def dtype(self) -> DType:
        """The element type; for a reference variable, the reference type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        raise TypeError(f"{type(self).__name__} is no kind of variable")

    def set_shape(self, shape: Any) -> None:
        """Merges what the user knows of the shape into the static shape, of a resource variable into that of
        later reads. ValueError if they contradict."""
        self._set_shape(shape)

    def _set_shape(self, shape: Any) -> None:
        raise TypeError(f"{type(self).__name__} is no kind of variable")

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self.shape

    @property
    def trainable(self) -> bool:
        """Whether optimisers change it by default."""
        return self._trainable

    @property
    def constraint(self) -> Callable[..., Any] | None:
        """The function that an optimiser applies to the value after an update, or None."""
        return self._constraint

    @property
    def synchronization(self) -> VariableSynchronization:
        """As given when it was made."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """As given when it was made."""
        return self._aggregation

    @property
    def initializer(self) -> Any:
        """The operation that assigns the initial value."""
        return self._initializer

    @property
    def initial_value(self) -> Any:
        """The tensor of the initial value. It does not depend on whether the variable is initialised."""
        return self._initial_value

    def initialized_value(self) -> Tensor:
        """The value, or the initial value while the variable is not initialised."""
        with self._graph.control_dependencies(None):
            return cond(is_variable_initialized(self), self.read_value, lambda: self.initial_value)  # type: ignore[no-any-return]

    def _initialise_with(self, value: Tensor) -> None:
        """Makes `value` what the variable is initialised with from now on."""
        assign = F.AssignVariableOp if self._handle.dtype.base_dtype is dtypes.resource else F.Assign
        self._initial_value, self._initializer = value, assign.operation(self._handle, value)

    def _set_save_slice_info(self, save_slice_info: _SliceInfo | None) -> None:
        self._save_slice_info = save_slice_info

    def _get_save_slice_info(self) -> _SliceInfo | None:
        return self._save_slice_info

    # ---- values

    def value(self) -> Tensor:
        """The value as a tensor."""
        raise TypeError(f"{type(self).__name__} is no kind of variable")

    def read_value(self) -> Tensor:
        """The value, read where the control dependencies in force say."""
        raise TypeError(f"{type(self).__name__} is no kind of variable")

    def eval(self, session: Any = None) -> np.ndarray[Any, Any]:
        """The value in `session` (default: the default session)."""
        return self._as_graph_element().eval(session=session)  # type: ignore[no-any-return]

    def load(self, value: Any, session: Any = None) -> None:
        """Gives it this value in `session` (default: the default session) without adding a node to the
        graph.
        """
        session = session or scope.get_default_session()
        if session is None:
            raise ValueError(
                "Either session argument should be provided or default session should be established"
            )
        session.run(self._initializer, {self._initializer.inputs[1]: value})

    def _as_graph_element(self) -> Any:
        raise TypeError(f"{type(self).__name__} is no kind of variable")

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """Rows of the value."""
        return gather(self, indices, name=name)

    def gather_nd(self, indices: Any, name: str | None = None) -> Any:
        """Elements of the value, by index tuples."""
        return gather_nd(self, indices, name=name)

    def __getitem__(self, index: Any) -> Tensor:
        return sliced(self.value(), index, self)

    def ref(self) -> Any:
        """A hashable that stands for the variable."""
        return self

    experimental_ref = ref

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def __iter__(self) -> Any:
        raise TypeError("'Variable' object is not iterable.")

    __array_priority__ = 100
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    # ---- messages

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A VariableDef message that names its nodes; None if it lies outside `export_scope`."""
        if export_scope is not None and not self.name.startswith(export_scope):
            return None
        message = messages("variable_pb2").VariableDef(
            trainable=self._trainable,
            synchronization=self._synchronization.value,
            aggregation=self._aggregation.value,
        )
        message.variable_name = without_scope(self.name, export_scope)
        message.initializer_name = without_scope(self._initializer.name, export_scope)
        if self._initial_value is not None:
            message.initial_value_name = without_scope(self._initial_value.name, export_scope)
        if self._snapshot is not None:
            message.snapshot_name = without_scope(self._snapshot.name, export_scope)
        message.is_resource = self._handle.dtype.base_dtype is dtypes.resource
        if self._save_slice_info is not None:
            message.save_slice_info_def.MergeFrom(self._save_slice_info.to_proto(export_scope))
        return message

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Any:
        """The variable that a VariableDef describes, made of nodes that the default graph already has."""
        return kinds[variable_def.is_resource](variable_def=variable_def, import_scope=import_scope)

    _snapshot: Tensor | None


def _collection_names(collections: Any, trainable: bool) -> list[Any]:
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]
    if not isinstance(collections, (list, tuple, set)):
        raise ValueError(
            f"collections argument to Variable constructor must be a list, tuple, or set. Got {collections!r}"
        )
    names = list(collections)
    if trainable and GraphKeys.TRAINABLE_VARIABLES not in names:
        names.append(GraphKeys.TRAINABLE_VARIABLES)
    return names


def _variable_to_tensor(
    variable: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    return variable._as_tensor(dtype, name, as_ref)  # type: ignore[no-any-return]


register_tensor_conversion_function(Variable, _variable_to_tensor)


install_operators(Variable, lambda variable: variable.value())


def _proto_functions() -> ProtoFunctions:
    def to_proto(variable: Any, export_scope: str | None = None) -> Any:
        return variable.to_proto(export_scope)

    return ProtoFunctions(messages("variable_pb2").VariableDef, to_proto, Variable.from_proto)


for _collection in (
    GraphKeys.GLOBAL_VARIABLES,
    GraphKeys.LOCAL_VARIABLES,
    GraphKeys.METRIC_VARIABLES,
    GraphKeys.MODEL_VARIABLES,
    GraphKeys.MOVING_AVERAGE_VARIABLES,
    GraphKeys.TRAINABLE_VARIABLES,
    GraphKeys.GLOBAL_STEP,
):
    register_late(_collection, _proto_functions)
