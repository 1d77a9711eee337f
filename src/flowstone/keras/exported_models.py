"""Models of `tf.keras` as SavedModels: for serving, with what makes the same model again.

A folder that is written here has, beside the SavedModel:

    assets/saved_model.json       the model's configuration
    assets/training_config.json   its optimiser, losses and metrics, if it is compiled
    assets/weights.*              a checkpoint of its weights and its optimiser's, by their places in it

`export_saved_model` puts the weights into `variables` by their places, too, beside those by name that the
graphs restore: there TensorFlow 1.15 looks for them. Its `save(…, save_format="tf")` writes the configuration
into the root of the SavedModel's graph of objects, and the weights into `variables`. That is read as well.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Mapping
from typing import Any

import flowstone as tf
from flowstone.io.checkpoint_files.bundle_writer import merge_bundles
from flowstone.io.proto import saved_model_pb2
from flowstone.keras import estimator, revived_models, served_objects, weight_checkpoints
from flowstone.keras.published import own

__all__ = [
    "export_saved_model",
    "is_format_of_folder",
    "is_saved_model",
    "load",
    "load_from_saved_model",
    "save",
]

_CONFIG, _TRAINING, _WEIGHTS = "assets/saved_model.json", "assets/training_config.json", "assets/weights"
_OF_TENSORFLOW = "variables/variables"


def is_saved_model(path: Any) -> bool:
    """Whether `path` is the folder of a SavedModel."""
    return isinstance(path, str) and tf.saved_model.loader.maybe_saved_model_directory(path)


def is_format_of_folder(path: Any, save_format: str | None) -> bool:
    """Whether a model of this path and format is saved as a folder; ValueError for an unknown format."""
    name = (save_format or "h5").lower()
    if name not in ("tf", "tensorflow", "h5", "hdf5", "keras"):
        raise ValueError(f"Unknown format {save_format!r}. Was expecting one of {{'tf', 'h5'}}.")
    return name.startswith("t") and isinstance(path, (str, os.PathLike))


def export_saved_model(
    model: Any,
    saved_model_path: str,
    custom_objects: Any = None,
    as_text: bool = False,
    input_signature: Any = None,
    serving_only: bool = False,
) -> None:
    """Writes a model as a SavedModel, from which `load_from_saved_model` makes it again.

    Args:
        model: a Sequential or a model of layers between tensors; for serving also one of a program's class.
        saved_model_path: the new folder.
        custom_objects: classes that the configuration names, by name.
        as_text: whether the SavedModel is a text.
        input_signature: ignored; the inputs are those that the model has.
        serving_only: whether graphs of training and evaluation are left out, which a compiled model has.

    Raises NotImplementedError for a model of a program's own class unless `serving_only`, ValueError for one
    without inputs, AssertionError if the folder exists and is not empty.
    """
    is_graph = _has_configuration(model)
    if not is_graph and not serving_only:
        raise NotImplementedError(
            "Subclassed models can only be exported for serving. Please set argument serving_only=True."
        )
    _export(model, saved_model_path, as_text, serving_only or not getattr(model, "optimizer", None))
    if is_graph:
        _write(saved_model_path, _CONFIG, model.to_json())
        _add_weights(model, saved_model_path)


def load_from_saved_model(saved_model_path: str, custom_objects: Any = None) -> Any:
    """The model that `export_saved_model` wrote, here or in TensorFlow 1: not compiled, with its weights.

    Raises IOError if the folder has no configuration of a model.
    """
    config = _read(saved_model_path, _CONFIG)
    if config is None:
        raise OSError(f"{saved_model_path} has no file {_CONFIG}, from which the model could be made.")
    model = own("models").model_from_json(config, custom_objects=custom_objects)
    _load_weights(model, saved_model_path, with_optimizer=False)
    return model


save_keras_model, load_keras_model = export_saved_model, load_from_saved_model  # in tf.contrib.saved_model


def save(model: Any, path: str, overwrite: bool = True, include_optimizer: bool = True) -> None:
    """Writes a model as a SavedModel for serving, from which `load` makes it again.

    `tf.saved_model.load_v2` makes a callable object of it, unless it uses what functions do not take.

    Raises OSError if the folder is there and `overwrite` is False.
    """
    if tf.gfile.Exists(path):
        if not overwrite:
            raise OSError(f"{path} exists, and overwrite is False.")
        if is_saved_model(path):
            tf.gfile.DeleteRecursively(path)
    if not model.inputs:
        raise ValueError("Model cannot be saved because the input shapes have not been set.")
    try:
        served_objects.save(model, path)
    except (AssertionError, ValueError):  # functions do not take what it uses
        _export(model, path, as_text=False, serving_only=True)
    origin = json.dumps({"class_name": type(model).__name__, "name": model.name})
    _write(path, _CONFIG, model.to_json() if _has_configuration(model) else origin)
    if include_optimizer and getattr(model, "optimizer", None):
        _write(path, _TRAINING, json.dumps(_training_config(model), default=_plain))
    _write_weights(model, path, with_optimizer=include_optimizer)


def load(path: str, custom_objects: Any = None, compile: bool = True) -> Any:
    """The model that `save` wrote, here or in TensorFlow 1.15: compiled, if it was and `compile` is True.

    A model of a program's class comes as one of a class of that name that calls the functions of the
    SavedModel. Raises ValueError for a SavedModel that is not of a model of `tf.keras`.
    """
    config, training = _read(path, _CONFIG), _read(path, _TRAINING)
    if config is None:
        config, training = _of_tensorflow(path)
    if config is None:
        raise ValueError(
            f"{path} is a SavedModel, but not of a tf.keras model; use tf.saved_model.loader.load."
        )
    origin = _origin(json.loads(config))
    if origin is not None:
        model = revived_models.revive(path, origin)
    else:
        model = own("models").model_from_json(config, custom_objects=custom_objects)
    if training is not None and compile:
        _compile(model, json.loads(training), custom_objects)
    elif compile:
        text = "No training configuration found in save file: the model was *not* compiled."
        warnings.warn(text, stacklevel=3)
    if origin is None:
        _load_weights(model, path, with_optimizer=training is not None and compile)
    return model


def _origin(config: dict[str, Any]) -> revived_models.Origin | None:
    """What is known of a model that has no configuration of its layers; None if it has one."""
    if config.get("config") is not None:
        return None
    name = config["class_name"]
    return revived_models.Origin(
        name, config.get("name") or name.lower(), config.get("expects_training_arg", True)
    )


# ---- the SavedModel


def _has_configuration(model: Any) -> bool:
    return bool(getattr(model, "_is_graph_network", False)) or isinstance(
        model, own("engine.sequential").Sequential
    )


def _export(model: Any, path: str, as_text: bool, serving_only: bool) -> None:
    """Writes graphs of the model for serving, and for training and evaluation, with its weights."""
    if tf.gfile.Exists(path) and tf.gfile.ListDirectory(path):
        raise AssertionError(
            "Export directory already exists, and isn't empty. Please choose a different export directory, "
            f"or delete all the contents of the specified directory: {path}"
        )
    if not model.inputs:
        raise ValueError("Model cannot be saved because the input shapes have not been set.")
    if not _has_configuration(model):
        session = own("backend").get_session()
        inputs = dict(zip(model.input_names, model.inputs))
        tf.saved_model.simple_save(session, path, inputs, dict(zip(model.output_names, model.outputs)))
        return
    modes = tf.estimator.ModeKeys
    receivers = {modes.PREDICT: lambda: _serving_receiver(model)}
    if not serving_only:
        receivers |= {mode: lambda: _supervised_receiver(model) for mode in (modes.TRAIN, modes.EVAL)}
    with tempfile.TemporaryDirectory() as folder:
        exporter = estimator.estimator_of(model, folder)
        checkpoint = _checkpoint(exporter, receivers, modes.PREDICT if serving_only else modes.TRAIN)
        made = exporter.experimental_export_all_saved_models(
            folder, receivers, as_text=as_text, checkpoint_path=checkpoint
        )
        if tf.gfile.Exists(path):
            tf.gfile.DeleteRecursively(path)
        parent = path.rstrip("/").rpartition("/")[0]
        if parent:
            tf.gfile.MakeDirs(parent)
        _copy_tree(made.decode(), path)


def _copy_tree(source: str, target: str) -> None:
    tf.gfile.MakeDirs(target)
    for name in tf.gfile.ListDirectory(source):
        name = name.rstrip("/")
        if tf.gfile.IsDirectory(f"{source}/{name}"):
            _copy_tree(f"{source}/{name}", f"{target}/{name}")
        else:
            tf.gfile.Copy(f"{source}/{name}", f"{target}/{name}", overwrite=True)


def _checkpoint(exporter: Any, receivers: Mapping[str, Any], mode: str) -> str:
    """The checkpoint of the variables that the graph of `mode` has, with the model's weights."""
    with tf.Graph().as_default(), tf.Session() as session:
        _, spec = exporter._build_export(receivers[mode], mode)
        session.run(tf.global_variables_initializer())
        spec.scaffold.init_fn(session)
        saved: str = tf.train.Saver().save(session, f"{exporter.model_dir}/model.ckpt")
        return saved


