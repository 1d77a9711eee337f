"""`TrainingTask`: which part this process has in a training, as its strategy or else its cluster says.

Without a strategy the chief initialises and saves, and other workers wait for it. With
`CollectiveAllReduceStrategy` each worker has variables of its own, which begin with the first one's values,
and the first worker saves. With `ParameterServerStrategy` all share the variables of the parameter servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import flowstone as tf
from flowstone.distributed.masters.own_servers import masters
from flowstone.estimator.replicated_specs import replicated_spec
from flowstone.estimator.run_config import RunConfig

__all__ = ["TrainingTask", "evaluation_task", "has_several_replicas", "input_context", "start_server"]

_servers: dict[str, Any] = {}  # of this process, by their targets; they end with it
_context: ContextVar[Any] = ContextVar("input_context", default=None)


class TrainingTask:
    """This process's part: whether it `initialises` variables and `saves` checkpoints, and the
    `session_config` of its sessions. The server that they need is started, if it is not there.

    `config` is the RunConfig, of `tf.estimator` or of `tf.contrib.learn`; `strategy` how it trains, if any.
    """

    def __init__(self, config: Any, session_config: Any, strategy: Any = None) -> None:
        self._strategy, self.session_config = strategy, session_config
        self.initialises = self.saves = config.is_chief
        if self._strategy is None:
            return
        if not config.master:
            self.session_config = self._strategy.update_config_proto(session_config)
            return
        self._strategy.configure(None, config.cluster_spec, config.task_type, config.task_id)
        self.session_config = self._strategy.update_config_proto(session_config)
        self.initialises = self._strategy.extended.experimental_should_init
        self.saves = self._strategy.extended.should_checkpoint
        start_server(config)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Within, the graph is built as the strategy wants it."""
        if self._strategy is None:
            yield
            return
        token = _context.set(self._strategy.input_context())
        try:
            with self._strategy.scope(), self._strategy.scaling_losses():
                yield
        finally:
            _context.reset(token)

    def replica(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The EstimatorSpec that the function gives as the code of this process's replica, or of all replicas
        of this process together."""
        if self._strategy is None:
            return function(*arguments)
        if has_several_replicas(self._strategy):
            return replicated_spec(self._strategy, function, *arguments)
        return self._strategy.extended.call_for_each_replica(function, arguments)

    def mean(self, loss: Any) -> Any:
        """The metric of the mean of all steps' losses."""
        if not has_several_replicas(self._strategy):
            return tf.metrics.mean(loss)
        value, update = self._strategy.extended.call_for_each_replica(tf.metrics.mean, (loss,))
        return value, self._strategy.group(update)

    def reported(self, loss: Any) -> Any:
        """The loss of all replicas together."""
        if self._strategy is None or has_several_replicas(self._strategy):
            return loss
        return self._strategy.reduce(self._strategy.loss_reduction(), loss)


def has_several_replicas(strategy: Any) -> bool:
    """Whether a strategy, or None, has several replicas in this process."""
    return strategy is not None and len(strategy.extended.worker_devices) > 1


def evaluation_task(config: Any, session_config: Any) -> TrainingTask:
    """The part in an evaluation: all of it, with the strategy that evaluates if that has several replicas."""
    strategy = config.eval_distribute
    return TrainingTask(config, session_config, strategy if has_several_replicas(strategy) else None)


def input_context() -> dict[str, Any]:
    """What an input function that takes an `input_context` is told: whose inputs it makes."""
    found = _context.get()
    return {} if found is None else {"input_context": found}


def start_server(config: RunConfig) -> Any:
    """The server of this process's task of the cluster, which is started with the first call; None if the
    program has started it."""
    if config.master not in masters:
        _servers[config.master] = tf.train.Server(
            config.cluster_spec,
            job_name=config.task_type,
            task_index=config.task_id,
            config=config.session_config,
            protocol=config.protocol,
        )
    return _servers.get(config.master)
