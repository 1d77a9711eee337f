"""Training a model: the operation of a step, and the loop that runs it.

`create_train_op` makes from a loss and an optimiser one tensor: fetching it takes a step and gives the loss.
`train` runs it in a `MonitoredTrainingSession` until a hook ends that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flowstone as tf

__all__ = [
    "add_gradients_summaries",
    "clip_gradient_norms",
    "clip_gradient_norms_fn",
    "create_train_op",
    "multiply_gradients",
    "train",
]

GradientsAndVariables = Sequence[tuple[Any, Any]]

# What `global_step` is by default: the graph's global step.
_USE_GLOBAL_STEP = 0


def _on_values(gradient: Any, function: Callable[[Any], Any]) -> Any:
    """`function` of a gradient's values, which remain those of the same rows."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(function(gradient.values), gradient.indices, gradient.dense_shape)
    return function(gradient)


def add_gradients_summaries(grads_and_vars: GradientsAndVariables) -> list[Any]:
    """Summaries of gradients: a histogram and the norm of each. Returns the summaries' tensors."""
    return summaries_of_gradients(grads_and_vars, "_")


def summaries_of_gradients(grads_and_vars: GradientsAndVariables, separator: str) -> list[Any]:
    """A histogram and the norm of each gradient, under the variable's name, `separator`, ``gradient``."""
    summaries = []
    for gradient, variable in grads_and_vars:
        if gradient is None:
            tf.logging.info("Var %s has no gradient", variable.op.name)
            continue
        values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        name = f"{variable.op.name}{separator}gradient"
        summaries.append(tf.summary.histogram(name, values))
        summaries.append(tf.summary.scalar(f"{name}_norm", tf.global_norm([values])))
    return summaries


def clip_gradient_norms(
    gradients_to_variables: GradientsAndVariables, max_norm: Any
) -> list[tuple[Any, Any]]:
    """The gradients, each scaled so that its norm is at most `max_norm`; None stays None."""

    def clipped(values: Any) -> Any:
        return tf.clip_by_norm(values, max_norm)

    return [
        (None if gradient is None else _on_values(gradient, clipped), variable)
        for gradient, variable in gradients_to_variables
    ]


def clip_gradient_norms_fn(max_norm: Any) -> Callable[[GradientsAndVariables], list[tuple[Any, Any]]]:
    """A function that clips gradients to `max_norm`: a `transform_grads_fn` of `create_train_op`."""

    def clip(gradients_to_variables: GradientsAndVariables) -> list[tuple[Any, Any]]:
        return clip_gradient_norms(gradients_to_variables, max_norm)

    return clip


def multiply_gradients(
    grads_and_vars: GradientsAndVariables, gradient_multipliers: Mapping[Any, Any]
) -> list[tuple[Any, Any]]:
    """The gradients, those that `gradient_multipliers` names multiplied.

    Its keys are variables or names of variables (of their operations), its values numbers or scalar tensors.
    Raises ValueError for arguments that are no list and no dict, an empty dict, or a factor of no gradient.
    """
    if not isinstance(grads_and_vars, list):
        raise ValueError("`grads_and_vars` must be a list.")
    if not gradient_multipliers:
        raise ValueError("`gradient_multipliers` is empty.")
    if not isinstance(gradient_multipliers, Mapping):
        raise ValueError("`gradient_multipliers` must be a dict.")
    by_variable = {key if isinstance(key, str) else id(key): f for key, f in gradient_multipliers.items()}
    multiplied = []
    for gradient, variable in grads_and_vars:
        key = id(variable) if id(variable) in by_variable else variable.op.name
        if key in by_variable:
            if gradient is None:
                raise ValueError("Requested multiple of `None` gradient.")
            factor = tf.convert_to_tensor(by_variable[key], dtype=gradient.dtype.base_dtype)
            gradient = _on_values(gradient, factor.__rmul__)
        multiplied.append((gradient, variable))
    return multiplied


