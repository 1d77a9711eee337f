"""Training of `tf.keras.Model`: Datasets, iterators and tensors in `fit`, weights as checkpoints.

`extend` changes the package's class `Model` in place. `fit`, `evaluate` and `predict` take Datasets,
iterators and tensors; weights are saved as checkpoints of TensorFlow's (`save_weights("path")`) as well as
HDF5 (`save_weights("path.h5")`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import strategy_of_several
from flowstone.framework.tensors import nest
from flowstone.keras import sessions, weight_checkpoints
from flowstone.keras.extensions import (
    first_data,
    generator_loops,
    replicated_data,
    replicated_models,
    sample_weights,
    step_functions,
)
from flowstone.keras.extensions.calls import has_argument
from flowstone.keras.extensions.dataset_validation import validation_by
from flowstone.keras.extensions.step_sizes import steps_as_sizes
from flowstone.keras.extensions.total_losses import prepare_total_loss
from flowstone.keras.published import own
from flowstone.keras.training_data import batches_of, is_symbolic

__all__ = ["extend"]

_FIT_ONLY_FOR_ARRAYS = ("batch_size", "validation_split", "shuffle")
_QUEUE = {"workers": 0, "use_multiprocessing": False}  # sessions run in the thread of the model
Method = Callable[..., Any]


def _changed_compile(published: Method) -> Method:
    def compile(
        self: Any,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        sample_weight_mode: Any = None,
        weighted_metrics: Any = None,
        target_tensors: Any = None,
        distribute: Any = None,
        **options: Any,
    ) -> Any:
        """Chooses how it trains; see the package. Metrics have the names that `tf.keras` gives them.

        In the scope of a strategy of several replicas it trains on them; see `replicated_models`.

        Raises ValueError for `run_eagerly` and the argument `distribute`.
        """
        if options.pop("run_eagerly", None):
            raise ValueError("run_eagerly=True needs eager execution, which graphs do not have.")
        if distribute is not None:
            raise ValueError("Distribute argument in compile is not available.")
        for key in [key for key in options if key.startswith("experimental_")]:
            del options[key]
        replicated_models.begin(self, strategy_of_several(), target_tensors)
        self._compile_metrics = metrics or []  # these Keras 2.2 keeps under other names
        self._compile_weighted_metrics = weighted_metrics
        return published(
            self, optimizer, loss, metrics, loss_weights, sample_weight_mode, weighted_metrics,
            target_tensors, **options,
        )  # fmt: skip

    return compile


_NOT_COMPILED = "You must compile your model before training/testing. Use `model.compile(optimizer, loss)`."


def _if_compiled(published: Method) -> Method:
    @wraps(published)
    def called(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if not self.optimizer:
            raise RuntimeError(_NOT_COMPILED)
        return published(self, *arguments, **keywords)

    return called


def _changed_fit(published: Method) -> Method:
    def fit(self: Any, x: Any = None, y: Any = None, *arguments: Any, **options: Any) -> Any:
        """Trains; see the package. `x` may be a Dataset, an iterator or tensors, and so `validation_data`.

        A generator or a Sequence as `x` is read as `fit_generator` reads it.
        """
        options.update(zip(("batch_size", "epochs", "verbose", "callbacks"), arguments))
        _check_options(published, x, y, options)
        sessions.make_learning_phase()
        if _is_generator(x):
            return _fit_generator(self, x, options)
        if replicated_models.strategy_of(self) is not None:
            return _fit_replicas(self, x, y, options)
        if isinstance(x, tf.data.Dataset):  # whose batches TensorFlow 1.15 does not weigh by their classes
            options.pop("class_weight", None)
        data = options.get("validation_data")
        sample_weights.look_for(self, options)
        if not is_symbolic(x) and not is_symbolic(data):
            return published(self, x, y, **_known(published, options))
        steps, validated = options.pop("validation_steps", None), ""
        if is_symbolic(data) and not is_symbolic(x):
            frequency = options.pop("validation_freq", 1)
            callback = validation_by(self, options.pop("validation_data"), steps, frequency)
            options["callbacks"] = [callback, *(options.get("callbacks") or ())]
            return published(self, x, y, **_known(published, options))
        if is_symbolic(data):
            pair = data if isinstance(data, (tuple, list)) else (data,)
            inputs, targets, weights = (*pair, None, None)[:3]
            validation = batches_of(inputs, targets, weights, steps)
            options["validation_data"] = validation.read()
            options["validation_steps"] = len(validation)
            validated = f", validate on {len(validation)} steps"
        elif steps is not None:
            options["validation_steps"] = steps
        if not is_symbolic(x):
            return published(self, x, y, **_known(published, options))
        training = batches_of(x, y, options.pop("sample_weight", None), options.pop("steps_per_epoch", None))
        first_data.prepare(self, *training.parts()[:2])
        for name in _FIT_ONLY_FOR_ARRAYS:
            options.pop(name, None)
        if options.get("verbose", 1):
            unit = "samples" if isinstance(x, tf.Tensor) else "steps"
            print(f"Train on {len(training)} {unit}{validated}")
        options["callbacks"] = [steps_as_sizes(), *(options.get("callbacks") or ())]
        return self.fit_generator(training.read(in_training=True), len(training), **{**options, **_QUEUE})

    return fit


def _check_options(published: Method, x: Any, y: Any, options: dict[str, Any]) -> None:
    """Raises what TensorFlow says of options of `fit` that there are not, or not for data of this kind."""
    known = {*inspect.signature(published).parameters, "nb_epoch", *_QUEUE}
    if unknown := {name: value for name, value in options.items() if name not in known}:
        raise TypeError(f"Unrecognized keyword arguments: {unknown}")
    is_generator, is_dataset = _is_generator(x), isinstance(x, tf.data.Dataset)
    if options.get("batch_size") is not None and (is_generator or is_dataset):
        raise ValueError(
            "The `batch_size` argument must not be specified for the given input type. "
            f"Received input: {x}, batch_size: {options['batch_size']}"
        )
    if is_generator and y is not None:
        raise ValueError(
            "`y` argument is not supported when data is a generator or Sequence instance. Instead pass "
            "targets as the second element of the generator."
        )
    split = options.get("validation_split") or 0.0
    if split and is_generator:
        raise ValueError(
            "If your data is in the form of a Python generator, you cannot use `validation_split`."
        )
    if split and is_dataset:
        raise ValueError(
            "`validation_split` argument is not supported when input `x` is a dataset or a dataset iterator. "
            f"Received: x={x}, validation_split={split:f}"
        )


def _is_generator(x: Any) -> bool:
    return (hasattr(x, "__next__") and not is_symbolic(x)) or isinstance(x, own("utils").Sequence)


def _fit_generator(self: Any, x: Any, options: dict[str, Any]) -> Any:
    for name in ("batch_size", "validation_split", "sample_weight"):
        options.pop(name, None)
    steps = options.pop("steps_per_epoch", None)
    return self.fit_generator(x, steps, **options)


def _fit_replicas(self: Any, x: Any, y: Any, options: dict[str, Any]) -> Any:
    """`fit` of a model of several replicas."""
    given = {name: options.pop(name, None) for name in ("batch_size", "class_weight")}
    shuffle, share = bool(options.pop("shuffle", True)), options.pop("validation_split", 0.0)
    weights, steps = options.pop("sample_weight", None), options.pop("steps_per_epoch", None)
    data, validated = options.pop("validation_data", None), ""
    validation: Any = None
    if share and data is None:
        training, validation = replicated_data.split_batches_for(
            self, x, y, weights, steps, share, shuffle=shuffle, **given
        )
    else:
        training = replicated_data.batches_for(self, x, y, weights, steps, shuffle=shuffle, **given)
    if data is not None:
        parts = data if isinstance(data, (tuple, list)) else (data,)
        inputs, targets, weights = (*parts, None, None)[:3]
        steps = options.pop("validation_steps", None)
        size = given["batch_size"]
        validation = replicated_data.batches_for(self, inputs, targets, weights, steps, batch_size=size)
    if validation is not None:
        options.update(validation_data=validation.read(), validation_steps=len(validation))
        validated = f", validate on {len(validation)} steps"
    if options.get("verbose", 1):
        print(f"Train on {len(training)} steps{validated}")
    options["callbacks"] = [steps_as_sizes(), *(options.get("callbacks") or ())]
    return self.fit_generator(training.read(), len(training), **{**options, **_QUEUE})


def _known(published: Method, options: dict[str, Any]) -> dict[str, Any]:
    """The options that the package's method takes: Keras 2.2 does not take those of generators here."""
    return {name: value for name, value in options.items() if has_argument(published, name) or name == "nb"}


