"""The training of an EstimatorSpec: a MonitoredTrainingSession with the hooks of an Estimator."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["run_training"]


def run_training(
    spec: Any, hooks: list[Any], global_step: Any, listeners: list[Any], config: Any, task: Any,
    summarises: bool = True,
) -> Any:  # fmt: skip
    """Trains until a hook stops it or the input ends; returns the last step's loss.

    Args:
        spec: the EstimatorSpec, of the default graph; `hooks`: of the input and the program.
        global_step: the global step, which is logged.
        listeners: CheckpointSaverListeners.
        config: the RunConfig; `task`: the `TrainingTask`.
        summarises: whether to add a summary "loss", unless there is one.

    Adds the loss to the collection of losses, and a Saver that keeps as many checkpoints as `config` says.
    """
    spec = spec._replace(loss=task.reported(spec.loss))
    if summarises and not any(
        summary.op.name == "loss" for summary in tf.get_collection(tf.GraphKeys.SUMMARIES)
    ):
        tf.summary.scalar("loss", spec.loss)
    tf.add_to_collection(tf.GraphKeys.LOSSES, spec.loss)
    worker_hooks = _worker_hooks(spec, hooks, global_step, config)
    _add_saver(spec, config)
    chief_hooks = []
    if task.saves:
        chief_hooks = [*_saving_hooks(spec, worker_hooks, listeners, config), *spec.training_chief_hooks]
    loss = None
    with tf.train.MonitoredTrainingSession(
        master=config.master,
        is_chief=task.initialises,
        checkpoint_dir=config.model_dir,
        scaffold=spec.scaffold,
        hooks=worker_hooks,
        chief_only_hooks=chief_hooks,
        save_checkpoint_secs=0,  # the Estimator's own hook saves
        save_summaries_steps=config.save_summary_steps if task.saves else None,
        config=task.session_config,
        max_wait_secs=config.session_creation_timeout_secs,
        log_step_count_steps=config.log_step_count_steps if task.saves else None,
    ) as session:
        fetches, run, should_stop = [spec.train_op, spec.loss], session.run, session.should_stop
        while not should_stop():
            _, loss = run(fetches)
    return loss


def _worker_hooks(spec: Any, hooks: list[Any], global_step: Any, config: Any) -> list[Any]:
    """The hooks of the input and the program, those that watch the loss, and the spec's."""
    worker_hooks = [*hooks, tf.train.NanTensorHook(spec.loss)]
    if config.log_step_count_steps is not None:
        worker_hooks.append(
            tf.train.LoggingTensorHook(
                {"loss": spec.loss, "step": global_step}, every_n_iter=config.log_step_count_steps
            )
        )
    return [*worker_hooks, *spec.training_hooks]


def _add_saver(spec: Any, config: Any) -> None:
    """Adds a Saver to the collection of savers, unless there is one."""
    if not (spec.scaffold.saver or tf.get_collection(tf.GraphKeys.SAVERS)):
        saver = tf.train.Saver(
            sharded=True,
            max_to_keep=config.keep_checkpoint_max,
            keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
            defer_build=True,
            save_relative_paths=True,
        )
        tf.add_to_collection(tf.GraphKeys.SAVERS, saver)


def _saving_hooks(spec: Any, hooks: list[Any], listeners: list[Any], config: Any) -> list[Any]:
    """The hook that saves, unless there is one; it calls the listeners."""
    every_hook = [*hooks, *spec.training_chief_hooks]
    savers = [hook for hook in every_hook if isinstance(hook, tf.train.CheckpointSaverHook)]
    made: list[Any] = []
    if not savers and config.is_chief and (config.save_checkpoints_secs or config.save_checkpoints_steps):
        made = savers = [
            tf.train.CheckpointSaverHook(
                config.model_dir,
                save_secs=config.save_checkpoints_secs,
                save_steps=config.save_checkpoints_steps,
                scaffold=spec.scaffold,
            )
        ]
    if listeners and config.is_chief:
        if not savers:
            raise ValueError(
                "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
                "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
            )
        savers[0]._listeners.extend(listeners)
    return made
