"""Moving averages of variables and tensors, kept in variables beside them.

`ExponentialMovingAverage` maintains shadow variables ``<variable>/<name>`` that follow
``shadow -= (1 − decay) · (shadow − value)``; checkpoints depend on these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.building import place_of
from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import GraphKeys, Operation
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.control.control_flow import group
from flowstone.ops.numbers.casts import cast
from flowstone.ops.variables.initializers import zeros_initializer
from flowstone.ops.variables.replicas import container_of, current_replica
from flowstone.ops.variables.variable_scope import get_variable, variable_scope
from flowstone.training.optimizers.slot_creator import create_slot, create_zeros_slot, is_resource

__all__ = ["ExponentialMovingAverage", "assign_moving_average", "weighted_moving_average"]


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """Moves `variable` towards `value`: ``variable -= (1 − decay) · (variable − value)``.

    With `zero_debias` the variable, which must begin at zero, is corrected for that start (Kingma and Ba,
    2014) by two variables of its own, ``biased`` and ``local_step``. Of several replicas, which move the
    variable together, `value` is the mean. Returns the variable after the assignment.
    """
    replica = current_replica()
    if replica is None:
        return move_average(variable, value, decay, zero_debias, name)

    def moved(strategy: Any, variable: Any, value: Any) -> Any:
        extended = strategy.extended
        mean = extended.reduce_to("MEAN", value, variable)

        def move(part: Any, mean: Any) -> Any:
            return move_average(part, mean, decay, zero_debias, name)

        return extended.update(variable, move, (mean,))

    whole = container_of(variable)
    return whole._updated(replica.merge_call(moved, (whole, value)))


def move_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """`assign_moving_average` of this replica alone; outside of replicas' code of each copy of a variable
    that has one for each replica."""
    strategy = getattr(variable, "distribute_strategy", None)
    if strategy is not None and current_replica() is None:

        def move(part: Any, value: Any) -> Any:
            return move_average(part, value, decay, zero_debias, name)

        return variable._updated(strategy.extended.update(variable, move, (value,)))
    graph = scope.get_default_graph()
    with graph.name_scope(name or "AssignMovingAvg") as full_name:
        rate = convert_to_tensor(1.0 - decay, name="decay")
        if rate.dtype.base_dtype is not variable.dtype.base_dtype:
            rate = cast(rate, variable.dtype.base_dtype)
        if zero_debias:
            return _assign(variable, _zero_debiased(variable, value, rate), full_name)
        if is_resource(variable):
            with graph.colocate_with(None, ignore_existing=True):
                current = variable.value()
            return variable.assign_sub((current - value) * rate)
        with graph.colocate_with(None, ignore_existing=True):
            change = (variable - value) * rate
        return (
            variable.assign_sub(change) if is_resource(variable) else _subtract(variable, change, full_name)
        )


def _subtract(variable: Any, change: Tensor, name: str) -> Tensor:
    return F.AssignSub(variable._ref(), change, name=name, use_locking=False)


def _assign(variable: Any, value: Tensor, name: str) -> Any:
    if is_resource(variable):
        return variable.assign(value)
    return F.Assign(variable._ref(), value, name=name, use_locking=False)


def _zero_debiased(variable: Any, value: Any, rate: Tensor) -> Tensor:
    """The average corrected for its start at zero: the biased one divided by ``1 − (1 − rate)^steps``."""
    graph = place_of(variable)
    with variable_scope(variable.op.name), graph.colocate_with(variable.op):
        zeros = zeros_initializer()
        shape, dtype = variable.get_shape(), variable.dtype.base_dtype
        biased = get_variable("biased", shape=shape, dtype=dtype, initializer=zeros, trainable=False)
        step = get_variable("local_step", shape=[], dtype=dtype, initializer=zeros, trainable=False)
    moved = biased.assign_sub((biased - value) * rate)
    counted = step.assign_add(1)
    average: Tensor = moved / (1 - F.Pow(1.0 - rate, counted))
    return average


def weighted_moving_average(
    value: Any,
    decay: Any,
    weight: Any,
    truediv: bool = True,
    collections: Any = None,
    name: str | None = None,
) -> Tensor:
    """The moving average of ``value · weight`` divided by that of `weight`; both are variables that begin
    at zero.
    """
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]
    with variable_scope(name, "WeightedMovingAvg", [value, weight, decay]) as variables:
        zeros = zeros_initializer()
        total = get_variable(
            "value_x_weight", shape=value.get_shape(), initializer=zeros, dtype=value.dtype, trainable=False,
            collections=collections,
        )  # fmt: skip
        weights = get_variable(
            "weight", shape=weight.get_shape(), initializer=zeros, dtype=weight.dtype, trainable=False,
            collections=collections,
        )  # fmt: skip
        numerator = assign_moving_average(total, value * weight, decay, zero_debias=False)
        denominator = assign_moving_average(weights, weight, decay, zero_debias=False)
        divide = F.RealDiv if truediv else F.Div
        return divide(numerator, denominator, name=variables.name.rpartition("/")[2])


class ExponentialMovingAverage:
    """Exponential moving averages of variables and tensors.

    Args:
        decay: float or scalar Tensor, close to 1.
        num_updates: scalar number of updates so far; the decay is then at most ``(1 + n) / (10 + n)``.
        zero_debias: correct the averages of tensors for their start at zero.
        name: of the shadow variables and of the update operation.
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay, self._num_updates, self._zero_debias, self._name = decay, num_updates, zero_debias, name
        self._averages: dict[Any, Any] = {}

    @property
    def name(self) -> str:
        """The name given at construction."""
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> Operation:
        """An operation that updates the averages of these variables and tensors (default: trainable
        variables).

        A variable's average begins at its initial value, a tensor's at zero. Raises TypeError for what is
        not half, float or double.
        """
        graph = scope.get_default_graph()
        if var_list is None:
            var_list = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
        debiased = set()
        for var in var_list:
            if var.dtype.base_dtype not in (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64):
                raise TypeError(f"The variables must be half, float, or double: {var.name}")
            if var not in self._averages:
                self._averages[var] = self._make_average(graph, var)
                if self._zero_debias and isinstance(var, Tensor):
                    debiased.add(self._averages[var])
        with graph.name_scope(self.name) as full_name:
            decay = self._current_decay()
            updates = [
                assign_moving_average(
                    self._averages[var], var, decay, zero_debias=self._averages[var] in debiased
                )
                for var in var_list
            ]
            return group(*updates, name=full_name)

    def _make_average(self, graph: Any, var: Any) -> Any:
        with graph.control_dependencies(None):
            if isinstance(var, Tensor):
                is_state = var.op.declaration.role == "variable"
                average = create_zeros_slot(var, self.name, colocate_with_primary=is_state)
            else:
                average = create_slot(var, var.initialized_value(), self.name, colocate_with_primary=True)
                graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
        return average

    def _current_decay(self) -> Tensor:
        decay = convert_to_tensor(self._decay, name="decay")
        if self._num_updates is None:
            return decay
        updates = cast(self._num_updates, dtypes.float32, name="num_updates")
        return F.Minimum(decay, (1.0 + updates) / (10.0 + updates))

    def average(self, var: Any) -> Any:
        """The variable that holds the average of `var`, None if there is none."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """The name of the average of `var`, whether or not it exists yet."""
        if var in self._averages:
            name: str = self._averages[var].op.name
            return name
        return scope.get_default_graph().unique_name(f"{var.op.name}/{self.name}", mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables: Sequence[Any] | None = None) -> dict[str, Any]:
        """A map from names in a checkpoint to variables: averages for what has one, else the variables
        themselves.

        `moving_avg_variables`: what to restore from averages, by default trainable and averaged variables.
        """
        graph = scope.get_default_graph()
        if moving_avg_variables is None:
            moving_avg_variables = [
                *graph.get_collection(GraphKeys.TRAINABLE_VARIABLES),
                *graph.get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES),
            ]
        averaged = list(dict.fromkeys(moving_avg_variables))
        names = {self.average_name(var): var for var in averaged}
        taken = {var.name for var in averaged}
        for var in dict.fromkeys(graph.get_collection(GraphKeys.GLOBAL_VARIABLES)):
            if var.name not in taken and var.op.name not in names:
                names[var.op.name] = var
        return names
