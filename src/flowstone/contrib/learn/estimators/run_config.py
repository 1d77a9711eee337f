"""`RunConfig` of `tf.contrib.learn`: how an Estimator runs, and which task of a cluster this process is.

`TF_CONFIG`, an environment variable with JSON, names the cluster: ``{"cluster": {"master": [address],
"worker": [...], "ps": [...]}, "task": {"type": "worker", "index": 0}, "environment": "cloud", "model_dir":
...}``.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.constants import TaskType
from flowstone.estimator import run_config as core
from flowstone.framework.flags import task_configuration

__all__ = ["ClusterConfig", "Environment", "RunConfig", "TaskType"]


class Environment:
    """Where a cluster runs."""

    LOCAL = "local"
    CLOUD = "cloud"
    GOOGLE = "google"


class ClusterConfig:
    """Which task of which cluster this process is, as `TF_CONFIG` says.

    Args:
        master: the target of training sessions; the task's own server if None, "" without a cluster.
        evaluation_master: the target of other sessions.

    Raises ValueError for a task that the cluster lacks. The chief is the first worker, in the environment
    "cloud" the master; a process without a type is the chief.
    """

    def __init__(self, master: str | None = None, evaluation_master: str | None = None) -> None:
        environment = json.loads(task_configuration() or "{}")
        task = environment.get("task", {})
        self._task_type = task.get("type")
        self._task_id = self.get_task_id()
        self._cluster_spec = tf.train.ClusterSpec(environment.get("cluster", {}))
        self._environment = environment.get("environment", Environment.LOCAL)
        spec = self._cluster_spec
        self._master = _own_target(spec, self._task_type, self._task_id) if master is None else master
        tasks = spec.as_dict()
        self._num_ps_replicas = len(tasks.get(TaskType.PS, ()))
        self._num_worker_replicas = len(tasks.get(TaskType.WORKER, ())) + len(tasks.get(TaskType.MASTER, ()))
        chief = TaskType.MASTER if self._environment == Environment.CLOUD else TaskType.WORKER
        self._is_chief = self._task_type in (None, chief) and self._task_id == 0
        self._evaluation_master = evaluation_master or ""

    @property
    def cluster_spec(self) -> Any:
        """The cluster, a ClusterSpec."""
        return self._cluster_spec

    @property
    def environment(self) -> str:
        """One of `Environment`'s names."""
        return self._environment  # type: ignore[no-any-return]

    @property
    def evaluation_master(self) -> str:
        """The target of other sessions than training's."""
        return self._evaluation_master

    @property
    def is_chief(self) -> bool:
        """Whether this process initialises and saves."""
        return self._is_chief

    @property
    def master(self) -> str:
        """The target of training sessions."""
        return self._master

    @property
    def num_ps_replicas(self) -> int:
        """How many parameter servers there are."""
        return self._num_ps_replicas

    @property
    def num_worker_replicas(self) -> int:
        """How many workers there are, with the master."""
        return self._num_worker_replicas

    @property
    def task_id(self) -> int:
        """The index of this process among its kind."""
        return self._task_id

    @property
    def task_type(self) -> Any:
        """The kind of this process; None without `TF_CONFIG`."""
        return self._task_type

    @staticmethod
    def get_task_id() -> int:
        """The index that `TF_CONFIG` gives this process; 0 without one."""
        task = json.loads(task_configuration() or "{}").get("task", {})
        return int(task.get("index") or 0)


class RunConfig(ClusterConfig, core.RunConfig):
    """How an Estimator runs.

    Args:
        master, evaluation_master: see `ClusterConfig`.
        num_cores: how many threads compute an operation; 0: as many as there are cores.
        log_device_placement: whether the places of operations are logged.
        gpu_memory_fraction: the part of a GPU's memory that a session takes.
        tf_random_seed: the seed of the graphs.
        save_summary_steps: how often summaries are written.
        save_checkpoints_secs, save_checkpoints_steps: how often checkpoints are written; every 600 seconds by
            default.
        keep_checkpoint_max: how many checkpoints stay; keep_checkpoint_every_n_hours: of older ones, one
            stays in so many hours.
        log_step_count_steps: how often loss and speed are logged.
        protocol: None, "grpc" or "grpc+verbs".
        model_dir: the folder of checkpoints and logs; that of `TF_CONFIG` if None.
        session_config: the sessions' ConfigProto, in place of the first three arguments.
        session_creation_timeout_secs: how long workers wait for the chief.
    """

    _USE_DEFAULT = 0

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_secs: float | None = _USE_DEFAULT,
        save_checkpoints_steps: int | None = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        protocol: str | None = None,
        evaluation_master: str = "",
        model_dir: Any = None,
        session_config: Any = None,
        session_creation_timeout_secs: int = 7200,
    ) -> None:
        ClusterConfig.__init__(self, master, evaluation_master)
        self._tf_config = tf.ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
        )
        if save_checkpoints_secs == self._USE_DEFAULT and save_checkpoints_secs is not None:
            save_checkpoints_secs = 600 if save_checkpoints_steps is None else None
        self._train_distribute = self._eval_distribute = self._device_fn = self._service = None
        self._experimental_distribute = self._experimental_max_worker_delay_secs = None
        self._tf_random_seed, self._save_summary_steps = tf_random_seed, save_summary_steps
        self._save_checkpoints_secs, self._save_checkpoints_steps = (
            save_checkpoints_secs, save_checkpoints_steps,
        )  # fmt: skip
        self._log_step_count_steps, self._session_config = log_step_count_steps, session_config
        self._keep_checkpoint_max = keep_checkpoint_max
        self._keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self._protocol, self._session_creation_timeout_secs = protocol, session_creation_timeout_secs
        self._model_dir = core._model_dir(json.loads(task_configuration() or "{}"), model_dir)

    @property
    def tf_config(self) -> Any:
        """The ConfigProto of the arguments `num_cores`, `log_device_placement` and `gpu_memory_fraction`."""
        return self._tf_config

    @property
    def global_id_in_cluster(self) -> None:
        """None: these configurations do not number all tasks."""
        return None

    def uid(self, whitelist: Iterable[str] | None = None) -> str:
        """A text of all properties, equal for equal configurations; `whitelist`: those left out."""
        state = {name: value for name, value in vars(self).items() if not name.startswith("__")}
        for name in whitelist or ():
            state.pop(f"_{name}", None)
        cluster = state.pop("_cluster_spec", None)
        if cluster is not None:
            state["_cluster_spec"] = OrderedDict(sorted(cluster.as_dict().items()))
        return ", ".join(f"{name}={state[name]!r}" for name in sorted(state))


def _own_target(spec: Any, task_type: str | None, task_id: int) -> str:
    """The target of a task's own server; "" without a cluster, a type, or a second task."""
    if not spec or not task_type:
        return ""
    address = core._checked_task(spec, task_type, task_id)
    if sum(spec.num_tasks(job) for job in spec.jobs) == 1:
        return ""
    return f"grpc://{address}"
