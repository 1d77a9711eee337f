"""`tf.train.experimental`: a loss is scaled so that its gradients do not vanish in half precision.

The scaled loss's gradients are divided by the scale. A dynamic scale grows as long as all gradients are
finite; a step of which one is not is left out, and the scale shrinks. P. Micikevicius et al., "Mixed
precision training", 2018.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.client.process_settings import set_experimental_options
from flowstone.ops.variables.resource_variable import ResourceVariable
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = [
    "DynamicLossScale",
    "FixedLossScale",
    "LossScale",
    "MixedPrecisionLossScaleOptimizer",
    "disable_mixed_precision_graph_rewrite",
    "enable_mixed_precision_graph_rewrite",
    "loss_scale_of",
    "times",
    "wrap_with",
]


class LossScale(ABC):
    """What a loss is multiplied by: calling it gives the scale, float32, []."""

    @property
    def weights(self) -> list[Any]:
        """Its variables."""
        return []

    @abstractmethod
    def __call__(self) -> Any:
        """The scale of now."""

    @abstractmethod
    def update(self, grads: Any) -> tuple[Any, Any]:
        """(the operation that changes the scale, whether these gradients are to be applied: bool, [])."""

    @abstractmethod
    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LossScale:
        """The scale of these arguments."""
        return cls(**config)


class FixedLossScale(LossScale):
    """A scale that stays. ValueError for one that is less than 1."""

    def __init__(self, loss_scale_value: float) -> None:
        self._loss_scale_value = float(loss_scale_value)
        if self._loss_scale_value < 1:
            raise ValueError("loss_scale_value must be at least 1.")

    def __call__(self) -> Any:
        return tf.convert_to_tensor(self._loss_scale_value)

    def update(self, grads: Any) -> tuple[Any, Any]:
        """Nothing to do, and any gradients are to be applied."""
        return tf.no_op(), True

    def get_config(self) -> dict[str, Any]:
        """The constructor's argument."""
        return {"loss_scale_value": self._loss_scale_value}

    def __repr__(self) -> str:
        return f"FixedLossScale({self._loss_scale_value})"


class DynamicLossScale(LossScale):
    """A scale that grows as long as gradients are finite.

    Args:
        initial_loss_scale: what it begins with.
        increment_period: after so many steps with finite gradients it is multiplied.
        multiplier: by this; a step without divides it by this, but not below 1.
    """

    def __init__(
        self,
        initial_loss_scale: float = 2**15,
        increment_period: int = 2000,
        multiplier: float = 2.0,
    ) -> None:
        self._initial_loss_scale = float(initial_loss_scale)
        self._increment_period = int(increment_period)
        self._multiplier = float(multiplier)
        self._current_loss_scale = ResourceVariable(
            self._initial_loss_scale,
            dtype=tf.float32,
            trainable=False,
            name="current_loss_scale",
        )
        self._num_good_steps = ResourceVariable(0, dtype=tf.int64, trainable=False, name="good_steps")

    @property
    def weights(self) -> list[Any]:
        """The scale of now, and the number of steps with finite gradients since it changed."""
        return [self._current_loss_scale, self._num_good_steps]

    @property
    def initial_loss_scale(self) -> float:
        """What it begins with."""
        return self._initial_loss_scale

    @property
    def increment_period(self) -> int:
        """After how many steps it grows."""
        return self._increment_period

    @property
    def multiplier(self) -> float:
        """By what it grows."""
        return self._multiplier

    def __call__(self) -> Any:
        return self._current_loss_scale.read_value()

    def update(self, grads: Any) -> tuple[Any, Any]:
        """The change for these gradients, which are to be applied if they are all finite."""
        values = [grad.values if isinstance(grad, tf.IndexedSlices) else grad for grad in grads]
        finite = tf.reduce_all([tf.reduce_all(tf.is_finite(each)) for each in values if each is not None])
        scale, good = self._current_loss_scale, self._num_good_steps

        def change(new_scale: Any, new_good: Any) -> Any:
            with tf.control_dependencies([new_scale, new_good]):
                return tf.group(scale.assign(new_scale), good.assign(new_good))

        def grow() -> Any:
            steps = good.read_value() + 1
            now = scale.read_value()
            larger = now * self._multiplier
            is_due = steps >= self._increment_period
            taken = tf.where(tf.logical_and(is_due, tf.is_finite(larger)), larger, now)
            return change(taken, tf.where(is_due, tf.zeros_like(steps), steps))

        def shrink() -> Any:
            smaller = tf.maximum(scale.read_value() / self._multiplier, 1.0)
            return change(smaller, tf.constant(0, tf.int64))

        return tf.cond(finite, grow, shrink), finite

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "initial_loss_scale": self._initial_loss_scale,
            "increment_period": self._increment_period,
            "multiplier": self._multiplier,
        }

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value}" for name, value in self.get_config().items())
        return f"DynamicLossScale({arguments})"


