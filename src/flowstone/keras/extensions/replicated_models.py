"""Models of `tf.keras` compiled in the scope of a strategy of several replicas: their steps.

A step of training, of a test or of a prediction is one graph. The batch that is fed is split among the
replicas in parts whose sizes differ by one at most; each replica calls the model's layers on its part.

    batch ─ split ┬─ replica 0: layers ─ loss / 2 ─ gradients ┐
                  └─ replica 1: layers ─ loss / 2 ─ gradients ┴─ summed, applied to both copies of a weight

A loss is divided by the number of replicas unless its reduction is a sum, and the loss of a step is the sum
of the replicas'. Losses that do not depend on a batch, such as those of regularisers, count once. Each
replica counts in its own part of a metric's state; the metric's value is of all replicas. Predictions are in
the order of the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distributed_values import local_values, merged
from flowstone.framework.names.refusals import refuse
from flowstone.keras import sessions
from flowstone.keras.extensions import additions, calls, networks
from flowstone.keras.extensions.operation_layers import with_history
from flowstone.keras.extensions.total_losses import with_mask
from flowstone.keras.published import own
from flowstone.ops.variables.replicas import current_replica

__all__ = [
    "begin",
    "changed_handle_metrics",
    "changed_make",
    "changed_total_loss",
    "check_batch",
    "strategy_of",
]

_CREATED = """{variable} was not created in the scope of the strategy that the model is compiled in.
with strategy.scope():
  model = ...
  model.compile(...)"""


def strategy_of(model: Any) -> Any:
    """The strategy of several replicas that the model was compiled for, or None."""
    return model.__dict__.get("_strategy_of_replicas")


def begin(model: Any, strategy: Any, target_tensors: Any) -> None:
    """Has a model that is being compiled train on the replicas of a strategy; None: as other models do.

    Raises ValueError for a model without inputs, for weights that are not the strategy's and for
    `target_tensors`.
    """
    model.__dict__["_strategy_of_replicas"] = strategy
    if strategy is None:
        return
    if "Metric" not in vars(own("metrics")):
        refuse("models of several replicas over Keras 2.2", "keras 2.3")
    if not getattr(model, "_is_graph_network", False) or not model.inputs:
        raise ValueError(
            "We currently do not support distribution strategy with a `Sequential` model that is created "
            "without `input_shape`/`input_dim` set in its first layer or a subclassed model."
        )
    if target_tensors is not None:
        raise ValueError("target_tensors is not supported with tf.distribute.Strategy.")
    for weight in model.weights:
        if getattr(weight, "distribute_strategy", None) is not strategy:
            raise ValueError(_CREATED.format(variable=f"The variable {weight.name}"))
    sessions.make_session(strategy.update_config_proto(None))


def check_batch(model: Any, arrays: list[Any]) -> None:
    """Raises ValueError for a batch that has fewer examples than the model has replicas."""
    strategy = strategy_of(model)
    if strategy is None or not arrays or not hasattr(arrays[0], "shape"):
        return
    size, count = arrays[0].shape[0], strategy.num_replicas_in_sync
    if size < count:
        raise ValueError(
            f"A batch of {size} cannot be split among {count} replicas: leave it out, for example with "
            "`Dataset.batch(…, drop_remainder=True)`"
        )


def changed_handle_metrics(published: Callable[..., None]) -> Callable[..., None]:
    """`_handle_metrics` of the class `Model`; of several replicas each handles its part of a batch."""

    def _handle_metrics(self: Any, *arguments: Any, **keywords: Any) -> None:
        if strategy_of(self) is None or current_replica() is not None:
            published(self, *arguments, **keywords)

    return _handle_metrics


def changed_total_loss(published: Callable[..., Any]) -> Callable[..., Any]:
    """`_prepare_total_loss` of the class `Model`; None for several replicas, whose steps have it."""

    def _prepare_total_loss(self: Any, *arguments: Any, **keywords: Any) -> Any:
        return published(self, *arguments, **keywords) if strategy_of(self) is None else None

    return _prepare_total_loss


def changed_make(published: Callable[..., None], kind: str) -> Callable[..., None]:
    """`_make_train_function` and its like of the class `Model`; `kind`: see `make_function`."""
    name = f"{kind}_function"

    def make(self: Any) -> None:
        if strategy_of(self) is None:
            published(self)
        elif getattr(self, name, None) is None:
            setattr(self, name, make_function(self, kind))

    make.__name__ = published.__name__
    return make


def make_function(model: Any, kind: str) -> Any:
    """The step of a compiled model as a function of arrays.

    `kind`: "train", "test" or "predict". It takes what the model is fed, and gives the loss and the metrics,
    or the outputs.
    """
    strategy, backend = strategy_of(model), own("backend")
    fed = list(model._feed_inputs)
    if kind != "predict":
        fed += [*model._feed_targets, *model._feed_sample_weights]
    phase = [backend.learning_phase()] if model._uses_dynamic_learning_phase() else []
    with strategy.scope():
        network, lasting = _network(model)
        batch = [model.inputs] if kind == "predict" else [model.inputs, model.targets, model.sample_weights]
        with tf.device(strategy.extended.worker_devices[0]):
            parts = _split(batch, fed, strategy.num_replicas_in_sync)
        step = _Step(model, kind, network, lasting)
        outputs, updates = strategy.experimental_run_v2(step, parts)
        if kind == "predict":
            with tf.device(strategy.extended.worker_devices[0]):
                outputs = [tf.concat(local_values(each), 0) for each in outputs]
        else:
            outputs = [strategy.reduce("SUM", outputs[0]), *(local_values(each)[0] for each in outputs[1:])]
        return backend.function(
            fed + phase,
            outputs,
            updates=[strategy.group(updates)],
            name=f"{kind}_function",
            **getattr(model, "_function_kwargs", {}),
        )


def _split(batch: list[Any], fed: list[Any], count: int) -> list[Any]:
    """The structure of tensors with the parts of those that are fed, a value of all replicas each."""
    sizes: dict[int, Any] = {}

    def part(tensor: Any, number: int) -> Any:
        if not any(tensor is each for each in fed):
            return tensor
        if isinstance(tensor, tf.SparseTensor):
            size = tensor.dense_shape[0]
            begin, end = size * number // count, size * (number + 1) // count
            rest = tf.zeros_like(tensor.dense_shape[1:])
            lengths = tf.concat([[end - begin], tensor.dense_shape[1:]], 0)
            return tf.sparse.slice(tensor, tf.concat([[begin], rest], 0), lengths)
        size = sizes.setdefault(id(tensor), tf.shape(tensor)[0])
        # The first parts are the larger ones.
        begin, end = (-(-size * i // count) for i in (number, number + 1))
        made = tensor[begin:end]
        if hasattr(tensor, "_keras_shape"):
            made._keras_shape = (None, *tensor._keras_shape[1:])
        return made

    return [
        merged([[part(tensor, number) for tensor in tensors] for number in range(count)]) for tensors in batch
    ]


class _Lasting:
    """What a model adds that its layers' calls do not make: losses and metrics of tensors.

    `losses` are of no batch. The network's further outputs are `count_of_losses` losses of a batch, then the
    values of `metrics`.
    """

    def __init__(self, model: Any) -> None:
        self.losses: list[Any] = []
        self.metrics: list[Any] = []
        self.tensors: list[Any] = []
        for layer in dict.fromkeys([model, *calls.below(model)]):
            additions.regularize(layer)
            for loss in layer.__dict__.get("_lasting_losses", ()):
                is_known = any(loss is each for each in (*self.losses, *self.tensors))
                if not is_known:
                    (self.tensors if _depends_on_layers(loss) else self.losses).append(loss)
        self.count_of_losses = len(self.tensors)
        for value, metric in model.__dict__.get("_lasting_metrics", ()):
            self.tensors.append(value)
            self.metrics.append(metric)


def _depends_on_layers(tensor: Any) -> bool:
    return hasattr(with_history(tensor), "_keras_history")


def _network(model: Any) -> tuple[Any, _Lasting]:
    """The network that replicas call, whose outputs are the model's and the tensors of what it adds."""
    lasting = _Lasting(model)
    if not lasting.tensors:
        return model, lasting
    made = own("engine.network").Network(
        model.inputs, [*model.outputs, *lasting.tensors], name=f"{model.name}_of_replicas"
    )
    return made, lasting


