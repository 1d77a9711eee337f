"""`RunConfig`: where a model lies, how often it is saved, and which task of a cluster this process is.

`TF_CONFIG`, an environment variable with JSON, names the cluster: ``{"cluster": {"chief": [address],
"worker": [...], "ps": [...]}, "task": {"type": "worker", "index": 0}, "model_dir": ...}``.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.framework.flags import task_configuration
from flowstone.training.sessions.cluster_spec import ClusterSpec

__all__ = ["RunConfig", "TaskType"]

_DEFAULT: Any = object()
_REPLACEABLE = (
    "model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs",
    "session_config", "keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps",
    "train_distribute", "device_fn", "protocol", "eval_distribute", "experimental_distribute",
    "experimental_max_worker_delay_secs", "session_creation_timeout_secs",
)  # fmt: skip
_BOTH = "`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set."


class TaskType:
    """The names of the kinds of tasks."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"


def _attribute(name: str, meaning: str) -> Any:
    return property(lambda self: getattr(self, f"_{name}"), doc=meaning)


class RunConfig:
    """How an Estimator runs.

    Args:
        model_dir: the folder of checkpoints and logs; that of `TF_CONFIG` or of the Estimator if None.
        tf_random_seed: the seed of the graphs.
        save_summary_steps: how often summaries are written.
        save_checkpoints_steps, save_checkpoints_secs: how often checkpoints are written, by one of them;
            every 600 seconds by default, never if both are None.
        session_config: the sessions' ConfigProto.
        keep_checkpoint_max: how many checkpoints stay; 0 or None: all.
        keep_checkpoint_every_n_hours: of older ones, one stays in so many hours.
        log_step_count_steps: how often loss and speed are logged; None: never.
        train_distribute: None, or the strategy of training; if it is one of a cluster, that needs no chief,
            whose part is the first worker's.
        eval_distribute: None, or the strategy of evaluation, whose replicas are in this process.
        experimental_distribute: a `DistributeConfig` in place of both.
        device_fn: a function of an operation that gives its device.
        protocol: None, "grpc" or "grpc+verbs".
        experimental_max_worker_delay_secs, session_creation_timeout_secs: how long workers wait.

    Raises ValueError for values out of range and for an inconsistent `TF_CONFIG`.
    """

    def __init__(
        self,
        model_dir: Any = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: int | None = _DEFAULT,
        save_checkpoints_secs: float | None = _DEFAULT,
        session_config: Any = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: Any = None,
        device_fn: Callable[[Any], Any] | None = None,
        protocol: str | None = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: int | None = None,
        session_creation_timeout_secs: int = 7200,
    ) -> None:
        if save_checkpoints_steps is _DEFAULT and save_checkpoints_secs is _DEFAULT:
            save_checkpoints_steps, save_checkpoints_secs = None, 600
        elif save_checkpoints_secs is _DEFAULT:
            save_checkpoints_secs = None
        elif save_checkpoints_steps is _DEFAULT:
            save_checkpoints_steps = None
        elif save_checkpoints_steps is not None and save_checkpoints_secs is not None:
            raise ValueError(_BOTH)
        environment = json.loads(task_configuration() or "{}")
        if experimental_distribute is not None:
            if train_distribute is not None or eval_distribute is not None:
                raise ValueError(
                    "Either `train_distribute` and `eval_distribute` or `experimental_distribute` can be set"
                )
            train_distribute = experimental_distribute.train_distribute
            eval_distribute = experimental_distribute.eval_distribute
        given = locals()
        for name in _REPLACEABLE:
            setattr(self, f"_{name}", given[name])
        self._model_dir = _model_dir(environment, model_dir)
        self._check()
        self._init_task(environment)

    def _init_task(self, environment: dict[str, Any]) -> None:
        if environment:
            tf.logging.info("TF_CONFIG environment variable: %s", environment)
        self._service = environment.get("service")
        if self._service is not None and not isinstance(self._service, dict):
            raise TypeError(
                f'If "service" is set in TF_CONFIG, it must be a dict. Given {type(self._service)}'
            )
        self._cluster_spec = ClusterSpec(environment.get("cluster", {}))
        task = environment.get("task", {})
        if not self._cluster_spec:
            fill = self._init_alone
        elif self.train_distribute is not None:
            fill = self._init_by_strategy
        else:
            is_old = TaskType.MASTER in self._cluster_spec.jobs
            fill = self._init_in_old_cluster if is_old else self._init_in_cluster
        self._task_type, self._task_id = TaskType.WORKER, 0
        self._global_id_in_cluster: int | None = 0
        fill(environment, task)

    def _init_in_cluster(self, environment: dict[str, Any], task: dict[str, Any]) -> None:
        spec = self._cluster_spec
        chiefs = spec.as_dict().get(TaskType.CHIEF, [])
        if not chiefs:
            raise ValueError('If "cluster" is set in TF_CONFIG, it must have one "chief" node.')
        if len(chiefs) > 1:
            raise ValueError('The "cluster" in TF_CONFIG must have only one "chief" node.')
        self._task_type, self._task_id = _task_in_cluster(task)
        if self._task_type == TaskType.EVALUATOR:
            self._init_evaluator(environment)
            return
        self._global_id_in_cluster = _global_id(spec, self._task_type, self._task_id)
        self._set_places(environment, TaskType.CHIEF)

    def _init_evaluator(self, environment: dict[str, Any]) -> None:
        """The evaluator is no part of the cluster."""
        self._cluster_spec = ClusterSpec({})
        self._master, self._evaluation_master = "", environment.get("eval_session_master", "")
        self._is_chief, self._global_id_in_cluster = False, None
        self._num_ps_replicas = self._num_worker_replicas = 0

    def _init_by_strategy(self, environment: dict[str, Any], task: dict[str, Any]) -> None:
        """Where a strategy trains, the first worker is the chief if the cluster has none of this job."""
        spec = self._cluster_spec
        if TaskType.MASTER in spec.jobs:
            raise ValueError('The job "master" has no place in a strategy\'s cluster; name it "chief".')
        self._task_type, self._task_id = _task_in_cluster(task)
        if self._task_type == TaskType.EVALUATOR:
            self._init_evaluator(environment)
            return
        self._global_id_in_cluster = _global_id(spec, self._task_type, self._task_id)
        self._set_places(environment, TaskType.CHIEF)
        if TaskType.CHIEF not in spec.jobs:
            self._is_chief = (self._task_type, self._task_id) == (TaskType.WORKER, 0)

    def _init_in_old_cluster(self, environment: dict[str, Any], task: dict[str, Any]) -> None:
        """The clusters of earlier versions, whose chief is the job "master"."""
        self._task_type, self._task_id = _task_in_cluster(task)
        self._global_id_in_cluster = _global_id(self._cluster_spec, self._task_type, self._task_id)
        self._set_places(environment, TaskType.MASTER)

    def _set_places(self, environment: dict[str, Any], chief: str) -> None:
        spec = self._cluster_spec
        rpc = environment.get("rpc_layer", "grpc")
        self._master = _master(environment, spec, self._task_type, self._task_id, rpc)
        self._evaluation_master = environment.get("eval_session_master", "")
        self._num_ps_replicas = len(spec.as_dict().get(TaskType.PS, []))
        self._num_worker_replicas = len(spec.as_dict().get(TaskType.WORKER, [])) + len(
            spec.as_dict().get(chief, [])
        )
        self._is_chief = self._task_type == chief

    def _init_alone(self, environment: dict[str, Any], task: dict[str, Any]) -> None:
        self._task_type = task.get("type", TaskType.WORKER)
        self._task_id = int(task.get("index", 0))
        if self._task_type != TaskType.WORKER:
            raise ValueError('If "cluster" is not set in TF_CONFIG, task type must be WORKER.')
        if self._task_id != 0:
            raise ValueError('If "cluster" is not set in TF_CONFIG, task index must be 0.')
        self._master = environment.get("session_master", "")
        self._evaluation_master = environment.get("eval_session_master", "")
        self._is_chief, self._num_ps_replicas, self._num_worker_replicas = True, 0, 1

    def _check(self) -> None:
        """Raises ValueError for a property out of its range."""
        for name in ("save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs"):
            self._demand(name, lambda value: value >= 0, f"{name} should be >= 0")
        self._demand("keep_checkpoint_max", lambda value: value >= 0, "keep_checkpoint_max should be >= 0")
        for name in ("keep_checkpoint_every_n_hours", "log_step_count_steps"):
            self._demand(name, lambda value: value > 0, f"{name} should be > 0")
        self._demand("session_creation_timeout_secs", lambda value: value > 0,
                     "session_creation_timeout_secs should be > 0")  # fmt: skip
        self._demand("model_dir", bool, "model_dir should be non-empty.")
        self._demand("tf_random_seed", lambda value: isinstance(value, int) or hasattr(value, "__index__"),
                     "tf_random_seed must be integer.")  # fmt: skip
        self._demand("session_config", lambda value: hasattr(value, "DESCRIPTOR"),
                     "session_config must be instance of ConfigProto")  # fmt: skip
        self._demand("device_fn", _takes_op, 'device_fn must be callable with exactly one argument "op".')
        self._demand("protocol", ("grpc", "grpc+verbs").__contains__, "protocol should be grpc or grpc+verbs")
        self._demand("train_distribute", lambda value: hasattr(value, "num_replicas_in_sync"),
                     "train_distribute must be a strategy")  # fmt: skip
        self._demand("eval_distribute", _evaluates,
                     "eval_distribute must be a strategy whose replicas are in this process")  # fmt: skip

    def _demand(self, name: str, holds: Callable[[Any], Any], message: str) -> None:
        value = getattr(self, f"_{name}")
        if value is not None and not holds(value):
            raise ValueError(message)

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with other properties; ValueError for those that can't be replaced."""
        config = copy.copy(self)
        for name, value in kwargs.items():
            if name not in _REPLACEABLE:
                raise ValueError(
                    f"Replacing {name} is not supported. Allowed properties are {list(_REPLACEABLE)}."
                )
            setattr(config, f"_{name}", value)
        periods = ("save_checkpoints_steps", "save_checkpoints_secs")
        if all(kwargs.get(name) is not None for name in periods):
            raise ValueError(_BOTH)
        for name, other in (periods, periods[::-1]):
            if name in kwargs and other not in kwargs:
                setattr(config, f"_{other}", None)
        config._check()
        return config

    model_dir = _attribute("model_dir", "The folder of checkpoints and logs.")
    tf_random_seed = _attribute("tf_random_seed", "The seed of the graphs.")
    save_summary_steps = _attribute("save_summary_steps", "The steps between summaries.")
    save_checkpoints_steps = _attribute("save_checkpoints_steps", "The steps between checkpoints.")
    save_checkpoints_secs = _attribute("save_checkpoints_secs", "The seconds between checkpoints.")
    session_config = _attribute("session_config", "The ConfigProto of sessions.")
    keep_checkpoint_max = _attribute("keep_checkpoint_max", "How many checkpoints stay.")
    keep_checkpoint_every_n_hours = _attribute(
        "keep_checkpoint_every_n_hours", "The hours of which one checkpoint stays."
    )
    log_step_count_steps = _attribute("log_step_count_steps", "The steps between logged losses and speeds.")
    train_distribute = _attribute("train_distribute", "None or the strategy of training.")
    eval_distribute = _attribute("eval_distribute", "None or the strategy of evaluation.")
    device_fn = _attribute("device_fn", "The function from operations to devices.")
    protocol = _attribute("protocol", "The protocol between servers.")
    experimental_max_worker_delay_secs = _attribute(
        "experimental_max_worker_delay_secs", "The longest time by which a worker starts later."
    )
    session_creation_timeout_secs = _attribute(
        "session_creation_timeout_secs", "How long a worker waits for the chief."
    )
    cluster_spec = _attribute("cluster_spec", "The cluster, a ClusterSpec.")
    task_type = _attribute("task_type", "The kind of this process.")
    task_id = _attribute("task_id", "The index of this process among its kind.")
    global_id_in_cluster = _attribute(
        "global_id_in_cluster", "The index of this process in the cluster; None for an evaluator."
    )
    master = _attribute("master", "The target of training sessions.")
    evaluation_master = _attribute("evaluation_master", "The target of other sessions.")
    is_chief = _attribute("is_chief", "Whether this process initialises and saves.")
    num_ps_replicas = _attribute("num_ps_replicas", "How many parameter servers there are.")
    num_worker_replicas = _attribute("num_worker_replicas", "How many workers there are, with the chief.")
    service = _attribute("service", "What TF_CONFIG says of the platform, a dict or None.")