def loss_scale_of(identifier: Any) -> LossScale:
    """The scale that a number, "dynamic", or a LossScale stands for; ValueError for others."""
    if isinstance(identifier, LossScale):
        return identifier
    if isinstance(identifier, (int, float)):
        return FixedLossScale(identifier)
    if identifier == "dynamic":
        return DynamicLossScale()
    raise ValueError(f"Could not interpret loss scale identifier: {identifier}")


class MixedPrecisionLossScaleOptimizer(Optimizer):
    """Wraps an optimiser: its gradients are those of the scaled loss, divided by the scale.

    Args:
        opt: the optimiser.
        loss_scale: a LossScale, a number, or "dynamic".

    Raises ValueError for other arguments.
    """

    def __init__(self, opt: Any, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise ValueError(f'"opt" must be an instance of Optimizer, but got: {type(opt)}')
        self._optimizer = opt
        super().__init__(opt._use_locking, opt.get_name())
        self._loss_scale = loss_scale_of(loss_scale)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """The gradients of `loss`, by way of the scaled loss; the arguments are tf.train.Optimizer's."""
        scale = self._loss_scale()

        def scaled(value: Any) -> Any:
            return value * tf.cast(scale, value.dtype.base_dtype)

        pairs = self._optimizer.compute_gradients(
            (lambda: scaled(loss())) if callable(loss) else scaled(tf.convert_to_tensor(loss)),
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        inverse = tf.reciprocal(scale)
        return [(None if grad is None else times(grad, inverse), var) for grad, var in pairs]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The step, taken if the scale says so, and the change of the scale. Returns the operation."""
        pairs = list(grads_and_vars)
        update, should_apply = self._loss_scale.update([grad for grad, _ in pairs])

        def step() -> Any:
            return tf.group(self._optimizer.apply_gradients(pairs, global_step, name))

        taken = step() if should_apply is True else tf.cond(should_apply, step, tf.no_op)
        return tf.group(taken, update)

    def get_slot(self, var: Any, name: str) -> Any:
        """The optimiser's slot."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the optimiser's slots."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Any]:
        """The optimiser's variables."""
        return self._optimizer.variables()


def times(grad: Any, factor: Any) -> Any:
    """A gradient, dense or not, times a number."""
    factor = tf.cast(factor, grad.dtype.base_dtype)
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(grad.values * factor, grad.indices, dense_shape=grad.dense_shape)
    return grad * factor


_WRAPPERS: list[tuple[type, Callable[[Any, Any], Any]]] = [(Optimizer, MixedPrecisionLossScaleOptimizer)]


def wrap_with(kind: type, wrapper: Callable[[Any, Any], Any]) -> None:
    """Has optimisers of `kind` wrapped by `wrapper`, which takes the optimiser and the scale."""
    _WRAPPERS.append((kind, wrapper))


def enable_mixed_precision_graph_rewrite(opt: Any, loss_scale: Any = "dynamic") -> Any:
    """Wraps the optimiser with a scale of its loss, and sets the option `auto_mixed_precision`.

    The option is TensorFlow's, for GPUs alone, and says which products may be computed in float16. Flowstone
    computes each operation in the type that it has: values are those of float32, as TensorFlow's are on CPUs.

    Args:
        opt: an optimiser that is not wrapped yet; ValueError for another.
        loss_scale: a LossScale, a number, or "dynamic".
    """
    if type(opt).__name__ in ("MixedPrecisionLossScaleOptimizer", "LossScaleOptimizer"):
        raise ValueError(
            f'"opt" must not already be an instance of a {type(opt).__name__}, with which'
            " enable_mixed_precision_graph_rewrite wraps it"
        )
    wrapper = next((wrapper for kind, wrapper in _WRAPPERS if isinstance(opt, kind)), None)
    if wrapper is None:
        raise ValueError(
            '"opt" must be an instance of a tf.train.Optimizer or a tf.keras.optimizers.Optimizer, but got: '
            f"{opt}"
        )
    set_experimental_options({"auto_mixed_precision": True})
    return wrapper(opt, loss_scale)


def disable_mixed_precision_graph_rewrite() -> None:
    """Takes the option `auto_mixed_precision` back; optimisers that have been wrapped stay so."""
    set_experimental_options({"auto_mixed_precision": False})
