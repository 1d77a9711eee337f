"""`Layer`: an object that is called like a function and owns the variables that the first call makes.

A layer has two names. Its *scope* is the variable scope that its variables are in. It is set at the first
call: to ``scope=`` if that is given there, else to the layer's base name (its class in snake case, or
``name=``), made unique inside the current variable scope. Its *name* is set at construction: to ``name=`` if
that is given, else to the base name made unique in the graph (``dense_1``, ``dense_2`` …).

A call enters the layer's variable scope and the name scope that belongs to it, runs `build` with the static
shapes of the inputs if it is the first, and then `call`. Variables are made by `add_weight`. Subclasses
override `build` and `call`:

    class Scale(Layer):
        def build(self, input_shape):
            self.factor = self.add_weight("factor", [], initializer=ones_initializer())
            super().build(input_shape)

        def call(self, inputs):
            return inputs * self.factor
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from flowstone.framework.graphs.graph import Graph, GraphKeys
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.composite import IndexedSlices, SparseTensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.layers.calls import Node, note_call, shape_of_value
from flowstone.layers.configurations import Configured
from flowstone.layers.input_spec import InputSpec
from flowstone.layers.model_parts import PartOfModel
from flowstone.layers.weight_values import WeightValues
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.numbers.casts import cast
from flowstone.ops.variables.partitioned_variables import PartitionedVariable
from flowstone.ops.variables.scope_defaults import VariableScope
from flowstone.ops.variables.variable_creation import VariableAggregation, VariableSynchronization
from flowstone.ops.variables.variable_scope import get_variable, variable_scope
from flowstone.ops.variables.variable_store import outside_control_flow

__all__ = ["InputSpec", "Layer"]

_INTERNAL_OPTIONS = {"_scope", "_reuse", "input_shape", "batch_input_shape", "batch_size", "weights"}
_names_taken: WeakKeyDictionary[Graph, Counter[str]] = WeakKeyDictionary()


def _snake_case(name: str) -> str:
    spaced = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    spaced = re.sub(r"([a-z])([A-Z])", r"\1_\2", spaced).lower()
    return f"private{spaced}" if spaced.startswith("_") else spaced


def _numbered_name(base: str) -> str:
    """`base` with the next number that it has not had in the default graph."""
    taken = _names_taken.setdefault(get_default_graph(), Counter())
    taken[base] += 1
    return f"{base}_{taken[base]}"


class Layer(Configured, PartOfModel, WeightValues):
    """The base of layers; see the module.

    Args:
        trainable: whether `add_weight` puts variables in the collection TRAINABLE_VARIABLES.
        name: the base name; default: the class's name in snake case.
        dtype: of the variables; default: that of the first call's first input.
        activity_regularizer: a function of an output that returns a loss (or None); every call adds the loss,
            divided by the size of the batch.

    TypeError for any other keyword.
    """

    input_spec: InputSpec | list[InputSpec] | None = None
    _kind_name: str | None = None  # for layers whose names are not made of the class's

    stateful = False
    _use_resource_variables = False

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        activity_regularizer: Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> None:
        for keyword in kwargs:
            if keyword not in _INTERNAL_OPTIONS:
                raise TypeError("Keyword argument not understood:", keyword)
        self.trainable, self.built = trainable, False
        self._reuse, self._scope = kwargs.get("_reuse"), None
        self._base_name = name or self._kind_name or _snake_case(type(self).__name__)
        self._name = name or _numbered_name(self._base_name)
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype).base_dtype.name
        self._activity_regularizer = activity_regularizer
        self._trainable_weights: list[Any] = []
        self._non_trainable_weights: list[Any] = []
        self._losses: list[tuple[Any, list[Any] | None]] = []
        self._updates: list[tuple[Any, list[Any] | None]] = []
        self._calls: list[Node] = []
        self._outbound_nodes: list[Node] = []
        self._inbound_nodes: list[Any] = []  # the calls within a model of `tf.keras`, as that notes them
        self._graph: Graph | None = None
        self._keep_input_shape(kwargs)
        if kwargs.get("_scope"):
            with variable_scope(kwargs["_scope"]) as captured:
                self._scope = captured

    # ---- properties

    name = property(lambda self: self._name, doc="The layer's name, unique in its graph unless given.")
    dtype = property(
        lambda self: self._dtype, doc="The variables' element type by name; None before it is known."
    )
    activity_regularizer = property(
        lambda self: self._activity_regularizer,
        doc="The function that computes a loss from every output, or None.",
    )
    trainable_variables = property(lambda self: self.trainable_weights, doc="As `trainable_weights`.")
    non_trainable_variables = property(
        lambda self: self.non_trainable_weights, doc="As `non_trainable_weights`."
    )
    variables = property(lambda self: self.weights, doc="As `weights`.")

    @property
    def scope_name(self) -> str:
        """The full name of the variable scope. ValueError before the first call."""
        if self._scope is None:
            raise ValueError(
                f'No name available for layer scope because the layer "{self._name}" has not been used yet. '
                "The scope name is determined the first time the layer instance is called."
            )
        name: str = self._scope.name
        return name

    @property
    def graph(self) -> Graph | None:
        """The graph of the first call; None before it."""
        return self._graph

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that training changes; none if the layer is not trainable."""
        return list(self._trainable_weights) if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The other variables."""
        return list(self._non_trainable_weights if self.trainable else self._all_weights())

    @property
    def weights(self) -> list[Any]:
        """All variables, the trainable ones first."""
        return self.trainable_weights + self.non_trainable_weights

    def _all_weights(self) -> list[Any]:
        return self._trainable_weights + self._non_trainable_weights

    def count_params(self) -> int:
        """The number of elements of all variables. ValueError before they are made."""
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on {self._name}, but the layer isn't built. You can build "
                f"it manually via: `{self._name}.build(batch_input_shape)`."
            )
        return sum(int(np.prod(variable.shape.as_list(), dtype=np.int64)) for variable in self.weights)

    # ---- what subclasses override

    def build(self, _: Any) -> None:
        """Makes the variables; called once, before the first `call`, with the inputs' static shapes."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs for `inputs`."""
        return inputs

    # ---- calling

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs `call` in the layer's scopes; the first time after `build`, with `scope` as the scope's
        name."""
        self._set_scope(kwargs.pop("scope", None))
        inputs = nest.map_structure(_as_input, inputs)
        tensors = [x for x in nest.flatten(inputs, expand_composites=True) if isinstance(x, Tensor)]
        with self._entered(reuse=True if self.built else self._reuse):
            self._check(tensors)
            if not self.built:
                self._graph = get_default_graph()
                if self._dtype is None and tensors:
                    self._dtype = tensors[0].dtype.base_dtype.name
                if tensors and all(hasattr(x, "_keras_history") for x in tensors):  # part of a model
                    self._use_resource_variables = True
                self.build(nest.map_structure(shape_of_value, inputs))
                self.built = True
            outputs = self.call(inputs, *args, **kwargs)
            self._regularize_activity(outputs, tensors)
        get_default_graph().get_collection_ref(GraphKeys.UPDATE_OPS)  # there from the first call on, if empty
        note_call(self, Node(self, inputs, outputs), args, kwargs)
        return outputs

    def apply(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer."""
        return self(inputs, *args, **kwargs)

    def _set_scope(self, scope: str | VariableScope | None) -> None:
        if self._scope is not None:
            return
        if self._reuse:
            chosen = variable_scope(self._base_name if scope is None else scope)
        else:
            chosen = variable_scope(scope, default_name=self._base_name)
        with chosen as captured:
            self._scope = captured

    def _entered(self, reuse: Any) -> _EnteredScope:
        return _EnteredScope(variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False))

    def _check(self, tensors: list[Tensor]) -> None:
        if self.input_spec is not None:
            specs = self.input_spec if isinstance(self.input_spec, (list, tuple)) else [self.input_spec]
            if len(specs) != len(tensors):
                raise ValueError(
                    f"Layer {self._name} expects {len(specs)} inputs, but it received {len(tensors)} input "
                    f"tensors. Inputs received: {tensors}"
                )
            for i, (tensor, spec) in enumerate(zip(tensors, specs)):
                spec.check(tensor, self._name, i)

    def _regularize_activity(self, outputs: Any, inputs: list[Any]) -> None:
        if self._activity_regularizer is None:
            return
        with get_default_graph().name_scope("ActivityRegularizer"):
            for output in nest.flatten(outputs):
                loss = self._activity_regularizer(output)
                if loss is not None:  # a mean over the batch
                    self.add_loss(loss / cast(shape_of(output)[0], loss.dtype), inputs=inputs)

    # ---- variables

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Callable[..., Any] | None = None,
        trainable: bool | None = None,
        constraint: Callable[..., Any] | None = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        partitioner: Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """A variable `name` of the layer's scope, new or shared according to the scope's `reuse`.

        Defaults come from the scope (initialiser, partitioner …) and the layer (dtype). The loss that
        `regularizer` returns for a new variable is added to the layer's.
        """
        for keyword in kwargs:
            if keyword not in {"getter", "collections", "experimental_autocast", "caching_device"}:
                raise TypeError("Unknown keyword argument:", keyword)
        trainable = True if trainable is None else bool(trainable)
        self._set_scope(None)
        graph = get_default_graph()
        before = len(graph.get_collection_ref(GraphKeys.GLOBAL_VARIABLES))
        with self._entered(reuse=True if self.built else self._reuse):
            variable = get_variable(
                name,
                shape=shape,
                dtype=dtypes.as_dtype(dtype or self._dtype or dtypes.float32),
                initializer=initializer,
                trainable=trainable and self.trainable,
                collections=kwargs.get("collections"),
                caching_device=kwargs.get("caching_device"),
                partitioner=partitioner,
                use_resource=True if self._use_resource_variables else use_resource,
                constraint=constraint,
                synchronization=synchronization,
                aggregation=aggregation,
            )
            is_new = len(graph.get_collection_ref(GraphKeys.GLOBAL_VARIABLES)) > before
            if regularizer is not None and is_new:
                self._regularize(name, variable, regularizer)
        self._track(variable, trainable)
        return variable

    def add_variable(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Callable[..., Any] | None = None,
        trainable: bool = True,
        constraint: Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """As `add_weight`."""
        return self.add_weight(name, shape, dtype, initializer, regularizer, trainable, constraint, **kwargs)

    def _track(self, variable: Any, trainable: bool) -> None:
        known = self._all_weights()
        for part in list(variable) if isinstance(variable, PartitionedVariable) else [variable]:
            part._tracked = True  # it is a weight of this layer, not of a model that lists it
            if not any(part is other for other in known):
                (self._trainable_weights if trainable else self._non_trainable_weights).append(part)

    def _regularize(self, name: str, variable: Any, regularizer: Callable[..., Any]) -> None:
        graph = get_default_graph()
        for part in list(variable) if isinstance(variable, PartitionedVariable) else [variable]:
            with outside_control_flow(graph), graph.name_scope(f"{name}/Regularizer"):
                loss = regularizer(part)
            if loss is not None:
                self.add_loss(loss)

    # ---- losses and updates

    losses = property(lambda self: [loss for loss, _ in self._losses], doc="The losses added so far.")
    updates = property(lambda self: [update for update, _ in self._updates], doc="The updates added so far.")

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses, which depend on `inputs` (None: on none), also to REGULARIZATION_LOSSES."""
        self._add(self._losses, losses, inputs, GraphKeys.REGULARIZATION_LOSSES)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations to run with every training step, also to UPDATE_OPS."""
        self._add(self._updates, updates, inputs, GraphKeys.UPDATE_OPS)

    def _add(self, where: list[Any], items: Any, inputs: Any, collection: str) -> None:
        causes = None if inputs is None else nest.flatten(inputs)
        for item in items if isinstance(items, (list, tuple)) else [items]:
            where.append((item, causes))
            graph = get_default_graph()
            if not any(item is other for other in graph.get_collection_ref(collection)):
                graph.add_to_collection(collection, item)

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """The losses that depend on `inputs`; for None, those that depend on no input."""
        return _caused_by(self._losses, inputs)

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """The updates that depend on `inputs`; for None, those that depend on no input."""
        return _caused_by(self._updates, inputs)

    # ---- inputs and outputs of calls

    inbound_nodes = property(lambda self: self._calls, doc="A `Node` for each call.")
    outbound_nodes = property(
        lambda self: self._outbound_nodes, doc="The calls of other layers on outputs of this one."
    )
    input = property(lambda self: self._only("input").inputs, doc="The input of the only call.")
    output = property(lambda self: self._only("output").outputs, doc="The output of the only call.")
    input_shape = property(
        lambda self: self._only("input").input_shapes, doc="The static shape of `input`, a tuple."
    )
    output_shape = property(
        lambda self: self._only("output").output_shapes, doc="The static shape of `output`, a tuple."
    )

    def get_input_at(self, node_index: int) -> Any:
        """The input of call number `node_index`. ValueError if there was none, RuntimeError before any."""
        return self._at(node_index, "input").inputs

    def get_output_at(self, node_index: int) -> Any:
        """The output of call number `node_index`. ValueError if there was none, RuntimeError before any."""
        return self._at(node_index, "output").outputs

    def get_input_shape_at(self, node_index: int) -> Any:
        """The static shape, a tuple, of the input of call number `node_index`."""
        return self._at(node_index, "input").input_shapes

    def get_output_shape_at(self, node_index: int) -> Any:
        """The static shape, a tuple, of the output of call number `node_index`."""
        return self._at(node_index, "output").output_shapes

    def _only(self, what: str) -> Node:
        if len(self._calls) != 1:
            problem = "is not connected" if not self._calls else "has multiple inbound nodes"
            raise AttributeError(
                f"Layer {self._name} {problem}, hence the notion of layer {what} is ill-defined."
            )
        return self._calls[0]

    def _at(self, index: int, what: str) -> Node:
        if not self._calls:
            raise RuntimeError(f"Layer {self._name} was never called, so it has no {what}.")
        if not 0 <= index < len(self._calls):
            raise ValueError(
                f"Asked to get {what} at node {index}, but the layer has only "
                f"{len(self._calls)} inbound nodes."
            )
        return self._calls[index]


class _EnteredScope:
    """A variable scope together with the name scope made with it."""

    def __init__(self, scope: variable_scope) -> None:
        self._variables = scope
        self._names: Any = None

    def __enter__(self) -> VariableScope:
        scope = self._variables.__enter__()
        self._names = get_default_graph().name_scope(scope.original_name_scope)
        self._names.__enter__()
        return scope

    def __exit__(self, *exception: Any) -> None:
        try:
            self._names.__exit__(*exception)
        finally:
            self._variables.__exit__(*exception)


def _as_input(value: Any) -> Any:
    """Numbers, arrays and what a library has as its tensors become tensors; all else stays as it is."""
    if isinstance(value, (float, int, np.ndarray, np.generic)):
        return convert_to_tensor(value)
    if isinstance(value, (Tensor, SparseTensor, IndexedSlices)):
        return value
    return convert_to_tensor(value) if hasattr(value, "dtype") and hasattr(value, "shape") else value


def _caused_by(items: list[tuple[Any, list[Any] | None]], inputs: Any) -> list[Any]:
    if inputs is None:
        return [item for item, causes in items if causes is None]
    wanted = nest.flatten(inputs)
    return [item for item, causes in items if causes and any(a is b for a in wanted for b in causes)]