def _evaluates(value: Any) -> bool:
    count = getattr(value, "num_replicas_in_sync", 0)
    return count == 1 or (count > 1 and not value.extended.experimental_between_graph)


def _takes_op(function: Any) -> bool:
    return callable(function) and list(inspect.signature(function).parameters) == ["op"]


def _model_dir(environment: dict[str, Any], given: Any) -> Any:
    """The folder that the program or the environment names."""
    if given is not None and not given:
        raise ValueError("model_dir should be non-empty.")
    named = environment.get("model_dir")
    if named == "":
        raise ValueError("model_dir in TF_CONFIG should be non-empty.")
    if given and named and given != named:
        raise ValueError(
            "`model_dir` provided in RunConfig construct, if set, must have the same value as the model_dir "
            f'in TF_CONFIG. model_dir: {given}\nTF_CONFIG["model_dir"]: {named}.\n'
        )
    if named and not given:
        tf.logging.info("Using model_dir in TF_CONFIG: %s", named)
    return given or named


def _task_in_cluster(task: dict[str, Any]) -> tuple[str, int]:
    if not task.get("type"):
        raise ValueError('If "cluster" is set in TF_CONFIG, task type must be set.')
    if task.get("index") is None:
        raise ValueError('If "cluster" is set in TF_CONFIG, task index must be set.')
    index = int(task["index"])
    if index < 0:
        raise ValueError("Task index must be non-negative number.")
    return task["type"], index