def _placeholders(tensors: Any, names: Any) -> dict[str, Any]:
    return {
        name: tf.placeholder(tensor.dtype.base_dtype, tensor.shape, name)
        for tensor, name in zip(tensors, names)
    }


def _serving_receiver(model: Any) -> Any:
    features = _placeholders(model.inputs, model.input_names)
    return tf.estimator.export.ServingInputReceiver(features, features)


def _supervised_receiver(model: Any) -> Any:
    features = _placeholders(model.inputs, model.input_names)
    targets = _placeholders(model.targets, [f"{name}_target" for name in model.output_names])
    labels = dict(zip(model.output_names, targets.values()))
    return tf.estimator.export.SupervisedInputReceiver(features, labels, {**features, **targets})


# ---- configurations


def _write(folder: str, name: str, text: str) -> None:
    tf.gfile.MakeDirs(f"{folder}/assets")
    with tf.gfile.GFile(f"{folder}/{name}", "w") as file:
        file.write(text)


def _read(folder: str, name: str) -> str | None:
    if not tf.gfile.Exists(f"{folder}/{name}"):
        return None
    with tf.gfile.GFile(f"{folder}/{name}") as file:
        return str(file.read())


def _training_config(model: Any) -> dict[str, Any]:
    """What `compile` was called with, as files of HDF5 have it."""
    optimizer = model.optimizer
    return {
        "optimizer_config": {"class_name": type(optimizer).__name__, "config": optimizer.get_config()},
        "loss": model.loss,
        "metrics": getattr(model, "_compile_metrics", None) or getattr(model, "metrics", None),
        "weighted_metrics": getattr(model, "_compile_weighted_metrics", None),
        "sample_weight_mode": model.sample_weight_mode,
        "loss_weights": model.loss_weights,
    }


