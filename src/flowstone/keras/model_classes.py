"""`tf.keras.Model` and `tf.keras.Sequential`: the package's, and what `tf.keras` had beside it.

They take Datasets, iterators and tensors in `fit`, `evaluate` and `predict`, and save their weights as
checkpoints of TensorFlow's (`save_weights("path")`) as well as HDF5 (`save_weights("path.h5")`). Models of
the package are instances of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework import nest
from flowstone.keras import weight_checkpoints
from flowstone.keras.layer_classes import SameInstances
from flowstone.keras.tensorflow_configs import readers
from flowstone.keras.training_data import batches_of, is_symbolic
from keras import models as published

__all__ = [
    "Model",
    "Sequential",
    "clone_model",
    "load_model",
    "model_from_config",
    "model_from_json",
    "model_from_yaml",
    "save_model",
]

_FIT_ONLY_FOR_ARRAYS = ("batch_size", "validation_split", "shuffle")
_QUEUE = {"workers": 0, "use_multiprocessing": False}  # sessions run in the thread of the model


class _TensorFlowModel:
    """What both classes have."""

    def compile(
        self: Any, optimizer: Any, loss: Any = None, metrics: Any = None, *arguments: Any, **options: Any
    ) -> Any:
        """Chooses how it trains; see the package. The metric 'accuracy' is called 'acc', as in `tf.keras`."""
        return super().compile(  # type: ignore[misc]
            optimizer, loss, _short_names(metrics), *arguments, **options
        )

    def fit(self: Any, x: Any = None, y: Any = None, *arguments: Any, **options: Any) -> Any:
        """Trains; see the package. `x` may be a Dataset, an iterator or tensors, and so `validation_data`."""
        data = options.get("validation_data")
        if not is_symbolic(x) and not is_symbolic(data):
            return super().fit(x, y, *arguments, **options)  # type: ignore[misc]
        names = ("batch_size", "epochs", "verbose", "callbacks")
        options.update(zip(names, arguments))
        steps = options.pop("validation_steps", None)
        if is_symbolic(data):
            pair = data if isinstance(data, (tuple, list)) else (data,)
            inputs, targets, weights = (*pair, None, None)[:3]
            validation = batches_of(inputs, targets, weights, steps)
            options["validation_data"] = validation.read()
            options["validation_steps"] = len(validation)
        elif steps is not None:
            options["validation_steps"] = steps
        if not is_symbolic(x):
            return super().fit(x, y, **options)  # type: ignore[misc]
        training = batches_of(x, y, options.pop("sample_weight", None), options.pop("steps_per_epoch", None))
        for name in _FIT_ONLY_FOR_ARRAYS:
            options.pop(name, None)
        return self.fit_generator(training.read(), len(training), **{**options, **_QUEUE})

    def evaluate(
        self: Any,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int = 1,
        sample_weight: Any = None,
        steps: int | None = None,
        **options: Any,
    ) -> Any:
        """The loss and the metrics; see the package. `x` may be a Dataset, an iterator or tensors."""
        if not is_symbolic(x):
            return super().evaluate(  # type: ignore[misc]
                x, y, batch_size, verbose, sample_weight, steps, **options
            )
        batches = batches_of(x, y, sample_weight, steps)
        return self.evaluate_generator(
            batches.read(), len(batches), verbose=verbose, **_callbacks(options), **_QUEUE
        )

    def evaluate_generator(self: Any, generator: Any, *arguments: Any, **options: Any) -> Any:
        """The loss and the metrics; see the package, whose loss is that of the last batch, not their mean."""
        losses: list[float] = []
        sizes: list[int] = []
        of_batch = self.test_on_batch

        def recorded(x: Any, y: Any, *more: Any, **keywords: Any) -> Any:
            results = of_batch(x, y, *more, **keywords)
            losses.append(float(results[0] if isinstance(results, list) else results))
            sizes.append(len(nest.flatten(x)[0]))
            return results

        self.test_on_batch = recorded
        try:
            results = super().evaluate_generator(generator, *arguments, **options)  # type: ignore[misc]
        finally:
            del self.test_on_batch
        loss = float(np.average(losses, weights=sizes)) if losses else None
        if loss is None:
            return results
        return [loss, *results[1:]] if isinstance(results, list) else loss

    def predict(
        self: Any,
        x: Any,
        batch_size: int | None = None,
        verbose: int = 0,
        steps: int | None = None,
        **options: Any,
    ) -> Any:
        """The outputs; see the package. `x` may be a Dataset, an iterator or tensors."""
        if not is_symbolic(x):
            return super().predict(x, batch_size, verbose, steps, **options)  # type: ignore[misc]
        batches = batches_of(x, steps=steps)
        return self.predict_generator(
            batches.read(inputs_only=True),
            len(batches),
            verbose=verbose,
            **_callbacks(options),
            **_QUEUE,
        )

    def save_weights(
        self: Any, filepath: Any, overwrite: bool = True, save_format: str | None = None
    ) -> None:
        """Saves the weights: as HDF5 if the path ends so or `save_format` is 'h5', else as a checkpoint."""
        if weight_checkpoints.is_checkpoint(filepath, save_format):
            weight_checkpoints.save_weights(self, filepath)
        else:
            super().save_weights(filepath, overwrite)  # type: ignore[misc]

    def load_weights(self: Any, filepath: Any, by_name: bool = False, **options: Any) -> Any:
        """Loads the weights that `save_weights` saved, here or with TensorFlow."""
        if not weight_checkpoints.is_checkpoint(filepath):
            return super().load_weights(filepath, by_name, **options)  # type: ignore[misc]
        if by_name:
            raise NotImplementedError(
                "Weights may only be loaded based on topology into Models when loading TensorFlow-formatted "
                "weights (got by_name=True to load_weights)."
            )
        return weight_checkpoints.load_weights(self, filepath)


def _callbacks(options: dict[str, Any]) -> dict[str, Any]:
    """The callbacks that were given, which Keras 2.2 does not take here."""
    return {"callbacks": options["callbacks"]} if options.get("callbacks") else {}


def _short_names(metrics: Any) -> Any:
    """The metrics with 'acc' for 'accuracy', which TensorFlow 1 calls it in logs and histories."""
    if isinstance(metrics, (list, tuple)):
        return [_short_names(metric) for metric in metrics]
    if isinstance(metrics, dict):
        return {name: _short_names(metric) for name, metric in metrics.items()}
    return "acc" if isinstance(metrics, str) and metrics == "accuracy" else metrics


class Model(_TensorFlowModel, published.Model, metaclass=SameInstances):  # type: ignore[misc]
    """A model of layers between inputs and outputs."""

    published = published.Model


class Sequential(_TensorFlowModel, published.Sequential, metaclass=SameInstances):  # type: ignore[misc]
    """A model that is a list of layers."""

    published = published.Sequential


_OURS = {"Model": Model, "Sequential": Sequential}


def _with_our_classes(function: Callable[..., Any]) -> Callable[..., Any]:
    """The package's function, which makes models of the classes here."""

    def made(config: Any, custom_objects: Any = None, *arguments: Any, **options: Any) -> Any:
        known = {**readers(), **_OURS, **(custom_objects or {})}
        return function(config, known, *arguments, **options)

    made.__name__, made.__doc__ = function.__name__, function.__doc__
    return made


load_model = _with_our_classes(published.load_model)
model_from_config = _with_our_classes(published.model_from_config)
model_from_json = _with_our_classes(published.model_from_json)
model_from_yaml = _with_our_classes(published.model_from_yaml)
clone_model = published.clone_model
save_model = published.save_model
