"""The configuration of a TPUEstimator."""

from __future__ import annotations

import re
from collections import namedtuple
from typing import Any

from flowstone.estimator.run_config import RunConfig as CoreRunConfig

__all__ = ["InputPipelineConfig", "RunConfig", "TPUConfig"]

_CORES = (1, 2, 4, 8, 16, 32, 64, 128)


class InputPipelineConfig:
    """Where a TPU's input is made: one machine makes its own."""

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


_Fields = namedtuple(
    "_Fields",
    [
        "iterations_per_loop",
        "num_shards",
        "num_cores_per_replica",
        "per_host_input_for_training",
        "tpu_job_name",
        "initial_infeed_sleep_secs",
        "input_partition_dims",
        "eval_training_input_configuration",
        "experimental_host_call_every_n_steps",
    ],
)


class TPUConfig(_Fields):
    """How a TPU would run; here only kept, for one machine runs a step at a time.

    Args:
        iterations_per_loop: the steps between returns to the host, a number or a time such as "30s".
        num_shards, num_cores_per_replica: how a model is spread.
        per_host_input_for_training, eval_training_input_configuration: an InputPipelineConfig.
        tpu_job_name, initial_infeed_sleep_secs, input_partition_dims, experimental_host_call_every_n_steps:
            further properties of a TPU.

    Raises ValueError for numbers out of range.
    """

    __slots__ = ()

    def __new__(
        cls,
        iterations_per_loop: Any = 2,
        num_shards: int | None = None,
        num_cores_per_replica: int | None = None,
        per_host_input_for_training: Any = True,
        tpu_job_name: str | None = None,
        initial_infeed_sleep_secs: int | None = None,
        input_partition_dims: Any = None,
        eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1,
        experimental_host_call_every_n_steps: int = 1,
    ) -> TPUConfig:
        timed = isinstance(iterations_per_loop, str) and re.fullmatch(r"[1-9]\d*[smh]", iterations_per_loop)
        if not timed and not (isinstance(iterations_per_loop, int) and iterations_per_loop > 0):
            raise ValueError(
                "Invalid TPUConfig `iterations_per_loop` value. It must be a positive integer, or a time "
                "with its "
                f"unit, s, m or h; got {iterations_per_loop!r}"
            )
        if num_shards is not None and num_shards < 1:
            raise ValueError(f"TPUConfig num_shards must be positive, got {num_shards}")
        if num_cores_per_replica is not None and num_cores_per_replica not in _CORES:
            allowed = ", ".join(map(str, _CORES))
            raise ValueError(f"num_cores_per_replica must be {allowed}; got {num_cores_per_replica}")
        if isinstance(per_host_input_for_training, bool):
            kinds = (InputPipelineConfig.PER_SHARD_V1, InputPipelineConfig.PER_HOST_V1)
            per_host_input_for_training = kinds[per_host_input_for_training]
        return super().__new__(
            cls,
            iterations_per_loop,
            num_shards,
            num_cores_per_replica,
            per_host_input_for_training,
            tpu_job_name,
            initial_infeed_sleep_secs,
            input_partition_dims,
            eval_training_input_configuration,
            experimental_host_call_every_n_steps,
        )


class RunConfig(CoreRunConfig):
    """How a TPUEstimator runs.

    Args:
        tpu_config: a TPUConfig.
        evaluation_master, master: the targets of sessions; this process if None.
        cluster: a resolver of a TPU's cluster, None here (ValueError otherwise): models run on this machine.
        kwargs: the arguments of `tf.estimator.RunConfig`.
    """

    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if cluster is not None:
            raise ValueError(
                "a cluster of TPUs is not supported: leave `cluster` out, and models run on this machine"
            )
        self._tpu_config, self._cluster = tpu_config or TPUConfig(), cluster
        self._tpu_evaluation_master = evaluation_master or master or self._evaluation_master
        self._tpu_master = master or self._master

    @property
    def tpu_config(self) -> TPUConfig:
        """The TPUConfig."""
        return self._tpu_config

    @property
    def cluster(self) -> None:
        """None."""
        return None

    @property
    def master(self) -> str:
        """The target of training sessions."""
        return self._tpu_master

    @property
    def evaluation_master(self) -> str:
        """The target of other sessions."""
        return self._tpu_evaluation_master

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with other properties; see `tf.estimator.RunConfig.replace`."""
        tpu_config = kwargs.pop("tpu_config", None)
        config = super().replace(**kwargs)
        assert isinstance(config, RunConfig)
        if tpu_config is not None:
            config._tpu_config = tpu_config
        return config
