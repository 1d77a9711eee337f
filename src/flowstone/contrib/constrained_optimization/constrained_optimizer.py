"""What optimisers of constrained problems have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import flowstone as tf

__all__ = ["ConstrainedOptimizer"]


class ConstrainedOptimizer(ABC):
    """Minimises a `ConstrainedMinimizationProblem` with `optimizer`, a `tf.train.Optimizer`."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer

    @property
    def optimizer(self) -> Any:
        """The optimiser of the model's variables."""
        return self._optimizer

    @abstractmethod
    def _minimize_constrained(
        self, minimization_problem: Any, global_step: Any, options: dict[str, Any]
    ) -> Any:
        """The operation of a step, to be made in the scope of the problem's `pre_train_ops`."""

    def minimize_unconstrained(
        self, minimization_problem: Any, global_step: Any = None, var_list: Any = None,
        gate_gradients: int = tf.train.Optimizer.GATE_OP, aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False, name: str | None = None, grad_loss: Any = None,
    ) -> Any:  # fmt: skip
        """A step's operation on the objective alone; the arguments are `tf.train.Optimizer.minimize`'s."""
        with tf.control_dependencies(list(minimization_problem.pre_train_ops)):
            return self._optimizer.minimize(
                minimization_problem.objective,
                global_step=global_step,
                var_list=var_list,
                gate_gradients=gate_gradients,
                aggregation_method=aggregation_method,
                colocate_gradients_with_ops=colocate_gradients_with_ops,
                name=name,
                grad_loss=grad_loss,
            )

    def minimize_constrained(
        self, minimization_problem: Any, global_step: Any = None, var_list: Any = None,
        gate_gradients: int = tf.train.Optimizer.GATE_OP, aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False, name: str | None = None, grad_loss: Any = None,
    ) -> Any:  # fmt: skip
        """The operation of a step on objective and constraints; the arguments are as of `minimize`.

        Raises ValueError if the constraints' shape is not known or not that of their proxies.
        """
        options = {
            "var_list": var_list,
            "gate_gradients": gate_gradients,
            "aggregation_method": aggregation_method,
            "colocate_gradients_with_ops": colocate_gradients_with_ops,
            "grad_loss": grad_loss,
            "name": name,
        }
        with tf.control_dependencies(list(minimization_problem.pre_train_ops)):
            return self._minimize_constrained(minimization_problem, global_step, options)

    def minimize(
        self, minimization_problem: Any, unconstrained_steps: Any = None, global_step: Any = None,
        var_list: Any = None, gate_gradients: int = tf.train.Optimizer.GATE_OP,
        aggregation_method: Any = None, colocate_gradients_with_ops: bool = False,
        name: str | None = None, grad_loss: Any = None,
    ) -> Any:  # fmt: skip
        """The operation of a step, of the objective alone in the first `unconstrained_steps` steps.

        The other arguments are `tf.train.Optimizer.minimize`'s; `global_step` is needed for
        `unconstrained_steps`, else ValueError.
        """
        given = (
            global_step, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, name,
            grad_loss,
        )  # fmt: skip
        if unconstrained_steps is None:
            return self.minimize_constrained(minimization_problem, *given)
        if global_step is None:
            raise ValueError("global_step cannot be None if unconstrained_steps is provided")
        steps = tf.cast(unconstrained_steps, global_step.dtype.base_dtype)
        return tf.cond(
            tf.less(global_step, steps),
            lambda: tf.group(self.minimize_unconstrained(minimization_problem, *given)),
            lambda: tf.group(self.minimize_constrained(minimization_problem, *given)),
        )


def flat_constraints(problem: Any) -> tuple[Any, Any]:
    """The constraints and their proxies, or themselves, as vectors.

    Raises ValueError for constraints of unknown size or proxies of another shape.
    """
    count = problem.num_constraints
    constraints, proxies = problem.constraints, problem.proxy_constraints
    if proxies is None:
        proxies = constraints
    elif proxies.shape.as_list() != constraints.shape.as_list():
        raise ValueError("proxy_constraints must have the shape of constraints")
    return tf.reshape(constraints, [count]), tf.reshape(proxies, [count])


def make_state(value: Any, dtype: Any, name: str) -> Any:
    """The variable of a player's state, whose initialisation waits for nothing."""
    with tf.control_dependencies(None):
        return tf.Variable(tf.constant(value, dtype), trainable=False, name=name)


def step_of_players(
    optimizers: tuple[Any, Any], loss: Any, state: Any, ascent: Any, project: Any, global_step: Any,
    options: dict[str, Any],
) -> Any:  # fmt: skip
    """The model descends `loss`, the state ascends along `ascent` and is projected, both at once."""
    optimizer, constraint_optimizer = optimizers
    name = options.pop("name")
    pairs = optimizer.compute_gradients(loss, **options)
    ready = [grad for grad, _ in pairs if grad is not None]
    with tf.control_dependencies([*ready, ascent]):
        update = constraint_optimizer.apply_gradients([(-ascent, state)])
        model = optimizer.apply_gradients(pairs, global_step=global_step, name=name)
    with tf.control_dependencies([update]):
        projected = tf.assign(state, project(state.read_value()), use_locking=True)
    return tf.group(model, projected)
