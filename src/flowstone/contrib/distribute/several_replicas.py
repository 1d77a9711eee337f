"""Strategies of several replicas in one graph: what they do for optimisers and libraries.

Each replica has a device. Variables are containers of components (`mirrored_variables`); an update runs once
for each component, on its device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.cross_device_ops import CrossDeviceOps, ReductionToOneDevice
from flowstone.contrib.distribute.distribute_lib import UpdateContext
from flowstone.contrib.distribute.distributed_values import Mirrored, is_distributed, number_here, selected
from flowstone.contrib.distribute.mirrored_variables import (
    CentralVariable,
    DistributedVariable,
    MirroredVariable,
    SyncOnReadVariable,
)
from flowstone.contrib.distribute.reduce_ops import ReduceOp, reduce_op_of
from flowstone.contrib.distribute.replica_threads import Replica, call_for_each_replica
from flowstone.contrib.distribute.strategy_extended import StrategyExtended
from flowstone.framework.graphs.graph import GraphKeys
from flowstone.ops.variables.replicas import current_replica
from flowstone.ops.variables.variable_creation import (
    VariableSynchronization,
    aggregation_of,
    synchronization_of,
)

__all__ = ["CentralExtended", "MirroredExtended", "full_device_name"]


def full_device_name(name: str) -> str:
    """A device's name with replica, task, type and number."""
    spec = tf.DeviceSpec.from_string(name)
    kind, number = spec.device_type or "CPU", spec.device_index or 0
    replica, task = spec.replica or 0, spec.task or 0
    job = f"/job:{spec.job}" if spec.job else ""
    return f"{job}/replica:{replica}/task:{task}/device:{kind.upper()}:{number}"


class _Update(UpdateContext):
    """An update of the component of this number."""

    def __init__(self, device: str, number: int) -> None:
        super().__init__(device)
        self.number = number


