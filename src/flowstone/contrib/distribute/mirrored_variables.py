"""Variables of several replicas: a *container* that stands for a variable on each replica's device.

The container has the name of its first component, ``w``; the others are ``w/replica_1`` … and begin with
the first one's initial value. Collections hold the container, and checkpoints its name. Whose code uses it
decides what it is:

| code of | reads | updates |
| --- | --- | --- |
| a replica | its component | its component; a `MirroredVariable`: all, by the values aggregated |
| an update on a device | the device's component | that component |
| the cross-replica context | the first; a `SyncOnReadVariable`: all aggregated | all components |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distributed_values import number_here
from flowstone.contrib.distribute.reduce_ops import ReduceOp
from flowstone.ops.checkpoints.saveable_object import SaveableObject, SaveSpec
from flowstone.ops.variables.replicas import current_replica
from flowstone.ops.variables.resource_variable import ResourceVariable

__all__ = ["CentralVariable", "DistributedVariable", "MirroredVariable", "SyncOnReadVariable"]

Aggregation = tf.VariableAggregation


def _of_component(name: str) -> Any:
    """An attribute that is the one of the component in use."""
    return property(lambda self: getattr(self.get(), name))


class DistributedVariable(ResourceVariable):
    """A variable with a component for each replica; see the module.

    Args:
        strategy: whose variable it is.
        components: resource variables, in the replicas' order.
        aggregation: how the replicas' values become one.
    """

    _handle = _of_component("_handle")
    _snapshot = _of_component("_snapshot")
    _cached_value = _of_component("_cached_value")
    _is_initialized_op = _of_component("_is_initialized_op")
    _shared_read = _of_component("_shared_read")
    _save_shape = None

    def __init__(self, strategy: Any, components: Sequence[Any], aggregation: Any) -> None:
        first = components[0]
        hidden = (
            "_handle",
            "_snapshot",
            "_cached_value",
            "_is_initialized_op",
            "_initializer",
            "_snapshot_value",
        )
        self.__dict__.update({key: value for key, value in vars(first).items() if key not in hidden})
        self._strategy, self._components, self._aggregation = strategy, tuple(components), aggregation
        self._container = self
        for component in components:
            component._container = self
        self._initializers: Any = None

    @property
    def _initializer(self) -> Any:
        """The operation that initialises all components; made when it is first asked for."""
        if self._initializers is None:
            self._initializers = _grouped([each.initializer for each in self._components])
        return self._initializers

    @property
    def values(self) -> tuple[Any, ...]:
        """The components."""
        return self._components

    @property
    def primary(self) -> Any:
        """The first component."""
        return self._components[0]

    def get(self) -> Any:
        """The component of the replica, or of the device of an update, whose code this is; else the first."""
        number = number_here()
        return self._components[number if number is not None and number < len(self._components) else 0]

    @property
    def name(self) -> str:
        """The name of the first component."""
        return self.primary.name  # type: ignore[no-any-return]

    @property
    def distribute_strategy(self) -> Any:
        """The strategy whose variable it is."""
        return self._strategy

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of the components."""
        return tuple(each.device for each in self._components)

    def is_initialized(self, name: str | None = None) -> Any:
        """A bool scalar: whether all components have values."""
        found = [each.is_initialized() for each in self._components]
        return tf.reduce_all(tf.stack(found), name=name)

    def load(self, value: Any, session: Any = None) -> None:
        """Gives all components this value in `session`, without adding a node to the graph."""
        for component in self._components:
            component.load(value, session)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The message of the first component."""
        return self.primary.to_proto(export_scope)

    def __repr__(self) -> str:
        lines = (f"\n  {i} {each.device}: {each!r}" for i, each in enumerate(self._components))
        return f"{type(self).__name__}:{{{','.join(lines)}\n}}"

    # ---- updates

    def _changed(self, update: Callable[..., Any], *values: Any, read_value: bool = True) -> Any:
        """What ``update(component, *values)`` gives where this code is; see the module."""
        if current_replica() is not None:
            return self._changed_by_replica(update, values, read_value)
        if number_here() is not None:
            return self._result(update(self.get(), *values), read_value)
        return self._changed_by_all(update, values, read_value)

    def _changed_by_replica(self, update: Callable[..., Any], values: Any, read_value: bool) -> Any:
        return self._result(update(self.get(), *values), read_value)

    def _changed_by_all(self, update: Callable[..., Any], values: Any, read_value: bool) -> Any:
        whole = self._strategy.extended.update(self, update, values)
        return self.primary._updated(whole, read_value)

    def _result(self, updated: Any, read_value: bool) -> Any:
        return updated if read_value else getattr(updated, "op", updated)

    def _updated(self, operation: Any, read_value: bool = True) -> Any:
        return self.get()._updated(operation, read_value)

    def _assigned(self, kind: str, value: Any, use_locking: bool, name: str | None, read_value: bool) -> Any:
        def update(component: Any, value: Any) -> Any:
            return component._assigned(kind, value, use_locking, name, True)

        if not isinstance(value, (bool, int, float)):
            value = self._convert(value)
        return self._changed(update, value, read_value=read_value)

    def _scattered(self, kind: str, delta: Any, use_locking: bool, name: str | None) -> Any:
        return self._changed(lambda each, delta: each._scattered(kind, delta, use_locking, name), delta)

    def _scattered_nd(self, kind: str, indices: Any, updates: Any, name: str | None) -> Any:
        return self._changed(lambda each, *given: each._scattered_nd(kind, *given, name), indices, updates)

    # ---- checkpoints

    def _saveable(self, name: str) -> SaveableObject:
        """What a Saver saves under `name`, and restores to all components."""
        return _Saveable(self, name)


class MirroredVariable(DistributedVariable):
    """A variable whose components are kept equal."""

    @property
    def handle(self) -> Any:
        """The resource of the component in use. ValueError in the cross-replica context of several."""
        if number_here() is None and len(self._components) > 1:
            raise ValueError(
                "`handle` is not available outside the replica context or a "
                f"`tf.distribute.Strategy.update()` call: {self.name}. "
                "Take gradients, and apply them, in the function that each replica runs"
            )
        return self.get().handle

    def _changed_by_replica(self, update: Callable[..., Any], values: Any, read_value: bool) -> Any:
        replica = current_replica()
        assert replica is not None
        if self._aggregation is Aggregation.NONE:
            raise ValueError(
                "You must specify an aggregation method to update a MirroredVariable in Replica Context. You "
                "can do so by passing an explicit value for argument `aggregation` to tf.Variable(..), e.g. "
                f"`tf.Variable(..., aggregation=tf.VariableAggregation.SUM)`: {self.name}"
            )
        whole = replica.merge_call(self._aggregated, (update, *values))
        return self.get()._updated(whole, read_value)

    def _aggregated(self, strategy: Any, update: Any, *values: Any) -> Any:
        """Updates all components by the replicas' values, in the cross-replica context."""
        function = update if callable(update) else update.primary  # each replica gives a function of its own
        extended = strategy.extended
        return extended.update(self, function, [self._one(extended, value) for value in values])

    def _one(self, extended: Any, value: Any) -> Any:
        if self._aggregation is Aggregation.ONLY_FIRST_REPLICA:
            first = getattr(value, "primary", value)
            return extended.broadcast_to(first, self) if isinstance(first, tf.Tensor) else first
        return extended.reduce_to(self._aggregation.name, value, self)


