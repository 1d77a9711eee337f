"""`tf.keras.estimator`: a compiled model as an Estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.keras.published import own
from flowstone.keras.sessions import are_initialized

__all__ = ["estimator_of", "model_to_estimator"]


def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: str | None = None,
    custom_objects: Any = None,
    model_dir: str | None = None,
    config: Any = None,
    checkpoint_format: str | None = "saver",
) -> Any:
    """The Estimator that trains, evaluates and uses a compiled model, from the weights that it has now.

    Args:
        keras_model: the model; or
        keras_model_path: the HDF5 file of one.
        custom_objects: what the file's configuration names, by name.
        model_dir, config: the Estimator's.
        checkpoint_format: "saver" (or None): checkpoints have variables by their names.

    The weights, or where no session has any yet those that the configuration's seed draws, are saved below
    `model_dir` as ``keras/keras_model.ckpt``, from which the Estimator starts.

    Its `input_fn` gives features as a tensor (of a model with one input), a list, or a dict by the names of
    the model's inputs, and labels likewise for the outputs. Raises ValueError for neither a model nor a file,
    for both, for a model that is not compiled or without inputs, and for another format of checkpoints.
    """
    if checkpoint_format not in ("saver", None):
        raise ValueError(
            f"checkpoint_format={checkpoint_format!r} is not there: checkpoints of this Estimator have "
            'variables by their names ("saver"). tf.train.Checkpoint saves a model by its objects.'
        )
    if keras_model is None and keras_model_path is None:
        raise ValueError("Either `keras_model` or `keras_model_path` needs to be provided.")
    if keras_model is not None and keras_model_path is not None:
        raise ValueError("Please specify either `keras_model` or `keras_model_path`, but not both.")
    if keras_model is None:
        models = own("models")
        keras_model = models.load_model(keras_model_path, custom_objects)
    if not getattr(keras_model, "optimizer", None):
        raise ValueError(
            "The given keras model has not been compiled yet. Please compile the model with "
            "`model.compile()` before calling `model_to_estimator()`."
        )
    if not keras_model.outputs:
        raise ValueError(
            f"The {type(keras_model).__name__} {keras_model.name!r} has no layers between tensors that could "
            "be copied into an Estimator's graphs. Make it a functional or Sequential model with an input "
            "shape, or call the layers in a model_fn."
        )
    step = _optimizer_step(keras_model.optimizer)
    estimator = tf.estimator.Estimator(_model_fn(keras_model, None, step), model_dir, config)
    path = _first_checkpoint(keras_model, estimator.model_dir, estimator.config.tf_random_seed)
    estimator._warm_start_settings = tf.estimator.WarmStartSettings(path)
    return estimator


def _first_checkpoint(model: Any, folder: str, seed: Any) -> str:
    """The checkpoint of the model's weights below the folder, which is written unless it is there."""
    folder = f"{folder}/keras"
    if latest := tf.train.latest_checkpoint(folder):
        return str(latest)
    tf.gfile.MakeDirs(folder)
    values = model.get_weights() if are_initialized(model.weights) else None
    with tf.Graph().as_default():
        tf.set_random_seed(seed)
        tf.train.create_global_step()
        own("backend").set_learning_phase(1)
        copy = own("models").clone_model(model)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            if values is not None:
                _initializer(copy, values)(None, session)
            return str(tf.train.Saver().save(session, f"{folder}/keras_model.ckpt"))


def estimator_of(model: Any, model_dir: str | None = None, config: Any = None) -> Any:
    """The Estimator of a model, from the weights that it has now; one that is not compiled only predicts."""
    with model.outputs[0].graph.as_default():
        weights = model.get_weights()
        step = _optimizer_step(model.optimizer) if getattr(model, "optimizer", None) else _no_step
    return tf.estimator.Estimator(_model_fn(model, weights, step), model_dir, config)


def _no_step(loss: Any, trained: Sequence[Any]) -> list[Any]:
    raise ValueError("The model is not compiled, so that it cannot be trained.")


# From the loss and the trained variables to the operations of a step, which count it.
OptimizerStep = Callable[[Any, Sequence[Any]], list[Any]]


def _model_fn(model: Any, weights: Sequence[Any] | None, step: OptimizerStep) -> Callable[..., Any]:
    """The function of an Estimator; its copies of the model begin with the `weights`, if there are some."""
    modes = tf.estimator.ModeKeys

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        own("backend").set_learning_phase(int(mode == modes.TRAIN))
        clone = own("models").clone_model
        copy = clone(model, _in_order(features, model.input_names))
        predictions = dict(zip(model.output_names, copy.outputs))
        scaffold = None if weights is None else tf.train.Scaffold(init_fn=_initializer(copy, weights))
        if mode == modes.PREDICT:
            exported = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
            return tf.estimator.EstimatorSpec(mode, predictions, export_outputs=exported, scaffold=scaffold)
        targets = [_like(target, y) for target, y in zip(_in_order(labels, model.output_names), copy.outputs)]
        loss = _total_loss(model, copy, targets)
        return tf.estimator.EstimatorSpec(
            mode,
            predictions,
            loss,
            _train_op(step, copy, loss) if mode == modes.TRAIN else None,
            _metrics(model, copy, targets) if mode == modes.EVAL else None,
            scaffold=scaffold,
        )

    return model_fn