def _changed_evaluate(published: Method) -> Method:
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
        if _is_generator(x):
            return self.evaluate_generator(x, steps, verbose=verbose, **options)
        is_replicated = replicated_models.strategy_of(self) is not None
        if not is_replicated and not is_symbolic(x):
            verbose = generator_loops.show_progress(self, published, verbose, options)
            known = _known(published, options)
            return generator_loops.results_of(
                published(self, x, y, batch_size, verbose, sample_weight, steps, **known)
            )
        if is_replicated:
            batches = replicated_data.batches_for(self, x, y, sample_weight, steps, batch_size=batch_size)
        else:
            batches = batches_of(x, y, sample_weight, steps)
            first_data.prepare(self, *batches.parts()[:2])
        if has_argument(published, "callbacks"):
            options["callbacks"] = [steps_as_sizes(), *(options.get("callbacks") or ())]
        return self.evaluate_generator(
            batches.read(), len(batches), verbose=verbose, **_callbacks(options), **_QUEUE
        )

    return evaluate


def _changed_predict(published: Method) -> Method:
    def predict(
        self: Any,
        x: Any,
        batch_size: int | None = None,
        verbose: int = 0,
        steps: int | None = None,
        **options: Any,
    ) -> Any:
        """The outputs; see the package. `x` may be a Dataset, an iterator or tensors."""
        if _is_generator(x):
            return self.predict_generator(x, steps, verbose=verbose, **options)
        is_replicated = replicated_models.strategy_of(self) is not None
        if not is_replicated and not is_symbolic(x):
            verbose = generator_loops.show_progress(self, published, verbose, options)
            return published(self, x, batch_size, verbose, steps, **_known(published, options))
        if is_replicated:
            batches = replicated_data.batches_for(self, x, steps=steps, batch_size=batch_size)
        else:
            batches = batches_of(x, steps=steps)
            first_data.prepare(self, batches.parts()[0])
        return self.predict_generator(
            batches.read(inputs_only=True),
            len(batches),
            verbose=verbose,
            **_callbacks(options),
            **_QUEUE,
        )

    return predict