class CentralVariable(MirroredVariable):
    """A variable of one component that all replicas share, on the device of a parameter server.

    Updates by replicas are aggregated as those of a `MirroredVariable`.
    """

    def get(self) -> Any:
        """The component."""
        return self._components[0]

    def __repr__(self) -> str:
        return f"CentralVariable({self.primary!r})"


class SyncOnReadVariable(DistributedVariable):
    """A variable of which each replica changes its own component, and which is their aggregate."""

    _aggregated_tensor: Any = None

    def _aggregate(self) -> Any:
        if self._aggregation is Aggregation.ONLY_FIRST_REPLICA:
            return self.primary.value()
        if self._aggregation is Aggregation.NONE:
            raise ValueError(
                "Could not convert from `tf.VariableAggregation` VariableAggregation.NONE to"
                f"`tf.distribute.ReduceOp` type: {self.name} is read in the cross-replica context"
            )
        return self._strategy.extended.reduce_to(ReduceOp[self._aggregation.name], self, self.primary.device)

    @property
    def aggregated(self) -> Any:
        """The aggregate, a tensor; made when it is first asked for."""
        if self._aggregated_tensor is None:
            with self.graph.as_default(), tf.control_dependencies(None), tf.name_scope(None):
                self._aggregated_tensor = tf.identity(self._aggregate(), name=f"{self.op.name}/Aggregate")
        return self._aggregated_tensor

    def value(self) -> Any:
        """The component of this replica; in the cross-replica context the aggregate."""
        return super().value() if number_here() is not None else self._aggregate()

    def read_value(self) -> Any:
        """As `value`, read where the control dependencies in force say."""
        return super().read_value() if number_here() is not None else tf.identity(self._aggregate())

    def _changed_by_all(self, update: Callable[..., Any], values: Any, read_value: bool) -> Any:
        whole = tf.group(*(update(each, *values).op for each in self._components))
        return self.primary._updated(whole, read_value)

    def _assigned(self, kind: str, value: Any, use_locking: bool, name: str | None, read_value: bool) -> Any:
        if number_here() is None:
            if kind != "Assign":
                raise ValueError("SyncOnReadVariable does not support `assign_add` in cross-replica context")
            value = self._share(value)
        return super()._assigned(kind, value, use_locking, name, read_value)

    def _share(self, value: Any) -> Any:
        """What each component gets of a value, for their aggregate to be it."""
        if self._aggregation is not Aggregation.SUM:
            return value
        value = tf.convert_to_tensor(value, self.dtype)
        return tf.cast(value / len(self._components), self.dtype)


class _Saveable(SaveableObject):
    """A variable of several replicas under its one name."""

    def __init__(self, variable: DistributedVariable, name: str) -> None:
        self._variable = variable
        is_aggregate = isinstance(variable, SyncOnReadVariable)
        value = tf.identity(variable.value() if is_aggregate else variable.primary.value())
        super().__init__(variable.primary.handle, [SaveSpec(value, "", name)], name)

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None) -> Any:
        """Assigns the tensor to all components."""
        (value,) = restored_tensors
        if restored_shapes is not None:
            value = tf.reshape(value, restored_shapes[0])
        return self._variable.assign(value, read_value=False)


def _grouped(operations: Sequence[Any]) -> Any:
    return operations[0] if len(operations) == 1 else tf.group(*operations)