def _checked_task(spec: ClusterSpec, task_type: str, task_id: int) -> str:
    """The address of a task; ValueError if the cluster lacks it."""
    note = f"{spec}\n\nNote that these values may be coming from the TF_CONFIG environment variable."
    if task_type not in spec.jobs:
        raise ValueError(f"{task_type} is not a valid task_type in the cluster_spec:\n{note}")
    if task_id not in spec.task_indices(task_type):
        raise ValueError(
            f"{task_id} is not a valid task_id for task_type {task_type} in the cluster_spec:\n{note}"
        )
    return spec.task_address(task_type, task_id)


def _master(environment: dict[str, Any], spec: ClusterSpec, task_type: str, task_id: int, rpc: str) -> str:
    """The target of a task's sessions: its own server, or none where it is the only task."""
    address = _checked_task(spec, task_type, task_id)
    if environment.get("session_master"):
        return str(environment["session_master"])
    if sum(spec.num_tasks(job) for job in spec.jobs) == 1:
        return ""
    return f"{rpc}://{address}"


def _global_id(spec: ClusterSpec, task_type: str, task_id: int) -> int:
    """The place of a task among all: the chief, the workers, others by name, the parameter servers."""
    _checked_task(spec, task_type, task_id)
    first = [TaskType.CHIEF, TaskType.MASTER, TaskType.WORKER]
    others = sorted(set(spec.jobs) - {*first, TaskType.PS})
    found = 0
    for job in [*first, *others, TaskType.PS]:
        if job == task_type:
            return found + task_id
        found += spec.num_tasks(job) if job in spec.jobs else 0
    return found
