"""The signatures of exported models, the folders that they lie in, and strategies of exports.

An export is a folder of its own, named after the seconds of the clock. Its signatures are named
``INPUT:OUTPUT`` after the alternatives of inputs and outputs; one of them is `serving_default`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.learn import export_strategy
from flowstone.contrib.learn.constants import PredictionKey, ProblemType
from flowstone.contrib.learn.export_strategy import ExportStrategy
from flowstone.contrib.learn.utils import gc
from flowstone.contrib.learn.utils.input_fn_utils import build_parsing_serving_input_fn
from flowstone.estimator.saved_model_export import timestamped_directory

__all__ = [
    "DEFAULT_INPUT_ALTERNATIVE_KEY",
    "FEATURES_INPUT_ALTERNATIVE_KEY",
    "MAX_DIRECTORY_CREATION_ATTEMPTS",
    "BestModelSelector",
    "build_all_signature_defs",
    "build_standardized_signature_def",
    "export_strategy",
    "extend_export_strategy",
    "garbage_collect_exports",
    "get_input_alternatives",
    "get_most_recent_export",
    "get_output_alternatives",
    "get_temp_export_dir",
    "get_timestamped_export_dir",
    "make_best_model_export_strategy",
    "make_export_strategy",
    "make_parsing_export_strategy",
]

DEFAULT_INPUT_ALTERNATIVE_KEY = "default_input_alternative"
FEATURES_INPUT_ALTERNATIVE_KEY = "features_input_alternative"
MAX_DIRECTORY_CREATION_ATTEMPTS = 10
_FALLBACK_DEFAULT_OUTPUT_ALTERNATIVE_KEY = "default_output_alternative"
_SERVING = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY

# ---- signatures


def build_standardized_signature_def(
    input_tensors: Mapping[str, Any], output_tensors: Mapping[str, Any], problem_type: int
) -> Any:
    """The SignatureDef of inputs and outputs.

    From serialised Examples a classification or regression is served as such; anything else is a prediction.
    ValueError without inputs or outputs.
    """
    if not input_tensors:
        raise ValueError("input_tensors must be provided.")
    if not output_tensors:
        raise ValueError("output_tensors must be provided.")
    utils = tf.saved_model.signature_def_utils
    only = next(iter(input_tensors.values()))
    is_examples = (
        len(input_tensors) == 1 and not isinstance(only, tf.SparseTensor) and only.dtype == tf.string
    )
    if is_examples and problem_type in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
        classes = output_tensors.get(PredictionKey.CLASSES)
        scores = output_tensors.get(PredictionKey.SCORES)
        if scores is None:
            scores = output_tensors.get(PredictionKey.PROBABILITIES)
        text = classes if classes is not None and classes.dtype == tf.string else None
        if text is not None or scores is not None:
            return utils.classification_signature_def(only, text, scores)
    if is_examples and problem_type == ProblemType.LINEAR_REGRESSION:
        return utils.regression_signature_def(only, _regressed(output_tensors))
    return utils.predict_signature_def(dict(input_tensors), dict(output_tensors))


def _regressed(outputs: Mapping[str, Any]) -> Any:
    """The output of a regression: that named scores, or the only one."""
    if PredictionKey.SCORES in outputs:
        return outputs[PredictionKey.SCORES]
    if len(outputs) != 1:
        raise ValueError(f"a regression has one output, or one named scores: {sorted(outputs)}")
    return next(iter(outputs.values()))


def get_input_alternatives(input_ops: Any) -> tuple[dict[str, Any], Any]:
    """The alternatives of inputs by name, of which there is one, and the features, of InputFnOps.

    ValueError if these have no default inputs.
    """
    features, _, default_inputs = input_ops
    if not default_inputs:
        raise ValueError("input_fn must provide default_inputs to be exported.")
    return {DEFAULT_INPUT_ALTERNATIVE_KEY: default_inputs}, features


def get_output_alternatives(
    model_fn_ops: Any, default_output_alternative_key: Any = None
) -> tuple[dict[Any, Any], Any]:
    """The alternatives of outputs by name, and the default's name.

    Without alternatives of its own a model has its predictions. ValueError for an unknown default, and
    without one where there are several.
    """
    found, default = model_fn_ops.output_alternatives, default_output_alternative_key
    if not found:
        if default:
            raise ValueError(
                f"Requested default_output_alternative: {default}, but output_alternatives is unset."
            )
        predictions = model_fn_ops.predictions
        if not isinstance(predictions, dict):
            predictions = {PredictionKey.GENERIC: predictions}
        key = _FALLBACK_DEFAULT_OUTPUT_ALTERNATIVE_KEY
        return {key: (ProblemType.UNSPECIFIED, predictions)}, key
    if default is None and len(found) == 1:
        return found, next(iter(found))
    if default is None and None not in found:
        raise ValueError(
            "Please specify a default_output_alternative.  Available output_alternatives are: "
            f"{sorted(map(str, found))}"
        )
    if default not in found:
        raise ValueError(
            f"Requested default_output_alternative: {default}, but available output_alternatives are: "
            f"{sorted(found, key=str)}"
        )
    return found, default


def build_all_signature_defs(
    input_alternatives: Mapping[Any, Any],
    output_alternatives: Mapping[Any, Any],
    actual_default_output_alternative_key: Any,
) -> dict[str, Any]:
    """The SignatureDefs of all pairs of inputs and outputs, and the default; ValueError without one."""
    found = {
        f"{input_key}:{output_key}": build_standardized_signature_def(inputs, outputs, problem_type)
        for input_key, inputs in input_alternatives.items()
        for output_key, (problem_type, outputs) in output_alternatives.items()
    }
    inputs = input_alternatives.get(DEFAULT_INPUT_ALTERNATIVE_KEY)
    if not inputs:
        raise ValueError("A default input_alternative must be provided.")
    problem_type, outputs = output_alternatives[actual_default_output_alternative_key]
    return {**found, _SERVING: build_standardized_signature_def(inputs, outputs, problem_type)}


# ---- folders


def get_timestamped_export_dir(export_dir_base: Any) -> bytes:
    """The path of a new folder, named after the seconds of the clock; RuntimeError after ten tries."""
    return timestamped_directory(export_dir_base).encode()


def get_temp_export_dir(timestamped_export_dir: Any) -> bytes:
    """Where an export is written before it is whole."""
    folder, name = os.path.split(os.fsencode(timestamped_export_dir))
    return os.path.join(folder, b"temp-" + name)


def _exports(export_dir_base: Any) -> list[Any]:
    """The exports with their versions."""

    def parsed(path: Any) -> Any:
        name = os.path.basename(path.path)
        return path._replace(export_version=int(name)) if name.isdecimal() and len(name) == 10 else None

    return gc.get_paths(export_dir_base, parsed)


def get_most_recent_export(export_dir_base: Any) -> Any:
    """The latest export, a `gc.Path`; None without one."""
    found = gc.largest_export_versions(1)(_exports(export_dir_base))
    return found[0] if found else None


def garbage_collect_exports(export_dir_base: Any, exports_to_keep: int | None) -> None:
    """Deletes all exports but the latest ones; None keeps all."""
    if exports_to_keep is None:
        return
    for each in gc.negation(gc.largest_export_versions(exports_to_keep))(_exports(export_dir_base)):
        try:
            tf.gfile.DeleteRecursively(each.path)
        except tf.errors.NotFoundError as error:
            tf.logging.warning("Can not delete %s recursively: %s", each.path, error)


# ---- strategies


def make_export_strategy(
    serving_input_fn: Callable[[], Any],
    default_output_alternative_key: Any = None,
    assets_extra: Mapping[str, Any] | None = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """The ExportStrategy "Servo", which exports SavedModels and keeps the latest ones.

    Args:
        serving_input_fn: see `Estimator.export_savedmodel`, as are the arguments below.
        exports_to_keep: how many exports stay; None: all.
    """

    def export_fn(
        estimator: Any, export_dir_base: Any, checkpoint_path: Any = None, strip_default_attrs: bool = False
    ) -> Any:
        rest: dict[str, Any] = {
            "assets_extra": assets_extra, "as_text": as_text, "checkpoint_path": checkpoint_path,
            "strip_default_attrs": strip_default_attrs,
        }  # fmt: skip
        if isinstance(estimator, tf.estimator.Estimator):
            if default_output_alternative_key is not None:
                raise ValueError(
                    "default_output_alternative_key is not supported in core Estimator. Given: "
                    f"{default_output_alternative_key}"
                )
        else:
            rest["default_output_alternative_key"] = default_output_alternative_key
        result = estimator.export_savedmodel(export_dir_base, serving_input_fn, **rest)
        garbage_collect_exports(export_dir_base, exports_to_keep)
        return result

    return ExportStrategy("Servo", export_fn, strip_default_attrs)


def make_parsing_export_strategy(
    feature_columns: Any,
    default_output_alternative_key: Any = None,
    assets_extra: Mapping[str, Any] | None = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    target_core: bool = False,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """The strategy of `make_export_strategy` of a model that parses Examples, as feature columns say.

    `target_core`: whether the Estimator is one of `tf.estimator`, whose columns are those of
    `tf.feature_column`.
    """
    if target_core:
        spec = tf.feature_column.make_parse_example_spec(feature_columns)
        serving_input_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    else:
        spec = tf.contrib.layers.create_feature_spec_for_parsing(feature_columns)
        serving_input_fn = build_parsing_serving_input_fn(spec)
    return make_export_strategy(
        serving_input_fn, default_output_alternative_key, assets_extra, as_text, exports_to_keep,
        strip_default_attrs,
    )  # fmt: skip


def _has_smaller_loss(best: Mapping[str, Any], current: Mapping[str, Any]) -> bool:
    """Whether the current loss is the smaller one; ValueError if a result has none."""
    for result in (best, current):
        if not result or "loss" not in result:
            raise ValueError("results of evaluations must have the metric loss.")
    return bool(best["loss"] > current["loss"])


class BestModelSelector:
    """Remembers the best of evaluations.

    Args:
        event_file_pattern: a pattern of paths of event files, whose results are compared first.
        compare_fn: a function of the best results and the current ones: whether the latter are better. By
            default those of a smaller loss are. It may also come first, as in TensorFlow 1.4.
    """

    def __init__(
        self, event_file_pattern: Any = None, compare_fn: Callable[[Any, Any], Any] | None = None
    ) -> None:
        if callable(event_file_pattern):
            event_file_pattern, compare_fn = None, event_file_pattern
        self._best_eval_result: Any = None
        self._compare_fn = compare_fn or _has_smaller_loss
        for result in _logged_results(event_file_pattern):
            self.update("", result)

    def update(self, checkpoint_path: Any, eval_result: Any) -> tuple[Any, Any]:
        """The checkpoint and its results if they are the best so far; a pair of None otherwise."""
        if self._best_eval_result is not None and not self._compare_fn(self._best_eval_result, eval_result):
            return None, None
        self._best_eval_result = eval_result
        return checkpoint_path, eval_result


def make_best_model_export_strategy(
    serving_input_fn: Callable[[], Any],
    exports_to_keep: int | None = 1,
    model_dir: Any = None,
    event_file_pattern: str | None = None,
    compare_fn: Callable[[Any, Any], Any] | None = None,
    default_output_alternative_key: Any = None,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """The ExportStrategy "best_model", which exports only a model better than those before.

    `compare_fn`: see `BestModelSelector`; `model_dir`, `event_file_pattern`: the logs of earlier
    evaluations, below that folder; the rest as for `make_export_strategy`.
    """
    base = make_export_strategy(
        serving_input_fn, default_output_alternative_key, exports_to_keep=exports_to_keep
    )
    pattern = (
        os.path.join(os.fspath(model_dir), event_file_pattern) if model_dir and event_file_pattern else None
    )
    selector = BestModelSelector(pattern, compare_fn)

    def export_fn(estimator: Any, export_dir_base: Any, checkpoint_path: Any, eval_result: Any = None) -> Any:
        if not checkpoint_path:
            checkpoint_path = tf.train.latest_checkpoint(estimator.model_dir)
        chosen, _ = selector.update(checkpoint_path, eval_result)
        if chosen is None:
            return ""
        return base.export(estimator, export_dir_base, chosen, eval_result)

    return ExportStrategy("best_model", export_fn, strip_default_attrs)


def _logged_results(pattern: str | None) -> list[dict[str, float]]:
    """The results that event files hold, one a step."""
    found: list[dict[str, float]] = []
    if not pattern:
        return found
    for path in sorted(tf.gfile.Glob(pattern)):
        for event in tf.train.summary_iterator(path):
            values = {
                each.tag: each.simple_value for each in event.summary.value if each.HasField("simple_value")
            }
            if values:
                found.append(values)
    return found


def extend_export_strategy(
    base_export_strategy: ExportStrategy,
    post_export_fn: Callable[..., Any],
    post_export_name: str | None = None,
) -> ExportStrategy:
    """A strategy that calls a function of (export's path, folder) after another strategy's export.

    `post_export_name`: the name of the strategy; that of the base if None. Of the export the path that
    `post_export_fn` returns is the result; ValueError if that is not in the folder.
    """

    def export_fn(estimator: Any, export_dir_base: Any, checkpoint_path: Any = None) -> Any:
        temporary = os.path.join(os.fsdecode(export_dir_base), f"temp-{base_export_strategy.name}")
        made = base_export_strategy.export(estimator, temporary, checkpoint_path)
        result = post_export_fn(made, export_dir_base)
        if tf.gfile.Exists(temporary):
            tf.gfile.DeleteRecursively(temporary)
        if not os.fsdecode(result).startswith(os.fsdecode(export_dir_base)):
            raise ValueError("post_export_fn must return a path below the folder of exports.")
        return result

    return ExportStrategy(post_export_name or base_export_strategy.name, export_fn)
