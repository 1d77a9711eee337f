"""The EstimatorSpec of a model function that runs once for each of a strategy's replicas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.estimator.model_fn import EstimatorSpec

__all__ = ["replicated_spec"]


class _Held:
    """A spec that strategies take as one value."""

    def __init__(self, spec: EstimatorSpec) -> None:
        self.spec = spec


def replicated_spec(strategy: Any, model_fn: Callable[..., EstimatorSpec], *arguments: Any) -> EstimatorSpec:
    """The spec of all replicas together, of what `model_fn` gives for each replica's part of the arguments.

    The loss is reduced, operations are grouped, a metric's value is the first replica's, which is of all;
    hooks are the first replica's. Called in the cross-replica context.
    """

    def held(*given: Any) -> _Held:
        return _Held(model_fn(*given))

    made = strategy.extended.call_for_each_replica(held, arguments)
    specs = [each.spec for each in strategy.unwrap(made)]
    first = specs[0]
    fields = {"loss": _reduced_loss(strategy, [each.loss for each in specs])}
    if first.train_op is not None:
        fields["train_op"] = tf.group(*(each.train_op for each in specs))
    if first.eval_metric_ops:
        fields["eval_metric_ops"] = {
            key: _metric([spec.eval_metric_ops[key] for spec in specs]) for key in first.eval_metric_ops
        }
    fields["scaffold"] = _scaffold([each.scaffold for each in specs])
    whole: EstimatorSpec = first._replace(**fields)
    return whole


def _reduced_loss(strategy: Any, losses: list[Any]) -> Any:
    """The mean of the losses where optimisers scale them, else their sum."""
    if losses[0] is None:
        return None
    parts = strategy.parts_of_loss() if tf.get_default_graph().scales_losses else 1
    with tf.device(strategy.extended.worker_devices[0]):
        total = tf.add_n(losses)
        return total / parts if parts != 1 else total


def _metric(metrics: list[Any]) -> Any:
    """The metric of all replicas: a pair of the value and the group of the updates."""
    pairs = [
        each if isinstance(each, tuple) else (each.result(), tf.group(*each.updates)) for each in metrics
    ]
    return pairs[0][0], tf.group(*(getattr(update, "op", update) for _, update in pairs))


def _scaffold(scaffolds: list[Any]) -> Any:
    """The scaffold of all replicas: operations are grouped, functions called one after another."""
    first = scaffolds[0]
    fields: dict[str, Any] = {
        "saver": first._saver,
        "copy_from_scaffold": None,
        "summary_op": first._summary_op,
    }
    for name in ("init_op", "ready_op", "ready_for_local_init_op", "local_init_op"):
        values = [getattr(each, f"_{name}", None) for each in scaffolds]
        fields[name] = _grouped(name, values)
    feeds: dict[Any, Any] = {}
    for each in scaffolds:
        feeds.update(each._init_feed_dict or {})
    fields["init_feed_dict"] = feeds or None
    functions = [each._user_init_fn for each in scaffolds if each._user_init_fn]

    def init_fn(scaffold: Any, session: Any) -> None:
        for each, function in zip(scaffolds, functions):
            function(each, session)

    fields["init_fn"] = init_fn if functions else None
    return tf.train.Scaffold(**fields)


def _grouped(name: str, values: list[Any]) -> Any:
    values = [each for each in values if each is not None]
    if not values or all(each is values[0] for each in values):
        return values[0] if values else None
    return tf.concat(values, 0) if name.startswith("ready") else tf.group(*values)