def _callbacks(options: dict[str, Any]) -> dict[str, Any]:
    """The callbacks that were given, which Keras 2.2 does not take here."""
    return {"callbacks": options["callbacks"]} if options.get("callbacks") else {}


def _changed_on_batch(published: Method) -> Method:
    takes_targets, trains = has_argument(published, "y"), has_argument(published, "class_weight")

    @wraps(published)
    def on_batch(self: Any, x: Any, *arguments: Any, **options: Any) -> Any:
        if takes_targets and not arguments and "y" not in options:
            arguments = (None,)
        if trains and self.train_function is None:
            sessions.make_learning_phase()
        if not isinstance(x, np.ndarray) and is_symbolic(x):
            given = x, arguments, options
            tensors = [each for each in nest.flatten(given) if isinstance(each, tf.Tensor)]
            values = iter(own("backend").get_session().run(tensors))
            x, arguments, options = nest.map_structure(
                lambda each: next(values) if isinstance(each, tf.Tensor) else each, given
            )
        return published(self, x, *arguments, **options)

    return on_batch


def _changed_save_weights(published: Method) -> Method:
    def save_weights(
        self: Any, filepath: Any, overwrite: bool = True, save_format: str | None = None
    ) -> None:
        """Saves the weights: as HDF5 if the path ends so or `save_format` is 'h5', else as a checkpoint."""
        weight_checkpoints.restore_awaited(self)
        if weight_checkpoints.is_checkpoint(filepath, save_format):
            weight_checkpoints.save_weights(self, filepath)
        else:
            published(self, filepath, overwrite)

    return save_weights