def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = _USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Sequence[Any] | None = None,
    transform_grads_fn: Callable[[list[tuple[Any, Any]]], Any] | None = None,
    summarize_gradients: bool = False,
    gate_gradients: int = tf.train.Optimizer.GATE_OP,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    check_numerics: bool = True,
) -> Any:
    """A tensor with the value of the loss; fetching it takes a step of the optimiser.

    Args:
        total_loss, optimizer: a scalar of a real type and a `tf.train.Optimizer`.
        global_step: what counts the steps; the graph's if not given, nothing if None.
        update_ops: operations that run before the loss is computed; None: those of UPDATE_OPS.
        variables_to_train: all trainable ones if None.
        transform_grads_fn: gets and gives the list of (gradient, variable).
        gate_gradients, aggregation_method, colocate_gradients_with_ops: as of `compute_gradients`.
        summarize_gradients: whether gradients have summaries; check_numerics: whether NaN is an error.

    Raises AssertionError if there is nothing to train, or a variable that is not trainable.
    """
    if isinstance(global_step, int) and global_step == _USE_GLOBAL_STEP:
        global_step = tf.train.get_or_create_global_step()
    total_loss = _after_updates(total_loss, update_ops)
    variables_to_train = _checked_variables(variables_to_train)
    gradients = optimizer.compute_gradients(
        total_loss, variables_to_train, gate_gradients=gate_gradients, aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )  # fmt: skip
    gradients = gradients if transform_grads_fn is None else transform_grads_fn(gradients)
    if summarize_gradients:
        with tf.name_scope("summarize_grads"):
            add_gradients_summaries(gradients)
    return _loss_after(optimizer.apply_gradients(gradients, global_step), total_loss, check_numerics)


def _checked_variables(variables: Sequence[Any] | None) -> Sequence[Any]:
    trainable = tf.trainable_variables()
    variables = trainable if variables is None else variables
    known = {id(variable) for variable in trainable}
    if not variables or any(id(variable) not in known for variable in variables):
        raise AssertionError("variables_to_train must be trainable variables of the graph, at least one")
    return variables


def _loss_after(updates: Any, total_loss: Any, check_numerics: bool) -> Any:
    """The loss, which is there when the updates have run; it is in the collection TRAIN_OP."""
    with tf.name_scope("train_op"):
        if check_numerics:
            total_loss = tf.check_numerics(total_loss, "LossTensor is inf or nan")
        with tf.control_dependencies([updates]):
            train_op = tf.identity(total_loss, name="control_dependency")
    tf.get_collection_ref(tf.GraphKeys.TRAIN_OP).append(train_op)
    return train_op


def _after_updates(total_loss: Any, update_ops: Any) -> Any:
    registered = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    if update_ops is None:
        update_ops = registered
    elif any(not any(op is each for each in update_ops) for op in registered):
        tf.logging.warning(
            "update_ops in create_train_op does not contain all the update_ops in GraphKeys.UPDATE_OPS"
        )
    updates = list(dict.fromkeys(update_ops))
    if not updates:
        return total_loss
    with tf.control_dependencies(updates):
        barrier = tf.no_op(name="update_barrier")
    with tf.control_dependencies([barrier]):
        return tf.identity(total_loss, name="control_dependency")


def train(
    train_op: Any,
    logdir: Any,
    master: str = "",
    is_chief: bool = True,
    scaffold: Any = None,
    hooks: Sequence[Any] | None = None,
    chief_only_hooks: Sequence[Any] | None = None,
    save_checkpoint_secs: float | None = 600,
    save_summaries_steps: int | None = 100,
    config: Any = None,
    max_wait_secs: int = 7200,
    run_metadata: Any = None,
) -> Any:
    """Runs `train_op` until a hook, or the end of the input, stops that; returns its last value.

    `logdir` gets checkpoints and summaries; None: none are written, and no period of them may be given. The
    other arguments are those of `tf.train.MonitoredTrainingSession`; `run_metadata` gets what a step reports.
    Raises ValueError for a period without `logdir`.
    """
    if logdir is None and is_chief:
        for period, name in (
            (save_summaries_steps, "save_summaries_steps"), (save_checkpoint_secs, "save_checkpoint_secs"),
        ):  # fmt: skip
            if period:
                raise ValueError(f"logdir cannot be None when {name} is not None")
    loss = None
    with tf.train.MonitoredTrainingSession(
        master=master, is_chief=is_chief, checkpoint_dir=logdir, scaffold=scaffold, hooks=hooks,
        chief_only_hooks=chief_only_hooks, save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps, config=config, max_wait_secs=max_wait_secs,
    ) as session:  # fmt: skip
        while not session.should_stop():
            loss = session.run(train_op, run_metadata=run_metadata)
    return loss
