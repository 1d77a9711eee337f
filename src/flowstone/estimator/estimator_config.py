"""The configuration of an Estimator: its RunConfig with a folder and a session's configuration."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import flowstone as tf
from flowstone.estimator.run_config import RunConfig

__all__ = ["maybe_overwrite_model_dir_and_session_config", "parameter_servers"]


def maybe_overwrite_model_dir_and_session_config(config: Any, model_dir: Any) -> RunConfig:
    """A RunConfig with a folder and a session's configuration, both of them by default.

    ValueError for two different folders and for other kinds of configuration.
    """
    if config is None:
        tf.logging.info("Using default config.")
        config = RunConfig()
    elif not isinstance(config, RunConfig):
        raise ValueError(f"config must be an instance of `RunConfig`, but provided {config}.")
    if model_dir and config.model_dir not in (None, model_dir):
        raise ValueError(
            "`model_dir` are set both in constructor and `RunConfig`, but with different values. In "
            f"constructor: '{model_dir}', in `RunConfig`: '{config.model_dir}' "
        )
    if model_dir:
        model_dir = os.fspath(model_dir)
    elif not config.model_dir:
        model_dir = tempfile.mkdtemp()
        tf.logging.warning("Using temporary folder as model directory: %s", model_dir)
    changes: dict[str, Any] = {"model_dir": model_dir} if model_dir else {}
    if config.session_config is None:
        changes["session_config"] = _session_config()
    return config.replace(**changes)  # type: ignore[no-any-return]


def _session_config() -> Any:
    config = tf.ConfigProto(allow_soft_placement=True)
    rewrites = config.graph_options.rewrite_options
    rewrites.meta_optimizer_iterations = rewrites.ONE
    return config


def parameter_servers(config: RunConfig) -> Any:
    """The function that places variables on parameter servers; None without them, and with a strategy, which
    has its own."""
    if not config.num_ps_replicas or config.train_distribute is not None:
        return None
    worker = f"/job:{config.task_type}/task:{config.task_id}" if config.task_type else "/job:worker"
    return tf.train.replica_device_setter(
        ps_tasks=config.num_ps_replicas,
        worker_device=worker,
        merge_devices=True,
        cluster=config.cluster_spec.as_dict(),
    )
