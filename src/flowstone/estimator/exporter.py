"""Exporters: which of the models that `train_and_evaluate` has evaluated are exported."""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import flowstone as tf
from flowstone.estimator.function_arguments import argument_names

__all__ = ["BestExporter", "Exporter", "FinalExporter", "LatestExporter"]


class Exporter(abc.ABC):
    """Is asked after each evaluation whether to export."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name of the folder of its exports."""

    @abc.abstractmethod
    def export(
        self,
        estimator: Any,
        export_path: Any,
        checkpoint_path: Any,
        eval_result: Any,
        is_the_final_export: bool,
    ) -> Any:
        """Exports a checkpoint, or not.

        Args:
            estimator: the Estimator.
            export_path: the folder of this exporter.
            checkpoint_path: the checkpoint that was evaluated; `eval_result`: its metrics by name.
            is_the_final_export: whether training has ended.

        Returns the path of the export, or None.
        """


class _ReceiverExporter(Exporter):
    """What the exporters here share: they export a SavedModel for serving."""

    def __init__(self, name: str, receiver_fn: Any, assets_extra: Any, as_text: bool) -> None:
        self._name, self._receiver_fn = name, receiver_fn
        self._assets_extra, self._as_text = assets_extra, as_text

    @property
    def name(self) -> str:
        """The name of the folder of its exports."""
        return self._name

    def _save(self, estimator: Any, folder: Any, checkpoint_path: Any) -> Any:
        return estimator.export_saved_model(
            folder, self._receiver_fn, assets_extra=self._assets_extra, as_text=self._as_text,
            checkpoint_path=checkpoint_path,
        )  # fmt: skip


class FinalExporter(_ReceiverExporter):
    """Exports once, when training has ended.

    Args:
        name: of the folder of its exports.
        serving_input_receiver_fn: returns a ServingInputReceiver.
        assets_extra: files by the paths they get below ``assets.extra``.
        as_text: whether the graph is written as text.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)

    def export(
        self,
        estimator: Any,
        export_path: Any,
        checkpoint_path: Any,
        eval_result: Any,
        is_the_final_export: bool,
    ) -> Any:
        """Exports the last model."""
        if not is_the_final_export:
            return None
        tf.logging.info("Performing the final export in the end of training.")
        return self._save(estimator, export_path, checkpoint_path)


class LatestExporter(_ReceiverExporter):
    """Exports after each evaluation, and keeps the latest.

    `exports_to_keep`: how many; None: all; ValueError if not positive. Other arguments: of `FinalExporter`.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError("`exports_to_keep`, if provided, must be positive number")
        self._exports_to_keep = exports_to_keep

    def export(
        self,
        estimator: Any,
        export_path: Any,
        checkpoint_path: Any,
        eval_result: Any,
        is_the_final_export: bool,
    ) -> Any:
        """Exports this model."""
        result = self._save(estimator, export_path, checkpoint_path)
        _remove_old(export_path, self._exports_to_keep)
        return result


def _loss_smaller(best_eval_result: Any, current_eval_result: Any) -> bool:
    """Whether the current loss is smaller; ValueError for results without loss."""
    for result, name in (
        (best_eval_result, "best_eval_result"),
        (current_eval_result, "current_eval_result"),
    ):
        if not result or "loss" not in result:
            raise ValueError(f"{name} cannot be empty or no loss is found in it.")
    return bool(best_eval_result["loss"] > current_eval_result["loss"])


class BestExporter(_ReceiverExporter):
    """Exports after an evaluation that is better than all before.

    Args:
        event_file_pattern: the event files below the model's folder that tell the best result of earlier
            runs; None: they do not count.
        compare_fn: a function of `best_eval_result` and `current_eval_result`, dicts of metrics, that says
            whether the current one is better.
        exports_to_keep: how many exports stay; None: all.

    Other arguments: of `FinalExporter`. Raises ValueError for other functions and numbers.
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Callable[[], Any] | None = None,
        event_file_pattern: str | None = "eval/*.tfevents.*",
        compare_fn: Callable[..., bool] = _loss_smaller,
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        if compare_fn is None:
            raise ValueError("`compare_fn` must not be None.")
        accepted = argument_names(compare_fn)
        for argument in ("best_eval_result", "current_eval_result"):
            if argument not in accepted:
                raise ValueError(f"compare_fn ({compare_fn}) must include {argument} argument.")
        if set(accepted) - {"best_eval_result", "current_eval_result"}:
            raise ValueError(f"compare_fn ({compare_fn}) has following not expected args: {list(accepted)}")
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError(
                f"`exports_to_keep`, if provided, must be a positive number. Got {exports_to_keep}"
            )
        self._compare_fn, self._event_file_pattern = compare_fn, event_file_pattern
        self._exports_to_keep = exports_to_keep
        self._model_dir: Any = None
        self._best_eval_result: Any = None

    def export(
        self,
        estimator: Any,
        export_path: Any,
        checkpoint_path: Any,
        eval_result: Any,
        is_the_final_export: bool,
    ) -> Any:
        """Exports this model if it is the best."""
        if self._model_dir != estimator.model_dir and self._event_file_pattern:
            tf.logging.info("Loading best metric from event files.")
            self._model_dir = estimator.model_dir
            pattern = os.path.join(self._model_dir, self._event_file_pattern)
            self._best_eval_result = self._best_so_far(pattern)
        best = self._best_eval_result
        if best is not None and not self._compare_fn(best_eval_result=best, current_eval_result=eval_result):
            return None
        tf.logging.info("Performing best model export.")
        self._best_eval_result = eval_result
        result = self._save(estimator, export_path, checkpoint_path)
        _remove_old(export_path, self._exports_to_keep)
        return result

    def _best_so_far(self, pattern: str) -> Any:
        """The best result in the event files, None if there is none."""
        best: Any = None
        for path in tf.gfile.Glob(pattern):
            for event in tf.train.summary_iterator(path):
                result = {value.tag: value.simple_value for value in event.summary.value
                          if value.HasField("simple_value")}  # fmt: skip
                if not result:
                    continue
                if best is None or self._compare_fn(best, result):
                    best = result
        return best


def _remove_old(folder: Any, keep: int | None) -> None:
    """Removes all exports of a folder but the latest ones."""
    if keep is None:
        return
    folder = folder.decode() if isinstance(folder, bytes) else folder
    for name in sorted(_exports(tf.gfile.ListDirectory(folder)), key=int)[:-keep]:
        try:
            tf.gfile.DeleteRecursively(os.path.join(folder, name))
        except tf.errors.NotFoundError as error:
            tf.logging.warning("Can not delete %s recursively: %s", os.path.join(folder, name), error)


def _exports(names: Iterable[str]) -> list[str]:
    return [name.rstrip("/") for name in names if name.rstrip("/").isdigit()]
