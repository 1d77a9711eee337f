"""`Optimizer`: from a loss to the operation that updates the variables.

An optimiser works in two halves that programs may use apart: `compute_gradients` extends the graph by the
gradients of the loss (white paper 4.1), `apply_gradients` by one update a variable and an operation that
groups them all, named as the optimiser. What it remembers of a variable lives in *slots*: variables beside
it, named ``<variable>/<optimiser>``, ``<variable>/<optimiser>_1`` … (checkpoints depend on these names);
values that belong to no variable (the powers of Adam's betas) are *non-slot* variables.

A subclass overrides `_create_slots`, `_prepare` (hyperparameters to tensors), `_apply_dense`,
`_apply_sparse`, `_resource_apply_dense`, `_resource_apply_sparse` and, where it keeps more than slots,
`_finish`. Sparse gradients reach `_apply_sparse` and `_resource_apply_sparse` with unique indices,
duplicates summed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flowstone.framework.declarations.building import place_of
from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import GraphKeys, Operation
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.gradients.gradient_computation import gradients
from flowstone.ops.control.control_flow import group, tuple_
from flowstone.ops.numbers.casts import cast
from flowstone.ops.variables.assignments import assign_add
from flowstone.ops.variables.replicas import container_of, current_replica
from flowstone.ops.variables.variables import Variable
from flowstone.training.optimizers.gradient_reduction import reduced, scaled_loss
from flowstone.training.optimizers.slot_creator import (
    create_slot,
    create_slot_with_initializer,
    create_zeros_slot,
    is_resource,
)

__all__ = ["Optimizer"]

GradsAndVars = list[tuple[Any, Any]]


class Optimizer:
    """The base of all optimisers; see the module. `name` prefixes the nodes; ``use_locking`` serialises
    updates.
    """

    GATE_NONE = 0  # gradients may be used as soon as they are there
    GATE_OP = 1  # all gradients of one op are computed before any of them is used
    GATE_GRAPH = 2  # all gradients are computed before any is used

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking, self._name = use_locking, name
        self._slots: dict[str, dict[Any, Any]] = {}  # slot name -> variable key -> slot
        self._non_slot_dict: dict[Any, Any] = {}  # (name, graph) -> variable

    def get_name(self) -> str:
        """The name given at construction."""
        return self._name

    # ---- the two halves

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """An operation that makes one step against the gradient of `loss` and, if given, counts
        `global_step` up.

        `var_list`: variables to update, by default the trainable ones. Raises ValueError if none of them
        has a gradient.
        """
        grads_and_vars = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if all(gradient is None for gradient, _ in grads_and_vars):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not support "
                f"gradients, between variables {[str(v) for _, v in grads_and_vars]} and loss {loss}."
            )
        return self.apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> GradsAndVars:
        """Pairs (gradient or None, variable) of `loss`: a float Tensor, or a function without arguments
        giving one.

        `grad_loss`: the gradient of what is minimised by `loss`, in its shape (default ones). Raises
        ValueError without variables, for another `gate_gradients`, and if loss or variables are not of a
        floating type.
        """
        if callable(loss):
            loss = loss()
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                f"Optimizer.GATE_GRAPH.  Not {gate_gradients}"
            )
        loss = scaled_loss(loss)
        self._assert_valid_dtypes([loss])
        if grad_loss is not None:
            self._assert_valid_dtypes([grad_loss])
        variables = _trainable_variables() if var_list is None else _flatten(var_list)
        if not variables:
            raise ValueError("No variables to optimize.")
        found = gradients(
            loss,
            [_gradient_target(variable) for variable in variables],
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == self.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == self.GATE_GRAPH:
            found = tuple_(found)
        pairs = list(zip(found, variables))
        self._assert_valid_dtypes([v for g, v in pairs if g is not None and v.dtype != dtypes.resource])
        return pairs

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """An operation that applies the gradients to their variables and, if given, adds 1 to `global_step`.

        Gradients are tensors of the variable's shape and dtype, IndexedSlices, or None (left out). Raises
        ValueError if nothing is left, TypeError for what is no gradient, NotImplementedError for what is no
        variable.
        """
        pairs = reduced([(_as_gradient(gradient), variable) for gradient, variable in grads_and_vars])
        replica = current_replica()
        if replica is not None:
            return replica.merge_call(self._apply_for_all, (_with_gradients(pairs), global_step, name))  # type: ignore[no-any-return]
        updates = _with_gradients(pairs)
        for _, variable in pairs:
            _gradient_target(variable)
        first = updates[0][1]
        graph = scope.get_default_graph() if isinstance(first, Tensor) else place_of(first)
        with graph.control_dependencies(None):
            self._create_slots([variable for _, variable in updates])
        with graph.name_scope(name or self._name) as full_name:
            self._prepare()
            ops = [self._update(graph, gradient, variable) for gradient, variable in updates]
            train_op = self._count(graph, ops, global_step, full_name)
        operation: Operation = train_op.op if isinstance(train_op, Tensor) else train_op
        if operation not in graph.get_collection_ref(GraphKeys.TRAIN_OP):
            graph.add_to_collection(GraphKeys.TRAIN_OP, operation)
        return operation

    def _apply_for_all(self, strategy: Any, updates: GradsAndVars, global_step: Any, name: str | None) -> Any:
        """`apply_gradients` for all replicas of a strategy: the sums of their gradients, to every component
        of a variable on its device."""
        extended, graph = strategy.extended, scope.get_default_graph()
        variables = [variable for _, variable in updates]
        totals = extended.batch_reduce_to("SUM", updates)
        with graph.control_dependencies(None):
            self._create_slots(variables)

        def update(variable: Any, gradient: Any) -> Any:
            return self._update(graph, gradient, variable)

        with graph.name_scope(name or self._name) as full_name:
            self._prepare()
            ops = [
                each
                for total, variable in zip(totals, variables)
                for each in extended.update(variable, update, (total,), group=False)
            ]
            devices = extended.non_slot_devices(variables)
            ended = extended.update_non_slot(devices, self._finish, (ops, "update"), group=False)
            if global_step is None:
                train_op = group(*ended, name=full_name)
            else:
                with graph.control_dependencies(ended):
                    counted = extended.update(global_step, lambda step: step.assign_add(1, read_value=False))
                    train_op = group(counted, name=full_name)
        graph.add_to_collection(GraphKeys.TRAIN_OP, train_op)
        return train_op

    def _count(self, graph: Any, ops: list[Any], global_step: Any, name: str) -> Any:
        if global_step is None:
            return self._finish(ops, name)
        with graph.control_dependencies([self._finish(ops, "update")]), graph.colocate_with(global_step.op):
            if is_resource(global_step):
                one = convert_to_tensor(1, global_step.dtype.base_dtype)
                return F.AssignAddVariableOp(global_step.handle, one, name=name)
            return assign_add(_reference(global_step), 1, use_locking=False, name=name)

    def _update(self, graph: Any, gradient: Any, variable: Any) -> Any:
        """The update of one variable, followed by its constraint if it has one."""
        with graph.name_scope("update_" + variable.op.name), graph.colocate_with(variable.op):
            if isinstance(variable, Tensor):
                raise NotImplementedError("Trying to update a Tensor ", variable)
            constraint = getattr(variable, "constraint", None)
            if isinstance(gradient, IndexedSlices):
                if constraint is not None:
                    raise RuntimeError("Cannot use a constraint function on a sparse variable.")
                if is_resource(variable):
                    return self._resource_apply_sparse_duplicate_indices(
                        gradient.values, variable, gradient.indices
                    )
                return self._apply_sparse_duplicate_indices(gradient, variable)
            update = (self._resource_apply_dense if is_resource(variable) else self._apply_dense)(
                gradient, variable
            )
            if constraint is None:
                return update
            with graph.control_dependencies([update]):
                return variable.assign(constraint(variable))

    # ---- slots

    def get_slot(self, var: Any, name: str) -> Any:
        """The slot `name` of a variable, None if there is none."""
        slots = self._slots.get(name)
        return None if slots is None else slots.get(_var_key(var))

    def get_slot_names(self) -> list[str]:
        """The names of the slots that exist, sorted."""
        return sorted(self._slots)

    def variables(self) -> list[Any]:
        """The optimiser's own variables in the default graph, by name."""
        graph = scope.get_default_graph()
        owned = list(self._non_slot_dict.values())
        owned += [slot for slots in self._slots.values() for slot in slots.values()]
        return sorted((v for v in owned if v.graph is graph), key=lambda variable: variable.name)

    def _slot_dict(self, slot_name: str) -> dict[Any, Any]:
        return self._slots.setdefault(slot_name, {})

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Any:
        slots = self._slot_dict(slot_name)
        if _var_key(var) not in slots:
            slots[_var_key(var)] = create_slot(var, val, op_name)
        return slots[_var_key(var)]

    def _get_or_make_slot_with_initializer(
        self, var: Any, initializer: Any, shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Any:
        slots = self._slot_dict(slot_name)
        if _var_key(var) not in slots:
            slots[_var_key(var)] = create_slot_with_initializer(var, initializer, shape, dtype, op_name)
        return slots[_var_key(var)]

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        slots = self._slot_dict(slot_name)
        if _var_key(var) not in slots:
            slots[_var_key(var)] = create_zeros_slot(var, op_name)
        return slots[_var_key(var)]

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Any) -> Any:
        graph = colocate_with.graph
        variable = self._non_slot_dict.get((name, graph))
        if variable is None:
            with graph.colocate_with(colocate_with.op):
                variable = Variable(  # type: ignore[call-arg]  # the metaclass takes it
                    initial_value, name=name, trainable=False, use_resource=is_resource(colocate_with)
                )
            self._non_slot_dict[name, graph] = variable
        return variable

    def _get_non_slot_variable(self, name: str, graph: Any = None) -> Any:
        return self._non_slot_dict.get((name, graph))

    def _non_slot_variables(self) -> Any:
        return self._non_slot_dict.values()

    # ---- for subclasses

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        """Makes the slots of these variables; called once an `apply_gradients`, before the updates."""

    def _prepare(self) -> None:
        """Makes tensors of the hyperparameters; called inside the optimiser's name scope."""

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        """The update of a reference variable by a gradient of its shape."""
        raise NotImplementedError()

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        """The update of a resource variable by a gradient of its shape."""
        raise NotImplementedError()

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        """The update of a reference variable by slices with unique indices."""
        raise NotImplementedError()

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        """The update of a resource variable by slices `grad` at unique `indices`."""
        raise NotImplementedError()

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        """`_apply_sparse` with the slices of equal indices summed; override where addition makes that
        unnecessary.
        """
        values, indices = _deduplicate_indexed_slices(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(values, indices, grad.dense_shape), var)

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        """`_resource_apply_sparse` with the slices of equal indices summed."""
        values, indices = _deduplicate_indexed_slices(grad, indices)
        return self._resource_apply_sparse(values, handle, indices)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Operation:
        """The operation that ends a step: by default the group of the updates."""
        return group(*update_ops, name=name_scope)

    def _valid_dtypes(self) -> list[dtypes.DType]:
        """The types of losses and variables that can be optimised."""
        return [dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16]

    def _assert_valid_dtypes(self, tensors: Iterable[Any]) -> None:
        valid = self._valid_dtypes()
        for tensor in tensors:
            dtype = tensor.dtype.base_dtype
            if dtype not in valid:
                raise ValueError(f"Invalid type {dtype!r} for {tensor.name}, expected: {valid}.")

    def _call_if_callable(self, param: Any) -> Any:
        return param() if callable(param) else param