def _plain(value: Any) -> Any:
    """What stands for a value that JSON has no form for: a configuration, a number or a name."""
    if hasattr(value, "get_config"):
        return {"class_name": type(value).__name__, "config": value.get_config()}
    if hasattr(value, "item"):
        return value.item()
    return getattr(value, "__name__", str(value))


def _of_tensorflow(path: str) -> tuple[str | None, str | None]:
    """The configurations of the model and of its training in a SavedModel of TensorFlow's."""
    saved = saved_model_pb2.SavedModel()
    with tf.gfile.GFile(f"{path}/saved_model.pb", "rb") as file:
        saved.ParseFromString(file.read())
    for meta in saved.meta_graphs:
        nodes = meta.object_graph_def.nodes
        text = nodes[0].user_object.metadata if nodes else ""
        found = json.loads(text) if text.startswith("{") else {}
        if "model_config" in found or "config" in found:
            own_keys = ("class_name", "config", "name", "expects_training_arg")
            config = {**{key: found.get(key) for key in own_keys}, **found.get("model_config", {})}
            training = found.get("training_config")
            return json.dumps(config), None if training is None else json.dumps(training)
    return None, None


def _compile(model: Any, training: dict[str, Any], custom_objects: Any) -> None:
    optimizer = own("optimizers").deserialize(training["optimizer_config"], custom_objects=custom_objects)
    loss = training["loss"]
    if isinstance(loss, dict) and "class_name" in loss:
        loss = own("losses").get(loss)
    model.compile(
        optimizer,
        loss,
        training.get("metrics"),
        loss_weights=training.get("loss_weights"),
        sample_weight_mode=training.get("sample_weight_mode"),
        weighted_metrics=training.get("weighted_metrics"),
    )


# ---- weights


def _write_weights(model: Any, folder: str, with_optimizer: bool) -> None:
    tf.gfile.MakeDirs(f"{folder}/assets")
    checkpoint = weight_checkpoints.checkpoint_of(model, with_optimizer)
    checkpoint.write(f"{folder}/{_WEIGHTS}", own("backend").get_session())


def _add_weights(model: Any, folder: str) -> None:
    """Adds the weights by their places in the model to the checkpoint that the graphs restore."""
    variables, weights = f"{folder}/{_OF_TENSORFLOW}", f"{folder}/variables/weights"
    checkpoint = weight_checkpoints.checkpoint_of(model, with_optimizer=False)
    merge_bundles([variables, checkpoint.write(weights, own("backend").get_session())], variables)


def _load_weights(model: Any, folder: str, with_optimizer: bool) -> None:
    is_ours = tf.gfile.Exists(f"{folder}/{_WEIGHTS}.index")
    if with_optimizer:
        model._make_train_function()  # makes the optimiser's variables
    path = f"{folder}/{_WEIGHTS if is_ours else _OF_TENSORFLOW}"
    weight_checkpoints.load_weights(model, path)
