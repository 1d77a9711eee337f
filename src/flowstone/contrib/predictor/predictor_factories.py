"""What makes Predictors: of a SavedModel, of an Estimator's model function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.predictor.predictor import Predictor
from flowstone.framework.names.refusals import refused_function

__all__ = ["from_contrib_estimator", "from_estimator", "from_saved_model"]

from_contrib_estimator = refused_function(
    "tf.contrib.predictor.from_contrib_estimator", "tf.contrib.predictor.from_estimator"
)


class SavedModelPredictor(Predictor):
    """A Predictor of a SavedModel."""


class CoreEstimatorPredictor(Predictor):
    """A Predictor of a `tf.estimator.Estimator`."""


def from_saved_model(
    export_dir: Any,
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: Mapping[str, str] | None = None,
    output_names: Mapping[str, str] | None = None,
    tags: str | None = None,
    graph: tf.Graph | None = None,
    config: Any = None,
) -> Predictor:
    """A Predictor of a SavedModel, whose inputs and outputs are those of a signature.

    Args:
        export_dir: the SavedModel's folder.
        signature_def_key: the signature's name, "serving_default" if None.
        signature_def: the signature itself.
        input_names, output_names: names of tensors by the names to call them by, instead of a signature.
        tags: which of its graphs, comma-separated; "serve" if None.
        graph: where to load it, a new graph if None.
        config: a ConfigProto.

    ValueError for a signature that is not there, and for more than one of these three ways.
    """
    if (signature_def_key is not None) + (signature_def is not None) + (input_names is not None) > 1:
        raise ValueError("You must specify at most one of signature_def_key, signature_def and input_names.")
    if (input_names is None) != (output_names is None):
        raise ValueError("input_names and output_names must both be specified or both be unspecified.")
    graph = graph if graph is not None else tf.Graph()
    with graph.as_default():
        session = tf.Session(config=config)
        model = tf.saved_model.loader.load(session, (tags or "serve").split(","), export_dir)
    if input_names is None or output_names is None:
        signature = signature_def or _signature(model, signature_def_key or "serving_default")
        return SavedModelPredictor(session, *_tensors(graph, signature))
    feeds = {name: graph.get_tensor_by_name(each) for name, each in input_names.items()}
    fetches = {name: graph.get_tensor_by_name(each) for name, each in output_names.items()}
    return SavedModelPredictor(session, feeds, fetches)


def _tensors(graph: tf.Graph, signature: Any) -> list[dict[str, Any]]:
    """A signature's inputs and outputs by the names to call them by."""
    return [
        {name: graph.get_tensor_by_name(info.name) for name, info in infos.items()}
        for infos in (signature.inputs, signature.outputs)
    ]


def _signature(model: Any, key: str) -> Any:
    if key not in model.signature_def:
        names = sorted(model.signature_def)
        raise ValueError(f"Got signature_def_key {key!r}; the SavedModel has the signatures {names}.")
    return model.signature_def[key]


def from_estimator(
    estimator: Any,
    serving_input_receiver_fn: Callable[[], Any],
    output_key: str | None = None,
    graph: tf.Graph | None = None,
    config: Any = None,
) -> Predictor:
    """A Predictor of an Estimator's latest checkpoint, whose inputs are those of the output's signature.

    That is `inputs` for the serialised Examples of a classification or a regression.

    Args:
        estimator: a `tf.estimator.Estimator`.
        serving_input_receiver_fn: makes the inputs, a ServingInputReceiver.
        output_key: which of the model's export outputs, the default one if None.
        graph: where to build it, a new graph if None.
        config: a ConfigProto.

    TypeError for other estimators, ValueError for an output that is not there or an Estimator without a
    checkpoint.
    """
    if not isinstance(estimator, tf.estimator.Estimator):
        raise TypeError(f"Expected a tf.estimator.Estimator, not a {type(estimator).__name__}")
    path = estimator.latest_checkpoint()
    if path is None:
        raise ValueError(f"Could not find a checkpoint in {estimator.model_dir}.")
    graph = graph if graph is not None else tf.Graph()
    with graph.as_default():
        tf.train.get_or_create_global_step()
        receiver = serving_input_receiver_fn()
        spec = estimator.model_fn(
            features=receiver.features,
            labels=None,
            mode=tf.estimator.ModeKeys.PREDICT,
            config=estimator.config,
        )
        key = output_key or tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        if key not in spec.export_outputs:
            names = sorted(spec.export_outputs)
            raise ValueError(f"Got output_key {key!r}; the model has the export outputs {names}.")
        signature = spec.export_outputs[key].as_signature_def(receiver.receiver_tensors)
        creator = tf.train.ChiefSessionCreator(
            scaffold=spec.scaffold, config=config, checkpoint_filename_with_path=path
        )
        session = creator.create_session()
    return CoreEstimatorPredictor(session, *_tensors(graph, signature))