class _Step:
    """A step of one replica."""

    def __init__(self, model: Any, kind: str, network: Any, lasting: _Lasting) -> None:
        self._model, self._kind, self._network, self._lasting = model, kind, network, lasting

    def __call__(self, inputs: Any, targets: Any = None, weights: Any = None) -> tuple[list[Any], Any]:
        """The outputs, or the replica's part of the loss and the metrics' values, with the step's updates."""
        model = self._model
        with additions.collecting() as added:
            found = networks.run_internal_graph(self._network, inputs)
            outputs, values = found[: len(model.outputs)], found[len(model.outputs) :]
            if self._kind == "predict":
                return outputs, tf.group(*self._updates(added))
            masks = [getattr(y, "_keras_mask", None) for y in outputs]
            skipped = [loss is None for loss in model.loss_functions]
            model._handle_metrics(outputs, targets, skipped, weights, masks)
            count = self._lasting.count_of_losses
            for metric, value in zip(self._lasting.metrics, values[count:]):
                metric(value)
            losses = [*(loss for _, loss in added.losses), *values[:count]]
            total = self._loss(outputs, targets, weights, masks, losses)
            updates = self._updates(added)
        if self._kind == "train":
            optimizer = model.optimizer
            with tf.name_scope("training"):
                updates += optimizer.get_updates(params=model._collected_trainable_weights, loss=total)
        metrics = [each._call_result for each in model._get_training_eval_metrics() if _is_called(each)]
        return [total, *metrics], tf.group(*updates)

    def _updates(self, added: additions.Added) -> list[Any]:
        """The updates of this kind of step that layers and metrics added."""
        updates = [
            update
            for layer, update in added.updates
            if layer.stateful or (self._kind == "train" and layer.trainable)
        ]
        return list(dict.fromkeys(getattr(update, "op", update) for update in updates))

    def _loss(self, outputs: Any, targets: Any, weights: Any, masks: Any, added: list[Any]) -> Any:
        """This replica's part of the loss."""
        model, replica = self._model, current_replica()
        assert replica is not None
        count = replica.strategy.num_replicas_in_sync
        parts = []
        with tf.name_scope("loss"):
            for i, function in enumerate(model.loss_functions):
                if function is None:
                    continue
                with tf.name_scope(f"{model.output_names[i]}_loss"):
                    weight = with_mask(weights[i], masks[i], outputs[i])
                    loss = tf.reduce_mean(function(targets[i], outputs[i], sample_weight=weight))
                    if len(outputs) > 1:
                        model._output_loss_metrics[i](loss)
                    is_sum = getattr(function, "reduction", None) == "sum"
                    parts.append(model.loss_weights_list[i] * (loss if is_sum else loss / count))
            parts += [tf.reduce_mean(loss) / count for loss in added]
            if replica.number == 0:
                parts += [tf.reduce_mean(loss) for loss in self._lasting.losses]
            if not parts and not self._lasting.losses:
                raise ValueError("The model cannot be compiled because it has no loss to optimize.")
            return tf.add_n(parts) if parts else tf.zeros([])


def _is_called(metric: Any) -> bool:
    return hasattr(metric, "_call_result")