def _changed_load_weights(published: Method) -> Method:
    def load_weights(self: Any, filepath: Any, by_name: bool = False, **options: Any) -> Any:
        """Loads the weights that `save_weights` saved, here or with TensorFlow."""
        if not weight_checkpoints.is_checkpoint(filepath):
            return published(self, filepath, by_name, **options)
        if by_name:
            raise NotImplementedError(
                "Weights may only be loaded based on topology into Models when loading TensorFlow-formatted "
                "weights (got by_name=True to load_weights)."
            )
        return weight_checkpoints.load_weights(self, filepath)

    return load_weights


def _with_awaited(published: Method) -> Method:
    """A method that makes a step, which then reads the weights of a checkpoint that was loaded before."""

    def make(self: Any, *arguments: Any, **keywords: Any) -> Any:
        made = published(self, *arguments, **keywords)
        weight_checkpoints.restore_awaited(self)
        return made

    make.__name__ = published.__name__
    return make


def _changed_save(_: Method) -> Method:
    def save(self: Any, filepath: Any, *arguments: Any, **keywords: Any) -> None:
        """Saves the model; see `tf.keras.models.save_model`, which takes the same arguments."""
        own("engine.saving").save_model(self, filepath, *arguments, **keywords)

    return save


def _save_as_saved_model(self: Any, path: str) -> None:
    """What `tf.saved_model.save` does with a model."""
    own("engine.saving").save_model(self, path, save_format="tf")


def _phase_is_fed(self: Any) -> bool:
    """Whether steps are fed the learning phase: wherever the graph has one that was not chosen."""
    return sessions.is_phase_symbolic()


_CHANGES: dict[str, Callable[[Method], Method]] = {
    "compile": _changed_compile,
    "evaluate": _changed_evaluate,
    "evaluate_generator": generator_loops.changed_evaluate_generator,
    "fit": _changed_fit,
    "fit_generator": generator_loops.changed_fit_generator,
    "load_weights": _changed_load_weights,
    "predict_on_batch": _changed_on_batch,
    "test_on_batch": _changed_on_batch,
    "train_on_batch": _changed_on_batch,
    "predict": _changed_predict,
    "predict_generator": generator_loops.changed_predict_generator,
    "save": _changed_save,
    "save_weights": _changed_save_weights,
    "_set_inputs": first_data.changed_set_inputs,
    "_standardize_user_data": first_data.changed_standardize,
}


_CHANGES_OF_LATER_KERAS: dict[str, Callable[[Method], Method]] = {
    "_handle_metrics": replicated_models.changed_handle_metrics,
    "_set_sample_weight_attributes": sample_weights.changed_attributes,
    "_prepare_total_loss": lambda _: replicated_models.changed_total_loss(prepare_total_loss),
}

_STEPS = {
    "train": step_functions.make_train_function,
    "test": step_functions.make_test_function,
    "predict": step_functions.make_predict_function,
}


def extend(module: ModuleType) -> None:
    """Gives the class `Model` of `keras.engine.training` what TensorFlow's has."""
    model: Any = vars(module)["Model"]
    for name, change in _CHANGES.items():
        setattr(model, name, change(getattr(model, name)))
    for name, change in _CHANGES_OF_LATER_KERAS.items():
        if hasattr(model, name):  # Keras 2.2 has neither
            setattr(model, name, change(getattr(model, name)))
    for kind, make in _STEPS.items():
        name = f"_make_{kind}_function"
        made = make if hasattr(model, "_get_training_eval_metrics") else getattr(model, name)
        setattr(model, name, _with_awaited(replicated_models.changed_make(made, kind)))
    for name in ("evaluate", "evaluate_generator", "fit", "fit_generator", "test_on_batch", "train_on_batch"):
        setattr(model, name, _if_compiled(getattr(model, name)))
    model._uses_dynamic_learning_phase = _phase_is_fed
    model._save_as_saved_model = _save_as_saved_model
    model.run_eagerly = False