def _in_order(values: Any, names: Sequence[str]) -> list[Any]:
    """The tensors of a tensor, list or dict, in the order of the names. KeyError if a name is missing."""
    if isinstance(values, Mapping):
        missing = [name for name in names if name not in values]
        if missing:
            raise KeyError(f"The model has {list(names)}, but the input_fn gives no {missing[0]!r}.")
        return [values[name] for name in names]
    found = list(values) if isinstance(values, (list, tuple)) else [values]
    if len(found) != len(names):
        raise ValueError(f"The model has {list(names)}, but the input_fn gives {len(found)} tensors.")
    return found


def _like(target: Any, output: Any) -> Any:
    """The target in the type of the outputs, with the last axis that a column of them has."""
    target = tf.cast(target, output.dtype.base_dtype)
    if target.shape.ndims is not None and output.shape.ndims == target.shape.ndims + 1:
        return tf.expand_dims(target, -1)
    return target


def _by_output(given: Any, model: Any) -> list[Any]:
    """A loss, metric or weight for each output of the model."""
    names = model.output_names
    if isinstance(given, Mapping):
        return [given.get(name) for name in names]
    if isinstance(given, (list, tuple)) and len(given) == len(names):
        return list(given)
    return [given] * len(names)


def _total_loss(model: Any, copy: Any, targets: Sequence[Any]) -> Any:
    losses = own("losses")
    factors = _by_output(1.0 if model.loss_weights is None else model.loss_weights, model)
    total = tf.constant(0.0)
    for loss, factor, target, output in zip(_by_output(model.loss, model), factors, targets, copy.outputs):
        if loss is not None:
            total += factor * tf.reduce_mean(losses.get(loss)(target, output))
    return tf.add_n([total, *copy.losses], name="loss")


def _optimizer_step(optimizer: Any) -> OptimizerStep:
    """The step of an optimiser like this one, in whatever graph."""
    if isinstance(optimizer, own("optimizers").TFOptimizer):
        inner = optimizer.optimizer

        def step_of_train(loss: Any, trained: Sequence[Any]) -> list[Any]:
            number = tf.train.get_or_create_global_step()
            with tf.name_scope("training"):
                return [inner.apply_gradients(inner.compute_gradients(loss, trained), number)]

        return step_of_train
    kind, config = type(optimizer), optimizer.get_config()

    def step(loss: Any, trained: Sequence[Any]) -> list[Any]:
        with tf.name_scope("training"):
            made = kind.from_config(config)
            made.iterations = tf.train.get_or_create_global_step()
            updates = made.get_updates(loss, trained)
        return [_operation(update) for update in updates]

    return step


def _train_op(step: OptimizerStep, copy: Any, loss: Any) -> Any:
    """One step of the optimiser, which counts it, and the layers' updates."""
    updates = [_operation(update) for update in copy.updates]
    with tf.control_dependencies([loss, *updates]):
        return tf.group(*step(loss, copy.trainable_weights))


def _operation(update: Any) -> Any:
    return tf.assign(*update) if isinstance(update, tuple) else update


def _metrics(model: Any, copy: Any, targets: Sequence[Any]) -> dict[str, Any]:
    """The means of the model's metrics, by the names that Keras gives them."""
    found = {}
    given = getattr(model, "_compile_metrics", None) or getattr(model, "metrics", None) or []
    per_output = [given] if len(targets) == 1 and not isinstance(given, Mapping) else _by_output(given, model)
    for name, metrics, target, output in zip(model.output_names, per_output, targets, copy.outputs):
        for metric in metrics if isinstance(metrics, (list, tuple)) else [metrics]:
            if metric is None:
                continue
            function = _metric_function(metric, target, output)
            label = _label(metric, function)
            key = label if len(targets) == 1 else f"{name}_{label}"
            if isinstance(function, own("metrics").Metric):
                found[key] = _counted(function, target, output)
            else:
                found[key] = tf.metrics.mean(function(target, output))
    return found


def _label(metric: Any, function: Any) -> str:
    """The name of a metric in results: TensorFlow 1 calls accuracies `acc`, others by their functions."""
    if isinstance(metric, str) and metric in ("accuracy", "acc"):
        return "acc"
    return str(getattr(function, "name", None) or function.__name__)


def _counted(metric: Any, target: Any, output: Any) -> Any:
    """A copy of a metric object that has counted the outputs in: an evaluation begins its variables anew."""
    copy = type(metric).from_config(metric.get_config())
    copy.update_state(target, output)
    return copy


def _metric_function(metric: Any, target: Any, output: Any) -> Any:
    """The function of a metric; of 'accuracy' the one that fits the shapes."""
    metrics = own("metrics")
    if metric not in ("accuracy", "acc"):
        return metrics.get(metric)
    if output.shape[-1].value == 1:
        return metrics.binary_accuracy
    is_sparse = target.shape.ndims != output.shape.ndims or target.shape[-1].value == 1
    return metrics.sparse_categorical_accuracy if is_sparse else metrics.categorical_accuracy


def _initializer(copy: Any, values: Sequence[Any]) -> Callable[[Any, Any], None]:
    """Gives the copy's weights these values, in a session without a checkpoint."""
    weights = [weight for layer in copy.layers for weight in layer.weights]  # get_weights' order
    feeds = [tf.placeholder(weight.dtype.base_dtype, weight.shape) for weight in weights]
    assignments = [tf.assign(weight, feed) for weight, feed in zip(weights, feeds)]
    return lambda scaffold, session: session.run(assignments, dict(zip(feeds, values)))
