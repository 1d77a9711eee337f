"""The base of `tf.keras.optimizers`: hyperparameters and slots as variables, one step of all parameters.

    updates = Adam(0.01).get_updates(loss, variables)     a model's step
    step = Adam(0.01).apply_gradients(zip(gradients, variables))
    step = Adam(0.01).minimize(lambda: loss, variables)

Hyperparameters (`learning_rate`, `beta_1` …) are variables, which a program may set; a schedule is a
function of the steps made. Weights are the number of steps (`iterations`), then the slots. A class of a
program's own overrides `_create_slots`, `_resource_apply_dense`, `_resource_apply_sparse` and `get_config`;
what its updates share, `_prepare_local`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.keras import sessions, variables
from flowstone.keras.extensions import learning_rate_schedules as schedules
from flowstone.keras.published import own
from flowstone.ops.variables.replicas import container_of, current_replica

__all__ = ["Optimizer", "OptimizerV2"]

_new: Any = tf.Variable
_OPTIONS = frozenset({"clipnorm", "clipvalue", "lr", "decay"})


class Optimizer:
    """The base class: what all optimisers have.

    Args:
        name: of the scope of its variables.
        clipnorm: the largest norm of a gradient.
        clipvalue: the largest size of a gradient's element.
        decay: the learning rate is divided by 1 + decay · steps.
        lr: another name of the learning rate.

    Raises TypeError for other keywords, ValueError for a negative one.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        for key, value in kwargs.items():
            if key not in _OPTIONS:
                raise TypeError(f"Unexpected keyword argument passed to optimizer: {key}")
            if value is not None and value < 0:
                raise ValueError(f"Expected {key} >= 0, received: {value}")
        self.__dict__.update(_hyper={}, _name=name)
        self._slots: dict[Any, dict[str, Any]] = {}
        self._weights: list[Any] = []
        self._iterations: Any = None
        self._hypers_created = False
        self._use_locking = True  # what classes of programs give to `assign`
        decay = kwargs.pop("decay", 0.0)
        self._initial_decay = decay
        for key in ("clipnorm", "clipvalue"):
            if key in kwargs:
                setattr(self, key, kwargs[key])
        self._set_hyper("decay", decay)

    # ---- hyperparameters

    def _set_hyper(self, name: str, value: Any) -> None:
        """Sets a hyperparameter: a number, tensor, schedule, or function without arguments."""
        before = self._hyper.get(name)
        if isinstance(before, tf.Variable) and not isinstance(
            value, (tf.Tensor, schedules.LearningRateSchedule)
        ):
            variables.set_value(before, value)
        else:
            self._hyper[name] = value

    def _get_hyper(self, name: str, dtype: Any = None) -> Any:
        """A hyperparameter, as a tensor of `dtype` if one is given; a schedule as it is."""
        self._create_hypers()
        value = self._hyper[name]
        if isinstance(value, schedules.LearningRateSchedule):
            return value
        if callable(value) and not isinstance(value, (tf.Variable, tf.Tensor)):
            value = value()
        if dtype is None or (isinstance(value, tf.Variable) and value.dtype.base_dtype == dtype):
            return value
        return tf.cast(value, dtype)

    def _create_hypers(self) -> None:
        if self._hypers_created:
            return
        self._hypers_created = True
        _ = self.iterations
        for name, value in sorted(self._hyper.items()):
            if isinstance(value, (tf.Tensor, tf.Variable)) or callable(value):
                continue
            self._hyper[name] = self.add_weight(name, shape=[], initializer=value, trainable=False)

    def __getattribute__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            key = "learning_rate" if name == "lr" else name
            if name != "_hyper" and key in self._hyper:
                return self._get_hyper(key)
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        key = "learning_rate" if name == "lr" else name
        if key in self._hyper:
            self._set_hyper(key, value)
        else:
            object.__setattr__(self, name, value)

    def _serialize_hyperparameter(self, name: str) -> Any:
        """A hyperparameter as a configuration has it: its number now, or that of the schedule."""
        value = self._hyper[name]
        if isinstance(value, schedules.LearningRateSchedule):
            return schedules.serialize(value)
        if callable(value) and not isinstance(value, (tf.Variable, tf.Tensor)):
            return value()
        if isinstance(value, (tf.Variable, tf.Tensor)):
            return variables.get_value(value)
        return value

    def _decayed_lr(self, var_dtype: Any) -> Any:
        """The learning rate of this step."""
        rate = self._get_hyper("learning_rate", var_dtype)
        if isinstance(rate, schedules.LearningRateSchedule):
            rate = tf.cast(rate(tf.cast(self.iterations, var_dtype)), var_dtype)
        if self._initial_decay > 0.0:
            steps = tf.cast(self.iterations, var_dtype)
            rate = rate / (1.0 + self._get_hyper("decay", var_dtype) * steps)
        return rate

    # ---- variables

    @property
    def iterations(self) -> Any:
        """The number of steps made: a variable."""
        if self._iterations is None:
            self._iterations = self.add_weight("iter", shape=[], dtype=tf.int64, trainable=False)
            self._weights.insert(0, self._iterations)
        return self._iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        if self._iterations is not None:
            raise RuntimeError(
                "Cannot set `iterations` to a new Variable after the Optimizer weights have been created"
            )
        self._iterations = variable
        self._weights.insert(0, variable)

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = "zeros",
        trainable: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
    ) -> Any:
        """A new variable; `initializer`: a value, an initialiser or its name."""
        kind = tf.as_dtype(dtype or tf.float32)
        make = own("initializers").get(initializer) if isinstance(initializer, str) else initializer
        value: Any
        if callable(make):
            value = lambda: make(shape, dtype=kind)  # noqa: E731
        else:
            value = np.full(shape, make, kind.as_numpy_dtype)
        with tf.control_dependencies(None):
            made = _new(value, trainable=bool(trainable), name=name, dtype=kind, use_resource=True)
        sessions.track_variable(made)
        return made

    def add_slot(self, var: Any, slot_name: str, initializer: Any = "zeros") -> Any:
        """The variable `slot_name` of a variable, made at the first call; zeros by default."""
        slots = self._slots.setdefault(var, {})
        if slot_name not in slots:
            name = f"{var.op.name}/{slot_name}"
            slots[slot_name] = made = self.add_weight(
                name, var.shape.as_list(), var.dtype.base_dtype, initializer, trainable=False
            )
            self._weights.append(made)
        return slots[slot_name]

    def get_slot(self, var: Any, slot_name: str) -> Any:
        """The variable `slot_name` of a variable; KeyError if there is none."""
        return self._slots[container_of(var)][slot_name]

    def get_slot_names(self) -> list[str]:
        """The names of the slots, sorted."""
        return sorted({name for slots in self._slots.values() for name in slots})

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        """Makes the slots of these variables; for subclasses."""

    @property
    def weights(self) -> list[Any]:
        """The number of steps, then the slots."""
        return self._weights

    def variables(self) -> list[Any]:
        """The same as `weights`."""
        return self._weights

    def get_weights(self) -> list[Any]:
        """The values of `weights`."""
        return variables.batch_get_value(self.weights)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Gives `weights` these values; ValueError for another number of them, or another shape."""
        if len(self.weights) != len(weights):
            raise ValueError(
                f"You called `set_weights(weights)` on optimizer {self._name} with a  weight list of length "
                f"{len(weights)}, but the optimizer was expecting {len(self.weights)} weights. "
                f"Provided weights: {str(weights)[:50]}..."
            )
        for variable, value in zip(self.weights, weights):
            if tuple(variable.shape.as_list()) != np.shape(value):
                raise ValueError(
                    f"Optimizer weight shape {tuple(variable.shape.as_list())} not compatible with provided "
                    f"weight shape {np.shape(value)}"
                )
        variables.batch_set_value(list(zip(self.weights, weights)))

    # ---- steps

    def get_gradients(self, loss: Any, params: Any) -> list[Any]:
        """The gradients by a list of parameters, or one, clipped; ValueError if `loss` is without it."""
        params = params if isinstance(params, (list, tuple)) else [params]
        with tf.name_scope(f"{self._name}/gradients"):
            return self._gradients(loss, params)

    def _gradients(self, loss: Any, params: Sequence[Any]) -> list[Any]:
        gradients = _gradients(loss, params)
        for gradient, param in zip(gradients, params):
            if gradient is None:
                raise ValueError(
                    f"Variable {param} has `None` for gradient. Please make sure that all of your ops have a "
                    "gradient defined (i.e. are differentiable). Common ops without gradient: K.argmax, "
                    "K.round, K.eval."
                )
        return self._clipped(gradients)

    def _clipped(self, gradients: Sequence[Any]) -> list[Any]:
        norm, value = getattr(self, "clipnorm", None), getattr(self, "clipvalue", None)
        if norm is not None:
            gradients = [None if g is None else tf.clip_by_norm(g, norm) for g in gradients]
        if value is not None:
            gradients = [None if g is None else tf.clip_by_value(g, -value, value) for g in gradients]
        return list(gradients)

    def get_updates(self, loss: Any, params: Sequence[Any]) -> list[Any]:
        """The operations of a step that lessens `loss`."""
        return [self.apply_gradients(zip(self.get_gradients(loss, params), params))]

    def minimize(self, loss: Any, var_list: Any, grad_loss: Any = None, name: str | None = None) -> Any:
        """The operation of a step; `loss` is a function without arguments, or a tensor."""
        pairs = self._compute_gradients(loss, var_list=var_list, grad_loss=grad_loss)
        return self.apply_gradients(pairs, name=name)

    def _compute_gradients(self, loss: Any, var_list: Any, grad_loss: Any = None) -> list[Any]:
        """Pairs of a clipped gradient and a variable; subclasses may have another kind of loss."""
        params = nest.flatten(var_list() if callable(var_list) else var_list)
        value = loss() if callable(loss) else loss
        return list(zip(self._clipped(tf.gradients(value, params, grad_loss)), params))

    def apply_gradients(self, grads_and_vars: Any, name: str | None = None) -> Any:
        """The operation of a step with these gradients; ValueError if all of them are None.

        `grads_and_vars`: pairs of a gradient and a variable; those without a gradient are left out.
        """
        given = list(grads_and_vars)
        pairs = [(g, v) for g, v in given if g is not None]
        if given and not pairs:
            raise ValueError(f"No gradients provided for any variable: {[v.name for _, v in given]}.")
        replica = current_replica()
        if replica is not None:
            return replica.merge_call(self._apply_for_all, (pairs, name))
        with tf.name_scope(self._name):
            state = self._begin([variable for _, variable in pairs])
            with tf.name_scope(name or self._name):
                updates = [self._update(gradient, variable, state) for gradient, variable in pairs]
                with tf.control_dependencies(updates):
                    return self.iterations.assign_add(1).op

    def _begin(self, params: Sequence[Any]) -> dict[Any, Any]:
        """Makes the variables of a step, and what its updates share."""
        _ = self.iterations
        self._create_hypers()
        self._create_slots(params)
        return self._prepare(params)

    def _apply_for_all(self, strategy: Any, pairs: Any, name: str | None) -> Any:
        """`apply_gradients` for all replicas of a strategy: the sums of their gradients, to every component
        of a variable on its device."""
        extended = strategy.extended
        totals = extended.batch_reduce_to("SUM", pairs)
        with tf.name_scope(self._name):
            state = self._begin([variable for _, variable in pairs])
            with tf.name_scope(name or self._name):
                updates = [
                    extended.update(variable, lambda part, total: self._update(total, part, state), (total,))
                    for total, (_, variable) in zip(totals, pairs)
                ]
                with tf.control_dependencies(updates):
                    return self.iterations.assign_add(1, read_value=False)

    def _prepare(self, var_list: Sequence[Any]) -> dict[Any, Any]:
        """What updates of variables of one device and type share: `apply_state[device, type][name]`."""
        state: dict[Any, Any] = {}
        for var in var_list:
            for device in getattr(var, "devices", None) or [var.device]:
                state.setdefault((device, var.dtype.base_dtype), {})
        for device, kind in state:
            with tf.device(device):
                self._prepare_local(device, kind, state)
        return state

    def _prepare_local(self, var_device: str, var_dtype: Any, apply_state: dict[Any, Any]) -> None:
        """Puts this step's learning rate in `apply_state[var_device, var_dtype]`; subclasses add to it."""
        if "learning_rate" in self._hyper:
            apply_state[var_device, var_dtype]["lr_t"] = tf.identity(self._decayed_lr(var_dtype))

    def _fallback_apply_state(self, var_device: str, var_dtype: Any) -> Any:
        """What `_prepare_local` gives, for an update that was called without it."""
        state: dict[Any, Any] = {(var_device, var_dtype): {}}
        self._prepare_local(var_device, var_dtype, state)
        return state[var_device, var_dtype]

    @property
    def _dense_apply_args(self) -> list[str]:
        return inspect.getfullargspec(self._resource_apply_dense).args

    @property
    def _sparse_apply_args(self) -> list[str]:
        return inspect.getfullargspec(self._resource_apply_sparse).args

    def _update(self, gradient: Any, variable: Any, state: dict[Any, Any]) -> Any:
        """The operation that updates one variable, and applies its constraint."""
        with tf.name_scope(f"update_{variable.op.name}"):
            return self._update_in_scope(gradient, variable, state)

    def _update_in_scope(self, gradient: Any, variable: Any, state: dict[Any, Any]) -> Any:
        if isinstance(gradient, tf.IndexedSlices):
            if variable.constraint is not None:
                raise RuntimeError("Cannot use a constraint function on a sparse variable.")
            given = {"apply_state": state} if "apply_state" in self._sparse_apply_args else {}
            step = self._resource_apply_sparse_duplicate_indices(
                gradient.values, variable, gradient.indices, **given
            )
        else:
            given = {"apply_state": state} if "apply_state" in self._dense_apply_args else {}
            step = self._resource_apply_dense(gradient, variable, **given)
        if variable.constraint is None:
            return getattr(step, "op", step)
        with tf.control_dependencies([step]):
            return variable.assign(variable.constraint(variable)).op

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any) -> Any:
        """The operation that updates `var` by a dense gradient; for subclasses."""
        raise NotImplementedError

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Any, var: Any, indices: Any, **kwargs: Any
    ) -> Any:
        """`_resource_apply_sparse` by the sums of the values of each row; for subclasses that take all."""
        rows, places = tf.unique(indices)
        summed = tf.unsorted_segment_sum(grad, places, tf.shape(rows)[0])
        return self._resource_apply_sparse(summed, var, rows, **kwargs)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, apply_state: Any) -> Any:
        """The operation that updates the rows `indices` of `var`, each there once; for subclasses."""
        raise NotImplementedError

    def _call_if_callable(self, param: Any) -> Any:
        return param() if callable(param) else param

    def _valid_dtypes(self) -> set[Any]:
        """The types of losses, variables and gradients; subclasses may take others."""
        return {tf.float16, tf.bfloat16, tf.float32, tf.float64}

    def _assert_valid_dtypes(self, tensors: Sequence[Any]) -> None:
        valid = self._valid_dtypes()
        for tensor in tensors:
            if tensor.dtype.base_dtype not in valid:
                raise ValueError(
                    f"Invalid type {tensor.dtype.base_dtype!r} for {tensor.name}, expected: {list(valid)}."
                )

    def _resource_scatter_add(self, x: Any, i: Any, v: Any) -> Any:
        with tf.control_dependencies(
            [tf.raw_ops.ResourceScatterAdd(resource=x.handle, indices=i, updates=v)]
        ):
            return x.value()

    def _resource_scatter_update(self, x: Any, i: Any, v: Any) -> Any:
        update = tf.raw_ops.ResourceScatterUpdate(resource=x.handle, indices=i, updates=v)
        with tf.control_dependencies([update]):
            return x.value()

    def _checkpoint_children(self) -> list[tuple[str, Any]]:
        """What a checkpoint has of it beside the slots."""
        found = [(name, value) for name, value in self._hyper.items() if isinstance(value, tf.Variable)]
        return found if self._iterations is None else [("iter", self._iterations), *found]

    # ---- configurations

    def get_config(self) -> dict[str, Any]:
        """What it is made of."""
        config: dict[str, Any] = {"name": self._name}
        for key in ("clipnorm", "clipvalue"):
            if getattr(self, key, None) is not None:
                config[key] = getattr(self, key)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """An optimiser of this configuration."""
        config = dict(config)
        if "lr" in config:
            config["learning_rate"] = config.pop("lr")
        if isinstance(config.get("learning_rate"), dict):
            config["learning_rate"] = schedules.deserialize(config["learning_rate"], custom_objects)
        make: Callable[..., Any] = cls
        return make(**config)


OptimizerV2 = Optimizer  # its name in tensorflow.python.keras.optimizer_v2


def _gradients(loss: Any, params: Sequence[Any]) -> list[Any]:
    """The gradients by variables; by one with a copy for each replica the sum of those by its copies, since
    layers may have computed something of the first copy when they were built."""
    if current_replica() is None:
        return list(tf.gradients(loss, params))
    copies = [getattr(container_of(param), "values", (param,)) for param in params]
    found = iter(tf.gradients(loss, [each for of_param in copies for each in of_param]))
    return [_sum_of([next(found) for _ in of_param]) for of_param in copies]


def _sum_of(gradients: Sequence[Any]) -> Any:
    given = [gradient for gradient in gradients if gradient is not None]
    return given[0] if len(given) == 1 else tf.add_n(given) if given else None
