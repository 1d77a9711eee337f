"""SavedModels of a model function: its graphs, restored from a checkpoint, a signature for each output."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf
from flowstone.estimator.export.export_output import EvalOutput, TrainOutput
from flowstone.estimator.mode_keys import ModeKeys
from flowstone.training.sessions.scaffold import default_local_init_op

__all__ = ["build_signatures", "export_all_modes", "timestamped_directory"]

_ATTEMPTS = 10
_TAGS = {ModeKeys.PREDICT: ["serve"], ModeKeys.TRAIN: ["train"], ModeKeys.EVAL: ["eval"]}
_KINDS = {
    "Classify": "tensorflow/serving/classify",
    "Regress": "tensorflow/serving/regress",
    "Predict": "tensorflow/serving/predict",
    "Train": TrainOutput._method_name,
    "Eval": EvalOutput._method_name,
}
_NOT_RESTORED = (
    "Could not load all requested variables from checkpoint. Please make sure your model_fn does not expect "
    "variables that were not saved in the checkpoint."
)


def export_all_modes(
    build: Callable[[Any, str], tuple[Any, Any]],
    receiver_fns: Mapping[str, Callable[[], Any]],
    folder: Any,
    checkpoint_path: str,
    session_config: Any,
    assets_extra: Mapping[str, Any] | None = None,
    as_text: bool = False,
    strip_default_attrs: bool = True,
    export_tags: Any = None,
) -> bytes:
    """Exports a graph for each mode into a new folder, which appears when it is whole; returns its path.

    Args:
        build: a function of a receiver function and a mode that adds the model to the default graph, and
            returns the receiver and the EstimatorSpec.
        receiver_fns: the receiver functions by mode; `folder`: where the new folder is made.
        checkpoint_path: the values; `session_config`: the ConfigProto.
        assets_extra: files by their paths below assets.extra.
        as_text, strip_default_attrs: see `SavedModelBuilder`; `export_tags`: in place of the mode's.

    Raises ValueError without a known mode, and where the checkpoint lacks variables.
    """
    modes = [mode for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT) if receiver_fns.get(mode)]
    if not modes:
        raise ValueError(f"No valid modes for exporting found. Got {list(receiver_fns)}.")
    export_dir = timestamped_directory(folder)
    temporary = _join(os.path.dirname(export_dir), f"temp-{os.path.basename(export_dir)}")
    builder = tf.saved_model.builder.SavedModelBuilder(temporary)
    for mode in modes:
        with tf.Graph().as_default():
            receiver, spec = build(receiver_fns[mode], mode)
            _add_graph(builder, receiver, spec, mode, export_tags, {
                "checkpoint_path": checkpoint_path, "session_config": session_config,
                "strip": strip_default_attrs, "first": mode == modes[0],
            })  # fmt: skip
    builder.save(as_text)
    _copy_assets(assets_extra, temporary)
    tf.gfile.Rename(temporary, export_dir)
    return export_dir.encode()


def _copy_assets(assets_extra: Mapping[str, Any] | None, folder: str) -> None:
    for name, source in (assets_extra or {}).items():
        target = _join(folder, "assets.extra", name)
        tf.gfile.MakeDirs(os.path.dirname(target))
        tf.gfile.Copy(source, target)


def _add_graph(
    builder: Any, receiver: Any, spec: Any, mode: str, export_tags: Any, how: dict[str, Any]
) -> None:
    signatures = build_signatures(
        receiver.receiver_tensors,
        _outputs(spec, mode),
        getattr(receiver, "receiver_tensors_alternatives", None),
        serving_only=mode == ModeKeys.PREDICT,
    )
    with tf.Session(config=how["session_config"]) as session:
        local_init_op = spec.scaffold.local_init_op
        if local_init_op is None:
            local_init_op = default_local_init_op()
        saver = spec.scaffold.saver or tf.train.Saver(sharded=True)
        try:
            saver.restore(session, how["checkpoint_path"])
        except tf.errors.NotFoundError as error:
            raise ValueError(_NOT_RESTORED) from error
        arguments: dict[str, Any] = {
            "tags": _TAGS[mode] if export_tags is None else export_tags,
            "signature_def_map": signatures,
            "assets_collection": tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            "main_op": local_init_op,
            "saver": saver,
            "strip_default_attrs": how["strip"],
        }
        if how["first"]:
            builder.add_meta_graph_and_variables(session, **arguments)
        else:
            builder.add_meta_graph(**arguments)


def _outputs(spec: Any, mode: str) -> dict[str, Any]:
    if mode == ModeKeys.PREDICT:
        if not spec.export_outputs:
            raise ValueError("export_outputs must be defined to export a SavedModel.")
        return spec.export_outputs  # type: ignore[no-any-return]
    metrics = {
        name: (metric.result(), metric.updates[0]) if hasattr(metric, "result") else metric
        for name, metric in spec.eval_metric_ops.items()
    }
    kind = TrainOutput if mode == ModeKeys.TRAIN else EvalOutput
    return {mode: kind(loss=spec.loss, predictions=spec.predictions, metrics=metrics)}


def build_signatures(
    receiver_tensors: Any,
    export_outputs: Mapping[Any, Any],
    alternatives: Mapping[str, Any] | None = None,
    serving_only: bool = True,
) -> dict[str, Any]:
    """The SignatureDefs of all outputs from the receivers; those that do not fit are left out and logged.

    Args:
        receiver_tensors: a tensor or a dict of tensors.
        export_outputs: ExportOutputs by signature.
        alternatives: further receivers by name; their signatures are ``name:signature``.
        serving_only: whether signatures that no server takes are left out.
    """
    found: dict[str, Any] = {}
    excluded: dict[str, str] = {}
    sets = [
        ("", receiver_tensors),
        *((f"{name}:", tensors) for name, tensors in (alternatives or {}).items()),
    ]
    for prefix, receivers in sets:
        if not isinstance(receivers, dict):
            receivers = {"input": receivers}
        for name, output in export_outputs.items():
            key = f"{prefix}{name or 'None'}"
            try:
                found[key] = output.as_signature_def(receivers)
            except ValueError as error:
                excluded[key] = str(error)
    _log(found, excluded)
    valid = tf.saved_model.signature_def_utils.is_valid_signature
    return {key: each for key, each in found.items() if not serving_only or valid(each)}


def _log(found: dict[str, Any], excluded: dict[str, str]) -> None:
    for kind, method in _KINDS.items():
        names = [name for name, each in found.items() if each.method_name == method]
        tf.logging.info("Signatures INCLUDED in export for %s: %s", kind, names or None)
    if excluded:
        tf.logging.info(
            "Signatures EXCLUDED from export because they cannot be be served via TensorFlow Serving APIs:"
        )
        for name, message in excluded.items():
            tf.logging.info("'%s' : %s", name, message)
    if not found:
        tf.logging.warning("Export includes no signatures!")
    elif tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY not in found and not any(
        each.method_name in (TrainOutput._method_name, EvalOutput._method_name) for each in found.values()
    ):
        tf.logging.warning("Export includes no default signature!")


def timestamped_directory(folder: Any) -> str:
    """The path of a folder that is not there, named after the seconds of the clock.

    RuntimeError if ten of them are there.
    """
    base = folder.decode() if isinstance(folder, bytes) else os.fspath(folder)
    for _ in range(_ATTEMPTS):
        path = _join(base, str(int(time.time())))
        if not tf.gfile.Exists(path):
            return path
        time.sleep(1)
    raise RuntimeError(f"Failed to obtain a unique export directory name after {_ATTEMPTS} attempts.")


def _join(*parts: str) -> str:
    return "/".join([*(part.rstrip("/") for part in parts[:-1]), parts[-1]])