def hyperparameter(tensor: Tensor, dtype: Any) -> Tensor:
    """A hyperparameter's tensor (or variable) as the base type of `dtype`."""
    if tensor.dtype.base_dtype is dtype.base_dtype:
        return tensor
    converted: Tensor = cast(tensor, dtype.base_dtype)
    return converted


def _deduplicate_indexed_slices(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Sums the slices of equal indices: (summed values, unique indices in order of first appearance)."""
    unique, positions = F.Unique(indices)
    return F.UnsortedSegmentSum(values, positions, F.Shape(unique)[0]), unique


def _with_gradients(pairs: GradsAndVars) -> GradsAndVars:
    """The pairs that have a gradient. ValueError if none has."""
    if not pairs:
        raise ValueError("No variables provided.")
    found = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
    if not found:
        raise ValueError(f"No gradients provided for any variable: {[str(v) for _, v in pairs]}.")
    return found


def _var_key(var: Any) -> Any:
    whole = container_of(var)
    var = whole.primary if whole is not var else getattr(var, "primary", var)
    return var.graph, var.op.name


def _reference(variable: Any) -> Any:
    return variable._ref() if hasattr(variable, "_ref") else variable


def _gradient_target(variable: Any) -> Any:
    """What the gradient is asked of: the buffer of a reference variable, the handle of a resource."""
    if isinstance(variable, Tensor):
        return variable
    variable.op  # noqa: B018 - an AttributeError says that this is no variable
    return variable.handle if is_resource(variable) else _reference(variable)


def _as_gradient(gradient: Any) -> Any:
    if gradient is None or isinstance(gradient, (Tensor, IndexedSlices)):
        return gradient
    try:
        return convert_to_tensor(gradient)
    except TypeError:
        raise TypeError(
            f"Gradient must be convertible to a Tensor or IndexedSlices, or None: {gradient}"
        ) from None


def _trainable_variables() -> list[Any]:
    graph = scope.get_default_graph()
    return [
        *graph.get_collection(GraphKeys.TRAINABLE_VARIABLES),
        *graph.get_collection(GraphKeys.TRAINABLE_RESOURCE_VARIABLES),
    ]


def _flatten(var_list: Any) -> list[Any]:
    """The variables of nested lists, tuples and dicts (by sorted key) and of partitioned variables."""
    if isinstance(var_list, dict):
        return [variable for key in sorted(var_list) for variable in _flatten(var_list[key])]
    if hasattr(var_list, "_get_variable_list"):
        return list(var_list._get_variable_list())
    if isinstance(var_list, (list, tuple, set)):
        return [variable for item in var_list for variable in _flatten(item)]
    return [var_list]