class MirroredExtended(StrategyExtended):
    """A replica and a component of each variable on each of several devices.

    Args:
        devices: their full names.
        cross_device_ops: what reduces the replicas' values; by default `ReductionToOneDevice`.
    """

    def __init__(self, devices: Sequence[str], cross_device_ops: CrossDeviceOps | None = None) -> None:
        super().__init__(None)
        self._devices = tuple(devices)
        self._cross_device_ops = cross_device_ops or ReductionToOneDevice()

    @property
    def num_replicas_in_sync(self) -> int:  # type: ignore[override]
        """The number of the devices."""
        return len(self._devices)

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Where functions run."""
        return self._devices

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """What `fn` gives for each replica."""
        return call_for_each_replica(self.strategy, fn, args, kwargs)

    # ---- reductions

    def reduce(self, kind: ReduceOp, value: Any, axis: int | None) -> Any:
        """The sum or the mean of a value over the replicas, and over an axis if one is given."""
        first = self.worker_devices[0]
        if axis is None:
            return self.reduce_to(kind, value, first)
        total = self._over_axis(lambda each: tf.reduce_sum(each, axis), value)
        if kind == ReduceOp.SUM:
            return self.reduce_to(kind, total, first)
        sizes = self._over_axis(lambda each: tf.shape(each, out_type=tf.int64)[axis], value)
        total, size = (self.reduce_to(ReduceOp.SUM, each, first) for each in (total, sizes))
        if total.dtype.is_integer:
            return tf.truediv(total, tf.cast(size, total.dtype))
        return total / tf.cast(size, total.dtype)

    def _over_axis(self, function: Callable[..., Any], value: Any) -> Any:
        return self.strategy.experimental_run_v2(function, (value,))

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        """The sum or the mean of a value over the replicas, where `destinations` says.

        ValueError for the sum of one value that is not of the replicas, unless it is 0.
        """
        kind = reduce_op_of(reduce_op)
        if kind == ReduceOp.MEAN and isinstance(value, (Mirrored, MirroredVariable)):
            return value
        if is_distributed(value):
            return self._cross_device_ops.reduce(kind, value, destinations)
        if kind == ReduceOp.SUM and not (isinstance(value, (int, float)) and value == 0):
            raise ValueError(
                f"A non-DistributedValues value {value} cannot be reduced with the given reduce op {kind}."
            )
        return self.broadcast_to(value, destinations) if isinstance(value, tf.Tensor) else value

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Sequence[Any]) -> list[Any]:
        """`reduce_to` of several pairs."""
        if all(is_distributed(value) for value, _ in value_destination_pairs):
            return self._cross_device_ops.batch_reduce(reduce_op_of(reduce_op), value_destination_pairs)
        return super().batch_reduce_to(reduce_op, value_destination_pairs)

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """The tensor on these devices; on several, a `Mirrored`."""
        return self._cross_device_ops.broadcast(tensor, destinations)

    # ---- updates

    def update(
        self,
        var: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Any = None,
        group: bool = True,
    ) -> Any:
        """Runs ``fn(component, …)`` for each component of a variable, on its device, with the device's part
        of the arguments: the group of what they give; without `group` that in a tuple."""
        parts = var.values if isinstance(var, DistributedVariable) else (var,)
        made = [
            self._updated(number, part.device, fn, (part, *args), kwargs) for number, part in enumerate(parts)
        ]
        return _grouped(made) if group else tuple(made)

    def update_non_slot(
        self,
        colocate_with: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Any = None,
        group: bool = True,
    ) -> Any:
        """Runs `fn` on each of the devices `colocate_with`; gives as `update`."""
        devices = tuple(colocate_with) if isinstance(colocate_with, (list, tuple)) else (colocate_with,)
        made = [self._updated(number, device, fn, args, kwargs) for number, device in enumerate(devices)]
        return _grouped(made) if group else tuple(made)

    def _updated(self, number: int, device: str, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        with (
            tf.colocate_with(None, ignore_existing=True),
            tf.device(device or None),
            _Update(device, number),
            tf.name_scope(f"update_{number}"),
        ):
            return fn(*selected(number, tuple(args)), **selected(number, dict(kwargs or {})))

    def read_var(self, variable: Any) -> Any:
        """The value of a variable."""
        if isinstance(variable, DistributedVariable) and not isinstance(variable, SyncOnReadVariable):
            return Mirrored([tf.identity(each) for each in variable.values])
        return tf.identity(variable)

    # ---- variables

    @contextmanager
    def making_variables(self) -> Iterator[None]:
        """Within, variables have a component for each replica, and are not partitioned."""
        with ExitStack() as stack:
            stack.enter_context(tf.variable_creator_scope(self._variable))
            scope = tf.get_variable_scope()
            whole = tf.variable_scope(scope, custom_getter=_whole, auxiliary_name_scope=False)
            stack.enter_context(whole)
            yield

    def _variable(self, next_creator: Callable[..., Any], **arguments: Any) -> Any:
        replica = current_replica()
        if not isinstance(replica, Replica):
            if number_here() is not None:  # an update's own variable
                return next_creator(**arguments)
            return self._made(next_creator, arguments)
        name = arguments.get("name")
        if replica.number:
            return replica.variables.find(replica.number, name)
        variable = self._made(next_creator, arguments)
        replica.variables.note(name, variable)
        return variable

    def _made(self, next_creator: Callable[..., Any], given: dict[str, Any]) -> Any:
        name = given.get("name")
        synchronization = synchronization_of(given.get("synchronization"), name)
        if synchronization is VariableSynchronization.NONE:
            raise ValueError(
                "`NONE` variable synchronization mode is not supported with `Mirrored` distribution "
                f"strategy. Please change the `synchronization` for variable: {name}"
            )
        is_on_read = synchronization is VariableSynchronization.ON_READ
        trainable = given.get("trainable")
        trainable = not is_on_read if trainable is None else bool(trainable)
        collections = given.get("collections")
        components: list[Any] = []
        arguments = {**given, "collections": [], "trainable": False, "use_resource": True}
        for number, device in enumerate(self._component_devices(is_on_read)):
            if number:
                arguments.update(_as_first(components[0], number))
            with tf.colocate_with(None, ignore_existing=True), tf.device(device):
                components.append(next_creator(**arguments))
            components[-1]._trainable = trainable
        aggregation = aggregation_of(given.get("aggregation"), name)
        whole = self._kind(is_on_read)(self.strategy, components, aggregation)
        names = list([GraphKeys.GLOBAL_VARIABLES] if collections is None else collections)
        if trainable and GraphKeys.TRAINABLE_VARIABLES not in names:
            names.append(GraphKeys.TRAINABLE_VARIABLES)
        whole.graph.add_to_collections(names, whole)
        return whole

    def _component_devices(self, is_on_read: bool) -> Sequence[str]:
        """The devices of a variable's components."""
        return self._devices

    def _kind(self, is_on_read: bool) -> type[DistributedVariable]:
        return SyncOnReadVariable if is_on_read else MirroredVariable


class CentralExtended(MirroredExtended):
    """A replica on each of several devices; they share variables on one.

    Args:
        devices: the replicas'.
        parameter_device: the variables'.
        cross_device_ops: see `MirroredExtended`.
    """

    def __init__(
        self,
        devices: Sequence[str],
        parameter_device: str,
        cross_device_ops: CrossDeviceOps | None = None,
    ) -> None:
        super().__init__(devices, cross_device_ops)
        self._parameter_device = parameter_device

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Where variables lie."""
        return (self._parameter_device,)

    def _component_devices(self, is_on_read: bool) -> Sequence[str]:
        return self._devices if is_on_read else (self._parameter_device,)

    def _kind(self, is_on_read: bool) -> type[DistributedVariable]:
        return SyncOnReadVariable if is_on_read else CentralVariable


def _as_first(first: Any, number: int) -> dict[str, Any]:
    """The arguments of a component that begins as the first one."""
    return {
        "name": f"{first.op.name}/replica_{number}/",
        "initial_value": lambda: tf.identity(first.initial_value),
    }


def _whole(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    kwargs["partitioner"] = None
    return getter(*args, **kwargs)


def _grouped(made: Sequence[Any]) -> Any:
    """An operation that has run all; the values where they are no operations or tensors."""
    parts = [each for each in tf.nest.flatten(list(made)) if each is not None]
    return tf.group(*(getattr(each, "op", each) for each in parts))
